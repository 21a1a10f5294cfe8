"""The authors' release of MT-Video-Bench -> canonical rows, one for each dialogue.

Layout: ``mtqa/<ability>.json`` and ``checklist/<ability>_CheckList.json``, found by name anywhere below the source.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.media.sources import check_name
from lmms_eval_tasks.mt_video_bench.metrics import ABILITIES
from lmms_eval_tasks.releases import Release, find_file, read_json, source_folder

if TYPE_CHECKING:
    from datasets import Features

TITLE = "MT-Video-Bench"
DIALOGUES = 1000
CHECKLIST_LENGTH = 5

# The authors' file names, where they differ from the ability's.
FILE_NAMES = {"content_summary": "summary"}
_ROUND = re.compile(r"\s*round\s*(\d{1,4})\s*", re.IGNORECASE)
_CHECK = re.compile(r"([QA])(\d{1,4})")
_EXPECTED: dict[object, Literal["yes", "no"]] = {"yes": "yes", "no": "no"}


class Check(BaseModel):
    """One question of a checklist, with the answer that the judge should come to."""

    model_config = ConfigDict(extra="forbid")
    question: str = Field(min_length=1)
    expected: Literal["yes", "no"]


class Turn(BaseModel):
    """One question and its reference answer; evaluated where it has a checklist and is not excluded."""

    model_config = ConfigDict(extra="forbid")
    question: str
    answer: str
    checklist: list[Check] = []
    excluded: str | None = None


class Dialogue(BaseModel):
    """One row of the canonical dataset; ``seconds`` is the video's duration, ``scenes`` their number, where known."""

    model_config = ConfigDict(extra="forbid")
    id: str
    ability: str
    video: str = Field(min_length=1)
    event: str
    turns: list[Turn]
    seconds: float | None = None
    scenes: int | None = None


def read(source: Path) -> Release:
    """Reads and validates a release.

    Args:
        source: A folder that holds the authors' files.

    Returns:
        Canonical rows for each ability, in the paper's order; what cannot be scored is marked ``excluded`` in them and
        listed with its reason.

    Raises:
        PackError: Files are missing, unreadable or of another shape; all of it is named at once.
    """
    source = source_folder(source)
    release, problems = Release(), []
    for ability in ABILITIES:
        try:
            mtqa, checklist = (_file(source, ability, suffix) for suffix in (".json", "_CheckList.json"))
            if mtqa is None:
                release.notes.append(f"{ability}: no {FILE_NAMES.get(ability, ability)}.json below {source}")
                continue
            if checklist is None:
                name = f"{FILE_NAMES.get(ability, ability)}_CheckList.json"
                release.notes.append(f"{ability}: no {name} below {source}, so none of its dialogues is evaluated")
            rows = list(_Reader(release, ability, mtqa, checklist).dialogues())
            release.rows[ability] = [row.model_dump() for row in rows]
        except PackError as error:
            problems.append(str(error))
    if problems:
        raise PackError(listing(f"{TITLE} in {source} cannot be read", problems))
    if not release.rows:
        names = ", ".join(f"{FILE_NAMES.get(ability, ability)}.json" for ability in ABILITIES)
        raise PackError(f"{source} holds no {TITLE} release: none of {names} is below it")
    number = sum(map(len, release.rows.values()))
    if number != DIALOGUES:
        release.notes.append(f"{number} dialogues; the full set as published has {DIALOGUES}")
    return release


def questions(row: Mapping[str, Any]) -> int:
    """How many turns of a dialogue are evaluated."""
    return sum(bool(turn["checklist"]) and turn["excluded"] is None for turn in row["turns"])


def features() -> "Features":
    """The columns of the rows."""
    from datasets import Features, Value

    text = Value("string")
    check = {"question": text, "expected": text}
    turn = {"question": text, "answer": text, "checklist": [check], "excluded": text}
    return Features(
        {
            "id": text,
            "ability": text,
            "video": text,
            "event": text,
            "turns": [turn],
            "seconds": Value("float64"),
            "scenes": Value("int64"),
        }
    )


def _file(source: Path, ability: str, suffix: str) -> Path | None:
    return find_file(source, FILE_NAMES.get(ability, ability) + suffix)


