"""Unpacking zip archives that come from elsewhere: safely, whole or not at all, and once."""

import errno
import lzma
import os
import shutil
import stat
import tempfile
import time
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.releases import IGNORED
from lmms_eval_tasks.text import digest

# What an archive may unpack to: so many bytes for each of its own, and always so many. Videos shrink by a few percent
# and texts to a twentieth, a bomb to a thousandth and less.
_RATIO = 100
_ALWAYS = 1 << 26

# What reading damaged archives ends in beside errors of its own: a place before the file's beginning (bytes are missing
# before it), and bz2's "Invalid data stream", which has no number.
_DAMAGED = (errno.EINVAL, None)

# Seconds after which what a killed process left is removed; one that is still at work is younger.
_ABANDONED = 24 * 3600


def unpacked(archive: Path, place: Path) -> Path:
    """Unpacks a zip archive, unless that was done before.

    Args:
        archive: The archive.
        place: The folder in which its folder is made, named after it and what it holds.

    Returns:
        The folder with the archive's files; it is complete.

    Raises:
        PackError: The archive is damaged, encrypted, too large once unpacked, or holds a path that leads out of its
            folder, a link or a device; or the disk cannot be written. Nothing is left behind.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            members = {name: info for info in file.infolist() if (name := _name(info)) is not None}
            contents = [[name, info.CRC, info.file_size] for name, info in members.items()]
            folder = place / f"{archive.stem}-{digest(contents)}"
            if not folder.is_dir():
                _check(archive, members, place)
                _unpack(archive, file, members, folder)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, NotImplementedError) as error:
        raise PackError(_damaged(archive, error)) from None
    except OSError as error:
        if error.errno in _DAMAGED:
            raise PackError(_damaged(archive, error)) from None
        raise PackError(f"{archive}: cannot be unpacked into {place} ({error}). Free space there, or unpack it "
                        "yourself and give the folder") from None  # fmt: skip
    return folder


def _damaged(archive: Path, error: Exception) -> str:
    return f"{archive}: a damaged archive ({error}). Get it again from its source"


def _name(info: zipfile.ZipInfo) -> str | None:
    """A member's path with slashes (some Windows programs write others); None for folders and what macOS adds."""
    name = info.filename.replace("\\", "/")
    return None if name.endswith("/") or IGNORED & set(name.split("/")) else name


def _check(archive: Path, members: dict[str, zipfile.ZipInfo], place: Path) -> None:
    problems = [f"{name!r} {problem}" for name, info in members.items() if (problem := _problem(name, info))]
    if problems:
        raise PackError(listing(f"{archive} is not unpacked", problems))
    size, own = sum(info.file_size for info in members.values()), archive.stat().st_size
    if size > max(_ALWAYS, _RATIO * own):
        raise PackError(f"{archive} is not unpacked: {own} bytes that unpack to {size} are no archive of videos")
    place.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place).free
    if size > free:
        raise PackError(f"{archive} is not unpacked: it needs {size} bytes in {place}, where {free} are free")


def _problem(name: str, info: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    # The name is cut at a NUL when the archive is opened; the original is not.
    strange = any(character < " " for character in info.orig_filename) or name[1:2] == ":"
    if strange or name.startswith("/") or not PurePosixPath(name).parts or ".." in name.split("/"):
        return "leads out of the archive's folder, or is no file name"
    if kind not in (0, stat.S_IFREG):
        return "is a link or a device"
    return "is encrypted" if info.flag_bits & 1 else ""


def _unpack(archive: Path, file: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], folder: Path) -> None:
    _remove_abandoned(folder)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        # mkdtemp's folders are for the owner alone; HOME may be shared.
        draft.chmod(0o755)
        for name, info in members.items():
            target = draft / name
            target.parent.mkdir(parents=True, exist_ok=True)
            # A member gives no more bytes than it declares, and its checksum is tested at its end.
            with file.open(info) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
        try:
            os.rename(draft, folder)
        except OSError:
            # Another process was faster; its folder is the same.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    for path in folder.parent.glob(f".{folder.name}.*"):
        if time.time() - path.stat().st_mtime > _ABANDONED:
            shutil.rmtree(path, ignore_errors=True)
