"""The authors' release of MVPBench -> canonical rows, one for each question.

Layout: one folder or zip for each subtask, with its clips and a ``.jsonl`` of its questions, anywhere below the source.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks import settings
from lmms_eval_tasks.archives import unpacked
from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.media.sources import Videos, check_name
from lmms_eval_tasks.mvpbench import prompts
from lmms_eval_tasks.mvpbench.metrics import RANKINGS, SUBTASKS
from lmms_eval_tasks.releases import IGNORED, Release, source_folder
from lmms_eval_tasks.text import digest

if TYPE_CHECKING:
    from datasets import Features

TITLE = "MVPBench"
QUESTIONS = 5050

# What folders, zips and files of a subtask may be called, beside its own name. Letter case, numbers, what separates
# words, and the words of _NOISE do not count.
_SPELLINGS: Mapping[str, Sequence[str]] = {
    "caption_guided_splicing": (
        *("caption guided temporal segment splicing", "temporal segment splicing with caption", "recipe", "YouCook"),
        *("temporal splicing with captions", "tem w cap", "tem with cap", "w caption"),
    ),
    "caption_free_splicing": (
        *("caption free temporal segment splicing", "temporal segment splicing without caption", "no caption"),
        *("temporal splicing without captions", "tem w o cap", "tem without cap", "w o caption"),
    ),
    "daily_action": ("daily life action evaluation", "EPIC skills"),
    "professional_action": ("professional action evaluation", "pro action", "AQA"),
    "weather": ("weather condition evaluation",),
    "clarity": ("video clarity evaluation", "CVQAD"),
    "brightness": ("video brightness evaluation", "SDSD"),
    "forensic": ("video forensic detection", "forensics"),
    "multiview_pairing": ("multiview visual perception pairing", "PEV"),
    "common_sense_physics": ("common sense judgment of physical laws", "common sense", "physical laws", "physics"),
    "gait": ("gait recognition matching", "CASIA gait", "CASIA"),
    "cinematographic_style": ("cinematographic style matching", "cinematography", "shooting style", "filming style"),
    "olympic_sports": ("olympic sports matching", "olympics", "olympic", "sports"),
    "dance_style": ("dance style matching", "dance type"),
}
_NOISE = {
    *("mvp", "bench", "mvpbench", "subtask", "task", "data", "dataset", "test", "qa", "questions", "annotations"),
    *("video", "videos", "clips", "evaluation", "detection", "recognition", "matching", "pairing", "judgment"),
    *("judgement", "temporal", "tem", "segment", "splicing", "life", "action", "condition", "conditions", "visual"),
    *("perception", "style", "of"),
}

# Zips in zips are unpacked so deep.
_NESTING = 3
# A query is a subtask's when it shares at least this part of the paper's prompt.
_ALIKE = 0.5


class Line(BaseModel):
    """A question as the authors write it."""

    model_config = ConfigDict(extra="ignore", strict=True)
    id: str | int
    query: str | None = None
    video_options: list[str] = Field(min_length=2)
    options: list[str | int] | None = None
    answer: Any


class Question(BaseModel):
    """One row of the canonical dataset.

    Attributes:
        id: ``<subtask>/<number of its line, from 0>``.
        subtask: Name of the subtask.
        videos: Names in the order of the query's placeholders, ``<subtask>/<file>``; none where it is excluded.
        reference: Whether the first of them is the reference, and no candidate.
        query: The text, with a placeholder for each video.
        candidates: Number of videos to choose from, or to put in order.
        gold: The right answer: one number, or all of them in order; numbers are from 1.
        excluded: Why it cannot be scored.
        seconds: Duration of its videos together.
    """

    model_config = ConfigDict(extra="forbid")
    id: str
    subtask: str
    videos: list[str] = []
    reference: bool = False
    query: str = ""
    candidates: int = 0
    gold: list[int] = []
    excluded: str | None = None
    seconds: float | None = None


def read(source: Path) -> Release:
    """Reads and validates a release.

    Args:
        source: A folder that holds the authors' folders or zips; zips are unpacked below ``HOME/unpacked``.

    Returns:
        Canonical rows for each subtask, in the paper's order, and the clips that were found; what cannot be scored is
        marked ``excluded`` in them and listed with its reason.

    Raises:
        PackError: Files are missing, damaged or of another shape; all of it is named at once.
    """
    source = source_folder(source)
    problems: list[str] = []
    roots = list(_roots(source, (source.name,), problems))
    release = Release()
    files = list(_files(roots, release, problems))
    if problems:
        raise PackError(listing(f"{TITLE} in {source} cannot be read", problems))
    if not files:
        raise PackError(listing(
            f"{source} holds no {TITLE} release: no .jsonl of one of its subtasks is below it. They are "
            f"{', '.join(SUBTASKS)}", release.notes))  # fmt: skip
    named = _named_folders(roots)
    for subtask in SUBTASKS:
        mine = [file for file in files if file.subtask == subtask]
        if not mine:
            release.notes.append(f"{subtask}: no .jsonl of it below {source}")
            continue
        rows = list(_rows(subtask, [(file, _clips(file, files, named)) for file in mine], release))
        same = [row.id for row in rows if row.reference and row.videos[0] in row.videos[1:]]
        if same:
            release.notes.append(f"{subtask}: the reference is also a candidate in {len(same)} questions, such as "
                                 f"{same[0]}: a name that lies in several folders is taken for one clip")  # fmt: skip
        release.rows[subtask] = [row.model_dump() for row in rows]
    number = sum(map(len, release.rows.values()))
    if number != QUESTIONS:
        release.notes.append(f"{number} questions; the full set as published has {QUESTIONS}")
    return release


def questions(row: Mapping[str, Any]) -> int:
    """1, or 0 for a question that is excluded."""
    return int(row["excluded"] is None)


def features() -> "Features":
    """The columns of the rows."""
    from datasets import Features, Value

    text, number = Value("string"), Value("int64")
    return Features(
        {
            "id": text,
            "subtask": text,
            "videos": [text],
            "reference": Value("bool"),
            "query": text,
            "candidates": number,
            "gold": [number],
            "excluded": text,
            "seconds": Value("float64"),
        }
    )


@dataclass(frozen=True)
class _Root:
    """A folder with files of the authors: the source, or what a zip held. Its names are those that lead to it."""

    folder: Path
    names: tuple[str, ...]

    def files(self, suffix: str) -> list[Path]:
        found = [path for path in self.folder.rglob("*") if path.suffix.lower() == suffix and path.is_file()]
        return sorted(path for path in found if not _hidden(path.relative_to(self.folder)))

    def names_of(self, path: Path) -> tuple[str, ...]:
        """What may tell a file's subtask: its name and those of the folders and zips around it, the nearest first."""
        inside = path.relative_to(self.folder)
        return (path.stem, *reversed(inside.parts[:-1]), *reversed(self.names))