class _Reader:
    """Reads the two files of one ability."""

    def __init__(self, release: Release, ability: str, mtqa: Path, checklist: Path | None) -> None:
        self.release, self.ability = release, ability
        self.mtqa_path, self.checklist_path = mtqa, checklist
        self.mtqa = _read(mtqa)
        self.checklists = _read(checklist) if checklist else {}

    def dialogues(self) -> Iterator[Dialogue]:
        problems = []
        for video, events in self.mtqa.items():
            try:
                check_name(video)
                yield from self._of_video(video, _list(events, f"{self.mtqa_path}: {video}"))
            except PackError as error:
                problems.append(str(error))
        if problems:
            raise PackError("\n    ".join(problems))
        for video in self.checklists.keys() - self.mtqa.keys():
            self.release.notes.append(f"{self.checklist_path}: {video!r} has no dialogues in {self.mtqa_path.name}")

    def _of_video(self, video: str, events: list[Any]) -> Iterator[Dialogue]:
        where = f"{self.mtqa_path}: {video}"
        checklists = _mapping(self.checklists.get(video, {}), f"{self.checklist_path}: {video}")
        numbers = [_event(_mapping(event, where), where) for event in events]
        for number in checklists.keys() - set(numbers):
            self.release.notes.append(
                f"{self.checklist_path}: {video}, event {number}: no such event in {self.mtqa_path.name}"
            )
        times, seen = Counter(numbers), Counter[str]()
        for number, event in zip(numbers, events, strict=True):
            seen[number] += 1
            # Two dialogues under one number: nobody can tell which of them the checklist is for.
            broken = f"event {number} occurs {times[number]} times" if times[number] > 1 else ""
            suffix = f"#{seen[number]}" if seen[number] > 1 else ""
            yield self._dialogue(video, number + suffix, event, checklists.get(number + suffix, []), broken)

    def _dialogue(self, video: str, number: str, event: Mapping[str, Any], checklists: Any, broken: str) -> Dialogue:
        name = f"{self.ability}/{video}/{number}"
        rounds = _mapping(event.get("mtqa"), f"{self.mtqa_path}: {video}, event {number}, key 'mtqa'")
        positions: dict[int, int] = {}
        turns: list[Turn] = []
        for label, content in rounds.items():
            match = _ROUND.fullmatch(label)
            texts = [content.get(role) for role in ("User", "Assistant")] if isinstance(content, dict) else [None]
            if match is None or int(match[1]) in positions or not all(isinstance(text, str) for text in texts):
                broken = broken or f"{label!r} is no round with the texts 'User' and 'Assistant'"
            if match is not None:
                positions.setdefault(int(match[1]), len(turns))
            question, answer = [text if isinstance(text, str) else "" for text in (*texts, None)][:2]
            turns.append(Turn(question=question, answer=answer))
        seen: set[int] = set()
        for entry in _list(checklists, f"{self.checklist_path}: {video}, event {number}"):
            index = _index(entry)
            if index not in positions:
                self._exclude(f"{name}/{index}", f"checklist for a round that does not exist ({len(turns)} rounds)")
                continue
            turn, label = turns[positions[index]], f"{name}/{positions[index] + 1}"
            if index in seen:
                problem = "two checklists for one round"
            elif broken:
                problem = broken
            else:
                problem = _read_checklist(entry, turn) or ("" if turn.question.strip() else "the question is empty")
            seen.add(index)
            if problem and turn.excluded is None:
                turn.excluded = problem
                self._exclude(label, problem)
            elif not problem and len(turn.checklist) != CHECKLIST_LENGTH:
                self.release.notes.append(f"{label}: {len(turn.checklist)} checklist questions, not {CHECKLIST_LENGTH}")
        scenes = event.get("scenes")
        return Dialogue(
            id=name,
            ability=self.ability,
            video=video,
            event=number,
            turns=turns,
            scenes=scenes if isinstance(scenes, int) else None,
        )

    def _exclude(self, name: str, reason: str) -> None:
        self.release.excluded.append({"id": name, "reason": reason})


def _read_checklist(entry: Mapping[str, Any], turn: Turn) -> str:
    """Fills a turn's checklist; returns what is wrong with it, empty for nothing."""
    texts: dict[str, dict[int, Any]] = {"Q": {}, "A": {}}
    for key, value in entry.items():
        match = _CHECK.fullmatch(key.strip())
        if match is not None:
            texts[match[1]][int(match[2])] = value
    numbers = sorted(texts["Q"])
    if not numbers:
        return "the checklist has no questions"
    if numbers != list(range(1, len(numbers) + 1)):
        return f"the checklist's questions are numbered {numbers}"
    if sorted(texts["A"]) != numbers:
        return f"{len(texts['A'])} expected answers for {len(numbers)} checklist questions"
    checks = []
    for number in numbers:
        question, answer = texts["Q"][number], texts["A"][number]
        expected = _EXPECTED.get(answer.strip().rstrip(".").lower()) if isinstance(answer, str) else None
        if expected is None:
            return f"A{number} is {answer!r}, neither 'Yes' nor 'No'"
        if not isinstance(question, str) or not question.strip():
            return f"Q{number} is empty"
        checks.append(Check(question=question, expected=expected))
    turn.checklist = checks
    return ""


def _index(entry: Any) -> int | str:
    value = entry.get("round index") if isinstance(entry, dict) else None
    match = re.fullmatch(r"\s*(?:round\s*)?(\d{1,4})\s*", str(value), re.IGNORECASE)
    return int(match[1]) if match else f"round index {value!r}"


def _event(event: Mapping[str, Any], where: str) -> str:
    value = event.get("event_index")
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).strip():
        raise PackError(f"{where}: 'event_index' is {value!r}; a number or a text is needed")
    return str(value).strip()


def _read(path: Path) -> Mapping[str, Any]:
    value = _mapping(read_json(path), str(path))
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise PackError(f"{path}: a text in it holds {half!r}, half of a character. Write it whole") from None
    return value


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PackError(f"{where}: an object is needed, not {type(value).__name__}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise PackError(f"{where}: a list is needed, not {type(value).__name__}")
    return value
