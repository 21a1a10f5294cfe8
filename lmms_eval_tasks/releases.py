"""What all rooms' `release` modules share: what they return, and how they read the authors' files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lmms_eval_tasks.errors import PackError, listing

IGNORED = {"__MACOSX", ".git", ".cache"}


@dataclass
class Release:
    """A release that was read.

    Attributes:
        rows: Canonical rows by configuration; each has an ``id``, names its ``video`` or ``videos``, and has a place
            for their duration together, ``seconds``.
        videos: ``{name: file}`` for videos that the reader has found itself; the others are looked for by name.
        excluded: ``{"id", "reason"}`` of what cannot be scored.
        notes: What else is odd, in words.
        hub: Where on the Hub videos are that stay there: ``repo``, ``revision`` (a commit) and ``files`` (path -> size
            in bytes and SHA-256, as `hub.files` reads them).
    """

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    videos: dict[str, Path] = field(default_factory=dict)
    excluded: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hub: dict[str, Any] = field(default_factory=dict)


class Reader(Protocol):
    """What a room's `release` module offers."""

    def read(self, source: Path) -> Release:
        """Reads and validates the authors' files."""

    def questions(self, row: Mapping[str, Any]) -> int:
        """How many questions of a row are evaluated."""

    def features(self) -> Any:
        """The rows' `datasets.Features`."""


def videos_of(row: Mapping[str, Any]) -> list[str]:
    """Names of the videos of a row or doc, in their order."""
    return list(row["videos"]) if "videos" in row else [row["video"]]


def source_folder(source: Path) -> Path:
    """The folder that holds a release.

    Raises:
        PackError: It does not exist, or is no folder.
    """
    source = source.expanduser()
    if not source.is_dir():
        raise PackError(f"--source {source} is not a folder. Give the folder that holds the authors' files")
    return source


def find_file(source: Path, name: str) -> Path | None:
    """Finds the one file of a name (letter case aside) anywhere below a folder.

    Raises:
        PackError: There are several; all are named.
    """
    found = [path for path in source.rglob("*") if path.name.lower() == name.lower() and path.is_file()]
    found = sorted(path for path in found if not IGNORED & set(path.relative_to(source).parts))
    if len(found) > 1:
        raise PackError(f"{name} occurs {len(found)} times below {source}: {', '.join(map(str, found))}. Keep one")
    return found[0] if found else None


def release_file(source: Path, suffixes: Sequence[str]) -> Path:
    """The one file that is a release: the source itself, or the one of its kind anywhere below it.

    Args:
        source: A file, or a folder.
        suffixes: Endings of such files in a folder, such as ``".jsonl"``; a later one counts where there is none of an
            earlier one.

    Raises:
        PackError: There is none, or there are several; all are named.
    """
    source = source.expanduser()
    if source.is_file():
        return source
    if not source.is_dir():
        raise PackError(f"--source {source} is neither a file nor a folder. Give the authors' file")
    files = [path for path in sorted(source.rglob("*")) if not IGNORED & set(path.relative_to(source).parts)]
    for suffix in suffixes:
        found = [path for path in files if path.suffix.lower() == suffix and path.is_file()]
        if len(found) > 1:
            names = ", ".join(map(str, found))
            raise PackError(f"{len(found)} {suffix} files are below {source}: {names}. Give the right one as --source")
        if found:
            return found[0]
    raise PackError(f"no {' or '.join(suffixes)} file is below {source}. Give the authors' file as --source")


def read_json(path: Path) -> Any:
    """Reads a JSON file, refusing what Python's parser would pass over in silence.

    Raises:
        PackError: It is no UTF-8, no JSON (with line and column), or an object in it has a key twice.
    """
    return _parse(_text(path), path)


def read_json_lines(path: Path) -> list[tuple[int, Any]]:
    """Reads a file of JSON lines as `read_json` does.

    Returns:
        The lines that are not empty, each with its number from 1.

    Raises:
        PackError: It is no UTF-8, or lines of it cannot be read; all of these are named.
    """
    found, problems = [], []
    # `splitlines` would also split at characters that JSON allows within a text.
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            try:
                found.append((number, _parse(line, path, number)))
            except PackError as error:
                problems.append(str(error))
    if problems:
        raise PackError(listing(f"{path} cannot be read", problems))
    return found


def _parse(text: str, path: Path, line: int | None = None) -> Any:
    where = f"{path}, line {line}" if line else str(path)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = sorted({key for key in keys if keys.count(key) > 1})
            raise PackError(f"{where}: an object has the key {twice[0]!r} twice. Keep one of the two")
        return result

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        place = f"{path}, line {line or error.lineno}, column {error.colno}"
        raise PackError(f"{place}: not JSON ({error.msg})") from None
    except RecursionError:
        raise PackError(f"{where}: not JSON of a release (nested too deeply)") from None
    except ValueError as error:
        # A number of thousands of digits.
        raise PackError(f"{where}: not JSON of a release ({error})") from None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PackError(f"{path}: not UTF-8 text (byte {error.start}: {error.reason})") from None
    except OSError as error:
        raise PackError(f"{path}: cannot be read ({error.strerror})") from None
