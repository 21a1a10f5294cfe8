"""The clip of a video: exactly its sampled frames, made once and kept for all who ask for them."""

import hashlib
import json
import os
import threading
from functools import lru_cache
from pathlib import Path

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media import isolation, shelf
from lmms_eval_tasks.media.sampling import Sampling

VERSION = 1
"""Moves when the same source and sampling give another clip."""

PATIENCE_S = 120.0
"""Seconds without progress after which making a clip is given up."""

BLOCK = 1 << 16
"""Bytes that are read at each of three places to tell sources apart."""

REMEDY = (
    "get the file again from its source, or convert it: ffmpeg -i IN -c:v libx264 -pix_fmt yuv420p OUT.mp4; or take it "
    "away, and set LMMS_EVAL_TASKS_ON_MISSING_VIDEO=skip to run without its questions"
)

_unreadable: dict[Path, dict[str, str]] = {}


def sampled(path: Path, sampling: Sampling) -> Path:
    """What a backend is handed for a video: its clip, made if need be.

    With the setting ``CLIPS=0`` it is the source itself, by a link where its name does not end in ``.mp4``.

    Args:
        path: The video.
        sampling: What the clip holds.

    Returns:
        A file whose name ends in ``.mp4`` and that stays while this process goes on to use it.

    Raises:
        PackError: The video cannot be decoded or the clip not be written; says which, why and what to do.
    """
    options = settings.load()
    if not options.clips:
        return path if path.name.endswith(".mp4") else _linked(path, options.root / "links")
    clip = clip_of(path, sampling, options.root)
    if not shelf.hold(clip):
        _make(path, sampling, clip, min(4, cores()), int(options.clip_cache_gb * 1e9), held=True)
    return clip


def ensure(path: Path, sampling: Sampling, threads: int) -> None:
    """Makes the clip of a video unless it is there, for somebody to use later.

    Raises:
        PackError: As ``sampled``.
    """
    options = settings.load()
    clip = clip_of(path, sampling, options.root)
    if not shelf.whole(clip):
        _make(path, sampling, clip, threads, int(options.clip_cache_gb * 1e9), held=False)


def clip_of(path: Path, sampling: Sampling, root: Path) -> Path:
    """Where the clip of a video is, or will be; named after the source's identity and all that shapes the clip.

    Raises:
        PackError: There is no such file.
    """
    what = json.dumps([VERSION, _identity(path), sampling.describe()], sort_keys=True)
    return folder(root) / f"{hashlib.sha256(what.encode()).hexdigest()[:32]}.mp4"


def folder(root: Path) -> Path:
    """The folder of clips below the pack's own."""
    return root / "clips"


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _make(path: Path, sampling: Sampling, clip: Path, threads: int, limit: int, held: bool) -> None:
    try:
        with shelf.locked(clip):
            if shelf.hold(clip) if held else shelf.whole(clip):
                return
            # Whoever has the lock is alone with this clip: unfinished files are those of the killed.
            for left in clip.parent.glob(f"{clip.stem}.*.part"):
                left.unlink(missing_ok=True)
            unfinished = clip.with_name(f"{clip.stem}.{os.getpid()}.part")
            try:
                _write(path, sampling, clip, unfinished, threads)
                shelf.put(unfinished, clip, held)
            finally:
                unfinished.unlink(missing_ok=True)
        shelf.trim(clip.parent, limit)
    except OSError as error:
        raise _unwritable(clip.parent, error.strerror or str(error)) from None


def _write(path: Path, sampling: Sampling, clip: Path, unfinished: Path, threads: int) -> None:
    job = {"source": str(path), "target": str(unfinished), "sampling": sampling.describe(), "threads": threads}
    # A file that nothing can read is tried once per process, not once per question.
    outcome = _unreadable.get(clip) or isolation.run(job, PATIENCE_S)
    if reason := outcome.get("unreadable"):
        _unreadable[clip] = outcome
        raise PackError(f"{path} (codec {outcome.get('codec', 'unknown')}): {reason}; {REMEDY}")
    if reason := outcome.get("unwritable"):
        raise _unwritable(unfinished.parent, reason)


def _unwritable(place: Path, reason: str) -> PackError:
    remedy = "free some space, set LMMS_EVAL_TASKS_HOME to another disk, or LMMS_EVAL_TASKS_CLIP_CACHE_GB lower"
    return PackError(f"{place}: a clip cannot be written: {reason}; {remedy}")


def _linked(path: Path, links: Path) -> Path:
    """A link to a source by a name that ends in ``.mp4``: some backends drop what ends otherwise, without a word."""
    link = links / f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]}.mp4"
    if not (link.is_symlink() and link.exists()):
        links.mkdir(parents=True, exist_ok=True)
        fresh = link.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        fresh.symlink_to(path.absolute())
        fresh.replace(link)
    return link


def _identity(path: Path) -> str:
    try:
        status = path.stat()
        return _digest(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise PackError(f"{path}: this video cannot be read: {error.strerror}") from None


@lru_cache(maxsize=4096)
def _digest(path: Path, length: int, modified: int) -> str:
    """Tells a source from others without reading it all: by size, time of change, and its two ends and its middle."""
    digest = hashlib.sha256(f"{length} {modified}".encode())
    if path.is_file():
        with path.open("rb") as file:
            for place in (0, length // 2, max(0, length - BLOCK)):
                file.seek(place)
                digest.update(file.read(BLOCK))
    return digest.hexdigest()
