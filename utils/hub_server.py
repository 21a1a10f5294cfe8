"""A local stand-in for the Hugging Face Hub: enough of its HTTP interface to publish a dataset and to load it.

In a test, with huggingface_hub in another process (it reads its endpoint when it is imported):

    with HubServer() as server:
        server.put("org/name", {"README.md": b"…"}, tag="v1")
        subprocess.run(command, env={**os.environ, **server.environment(cache)})
        assert server.count("GET", "/resolve/") == 1

Everything is kept in memory. Files that the real Hub keeps outside git (videos, parquet, all above ten megabytes) are
sent and hashed as it does; transfers by its own protocol (xet) are not played, so clients are told to use none.
"""

import base64
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

Kind = Literal["status", "cut", "corrupt", "short"]

LFS_ENDINGS = (".mp4", ".mkv", ".webm", ".parquet")
LFS_BYTES = 10 << 20
ZERO = "0" * 40


@dataclass(frozen=True)
class Fault:
    """One way in which a request goes wrong.

    Attributes:
        kind: "status" (an HTTP error), "cut" (the connection closes within the body), "corrupt" (one byte of the body
            is another one), "short" (a smaller body that pretends to be whole).
        status: HTTP status of kind "status".
        retry_after: Its `Retry-After` header in seconds; None sends no header.
        after: Bytes of the body before "cut".
    """

    kind: Kind
    status: int = 500
    retry_after: float | None = None
    after: int = 0


FaultFunction = Callable[[str, str, int], Fault | None]


@dataclass(frozen=True)
class Request:
    """A request that was answered: its method, its path without the query, and the status of the answer."""

    method: str
    path: str
    status: int


