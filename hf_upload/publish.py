"""Planning an upload, and doing it: what a repository holds already is not sent again."""

import glob
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from hf_upload.card import about, card, size
from lmms_eval_tasks import canonical, hub, settings
from lmms_eval_tasks.canonical import Prepared
from lmms_eval_tasks.errors import PackError, listing

# What in a repository is ours; all else in it stays as it is.
_OURS = ("data/", hub.VIDEOS, hub.MANIFEST, "README.md")


@dataclass(frozen=True)
class Plan:
    """What an upload would do.

    Attributes:
        prepared: The dataset.
        repo: ``ORG/NAME``.
        folder: A folder with links to all files as they will be in the repository.
        sizes: ``{path: bytes}`` of all of them.
        sent: Paths that the repository lacks, or has with other content.
        removed: Paths of ours in the repository that the dataset no longer has.
        exists: Whether there is such a repository.
        tags: Its tags and their commits.
        absent: Videos that are missing or broken, and are left out.
        tag: The tag to set; None for none.
    """

    prepared: Prepared
    repo: str
    folder: Path
    sizes: Mapping[str, int]
    sent: list[str]
    removed: list[str]
    exists: bool
    tags: Mapping[str, str]
    absent: list[str]
    tag: str | None

    @property
    def is_done(self) -> bool:
        """Whether the repository is so already."""
        return self.exists and not self.sent and not self.removed and (self.tag is None or self.tag in self.tags)

    def __str__(self) -> str:
        """The plan as text."""
        videos = [path for path in self.sizes if path.startswith(hub.VIDEOS)]
        lines = [
            f"{self.prepared.benchmark} ({self.prepared.folder}) -> {self.repo}, "
            + ("which exists" if self.exists else "which is made"),
            f"  {len(self.sizes)} files, {size(sum(self.sizes.values()))}, of them {len(videos)} videos",
            f"  sent      {len(self.sent)} files, {size(sum(self.sizes[path] for path in self.sent))}",
            f"  unchanged {len(self.sizes) - len(self.sent)} files",
            f"  tag       {self.tag or 'none'}",
        ]
        if self.removed:
            lines.append(listing(f"  removed   {len(self.removed)} files that the dataset does not have", self.removed))
        if self.absent:
            lines.append(listing(f"  left out  {len(self.absent)} videos that are missing or broken", self.absent))
        known = about(self.prepared.benchmark)
        lines += [f"  terms     annotations: {known.terms}"] + [f"            videos: {known.videos}"] * bool(videos)
        return "\n".join(lines if not self.is_done else [*lines, "Nothing is to be done."])


def plan(
    benchmark: str,
    repo: str,
    folder: Path,
    with_videos: bool = True,
    skip_missing: bool = False,
    tag: str | None = None,
) -> Plan:
    """Compares a prepared dataset with what a repository holds; nothing is changed there.

    Args:
        benchmark: Name of the benchmark's room.
        repo: ``ORG/NAME``.
        folder: An empty folder, to be filled with links.
        with_videos: Publish the videos too.
        skip_missing: Leave out videos that are missing or broken, instead of refusing.
        tag: Name for the state that the repository will have.

    Raises:
        PackError: The dataset is not prepared, or lacks videos; the repository cannot be read, or has the tag for
            another state.
    """
    if not hub.is_repo(repo):
        raise PackError(f"--repo {repo}: ORG/NAME is needed")
    prepared = canonical.opened(benchmark)
    if prepared.repo:
        raise PackError(f"{benchmark} is {prepared.repo} on the Hub already. To publish a prepared folder, unset "
                        f"{settings.PREFIX}DATA_{benchmark.upper()} or set it to one")  # fmt: skip
    absent = prepared.missing_videos() if with_videos else []
    if absent and not skip_missing:
        raise PackError(listing(f"{len(absent)} of {len(prepared.video_names())} videos of {prepared.folder} are "
                                "missing or cannot be opened. Prepare them, or publish without them "
                                "(--skip-missing, --no-videos)", absent))  # fmt: skip
    files = {f"data/{path.name}": path for path in sorted((prepared.folder / "data").iterdir())}
    files |= _videos(prepared, set(absent)) if with_videos else {}
    described = _stage(prepared, repo, files, folder)
    there, head, tags = _remote(repo)
    sent = [path for path in described if there.get(path) not in (described[path].sha256, _git_sha(folder / path))]
    removed = [path for path in there if path.startswith(_OURS) and path not in described]
    if tag and tag in tags and (sent or removed or tags[tag] != head):
        raise PackError(f"{repo} has the tag {tag} already, for another state of the dataset (commit {tags[tag]}). "
                        "Choose another: who pinned it must find what was there")  # fmt: skip
    return Plan(
        prepared=prepared,
        repo=repo,
        folder=folder,
        sizes={path: file.size for path, file in described.items()},
        sent=sent,
        removed=removed,
        exists=head is not None,
        tags=tags,
        absent=absent,
        tag=tag,
    )


