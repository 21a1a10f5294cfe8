"""The folder of clips, shared by processes and nodes: locks, what is in use, and its bounded size."""

import errno
import fcntl
import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from lmms_eval_tasks.media import seal

HELD = 128
"""Clips that a process got last and that nobody may remove while it lives."""

STALE_S = 3600.0
"""Age at which an unfinished file is nobody's any more."""

_ABSENT = (FileNotFoundError, NotADirectoryError)

UNSUPPORTED = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}

_held: OrderedDict[Path, BinaryIO] = OrderedDict()


@contextmanager
def locked(clip: Path) -> Iterator[None]:
    """Lets one thread of one process at a time make a clip; a killed one's lock ends with it.

    On a file system without locks nobody waits: a clip may then be made twice, and is never half there.
    """
    path = clip.parent / "locks" / f"{clip.stem}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        _lock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # Closing would not do: a child forked meanwhile has the file open, and with it the lock.
            _lock(file, fcntl.LOCK_UN)


def hold(clip: Path) -> bool:
    """Marks a clip as used now and by this process.

    Returns:
        False when there is no such clip, or it is damaged.
    """
    try:
        file = clip.open("rb")
    except _ABSENT:
        return False
    if not (_lock(file, fcntl.LOCK_SH | fcntl.LOCK_NB) and os.fstat(file.fileno()).st_nlink and seal.intact(file)):
        file.close()
        return False
    _touch(clip)
    _keep(clip, file)
    return True


def whole(clip: Path) -> bool:
    """Whether a clip is there and undamaged."""
    try:
        with clip.open("rb") as file:
            return seal.intact(file)
    except _ABSENT:
        return False


def put(unfinished: Path, clip: Path, held: bool) -> None:
    """Gives a finished file its name; if ``held``, it is in use from its first moment."""
    file = unfinished.open("rb")
    _lock(file, fcntl.LOCK_SH)
    unfinished.replace(clip)
    if held:
        _keep(clip, file)
    else:
        file.close()


def size(folder: Path) -> int:
    """Bytes of all clips."""
    return sum(status.st_size for _, status in _files(folder))


def trim(folder: Path, limit: int) -> None:
    """Removes the clips unused for longest until all together are no larger than ``limit`` bytes.

    A clip in use by a living process stays, even if the limit is then passed.
    """
    files = _files(folder)
    excess = sum(status.st_size for _, status in files) - limit
    now = time.time()
    for path, status in sorted(files, key=lambda file: file[1].st_atime_ns):
        if path.suffix != ".mp4":
            if now - status.st_mtime > STALE_S:
                path.unlink(missing_ok=True)
        elif excess > 0 and _removed(path):
            excess -= status.st_size


def _removed(clip: Path) -> bool:
    try:
        with clip.open("rb") as file:
            if not _lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB):
                return False
            clip.unlink()
            return True
    except FileNotFoundError:
        return True


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    files = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file():
                    files.append((folder / entry.name, entry.stat()))
    return files


def _lock(file: BinaryIO, kind: int) -> bool:
    """False when another holds the file in a way that excludes ours."""
    try:
        fcntl.flock(file, kind)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    return True


def _touch(clip: Path) -> None:
    # The access time is ours to set: most file systems are mounted so that reading does not.
    with suppress(OSError):
        os.utime(clip, ns=(time.time_ns(), clip.stat().st_mtime_ns))


def _keep(clip: Path, file: BinaryIO) -> None:
    # No lock of our own around this: a child forked while it is taken would wait for ever.
    _held.pop(clip, None)
    _held[clip] = file
    if len(_held) > HELD:
        _held.popitem(last=False)
