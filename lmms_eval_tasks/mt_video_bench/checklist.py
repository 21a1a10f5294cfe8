"""A lab's own dialogues -> checklists by the paper's prompt (Figure 16), in the layout of the authors' release.

write(Path("dialogues.jsonl"), Path("release"))      # then: lmms-eval-tasks prepare mt_video_bench --source release
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks.answers.reasoning import strip_reasoning
from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.judging.pool import Read, pool
from lmms_eval_tasks.judging.verdicts import Verdict
from lmms_eval_tasks.media.sources import check_name
from lmms_eval_tasks.mt_video_bench import prompts
from lmms_eval_tasks.mt_video_bench.metrics import ABILITIES
from lmms_eval_tasks.mt_video_bench.release import CHECKLIST_LENGTH, FILE_NAMES
from lmms_eval_tasks.settings import PREFIX
from lmms_eval_tasks.text import text_hash

ORIGIN = "origin.json"
"""What the folder says of how its checklists came about."""

Draft = dict[str, str]
"""A checklist as a judge wrote it: ``Q1``, ``A1``, ``Q2``, …"""

# ---------------------------------------------------------------------------------------------------------- dialogues


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a text is needed")
    return text


def _video(name: str) -> str:
    try:
        check_name(name)
    except PackError as error:
        raise ValueError(str(error)) from None
    return name


def _ability(name: str) -> str:
    if name not in ABILITIES:
        raise ValueError(f"one of {', '.join(ABILITIES)} is needed")
    return name


_Text = Annotated[str, AfterValidator(_not_blank)]


class OwnTurn(BaseModel):
    """A question and its reference answer; with ``evaluated`` false it is history only."""

    model_config = ConfigDict(extra="forbid")
    question: _Text
    answer: _Text
    evaluated: bool = True


class OwnDialogue(BaseModel):
    """A line of the input; without an ``id`` its line number is one."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
    id: str = ""
    video: Annotated[str, AfterValidator(_video)]
    ability: Annotated[str, AfterValidator(_ability)] = "memory_recall"
    turns: list[OwnTurn] = Field(min_length=1)


def read(path: Path) -> list[OwnDialogue]:
    """Reads dialogues, one JSON object a line.

    Raises:
        PackError: The file cannot be read, or lines are no dialogues; all of it is named at once.
    """
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise PackError(f"{path} cannot be read as text in UTF-8 ({error})") from None
    problems: list[str] = []
    first: dict[tuple[str, ...], int] = {}
    dialogues = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            dialogue = OwnDialogue.model_validate_json(line)
        except ValidationError as error:
            problems += [f"line {number}{_where(of['loc'])}: {of['msg']}" for of in error.errors()]
            continue
        dialogue.id = dialogue.id.strip() or str(number)
        dialogues.append(dialogue)
        same = first.setdefault((dialogue.ability, dialogue.video, dialogue.id), number)
        if same != number:
            problems.append(
                f"line {number}: the id {dialogue.id!r} is that of line {same}, of the same video and ability"
            )
    if not problems and not any(turn.evaluated for dialogue in dialogues for turn in dialogue.turns):
        problems.append("no turn is to be evaluated")
    if problems:
        raise PackError(listing(f"{path} holds lines that are no dialogues", problems))
    return dialogues


def _where(place: Sequence[int | str]) -> str:
    return f", {'.'.join(map(str, place))}" if place else ""


# ---------------------------------------------------------------------------------------------------------- checklists

_KEY = re.compile(r"([QA])0{0,3}([0-9]{1,4})")
_QUESTION_MARKS = ("?", "？", "؟")
# What a question must not speak of: the reference (the paper's constraint), and other questions (self-contained).
_PHRASES = re.compile(
    r"ground[\s_-]?truth|\b(?:reference|standard|expected|gold(?:en)?) answers?\b|\bthe (?:reference|GT)\b(?! to\b)"
    r"|\b[QA]\d+\b|\b(?:previous|preceding|other|above|last) questions?\b|\bchecklist\b",
    re.IGNORECASE,
)


def read_draft(reply: str) -> Draft | None:
    """A judge's reply as a checklist, whatever is wrong with it; None where it holds no single one."""
    text, truncated = strip_reasoning(reply)
    if truncated:
        return None
    drafts = [draft for pairs in _objects(text) if "Q1" in (draft := _draft(pairs))]
    return drafts[0] if drafts and all(draft == drafts[0] for draft in drafts) else None


def _objects(text: str) -> Iterator[list[tuple[str, Any]]]:
    """The pairs of each JSON object in a text that stands in no other."""
    decoder = json.JSONDecoder(object_pairs_hook=list)
    start = text.find("{")
    while start >= 0:
        try:
            pairs, end = decoder.raw_decode(text, start)
        except RecursionError:
            return
        except ValueError:
            end = start + 1
        else:
            yield pairs
        start = text.find("{", end)