@dataclass(frozen=True)
class _Blob:
    """A file's content, and how the Hub keeps it."""

    content: bytes
    lfs: bool

    @property
    def git_sha(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.git_sha

    def describe(self, path: str) -> dict[str, Any]:
        """An entry of a tree."""
        lfs = {"oid": self.sha256, "size": len(self.content), "pointerSize": 134} if self.lfs else None
        entry = {"type": "file", "path": path, "size": len(self.content), "oid": self.git_sha}
        return {**entry, "lfs": lfs} if lfs else entry


_Tree = dict[str, _Blob]


@dataclass
class _Repo:
    """A repository: its commits in order, and what its branch and tags point to."""

    private: bool = False
    commits: dict[str, _Tree] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        return next(reversed(self.commits))

    def resolve(self, revision: str) -> str | None:
        """The commit of a branch, tag or commit."""
        if revision == "main":
            return self.head
        return self.tags.get(revision) or (revision if revision in self.commits else None)

    def commit(self, tree: _Tree) -> str:
        """Adds a commit after the last one."""
        names = json.dumps([len(self.commits), sorted((path, blob.etag) for path, blob in tree.items())])
        oid = hashlib.sha1(names.encode()).hexdigest()
        self.commits[oid] = tree
        return oid


class HubServer:
    """The server; it listens while its `with` block runs.

    Attributes:
        requests: What was asked so far, in the order of the answers.
        faults: Called with a request's method, its path, and how many like it there were before; returns what goes
            wrong with it, if anything does.
        page: Files in one page of a tree.
        token: What writing, and reading what is private, needs.
    """

    def __init__(self, faults: FaultFunction | None = None, *, page: int = 1000, token: str = "hf_local") -> None:
        """Prepare the server; nothing listens yet."""
        self.faults = faults
        self.page = page
        self.token = token
        self.requests: list[Request] = []
        self.lock = threading.RLock()
        self._repos: dict[str, _Repo] = {}
        self._stored: dict[str, bytes] = {}
        self._asked: Counter[tuple[str, str]] = Counter()
        self._http: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """The endpoint, as in `http://127.0.0.1:8000`."""
        assert self._http is not None
        return f"http://127.0.0.1:{self._http.server_port}"

    def environment(self, cache: Path) -> dict[str, str]:
        """What a process needs in its environment to take this for the Hub.

        Args:
            cache: Its folder for all that it downloads.
        """
        return {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(cache),
            "HF_TOKEN": self.token,
            "HF_HUB_OFFLINE": "0",
            "HF_DATASETS_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "127.0.0.1",
        }

    def put(self, repo: str, files: Mapping[str, bytes], tag: str | None = None, private: bool = False) -> str:
        """Commit files without a request, in place of all that was there, and return the commit.

        Args:
            repo: `ORG/NAME`.
            files: Path -> content; a path may be anything.
            tag: Name for the commit.
            private: Whether reading needs the token.
        """
        with self.lock:
            found = self._repos.setdefault(repo, _Repo(private))
            commit = found.commit({path: _blob(path, content) for path, content in files.items()})
            if tag:
                found.tags[tag] = commit
            return commit

    def files(self, repo: str, revision: str = "main") -> dict[str, bytes]:
        """Path -> content of the files of a repository; empty for a revision that does not exist."""
        found = self._repos[repo]
        return {path: blob.content for path, blob in found.commits.get(found.resolve(revision) or "", {}).items()}

    def commits(self, repo: str) -> list[str]:
        """The commits of a repository, the oldest first, without the empty one that it began with."""
        return [commit for commit, tree in self._repos[repo].commits.items() if tree]

    def tags(self, repo: str) -> dict[str, str]:
        """Tag -> commit."""
        return dict(self._repos[repo].tags)

    def count(self, method: str, part: str = "") -> int:
        """How many requests of a method had a part in their path."""
        return sum(request.method == method and part in request.path for request in list(self.requests))

    def fault(self, method: str, path: str) -> Fault | None:
        """Look up what goes wrong with a request."""
        with self.lock:
            number = self._asked[method, path]
            self._asked[method, path] += 1
        return self.faults(method, path, number) if self.faults else None

    def answer(self, request: "_Handler") -> "_Answer":
        """Decide on the answer to a request."""
        parts = urlsplit(request.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        for methods, pattern, route in _ROUTES:
            match = re.fullmatch(pattern, parts.path)
            if match and request.command in methods.split():
                names = {name: unquote(text) for name, text in match.groupdict().items() if text is not None}
                with self.lock:
                    try:
                        return self._refusal(request) or route(self, request, query, **names)
                    except Exception as error:
                        # A client would ask again and again after a status of 500.
                        return _json({"error": f"The stand-in itself failed: {error!r}"}, 400)
        return _missing("EntryNotFound")

    def __enter__(self) -> "HubServer":
        """Start to listen."""
        self._http = _HTTPServer(self)
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop to listen."""
        if self._http:
            self._http.shutdown()
            self._http.server_close()

    # The routes, each called with the lock held.

    def _tree_of(self, repo: str, revision: str) -> tuple[str, _Tree] | None:
        commit = self._repos[repo].resolve(revision)
        return (commit, self._repos[repo].commits[commit]) if commit else None

    def _create(self, request: "_Handler", _: Any) -> "_Answer":
        body = request.json()
        name = f"{body.get('organization') or 'someone'}/{body['name']}"
        exists = name in self._repos
        if not exists:
            private = bool(body.get("private")) or body.get("visibility") == "private"
            self._repos[name] = _Repo(private, {ZERO: {}})
        return _json({"url": f"{self.url}/datasets/{name}", "name": name}, 409 if exists else 200)

    def _info(self, request: "_Handler", query: Any, repo: str, revision: str = "main") -> "_Answer":
        found = self._tree_of(repo, revision)
        if not found:
            return _missing("RevisionNotFound")
        commit, tree = found
        siblings = [{"rfilename": path} for path in tree]
        return _json(
            {"id": repo, "sha": commit, "siblings": siblings, "private": self._repos[repo].private, "tags": []}
        )

    def _list(self, request: "_Handler", query: Any, repo: str, revision: str, path: str = "") -> "_Answer":
        found = self._tree_of(repo, revision)
        if not found:
            return _missing("RevisionNotFound")
        below = f"{path}/" if path else ""
        every = [blob.describe(name) for name, blob in found[1].items() if name.startswith(below)]
        if below and not every:
            return _missing("EntryNotFound")
        if query.get("recursive", "").lower() != "true":
            folders = {
                entry["path"][len(below) :].split("/")[0] for entry in every if "/" in entry["path"][len(below) :]
            }
            every = [entry for entry in every if "/" not in entry["path"][len(below) :]]
            every += [{"type": "directory", "path": below + name, "size": 0, "oid": ZERO} for name in sorted(folders)]
        start = int(query.get("cursor", 0))
        answer = _json(every[start : start + self.page])
        if start + self.page < len(every):
            following = f"{self.url}{urlsplit(request.path).path}?recursive={query.get('recursive', '')}"
            answer.headers["Link"] = f'<{following}&cursor={start + self.page}>; rel="next"'
        return answer

    def _paths(self, request: "_Handler", _: Any, repo: str, revision: str) -> "_Answer":
        found = self._tree_of(repo, revision)
        if not found:
            return _missing("RevisionNotFound")
        asked = request.json().get("paths") if request.is_json else parse_qs(request.body.decode()).get("paths", [])
        return _json([found[1][path].describe(path) for path in asked if path in found[1]])

    def _resolve(self, request: "_Handler", _: Any, repo: str, revision: str, path: str) -> "_Answer":
        found = self._tree_of(repo, revision)
        if not found:
            return _missing("RevisionNotFound")
        commit, tree = found
        if path not in tree:
            return _missing("EntryNotFound", commit)
        blob = tree[path]
        answer = _Answer(
            200, blob.content, {"X-Repo-Commit": commit, "ETag": f'"{blob.etag}"', "Accept-Ranges": "bytes"}
        )
        if blob.lfs:
            answer.headers.update({"X-Linked-Etag": f'"{blob.sha256}"', "X-Linked-Size": str(len(blob.content))})
        first = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        if first:
            answer.status, answer.content = 206, blob.content[int(first[1]) :]
            answer.headers["Content-Range"] = f"bytes {first[1]}-{len(blob.content) - 1}/{len(blob.content)}"
        return answer

    def _preupload(self, request: "_Handler", _: Any, repo: str, revision: str) -> "_Answer":
        tree = (self._tree_of(repo, revision) or ("", {}))[1]
        files = []
        for file in request.json()["files"]:
            mode = "lfs" if _is_lfs(file["path"], file["size"]) else "regular"
            oid = tree[file["path"]].etag if file["path"] in tree else None
            files.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return _json({"files": files})

    def _batch(self, request: "_Handler", _: Any, repo: str) -> "_Answer":
        objects = []
        for each in request.json()["objects"]:
            oid, size = each["oid"], each["size"]
            actions = {"upload": {"href": f"{self.url}/lfs/{oid}"}, "verify": {"href": f"{self.url}/lfs/verify"}}
            objects.append({"oid": oid, "size": size, **({} if oid in self._stored else {"actions": actions})})
        return _json({"transfer": "basic", "objects": objects})

    def _store(self, request: "_Handler", _: Any, oid: str) -> "_Answer":
        if hashlib.sha256(request.body).hexdigest() != oid:
            return _json({"error": "The content has another hash."}, 400)
        self._stored[oid] = request.body
        return _json({})

    def _verify(self, request: "_Handler", _: Any) -> "_Answer":
        body = request.json()
        known = len(self._stored.get(body["oid"], b"")) == body["size"]
        return _json({}) if known else _missing("EntryNotFound")

    def _commit(self, request: "_Handler", _: Any, repo: str, revision: str) -> "_Answer":
        found = self._tree_of(repo, revision)
        if not found:
            return _missing("RevisionNotFound")
        parent, tree = found[0], dict(found[1])
        for line in request.body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            match entry["key"]:
                case "header":
                    if value.get("parentCommit") not in (None, parent):
                        return _json({"error": "The parent is not the last commit."}, 412)
                case "file":
                    tree[value["path"]] = _Blob(base64.b64decode(value["content"]), lfs=False)
                case "lfsFile":
                    if value["oid"] not in self._stored:
                        return _json({"error": f"{value['path']} was not uploaded."}, 400)
                    tree[value["path"]] = _Blob(self._stored[value["oid"]], lfs=True)
                case "deletedFile":
                    tree.pop(value["path"], None)
                case "deletedFolder":
                    tree = {path: blob for path, blob in tree.items() if not path.startswith(value["path"])}
        commit = self._repos[repo].commit(tree)
        return _json({"commitOid": commit, "commitUrl": f"{self.url}/datasets/{repo}/commit/{commit}", "success": True})

    def _commits(self, request: "_Handler", _: Any, repo: str, revision: str) -> "_Answer":
        date = "2026-01-01T00:00:00.000Z"
        entries = [{"id": commit, "title": "", "message": "", "authors": [], "date": date}
                   for commit in reversed(self._repos[repo].commits)]  # fmt: skip
        return _json(entries)

    def _refs(self, request: "_Handler", _: Any, repo: str) -> "_Answer":
        found = self._repos[repo]
        tags = [{"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": commit} for tag, commit in found.tags.items()]
        branch = {"name": "main", "ref": "refs/heads/main", "targetCommit": found.head}
        return _json({"branches": [branch], "tags": tags, "converts": []})

    def _tag(self, request: "_Handler", _: Any, repo: str, revision: str) -> "_Answer":
        found, tag = self._repos[repo], request.json()["tag"]
        commit = found.resolve(revision)
        if tag in found.tags or commit is None:
            return _json({"error": "The tag exists."}, 409) if commit else _missing("RevisionNotFound")
        found.tags[tag] = commit
        return _json({})

    def _whoami(self, request: "_Handler", _: Any) -> "_Answer":
        return _json({"type": "user", "name": "someone", "orgs": []})

    def _yaml(self, request: "_Handler", _: Any) -> "_Answer":
        return _json({"errors": [], "warnings": []})

    def _refusal(self, request: "_Handler") -> "_Answer | None":
        """The answer to who may not ask: writing needs the token, except for content, and so does what is private."""
        match = re.match(r"/(?:api/)?datasets/([^/]+/[^/]+?)(?:\.git)?(?:/|$)", urlsplit(request.path).path)
        repo = self._repos.get(unquote(match[1])) if match else None
        if match and repo is None:
            return _missing("RepoNotFound")
        writes = request.command == "POST" and "/lfs/" not in request.path and "/paths-info/" not in request.path
        allowed = request.headers.get("Authorization") == f"Bearer {self.token}"
        if allowed or not (writes or (repo and repo.private)):
            return None
        return _missing("RepoNotFound") if repo and repo.private else _json({"error": "No token."}, 401)


_API = r"/api/datasets/(?P<repo>[^/]+/[^/]+)"
_Route = Callable[..., "_Answer"]
_ROUTES: list[tuple[str, str, _Route]] = [
    ("POST", r"/api/repos/create", HubServer._create),
    ("GET", _API, HubServer._info),
    ("GET", _API + r"/revision/(?P<revision>[^/]+)", HubServer._info),
    ("GET", _API + r"/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?", HubServer._list),
    ("POST", _API + r"/paths-info/(?P<revision>[^/]+)", HubServer._paths),
    ("POST", _API + r"/preupload/(?P<revision>[^/]+)", HubServer._preupload),
    ("POST", _API + r"/commit/(?P<revision>[^/]+)", HubServer._commit),
    ("GET", _API + r"/commits/(?P<revision>[^/]+)", HubServer._commits),
    ("GET", _API + r"/refs", HubServer._refs),
    ("POST", _API + r"/tag/(?P<revision>[^/]+)", HubServer._tag),
    ("GET HEAD", r"/datasets/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)", HubServer._resolve),
    ("POST", r"/datasets/(?P<repo>[^/]+/[^/]+)\.git/info/lfs/objects/batch", HubServer._batch),
    ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})", HubServer._store),
    ("POST", r"/lfs/verify", HubServer._verify),
    ("GET", r"/api/whoami-v2", HubServer._whoami),
    ("POST", r"/api/validate-yaml", HubServer._yaml),
]


@dataclass
class _Answer:
    status: int
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)


def _json(value: Any, status: int = 200) -> _Answer:
    return _Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


def _missing(code: str, commit: str | None = None) -> _Answer:
    answer = _json({"error": code}, 404)
    answer.headers["X-Error-Code"] = code
    if commit:
        answer.headers["X-Repo-Commit"] = commit
    return answer


def _is_lfs(path: str, size: int) -> bool:
    return path.lower().endswith(LFS_ENDINGS) or size > LFS_BYTES


def _blob(path: str, content: bytes) -> _Blob:
    return _Blob(content, _is_lfs(path, len(content)))


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, owner: HubServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients that give up are what the faults are for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _HTTPServer
    # Headers and body leave in one packet, else each answer waits 40 ms for a delayed acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    body = b""

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    @property
    def is_json(self) -> bool:
        return "json" in self.headers.get("Content-Type", "")

    def json(self) -> Any:
        return json.loads(self.body)

    def _answer(self) -> None:
        owner = self.server.owner
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlsplit(self.path).path)
        fault = owner.fault(self.command, path)
        if fault and fault.kind == "status":
            answer = _json({"error": "Not now."}, fault.status)
            if fault.retry_after is not None:
                answer.headers["Retry-After"] = f"{fault.retry_after:g}"
        else:
            answer = owner.answer(self)
        with owner.lock:
            owner.requests.append(Request(self.command, path, answer.status))
        content, length = answer.content, len(answer.content)
        if fault and content:
            match fault.kind:
                case "corrupt":
                    content = content[:-1] + bytes([content[-1] ^ 1])
                case "short":
                    content = content[: length // 2]
                    length = len(content)
                case "cut":
                    content, self.close_connection = content[: fault.after], True
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(length), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = _answer
