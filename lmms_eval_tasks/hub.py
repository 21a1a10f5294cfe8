"""Datasets on the Hugging Face Hub: their annotations as a local folder, their videos one by one.

Transfers, their resumption, back-off, mirrors, offline mode and the cache are huggingface_hub's. What is added here: a
file counts only when it has the size and the hash that the dataset's manifest, or the Hub, says.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.log import logger
from lmms_eval_tasks.media import shelf
from lmms_eval_tasks.media.sources import Listing, check_name
from lmms_eval_tasks.text import digest

MANIFEST = "manifest.json"
VIDEOS = "videos/"

# What an official release's annotations are written in; everything else in it is left on the Hub.
_ANNOTATIONS = (".json", ".jsonl", ".csv", ".tsv", ".parquet", ".txt", ".md", ".yaml", ".yml")
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar")
_REPO = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(\w[\w./-]*))?", re.ASCII)


@dataclass(frozen=True)
class Repo:
    """A dataset repository, ``ORG/NAME``, at a tag, branch or commit; None is its main branch."""

    name: str
    revision: str | None = None

    def __str__(self) -> str:
        """As a user writes it, ``ORG/NAME@REVISION``."""
        return f"{self.name}@{self.revision}" if self.revision else self.name


class File(BaseModel):
    """What a file must be: its size in bytes and, where it is known, its SHA-256 in hex digits."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    size: int = Field(ge=0)
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")

    @classmethod
    def of(cls, path: Path) -> "File":
        """Describes a file on disk, reading all of it."""
        with path.open("rb") as file:
            # hashlib.file_digest needs Python 3.11.
            hashed = hashlib.sha256()
            while block := file.read(1 << 20):
                hashed.update(block)
        return cls(size=path.stat().st_size, sha256=hashed.hexdigest())


class Origin(BaseModel):
    """Where on the Hub a dataset's videos are that are not with it: its manifest's entry ``hub``."""

    model_config = ConfigDict(extra="ignore")
    repo: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
    revision: str = Field(pattern="^[0-9a-f]{40}$")
    files: dict[str, File]


Files = Mapping[str, File]
"""``{path in the repository: what it must be}``"""

_FILES = TypeAdapter(dict[str, File])


def parse(text: str) -> Repo | None:
    """Reads ``ORG/NAME`` or ``ORG/NAME@REVISION``; None where the text names a folder, or can only be meant as one."""
    match = _REPO.fullmatch(text)
    if match is None or ".." in text or Path(text).exists():
        return None
    return Repo(match[1], match[2])


def is_repo(text: str) -> bool:
    """Whether a text is ``ORG/NAME``."""
    match = _REPO.fullmatch(text)
    return match is not None and ".." not in text and match[2] is None


def files(described: Any, where: str) -> dict[str, File]:
    """Validates a list of files that comes from elsewhere.

    Args:
        described: ``{path: {"size": …, "sha256": …}}``.
        where: Whose list it is, for the error.

    Raises:
        PackError: It has another shape, or paths that lead out of a folder; all of these are named.
    """
    try:
        found = _FILES.validate_python(described)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, entry['loc'])) or 'files'}: {entry['msg']}" for entry in error.errors()]
        raise PackError(listing(f"{where} does not describe its files", problems)) from None
    strange = [path for path in found if not _is_plain(path)]
    if strange:
        raise PackError(listing(f"{where} is refused: paths in it lead out of its folder", map(repr, strange)))
    return found