def _draft(pairs: Iterable[tuple[str, Any]]) -> Draft:
    words = {True: "Yes", False: "No"}
    keys = [(_KEY.fullmatch(key.strip().upper()), value) for key, value in pairs]
    return {
        f"{key[1]}{key[2]}": words[value] if isinstance(value, bool) else _utf8(str(value).strip())
        for key, value in keys
        if key is not None
    }


def _utf8(text: str) -> str:
    """A text that any file takes: half of a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def faults(draft: Draft, number: int, source: str) -> list[str]:
    """What is wrong with a checklist, one text each; nothing for a good one.

    Args:
        draft: The checklist.
        number: How many questions it must have.
        source: Question and reference answer of its turn: whatever phrase they use, the checklist may use too.
    """
    found = []
    wanted = range(1, number + 1)
    for letter, name in (("Q", "questions"), ("A", "expected answers")):
        numbers = sorted(int(key[1:]) for key in draft if key[0] == letter)
        if numbers != list(wanted):
            there = ", ".join(f"{letter}{k}" for k in numbers) or "none"
            found.append(
                f"Exactly {number} {name} are needed, {letter}1 to {letter}{number}; there are {len(numbers)} ({there})"
            )
    answers = {key: text.rstrip(".").lower() for key, text in draft.items() if key[0] == "A"}
    found += [
        f"{key} is {draft[key]!r}, neither Yes nor No" for key, word in answers.items() if word not in ("yes", "no")
    ]
    reversed_facts = [key for key, word in answers.items() if word == "no"]
    if len(reversed_facts) != 1:
        which = f" ({', '.join(reversed_facts)})" if reversed_facts else ""
        found.append(f"Exactly one question must have the expected answer No; {len(reversed_facts)} have it{which}")
    first: dict[str, str] = {}
    for key, text in draft.items():
        if key[0] == "Q":
            same = first.setdefault(re.sub(r"\W+", " ", text).strip().casefold(), key)
            if same != key:
                found.append(f"{key} asks the same as {same}")
            if not text.endswith(_QUESTION_MARKS):
                found.append(f"{key} does not end with a question mark")
            said = {match[0] for match in _PHRASES.finditer(text) if match[0].lower() not in source.lower()}
            found += [f"{key} speaks of {phrase!r}: it must be self-contained" for phrase in sorted(said)]
    return found


@dataclass(frozen=True, eq=False)
class _Asked:
    """A turn that gets a checklist."""

    dialogue: OwnDialogue
    number: int
    questions: int

    @property
    def turn(self) -> OwnTurn:
        return self.dialogue.turns[self.number - 1]

    @property
    def prompt(self) -> str:
        return prompts.checklist(self.turn.question, self.turn.answer, self.questions)

    def faults(self, draft: Draft) -> list[str]:
        return faults(draft, self.questions, f"{self.turn.question} {self.turn.answer}")

    def __str__(self) -> str:
        return f"{self.dialogue.ability}/{self.dialogue.video}/{self.dialogue.id}, turn {self.number}"


def _make(asked: Sequence[_Asked]) -> tuple[dict[_Asked, Draft], list[str]]:
    """Checklists, and what failed in words.

    A first draft is kept on disk as it comes; where it has faults, it is sent back with them until a good one comes,
    which alone is kept. So another call asks for nothing that is good, and sends back once more what failed.
    """
    made: dict[_Asked, Draft] = {}
    failed: dict[_Asked, str] = {}
    again: dict[_Asked, str] = {}
    for of, verdict in zip(asked, _replies((of.prompt, read_draft) for of in asked), strict=True):
        if verdict.value is None:
            failed[of] = verdict.reason
        elif found := of.faults(verdict.value):
            again[of] = prompts.correction(of.prompt, json.dumps(verdict.value, ensure_ascii=False), found)
        else:
            made[of] = verdict.value
    last: dict[_Asked, list[str]] = {of: [] for of in again}
    replies = _replies((prompt, _good(of, last[of])) for of, prompt in again.items())
    for of, verdict in zip(again, replies, strict=True):
        if verdict.value is None:
            failed[of] = "; ".join([verdict.reason, *last[of]])
        else:
            made[of] = verdict.value
    return made, [f"{of}: {failed[of]}" for of in asked if of in failed]


def _replies(requests: Iterable[tuple[str, Read]]) -> list[Verdict]:
    futures = [pool().submit(prompt, reader, 0, "mt_video_bench") for prompt, reader in requests]
    pool().wait()
    return [future.result() for future in futures]


def _good(asked: _Asked, last: list[str]) -> Read:
    """A reader of good checklists alone, which leaves in ``last`` what is wrong with the others."""

    def reader(reply: str) -> Draft | None:
        draft = read_draft(reply)
        last[:] = ["It is no JSON object with the keys Q1, A1, …"] if draft is None else asked.faults(draft)
        return None if last else draft

    return reader


# -------------------------------------------------------------------------------------------------------------- folder


@dataclass(frozen=True)
class Made:
    """What `write` made.

    Attributes:
        folder: Where it is.
        dialogues: How many there are.
        checklists: How many of their turns have a checklist.
        failures: What failed, in words.
    """

    folder: Path
    dialogues: int
    checklists: int
    failures: list[str]

    def __str__(self) -> str:
        """The summary as text."""
        lines = [f"{self.checklists} checklists for {self.dialogues} dialogues in {self.folder}"]
        if self.failures:
            lines.append(
                listing(f"{len(self.failures)} failed; the same command asks for them again", self.failures, 50)
            )
            lines.append("Without a checklist a turn is history only: it is not asked, and not scored")
        return "\n".join(lines)


def write(dialogues: Path, folder: Path, questions: int = CHECKLIST_LENGTH) -> Made:
    """Makes the checklists of dialogues and writes both as a release that `release.read` reads.

    Args:
        dialogues: File with a dialogue a line, see `OwnDialogue`.
        folder: The folder to write; other files in it are left alone.
        questions: How many questions a checklist has, at least 2.

    Raises:
        PackError: Dialogues are malformed, there is no judge, or the folder holds files that are not from here or were
            edited since. What was asked by then is on disk.
    """
    if questions < 2:  # noqa: PLR2004
        raise PackError(f"--questions {questions}: one question expects No, so at least 2 are needed")
    every = read(dialogues)
    judge = pool().describe()
    if judge is None:
        raise PackError(f"checklist needs a judge that writes them. Set {PREFIX}JUDGE_MODEL")
    written = _open(folder)
    asked = [
        _Asked(dialogue, number, questions)
        for dialogue in every
        for number, turn in enumerate(dialogue.turns, start=1)
        if turn.evaluated
    ]
    made, failures = _make(asked)
    if made:
        origin = {"judge": judge, "questions": questions, "failures": failures}
        _write(folder, _files(every, made), origin, written)
    return Made(folder, len(every), len(made), failures)


def _files(dialogues: Iterable[OwnDialogue], made: Mapping[_Asked, Draft]) -> dict[str, Any]:
    """Contents of the files by name, for the abilities that occur."""
    files: dict[str, Any] = {}
    for dialogue in dialogues:
        mtqa, checklist = _names(dialogue.ability)
        files.setdefault(checklist, {})
        rounds = {f"Round {number}": _round(dialogue, turn) for number, turn in enumerate(dialogue.turns, start=1)}
        event = {"event_index": dialogue.id, "mtqa": rounds}
        files.setdefault(mtqa, {}).setdefault(dialogue.video, []).append(event)
    for of in sorted(made, key=lambda of: of.number):
        _, checklist = _names(of.dialogue.ability)
        events = files[checklist].setdefault(of.dialogue.video, {})
        events.setdefault(of.dialogue.id, []).append({"round index": of.number, **_checks(made[of])})
    return files


def _names(ability: str) -> tuple[str, str]:
    name = FILE_NAMES.get(ability, ability)
    return f"mtqa/{name}.json", f"checklist/{name}_CheckList.json"


def _round(dialogue: OwnDialogue, turn: OwnTurn) -> dict[str, str]:
    ability = dialogue.ability if turn.evaluated else "Others"
    return {"User": turn.question, "Assistant": turn.answer, "Ability": ability}


def _checks(draft: Draft) -> dict[str, str]:
    numbers = range(1, len(draft) // 2 + 1)
    pairs = ((f"Q{k}", draft[f"Q{k}"], f"A{k}", draft[f"A{k}"].rstrip(".").capitalize()) for k in numbers)
    return {key: text for q, question, a, answer in pairs for key, text in ((q, question), (a, answer))}


def _open(folder: Path) -> list[str]:
    """Makes the folder; the hashes of what was ever written into it.

    Raises:
        PackError: It cannot be written, or a file of a release in it is not from here or was edited since: nobody's
            work is overwritten.
    """
    try:
        for name in ("mtqa", "checklist"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        origin = folder / ORIGIN
        written: list[str] = json.loads(origin.read_text("utf-8"))["written"] if origin.exists() else []
        there = {name: (folder / name).read_text("utf-8") for name in _EVERY_NAME if (folder / name).exists()}
        foreign = [name for name, text in there.items() if text_hash(text) not in written]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PackError(f"--output {folder} cannot be used ({error}). Give another folder") from None
    if foreign:
        heading = f"--output {folder} holds files that are not from here, or were edited. Give another folder"
        raise PackError(listing(heading, foreign))
    return written


def _write(folder: Path, files: Mapping[str, Any], origin: Mapping[str, Any], written: Iterable[str]) -> None:
    texts = {name: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for name, content in files.items()}
    about = {**origin, "written": sorted({*written, *map(text_hash, texts.values())})}
    # First what tells ours from others' files: a kill may come at any time.
    texts = {ORIGIN: json.dumps(about, indent=1) + "\n", **texts}
    try:
        for name, text in texts.items():
            draft = folder / f"{name}.draft"
            draft.write_text(text, "utf-8")
            os.replace(draft, folder / name)
        for name in _EVERY_NAME:
            if name not in texts:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise PackError(f"--output {folder} cannot be written ({error}). What was asked is kept") from None


_EVERY_NAME = [name for ability in ABILITIES for name in _names(ability)]
