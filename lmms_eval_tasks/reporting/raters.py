"""Who judged what: logs that a judge has scored, and label files of people -> ratings that can be compared."""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.reporting.verdicts import look_up
from lmms_eval_tasks.results.items import UNJUDGED, Item, mean
from lmms_eval_tasks.results.score import read


@dataclass(frozen=True)
class Rating:
    """What a rater says of one item.

    Attributes:
        score: In percent, None where there is none.
        checks: For each of the model's answers, ``"yes"`` or ``"no"`` to each question of the checklist; None where
            there is no checklist.
    """

    score: float | None
    checks: list[list[str]] | None


@dataclass(eq=False)
class Rater:
    """A judge, or people.

    Attributes:
        source: The file or folder.
        judge: Who judged, in words.
        ratings: By task and id.
        items: The items themselves by task and id; empty for people.
        notes: What a reader must know.
    """

    source: str
    judge: str
    ratings: dict[str, dict[str, Rating]] = field(default_factory=lambda: defaultdict(dict))
    items: dict[str, dict[str, Item]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


Known = Mapping[str, Mapping[str, Item]]
_Found = TypeVar("_Found")


def raters(paths: Sequence[Path]) -> list[Rater]:
    """Reads logs (sample logs, run records, folders of them) and label files (``.csv``).

    Raises:
        PackError: A file cannot be read, holds verdicts of several judges, or labels that do not fit the logs; all of
            it is named at once.
    """
    problems: list[str] = []
    logs = [path for path in dict.fromkeys(paths) if path.suffix.lower() != ".csv"]
    found = {path: rater for path in logs if (rater := _attempt(problems, _judge, path))}
    if not logs:
        problems.append("labels of people need the log that they are about: give it too")
    if not problems:
        known = items_of(found.values())
        files = [path for path in dict.fromkeys(paths) if path not in found]
        found |= {path: rater for path in files if (rater := _attempt(problems, _people, path, known))}
    if problems:
        raise PackError(listing("Judges cannot be compared", problems))
    return [found[path] for path in paths]


def items_of(of: Iterable[Rater]) -> dict[str, dict[str, Item]]:
    """All items by task and id, each from the last log that holds it."""
    every: dict[str, dict[str, Item]] = defaultdict(dict)
    for rater in of:
        for task, items in rater.items.items():
            every[task].update(items)
    return dict(every)


def majority(votes: Sequence[Sequence[str]]) -> list[str]:
    """What most say to each question; where they are even, what the first of those says.

    Args:
        votes: The answers of each repeat of a judge, or of each person, all of one length.

    Raises:
        ValueError: The lengths differ.
    """
    return [max(of, key=of.count) for of in zip(*votes, strict=True)]


def _attempt(problems: list[str], function: Callable[..., _Found], *arguments: Any) -> _Found | None:
    try:
        return function(*arguments)
    except PackError as error:
        problems.append(str(error))
        return None


# --------------------------------------------------------------------------------------------------------------- logs


def _judge(path: Path) -> Rater:
    """The judge whose verdicts a log holds; what it does not hold yet is looked for on disk."""
    by_task = read([path])
    items = [item for of in by_task.values() for item in of]
    asked = {_identity(item): item["card"]["judge"]["model"] for item in items if item["card"]["judge"]}
    if len(asked) > 1:
        judges = "; ".join(sorted(" ".join(str(part) for part in of if part is not None) for of in asked))
        raise PackError(f"{path} holds verdicts of {len(asked)} judges ({judges}). Give the logs of each by themselves")
    waiting = [item for item in items if item["status"] == UNJUDGED]
    look_up(waiting)
    left = sum(item["status"] == UNJUDGED for item in waiting)
    return Rater(
        source=str(path),
        judge=next(iter(asked.values()), "no judge"),
        ratings={task: {item["id"]: _rated(item) for item in of} for task, of in by_task.items()},
        items={task: {item["id"]: item for item in of} for task, of in by_task.items()},
        notes=[f"{left} items are not judged yet: `lmms-eval-tasks score` judges them"] if left else [],
    )


def _identity(item: Mapping[str, Any]) -> tuple[Any, ...]:
    judge = item["card"]["judge"] or {}
    return tuple(judge.get(key) for key in ("model", "endpoint", "temperature"))


def _rated(item: Mapping[str, Any]) -> Rating:
    try:
        checks = [majority(repeats) for repeats in item.get("verdicts", ())]
    except (TypeError, ValueError):
        # Verdicts of another kind, such as grades.
        checks = []
    words = {word for of in checks for word in of}
    return Rating(item.get("score"), checks if words and words <= {"yes", "no"} else None)


# ------------------------------------------------------------------------------------------------------------- labels


def _word(value: object) -> object:
    return value.rstrip(".").lower() if isinstance(value, str) else value


class _Label(BaseModel):
    """A row of a label file; other columns are passed over."""

    id: str = Field(min_length=1)
    task: str = ""
    annotator: str = ""


class _ScoreLabel(_Label):
    score: float = Field(ge=0, le=100)


class _CheckLabel(_Label):
    check: int = Field(ge=1)
    verdict: Annotated[Literal["yes", "no"], BeforeValidator(_word)]


# The columns that tell which labels a file holds.
_KINDS: dict[type[_Label], set[str]] = {_ScoreLabel: {"id", "score"}, _CheckLabel: {"id", "check", "verdict"}}
_Lines = list[tuple[int, Any]]


def _people(path: Path, known: Known) -> Rater:
    """The labels of a file: scores are averaged over annotators, single checks are decided by their majority."""
    rater, problems = Rater(str(path), "people"), []
    by_item: dict[tuple[str, str], dict[str, _Lines]] = defaultdict(lambda: defaultdict(list))
    for number, label in _labels(path):
        task = label.task or (next(iter(known)) if len(known) == 1 else "")
        if task in known:
            by_item[task, label.id][label.annotator].append((number, label))
        else:
            problems.append(f"line {number}: task {task!r} is none of the logs' {', '.join(sorted(known))}")
    unknown = [name for task, name in by_item if name not in known[task]]
    if unknown:
        rater.notes.append(f"{len(unknown)} of {len(by_item)} labelled ids are in no log, such as {unknown[0]!r}")
    for (task, name), by_annotator in by_item.items():
        if name in known[task]:
            try:
                rater.ratings[task][name] = _labelled(known[task][name], list(by_annotator.values()))
            except PackError as error:
                problems.append(str(error))
    if problems:
        raise PackError(listing(f"{path} holds labels that cannot be used", problems))
    return rater


def _labelled(item: Item, by_annotator: Sequence[_Lines]) -> Rating:
    (line, label), *_ = by_annotator[0]
    if isinstance(label, _ScoreLabel):
        twice = next((of[1][0] for of in by_annotator if len(of) > 1), None)
        if twice:
            raise PackError(f"line {twice}: a second score of {item['id']!r} by the same annotator. Keep one")
        return Rating(mean(of[0][1].score for of in by_annotator), None)
    expected = [check["expected"] for check in item.get("checklist", ())]
    if not expected or len(item["answers"]) > 1:
        why = "several answers" if expected else "no checklist"
        raise PackError(f"line {line}: {item['id']!r} has {why}: label it by a score")
    votes = []
    for of in by_annotator:
        by_check = {label.check: label.verdict for _, label in of}
        if len(of) != len(expected) or sorted(by_check) != list(range(1, len(expected) + 1)):
            raise PackError(f"line {of[0][0]}: {item['id']!r} has {len(expected)} checks, and labels of the checks "
                            f"{', '.join(str(label.check) for _, label in of)}. Each annotator must label all of them, "
                            "once, or none")  # fmt: skip
        votes.append([by_check[number] for number in sorted(by_check)])
    hits = [mean(100.0 * (said == right) for said, right in zip(of, expected, strict=True)) for of in votes]
    return Rating(mean(hits), [majority(votes)])


def _labels(path: Path) -> Iterator[tuple[int, Any]]:
    """The rows of a label file, each with the number of its line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = [
                (reader.line_num, {_plain(name).lower(): _plain(text) for name, text in row.items()}) for row in reader
            ]
            columns = {_plain(name).lower() for name in reader.fieldnames or ()}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PackError(f"{path} cannot be read as CSV in UTF-8 ({error})") from None
    kinds = [kind for kind, needed in _KINDS.items() if columns >= needed]
    if len(kinds) != 1:
        raise PackError(f"{path} has the columns {', '.join(sorted(columns)) or '(none)'}. It needs id and score, or "
                        "id, check and verdict")  # fmt: skip
    labels, problems = [], []
    for number, row in rows:
        try:
            labels.append((number, kinds[0].model_validate(row)))
        except ValidationError as error:
            problems += [f"line {number}: {of['loc'][0]} is {of['input']!r}: {of['msg']}" for of in error.errors()]
    if problems or not labels:
        raise PackError(listing(f"{path} holds rows that are no labels", problems or ["there is no row"]))
    yield from labels


def _plain(text: object) -> str:
    return text.strip() if isinstance(text, str) else ""