@dataclass(frozen=True)
class Remote:
    """A file on the Hub.

    Attributes:
        repo: Its repository at a commit.
        path: Its path in it, one that `files` let pass.
        file: What it must be.
    """

    repo: Repo
    path: str
    file: File

    @property
    def identity(self) -> list[Any]:
        """Tells it from others, JSON-able, whatever is in the cache."""
        return [self.path, self.file.size, self.file.sha256]

    def cached(self) -> Path | None:
        """The copy in huggingface_hub's cache, if there is one."""
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(self.repo.name, self.path, repo_type="dataset", revision=self.repo.revision)
        return Path(found) if isinstance(found, str) else None

    def fetch(self) -> Path:
        """The local copy, downloaded if it is not in the cache; one process downloads, others wait for it.

        A copy that is not what it must be is thrown away and downloaded once more.

        Raises:
            PackError: It cannot be downloaded, or is not what it must be again; or ``HOME`` cannot be written.
        """
        mark = settings.load().root / "hub" / f"{digest([str(self.repo), *self.identity])}.checked"
        found = self.cached()
        if found is not None and _is_marked(found, mark):
            return found
        try:
            with shelf.locked(mark):
                return self._checked(mark)
        except OSError as error:
            raise PackError(f"{mark.parent} cannot be written ({error.strerror or error}). Free space, or set "
                            f"{settings.PREFIX}HOME to another folder") from None  # fmt: skip

    def _checked(self, mark: Path) -> Path:
        for _ in range(2):
            found = _download(self.repo, self.path)
            problem = "" if _is_marked(found, mark) else _problem(found, self.file)
            if not problem:
                mark.write_text(_state(found), "utf-8")
                return found
            _throw_away(found)
            logger.warning(f"{self.repo}: {self.path} arrived damaged ({problem})")
        raise PackError(f"{self.repo}: {self.path} arrived damaged twice ({problem}). Try again later, or through "
                        "another mirror (HF_ENDPOINT)")  # fmt: skip


class RemoteVideos:
    """The videos of a repository, by name; nothing is downloaded to find one."""

    def __init__(self, repo: Repo, files: Files) -> None:
        """Takes the repository at a commit and its files; those that are no videos are passed over."""
        self.repo, self.files = repo, files

    def find(self, name: str) -> Remote | None:
        """The file that a video's name means, matched as `media.sources.Videos.find` does; None if there is none."""
        check_name(name)
        path = self._listing.find(name)
        return None if path is None else Remote(self.repo, str(path), self.files[str(path)])

    @cached_property
    def _listing(self) -> Listing:
        return Listing(map(PurePosixPath, self.files))


def origin(described: Any, where: str) -> RemoteVideos:
    """The videos that a manifest's entry ``hub`` describes.

    Raises:
        PackError: It describes none, or paths that lead out of a folder.
    """
    try:
        found = Origin.model_validate(described)
    except ValidationError:
        raise PackError(f"{where} is damaged: its entry 'hub' does not tell where the videos are") from None
    return RemoteVideos(Repo(found.repo, found.revision), files(found.files, where))


@lru_cache(maxsize=16)
def annotations(repo: Repo) -> Path:
    """Brings what a published dataset holds beside its videos; a branch stays where it was for this process.

    Returns:
        A folder in huggingface_hub's cache that is named after the commit.

    Raises:
        PackError: There is no such dataset, it cannot be reached, or it is damaged.
    """
    described, folder = _manifest(repo)
    pinned = replace(repo, revision=folder.name)
    for path, file in files(described, f"{repo}: its {MANIFEST}").items():
        if not path.startswith(VIDEOS):
            Remote(pinned, path, file).fetch()
    logger.info(f"Dataset {repo} is at commit {folder.name}")
    return folder