@dataclass(frozen=True)
class _File:
    """One subtask's ``.jsonl``: each line that is not empty, as an object or the reason why it is none."""

    path: Path
    subtask: str
    lines: list[dict[str, Any] | str]


def _roots(folder: Path, names: tuple[str, ...], problems: list[str], depth: int = 0) -> Iterator[_Root]:
    root = _Root(folder, names)
    yield root
    for archive in root.files(".zip") if depth < _NESTING else ():
        try:
            inside = unpacked(archive, settings.load().root / "unpacked" / "mvpbench")
        except PackError as error:
            problems.append(str(error))
            continue
        yield from _roots(inside, tuple(reversed(root.names_of(archive))), problems, depth + 1)


def _files(roots: Sequence[_Root], release: Release, problems: list[str]) -> Iterator[_File]:
    """The files of all subtasks; a copy of one, such as the zip of a folder, is noted and passed over."""
    seen: dict[tuple[str, str], Path] = {}
    for root in roots:
        for path in root.files(".jsonl"):
            try:
                lines = _lines(path)
            except PackError as error:
                problems.append(str(error))
                continue
            subtask, reason = _subtask_of_file(root.names_of(path), lines)
            if not subtask:
                ours = any("video_options" in line for line in lines)
                (problems if ours else release.notes).append(f"{path} is not read: {reason}")
                continue
            first = seen.setdefault((subtask, digest(lines)), path)
            if first == path:
                yield _File(path, subtask, lines)
            else:
                release.notes.append(f"{path} is a copy of {first}, and passed over")


