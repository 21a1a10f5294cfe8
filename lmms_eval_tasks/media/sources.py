"""Finding a benchmark's videos on disk, and reading what their containers say."""

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from lmms_eval_tasks.errors import PackError

EXTENSIONS = (
    *(".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v", ".flv", ".ts", ".mpg", ".mpeg"),
    *(".m2ts", ".mts", ".wmv", ".3gp", ".ogv", ".vob", ".asf", ".f4v"),
)
"""Endings of video files, in the order in which they are preferred."""

# In bytes; a longer one is on no disk, and asking for it is an error.
_LONGEST_NAME = 255


class Videos:
    """The video files below some folders; an earlier folder wins over a later one.

    A folder is walked when it is first needed, and once.
    """

    def __init__(self, roots: Sequence[Path], own: Path | None = None) -> None:
        """Takes the folders, which need not exist.

        Args:
            roots: Folders of a user's, with names and sub-folders of any kind.
            own: A prepared dataset's folder, the last one, in which each video has the very path that its name says.
        """
        self._roots = [_Root(Path(root)) for root in roots]
        self._own = own

    def find(self, name: str) -> Path | None:
        """Finds a video.

        Args:
            name: A file name as in the data's rows, with or without extension, perhaps with sub-folders in front.

        Returns:
            The file that matches best, or None. An exact match wins; else extension and letter case may differ and
            the file may lie in any sub-folder, except that where a sub-folder is named it must lie there, unless all
            videos lie in one folder.

        Raises:
            PackError: The name would lead out of the folder.
        """
        check_name(name)
        found = next((path for root in self._roots if (path := root.find(name))), None)
        if found is None and self._own is not None:
            # Two videos may differ in their endings alone.
            endings = (PurePosixPath(name).suffix.lower(), *EXTENSIONS)
            paths = (self._own / f"{stem(name)}{ending}" for ending in endings)
            found = next((path for path in paths if path.is_file()), None)
        return found

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of the names that no file is found for, each once, in their order."""
        return [name for name in dict.fromkeys(names) if self.find(name) is None]


class Listing:
    """Paths of files, here or elsewhere, among which a video's name finds the one that it means."""

    def __init__(self, files: Iterable[PurePosixPath]) -> None:
        """Takes relative paths; those that do not end as a video does are passed over."""
        self._files: defaultdict[str, list[PurePosixPath]] = defaultdict(list)
        for file in files:
            if file.suffix.lower() in EXTENSIONS:
                self._files[_fold(_stem(file))].append(file)

    def find(self, name: str) -> PurePosixPath | None:
        """The path that matches a video's name best, as `Videos.find` says; None where none does."""
        wanted = PurePosixPath(name)
        files = self._files.get(_fold(_stem(wanted)), [])
        if _folders(wanted):
            # Equal names in other folders are other videos, unless one folder holds all of them.
            files = [file for file in files if _shared(file, wanted) or self._in_one_folder]
        return min(files, key=lambda file: _distance(file, wanted), default=None)

    @cached_property
    def _in_one_folder(self) -> bool:
        return len({_folders(file) for files in self._files.values() for file in files}) == 1


def stem(name: str) -> str:
    """A video's name without the ending of a video file, if it has one."""
    path = PurePosixPath(name)
    return str(path.with_suffix("")) if path.suffix.lower() in EXTENSIONS else name


def check_name(name: str) -> None:
    """Refuses a video name that is no plain relative path.

    Raises:
        PackError: It is empty, absolute, too long, has ``..``, a backslash, a drive letter or a control character.
    """
    parts = name.split("/")
    too_long = any(len(part.encode("utf-8", "replace")) > _LONGEST_NAME for part in parts)
    tricky = re.search(r"[\x00-\x1f\x7f\\]", name) or re.match(r"[A-Za-z]:", name)
    if tricky or too_long or not name.strip() or any(part in ("", ".", "..") for part in parts):
        raise PackError(f"{name!r} is no name of a video: a plain file name is needed, perhaps with sub-folders")


@dataclass(frozen=True)
class Probe:
    """What a video's container says about it, which may be wrong.

    Attributes:
        seconds: Duration, None if not told.
        frames: Frame count, None if not told.
        width: In pixels, before rotation.
        height: In pixels, before rotation.
        codec: FFmpeg's name of the codec, such as ``"h264"``.
    """

    seconds: float | None
    frames: int | None
    width: int
    height: int
    codec: str


def probe(path: Path) -> Probe:
    """Reads a container's header, without decoding.

    Raises:
        PackError: The file cannot be opened or holds no video.
    """
    import av

    try:
        with av.open(str(path.absolute())) as container:
            if not container.streams.video:
                raise PackError(f"{path}: it holds no video stream; get the file again from its source")
            stream = container.streams.video[0]
            if stream.duration is not None and stream.time_base is not None:
                seconds: float | None = float(stream.duration * stream.time_base)
            else:
                seconds = None if container.duration is None else container.duration / av.time_base
            return Probe(
                seconds, stream.frames or None, stream.width, stream.height, stream.codec_context.codec.canonical_name
            )
    except (av.FFmpegError, OSError) as error:
        raise PackError(f"{path}: it cannot be opened ({error}); get the file again from its source") from None


class _Root:
    """One folder; what lies below it is listed when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, name: str) -> Path | None:
        exact = self._folder / name
        if exact.suffix.lower() in EXTENSIONS and exact.is_file():
            return exact
        best = self._listing.find(name)
        return None if best is None else self._folder / best

    @cached_property
    def _listing(self) -> "Listing":
        return Listing(_walk(self._folder))


def _walk(top: Path) -> Iterator[PurePosixPath]:
    """Video files below a folder, as relative paths; follows links to folders, each real folder once."""
    seen = set()
    waiting = [PurePosixPath()]
    while waiting:
        folder = waiting.pop()
        try:
            real = os.path.realpath(top / folder)
            entries = [] if real in seen else sorted(os.scandir(real), key=lambda entry: entry.name)
        except OSError:
            continue
        seen.add(real)
        for entry in entries:
            if entry.is_dir():
                waiting.append(folder / entry.name)
            elif os.path.splitext(entry.name)[1].lower() in EXTENSIONS and entry.is_file():
                yield folder / entry.name


def _distance(file: PurePosixPath, wanted: PurePosixPath) -> tuple[object, ...]:
    """How badly a file of the right stem matches a name: the named folder first, then spelling, then depth."""
    suffix = file.suffix.lower()
    return (
        -_shared(file, wanted),
        file.name != wanted.name,
        suffix != wanted.suffix.lower(),
        _stem(file) != _stem(wanted),
        EXTENSIONS.index(suffix),
        len(file.parts),
        str(file),
    )


def _shared(file: PurePosixPath, wanted: PurePosixPath) -> int:
    """How many of the wanted name's innermost folders a file lies in."""
    pairs = zip(reversed(_folders(file)), reversed(_folders(wanted)), strict=False)
    count = 0
    for mine, theirs in pairs:
        if mine != theirs:
            break
        count += 1
    return count


def _folders(path: PurePosixPath) -> tuple[str, ...]:
    return tuple(map(_fold, path.parts[:-1]))


def _stem(path: PurePosixPath) -> str:
    return path.stem if path.suffix.lower() in EXTENSIONS else path.name


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
