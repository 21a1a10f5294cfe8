import base64
import hashlib
import json

import httpx
import pytest

from utils.hub_server import Fault, HubServer

VIDEO = bytes(range(200))
SHA = hashlib.sha256(VIDEO).hexdigest()
API = "/api/datasets/org/name"
TOKEN = {"Authorization": "Bearer hf_local"}


@pytest.fixture
def server():
    with HubServer(page=2) as server:
        server.put("org/name", {"README.md": b"text", "videos/a.mp4": VIDEO, "data/x.parquet": b"rows"}, tag="v1")
        yield server


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        yield client


def test_a_file_has_the_hash_that_the_hub_keeps_it_by(server, client):
    text, video = (client.get(f"/datasets/org/name/resolve/v1/{path}") for path in ("README.md", "videos/a.mp4"))
    assert (text.content, video.content) == (b"text", VIDEO)
    assert text.headers["ETag"] == f'"{hashlib.sha1(b"blob 4" + bytes(1) + b"text").hexdigest()}"'
    assert video.headers["ETag"] == video.headers["X-Linked-Etag"] == f'"{SHA}"'
    assert text.headers["X-Repo-Commit"] == server.tags("org/name")["v1"] == server.commits("org/name")[0]
    head = client.head("/datasets/org/name/resolve/main/videos/a.mp4")
    assert head.content == b"" and head.headers["Content-Length"] == "200"


def test_a_transfer_can_go_on(client):
    rest = client.get("/datasets/org/name/resolve/v1/videos/a.mp4", headers={"Range": "bytes=150-"})
    assert rest.status_code == 206 and rest.content == VIDEO[150:]
    assert rest.headers["Content-Range"] == "bytes 150-199/200"


def test_a_tree_has_pages_and_folders(server, client):
    first = client.get(f"{API}/tree/main", params={"recursive": "True"})
    second = client.get(first.links["next"]["url"])
    entries = {entry["path"]: entry for entry in (*first.json(), *second.json())}
    assert set(entries) == {"README.md", "videos/a.mp4", "data/x.parquet"} and "next" not in second.links
    assert entries["videos/a.mp4"]["lfs"]["oid"] == SHA and "lfs" not in entries["README.md"]
    server.page = 10
    top = {entry["path"]: entry["type"] for entry in client.get(f"{API}/tree/main").json()}
    assert top == {"README.md": "file", "videos": "directory", "data": "directory"}
    assert [entry["path"] for entry in client.get(f"{API}/tree/main/data").json()] == ["data/x.parquet"]
    paths = client.post(f"{API}/paths-info/main", data={"paths": ["README.md", "none"]}).json()
    assert [entry["path"] for entry in paths] == ["README.md"]


MISSING = {
    "/api/datasets/org/other": "RepoNotFound",
    f"{API}/revision/v2": "RevisionNotFound",
    f"{API}/tree/v2": "RevisionNotFound",
    f"{API}/tree/main/none": "EntryNotFound",
    "/datasets/org/name/resolve/main/none": "EntryNotFound",
    "/datasets/org/name/resolve/v2/README.md": "RevisionNotFound",
    "/unknown": "EntryNotFound",
}


@pytest.mark.parametrize("path", MISSING)
def test_what_is_missing_is_named(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.headers["X-Error-Code"]) == (404, MISSING[path])


def commit(client, *entries, parent=None):
    header = {"key": "header", "value": {"summary": "x", "parentCommit": parent}}
    lines = [header, *({"key": key, "value": value} for key, value in entries)]
    return client.post(f"{API}/commit/main", content="\n".join(map(json.dumps, lines)), headers=TOKEN)


def test_a_commit_takes_what_was_uploaded(server, client):
    objects = [{"oid": SHA, "size": 200}]
    answer = client.post("/datasets/org/name.git/info/lfs/objects/batch", json={"objects": objects}, headers=TOKEN)
    [entry] = answer.json()["objects"]
    lfs = ("lfsFile", {"path": "videos/b.mp4", "algo": "sha256", "oid": SHA, "size": 200})
    assert commit(client, lfs).status_code == 400
    assert client.put(entry["actions"]["upload"]["href"], content=b"other").status_code == 400
    assert client.put(entry["actions"]["upload"]["href"], content=VIDEO).status_code == 200
    assert client.post(entry["actions"]["verify"]["href"], json=objects[0]).status_code == 200
    text = {"path": "notes.txt", "content": base64.b64encode(b"notes").decode(), "encoding": "base64"}
    gone = [("deletedFile", {"path": "README.md"}), ("deletedFolder", {"path": "data/"})]
    assert commit(client, lfs, ("file", text), *gone).status_code == 200
    assert server.files("org/name") == {"videos/a.mp4": VIDEO, "videos/b.mp4": VIDEO, "notes.txt": b"notes"}
    assert "README.md" in server.files("org/name", "v1") and len(server.commits("org/name")) == 2
    assert commit(client, ("file", text), parent=server.commits("org/name")[0]).status_code == 412
    answer = client.post("/datasets/org/name.git/info/lfs/objects/batch", json={"objects": objects}, headers=TOKEN)
    assert "actions" not in answer.json()["objects"][0]


def test_tags_stay_where_they_are(server, client):
    assert client.post(f"{API}/tag/main", json={"tag": "v1"}, headers=TOKEN).status_code == 409
    assert client.post(f"{API}/tag/main", json={"tag": "v2"}, headers=TOKEN).status_code == 200
    assert (
        {tag["name"] for tag in client.get(f"{API}/refs").json()["tags"]}
        == {"v1", "v2"}
        == set(server.tags("org/name"))
    )


def test_a_repository_is_made_once(server, client):
    body = {"name": "new", "organization": "org", "type": "dataset", "private": True}
    statuses = [client.post("/api/repos/create", json=body, headers=TOKEN).status_code for _ in range(2)]
    assert statuses == [200, 409] and server.commits("org/new") == []
    assert client.get("/api/datasets/org/new").status_code == 404
    assert client.get("/api/datasets/org/new", headers=TOKEN).json()["private"]


def test_writing_needs_the_token(client):
    assert client.post("/api/repos/create", json={"name": "x"}).status_code == 401
    assert client.post(f"{API}/tag/main", json={"tag": "x"}, headers={"Authorization": "Bearer x"}).status_code == 401


def test_faults(server, client):
    faults = [
        Fault("status", status=429, retry_after=2), Fault("corrupt"), Fault("short"), Fault("cut", after=10), None
    ]  # fmt: skip
    server.faults = lambda method, path, number: faults[number]
    path = "/datasets/org/name/resolve/v1/videos/a.mp4"
    busy, corrupt, short = (client.get(path) for _ in range(3))
    assert (busy.status_code, busy.headers["Retry-After"]) == (429, "2")
    assert corrupt.content[:-1] == VIDEO[:-1] and corrupt.content != VIDEO and len(corrupt.content) == 200
    assert short.content == VIDEO[:100]
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(path)
    assert client.get(path).content == VIDEO
    assert server.count("GET", "a.mp4") == len(server.requests) == 5 and server.count("HEAD") == 0
    assert [request.status for request in server.requests] == [429, 200, 200, 200, 200]


def test_a_mistake_in_a_request_is_no_reason_to_ask_again(client):
    answer = client.post(f"{API}/commit/main", content=b"no json", headers=TOKEN)
    assert answer.status_code == 400 and "stand-in" in answer.json()["error"]