def _lines(path: Path) -> list[dict[str, Any] | str]:
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PackError(f"{path}: not UTF-8 text (byte {error.start}: {error.reason})") from None
    except OSError as error:
        raise PackError(f"{path}: cannot be read ({error.strerror})") from None
    # `splitlines` would also split at characters that JSON allows within a text.
    return [_object(line) for line in text.split("\n") if line.strip()]


def _object(line: str) -> dict[str, Any] | str:
    try:
        value = json.loads(line)
        # Half of a surrogate pair is JSON, and no text that a file can hold.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        return f"not JSON ({error})"
    return value if isinstance(value, dict) else f"an object is needed, not {type(value).__name__}"


def _subtask_of_file(names: Sequence[str], lines: Sequence[dict[str, Any] | str]) -> tuple[str, str]:
    """The subtask of a file, or an empty text and the reason: by the names around it, else by its queries."""
    by_name = next(filter(None, map(_subtask_of_name, names)), "")
    if by_name:
        return by_name, ""
    queries = {line["query"] for line in lines if isinstance(line, dict) and isinstance(line.get("query"), str)}
    found = {subtask for query in queries for subtask in _subtasks_of_query(query)}
    if len(found) == 1:
        return found.pop(), ""
    which = f"its queries are those of {' or '.join(sorted(found))}" if found else "it is of no subtask that we know"
    return "", f"{which}. Name its folder after its subtask, such as {(sorted(found) or SUBTASKS)[0]}"


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _subtask_of_name(name: str) -> str:
    words = _words(name)
    return _SUBTASK_OF.get("".join(word for word in words if word not in _NOISE)) or _SUBTASK_OF.get("".join(words), "")


_SUBTASK_OF = {
    "".join(word for word in _words(name) if word not in noise): subtask
    for subtask in SUBTASKS
    for name in (subtask, *_SPELLINGS[subtask])
    for noise in (_NOISE, ())
}


def _phrases(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z]+", re.sub(r"\{\w+\}|Video \d+:|<video>", " ", text).lower())
    return set(zip(words, words[1:], words[2:], strict=False))


_PHRASES = {subtask: _phrases(prompt) for subtask, prompt in prompts.INFERENCE.items()}


def _subtasks_of_query(query: str) -> list[str]:
    """The subtasks whose prompt in the paper a query resembles most: two where two subtasks share one."""
    phrases = _phrases(query)
    alike = {subtask: len(phrases & of) / len(of) for subtask, of in _PHRASES.items()}
    best = max(alike.values())
    return [subtask for subtask, share in alike.items() if share == best >= _ALIKE]


def _named_folders(roots: Sequence[_Root]) -> list[tuple[Path, str]]:
    """Folders that are named after a subtask, and what zips of such names held."""
    named = []
    for root in roots:
        folders = sorted(path for path in root.folder.rglob("*") if path.is_dir())
        for folder, name in ((root.folder, root.names[-1]), *((folder, folder.name) for folder in folders)):
            subtask = _subtask_of_name(name)
            if subtask:
                named.append((folder, subtask))
    return named


def _clips(file: _File, files: Sequence[_File], named: Sequence[tuple[Path, str]]) -> Videos:
    """Where a file's clips are: equal names occur in several subtasks, so never in the folder of another one."""
    beside = file.path.parent
    others = [other.path for other in files if other.subtask != file.subtask]
    others += [folder for folder, subtask in named if subtask != file.subtask]
    shared = any(beside in other.parents for other in others)
    return Videos([*([] if shared else [beside]), *(folder for folder, subtask in named if subtask == file.subtask)])