def publish(planned: Plan, private: bool = False) -> str:
    """Uploads what a plan says: first the videos, and what lists them when they are all there.

    Args:
        planned: The plan.
        private: Make a new repository private; one that exists stays as it is.

    Returns:
        What a user sets to run from it, in words.

    Raises:
        PackError: The Hub refuses, or does not answer; the same call goes on from there.
    """
    from huggingface_hub import HfApi

    api, repo = HfApi(), planned.repo
    where: dict[str, Any] = {"repo_id": repo, "repo_type": "dataset"}
    sent = {**where, "folder_path": planned.folder, "commit_message": f"{planned.prepared.benchmark}, prepared"}
    videos = f"{hub.VIDEOS}*"
    try:
        if not planned.exists:
            api.create_repo(**where, private=private, exist_ok=True)
        if any(path.startswith(hub.VIDEOS) for path in planned.sent):
            api.upload_folder(**sent, allow_patterns=videos)
        if planned.sent or planned.removed:
            # A commit of its own, and the last one: who loads the dataset meanwhile finds the old one, whole.
            obsolete = [glob.escape(path) for path in planned.removed] or None
            api.upload_folder(**sent, ignore_patterns=videos, delete_patterns=obsolete)
        if planned.tag and planned.tag not in planned.tags:
            api.create_tag(**where, tag=planned.tag)
    except Exception as error:
        raise PackError(f"{repo}: {hub.reason(error)}. The same command goes on from here") from None
    version = f"@{planned.tag}" if planned.tag else ""
    return f"Published. To use it: export {settings.PREFIX}DATA_{planned.prepared.benchmark.upper()}={repo}{version}"


def _videos(prepared: Prepared, absent: set[str]) -> dict[str, Path]:
    """The videos that are on disk, by their path in the repository; those on the Hub stay where they are."""
    names = [name for name in prepared.video_names() if name not in absent]
    found = {name: path for name in names if (path := prepared.videos.find(name))}
    return {f"{hub.VIDEOS}{canonical.video_file(name, path)}": path for name, path in found.items()}


def _stage(prepared: Prepared, repo: str, files: Mapping[str, Path], folder: Path) -> dict[str, hub.File]:
    """Fills a folder as the repository will be; links lead to the files themselves, so that their bytes are sent."""
    for path, source in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source.resolve())
    described = {path: hub.File.of(folder / path) for path in tqdm(files, "Hashing", leave=False)}
    videos = {path: file.size for path, file in described.items() if path.startswith(hub.VIDEOS)}
    (folder / "README.md").write_text(card(prepared, repo, videos), "utf-8")
    described["README.md"] = hub.File.of(folder / "README.md")
    listed = {path: file.model_dump() for path, file in described.items()}
    # What cannot be opened is not published, and so is missing there.
    manifest = {**prepared.manifest, "broken": [], "files": listed}
    (folder / hub.MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=True), "utf-8")
    return {**described, hub.MANIFEST: hub.File.of(folder / hub.MANIFEST)}


def _remote(repo: str) -> tuple[dict[str, str], str | None, dict[str, str]]:
    """A repository's files with their hashes (SHA-256, or git's for small texts), its last commit and its tags."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    api = HfApi()
    try:
        head = api.dataset_info(repo).sha
        tree = api.list_repo_tree(repo, repo_type="dataset", revision=head, recursive=True)
        files = {entry.path: entry.lfs.sha256 if entry.lfs else entry.blob_id
                 for entry in tree if isinstance(entry, RepoFile)}  # fmt: skip
        tags = {tag.name: tag.target_commit for tag in api.list_repo_refs(repo, repo_type="dataset").tags}
    except RepositoryNotFoundError:
        return {}, None, {}
    except Exception as error:
        raise PackError(f"{repo} cannot be read: {hub.reason(error)}") from None
    return files, head, tags


def _git_sha(path: Path) -> str:
    """The hash under which git knows a file; empty for a large one, which the Hub keeps elsewhere."""
    if path.stat().st_size > 10 << 20:
        return ""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