def release(repo: Repo) -> tuple[Path, RemoteVideos]:
    """Brings the annotation files of an official release; its videos stay where they are.

    Returns:
        Their folder, and the videos.

    Raises:
        PackError: There is no such dataset, it cannot be reached, or a path in it leads out of a folder.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    try:
        api = HfApi()
        commit = api.dataset_info(repo.name, revision=repo.revision).sha
        tree = list(api.list_repo_tree(repo.name, repo_type="dataset", revision=commit, recursive=True))
    except Exception as error:
        raise PackError(
            f"{repo} is no folder or file here, and on the Hub it cannot be listed: {reason(error)}"
        ) from None
    described = {
        entry.path: {"size": entry.size, "sha256": entry.lfs and entry.lfs.sha256}
        for entry in tree
        if isinstance(entry, RepoFile)
    }
    pinned = replace(repo, revision=commit)
    found = files(described, str(repo))
    wanted = [path for path in found if path.lower().endswith(_ANNOTATIONS)]
    archives = [path for path in found if path.lower().endswith(_ARCHIVES)]
    if archives:
        logger.warning(f"{repo} also holds archives, which are left there, such as {archives[0]}. If the files are in "
                       "them, download the repository and give its folder")  # fmt: skip
    if not wanted:
        raise PackError(f"{repo} holds no annotation file ({', '.join(_ANNOTATIONS)})")
    for path in wanted:
        local = Remote(pinned, path, found[path]).fetch()
    folder = local.parents[len(PurePosixPath(path).parts) - 1]
    return folder, RemoteVideos(pinned, found)


def without_bars() -> None:
    """Keeps huggingface_hub from drawing a bar for each file."""
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()


def is_offline() -> bool:
    """Whether huggingface_hub was told to use no network (``HF_HUB_OFFLINE``)."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def reason(error: Exception) -> str:
    """Why a call to the Hub failed, and what to do, in one line."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, HfHubHTTPError):
        error = error.__cause__
    nowhere = "it is not in the cache, and the Hub cannot be reached or may not be (HF_HUB_OFFLINE)"
    reasons: dict[type[Exception], str] = {
        OfflineModeIsEnabled: nowhere,
        LocalEntryNotFoundError: nowhere,
        GatedRepoError: "accept its terms on its page first, and set a token (`hf auth login` or HF_TOKEN)",
        RepositoryNotFoundError: "there is no such dataset (nor a folder of this name), or it is private and no token "
        "that may read it is set (`hf auth login` or HF_TOKEN)",
        RevisionNotFoundError: "it has no such tag, branch or commit",
        EntryNotFoundError: "it has no such file",
    }
    known = next((why for kind, why in reasons.items() if isinstance(error, kind)), None)
    if known:
        return known
    if isinstance(error, OSError) and error.errno in shelf.UNSUPPORTED:
        return f"{error.strerror}: its cache needs a file system with locks, set HF_HOME to a folder on one"
    if isinstance(error, HfHubHTTPError) and error.response.status_code in (401, 403):
        return (
            f"it is not allowed (HTTP {error.response.status_code}): set a token that may (`hf auth login` or HF_TOKEN)"
        )
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def _download(repo: Repo, path: str, again: bool = True) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repo.name, path, repo_type="dataset", revision=repo.revision))
    # What huggingface_hub raises depends on the HTTP client of its version.
    except Exception as error:
        # So it says that fewer bytes arrived than were promised; a full disk has a number.
        if again and type(error) is OSError and error.errno is None:
            return _download(repo, path, again=False)
        raise PackError(f"{repo}: {path} cannot be downloaded: {reason(error)}") from None


def _manifest(repo: Repo) -> tuple[Any, Path]:
    """What a dataset's manifest says of its files, and the folder that it is in, named after the commit."""
    for _ in range(2):
        manifest = _download(repo, MANIFEST)
        try:
            return json.loads(manifest.read_text("utf-8"))["files"], manifest.parent
        except (ValueError, KeyError, TypeError, RecursionError):
            _throw_away(manifest)
    raise PackError(f"{repo}: its {MANIFEST} is damaged, or it is no prepared dataset. For the authors' own files: "
                    f"lmms-eval-tasks prepare BENCHMARK --source {repo}")  # fmt: skip


def _problem(found: Path, file: File) -> str:
    size = found.stat().st_size
    if size != file.size:
        return f"{size} bytes, not {file.size}"
    return "another SHA-256" if file.sha256 and File.of(found).sha256 != file.sha256 else ""


def _throw_away(found: Path) -> None:
    # A copy in the cache is a link to the content, which other commits may share.
    found.resolve().unlink(missing_ok=True)
    found.unlink(missing_ok=True)


def _state(found: Path) -> str:
    status = found.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _is_marked(found: Path, mark: Path) -> bool:
    """Whether this very copy was checked before."""
    try:
        return mark.read_text("utf-8") == _state(found)
    except OSError:
        return False


def _is_plain(path: str) -> bool:
    try:
        check_name(path)
    except PackError:
        return False
    return True