def _rows(subtask: str, files: Sequence[tuple[_File, Videos]], release: Release) -> Iterator[Question]:
    lines = [(line, file, clips) for file, clips in files for line in file.lines]
    for number, (line, file, clips) in enumerate(lines):
        name = f"{subtask}/{number}"
        try:
            row = _question(name, subtask, line)
        except PackError as error:
            release.excluded.append({"id": name, "reason": str(error)})
            yield Question(id=name, subtask=subtask, excluded=str(error))
            continue
        row.videos = [_place(subtask, video, file.path.parent, clips, release.videos) for video in row.videos]
        yield row


def _question(name: str, subtask: str, line: dict[str, Any] | str) -> Question:
    """A row whose videos still have the authors' names.

    Raises:
        PackError: The line cannot be scored; the text is the reason alone.
    """
    if isinstance(line, str):
        raise PackError(line)
    try:
        given = Line.model_validate(line)
    except ValidationError as error:
        raise PackError("; ".join(f"{'.'.join(map(str, of['loc']))}: {of['msg']}" for of in error.errors())) from None
    number = len(given.video_options)
    query = given.query if given.query and given.query.strip() else prompts.inference(subtask, number)
    if query is None:
        raise PackError(f"no query, and the paper has no prompt for {number} videos without one")
    placeholders = query.count(prompts.PLACEHOLDER)
    if placeholders not in (number, number + 1):
        raise PackError(f"{placeholders} times {prompts.PLACEHOLDER} in the query for {number} video_options")
    if len(set(given.video_options)) < number:
        raise PackError("video_options names a video twice")
    reference = [str(given.id)] if placeholders > number else []
    videos = [*reference, *given.video_options]
    for video in videos:
        check_name(video)
    return Question(
        id=name,
        subtask=subtask,
        videos=videos,
        reference=bool(reference),
        query=query,
        candidates=number,
        gold=_gold(subtask, given, number),
    )


def _gold(subtask: str, line: Line, number: int) -> list[int]:
    gold, every = _numbers(line.answer), list(range(1, number + 1))
    if subtask in RANKINGS:
        if sorted(gold) != every:
            raise PackError(f"the answer {line.answer!r} is no order of {number} videos")
        return gold
    if [_numbers(option) for option in line.options or ()] != [[option] for option in every]:
        raise PackError(f"the options are {line.options!r} for {number} videos")
    if len(gold) != 1 or gold[0] not in every:
        raise PackError(f"the answer {line.answer!r} is not among the options")
    return gold


def _numbers(value: Any) -> list[int]:
    """The numbers of an answer, such as ``"3, 2, 1"``, ``"[3 2 1]"`` or ``[3, "2", 1]``; none of anything else."""
    if isinstance(value, list):
        parts = [_numbers(part) for part in value]
        return [number for part in parts for number in part] if all(len(part) == 1 for part in parts) else []
    if isinstance(value, bool) or not isinstance(value, int | str):
        return []
    text = re.sub(r"^\s*[\[(](.*)[\])]\s*$", r"\1", str(value))
    if not re.fullmatch(r"\s*(?:video\s*)?[0-9]{1,3}(?:(?:\s*[,;>]\s*|\s+)(?:video\s*)?[0-9]{1,3})*\s*", text, re.I):
        return []
    return [int(number) for number in re.findall(r"[0-9]+", text)]


def _place(subtask: str, video: str, beside: Path, clips: Videos, videos: dict[str, Path]) -> str:
    """A clip's name in the dataset; notes its file, where there is one."""
    exact = beside / video
    path = exact if exact.is_file() else clips.find(video)
    if path is None:
        return f"{subtask}/{video}"
    # Files of questions in one subtask, each with its own clips, are told apart by the folders that they are in.
    folders = (beside.parts[len(beside.parts) - depth :] for depth in count())
    names = ("/".join((subtask, *of, video)) for of in folders)
    return next(name for name in names if videos.setdefault(name, path) == path)


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part in IGNORED for part in path.parts)
