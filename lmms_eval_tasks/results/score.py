"""Scoring offline: lmms-eval's sample logs and the pack's run records -> numbers.

    score(["logs/…_samples_mt_video_bench.jsonl"])  ->  {"mt_video_bench": {"metrics": …, "coverage": …, …}}

It judges what is not judged yet, with the code of the run itself, so that an interrupted run ends in the numbers of an
uninterrupted one.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from lmms_eval_tasks import canonical, settings
from lmms_eval_tasks.answers.failures import EveryAnswer
from lmms_eval_tasks.benchmarks import Task, room, tasks
from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.judging.items import settle
from lmms_eval_tasks.judging.pool import pool
from lmms_eval_tasks.results.card import judge_summary
from lmms_eval_tasks.results.items import EXCLUDED, SCORED, UNJUDGED, Item, counts, coverage, flat, remarks
from lmms_eval_tasks.settings import PREFIX

_LOG_NAME = re.compile(r"_samples_(\w+)\.jsonl$")
_KEYS = {"id", "task", "answers", "status", "card"}
_Status = Literal["scored", "unjudged", "no_answer", "excluded"]


class _Judge(BaseModel):
    """What of the judge in a protocol card scoring reads."""

    model_config = ConfigDict(strict=True)
    repeats: int = Field(1, ge=1, le=100)


class _Card(BaseModel):
    """What of a protocol card scoring reads."""

    model_config = ConfigDict(strict=True)
    questions: int = 0
    judge: _Judge | None = None


class _Usage(BaseModel):
    """Who judged an item, and what it took."""

    model_config = ConfigDict(strict=True)
    models: list[str]
    judgements: int
    input_tokens: int
    output_tokens: int


class _Skipped(BaseModel):
    """A question that was not asked."""

    model_config = ConfigDict(strict=True)
    status: _Status
    reason: str = ""


class _Logged(_Skipped):
    """What the items of all benchmarks have in a log; a room's own fields are read by the room."""

    id: str
    task: str
    answers: list[str] = Field(min_length=1)
    card: _Card
    judge: _Usage | None = None
    score: FiniteFloat = 0.0
    seconds: FiniteFloat | None = None
    unread: int = 0
    truncated: int = 0
    skipped: list[_Skipped] | None = None


def score(
    paths: Sequence[Path],
    task: str | None = None,
    rejudge: bool = False,
    official_rounding: bool = False,
    items_to: Path | None = None,
) -> dict[str, dict[str, Any]]:
    """Scores logs and run records, several of one run together.

    Args:
        paths: Files; a folder stands for the ``.jsonl`` files below it.
        task: Task of the files, where neither their names nor their contents tell it.
        rejudge: Judge every answer again with the current judge.
        official_rounding: Round as the authors' script does, for comparison.
        items_to: A file that the scored items are written to, in the format of run records.

    Returns:
        ``{task: {"metrics": {name: percent}, "coverage": percent, "counts": …, "judge": …, "card": …, "breakdowns": …,
        "notes": […]}}``; what cannot be computed is absent from ``metrics`` and None as coverage.

    Raises:
        PackError: A file cannot be read or written, belongs to another dataset, or judges would be mixed.
    """
    by_task = read(paths, task)
    waiting = {}
    for name, items in by_task.items():
        with _whole_items(name):
            waiting[name] = _unjudged(name, items, rejudge)
    if rejudge:
        pool().forget()
    for name, items in waiting.items():
        with _whole_items(name):
            _judge(name, items, rejudge)
    settle([item for items in waiting.values() for item in items])
    if items_to is not None:
        _write(items_to, (item for items in by_task.values() for item in items))
    results = {}
    for name, items in by_task.items():
        with _whole_items(name):
            results[name] = result(name, items, official_rounding)
    return results


@contextmanager
def _whole_items(name: str) -> Iterator[None]:
    """Says of items that were damaged, edited or made by another version of the pack that they are."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise PackError(
            f"{name}: its items have another shape ({type(error).__name__}: {error}). Are the files damaged, or of "
            "another version of the pack?"
        ) from error


def _write(path: Path, items: Iterable[Item]) -> None:
    try:
        path.write_text("".join(json.dumps(item) + "\n" for item in items), "utf-8")
    except OSError as error:
        raise PackError(f"--items {path} cannot be written ({error.strerror})") from None


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The results as text: a line for each metric, counts and notes below."""
    lines = []
    for name, result in results.items():
        lines.append(f"{name} (version {result['card'].get('version', 'unknown')})")
        lines += [f"  {metric:<24}{value:>8.2f}" for metric, value in result["metrics"].items()]
        percent = "n/a" if result["coverage"] is None else f"{result['coverage']:.2f}"
        lines.append(f"  {'coverage':<24}{percent:>8}")
        lines.append("  " + ", ".join(f"{number} {status}" for status, number in result["counts"].items()))
        judge = result["judge"]
        if judge["judgements"]:
            lines.append(
                f"  judged by {', '.join(judge['models'])}: {judge['judgements']} judgements, "
                f"{judge['input_tokens']} tokens in, {judge['output_tokens']} out"
            )
        lines += [f"  note: {note}" for note in result["notes"]]
    return "\n".join(lines)


def result(name: str, items: Sequence[Item], official_rounding: bool = False) -> dict[str, Any]:
    """The numbers of one task's items, as `score` returns them."""
    metrics = room(tasks()[name].benchmark, "metrics")
    scores = getattr(metrics, "official_scores", metrics.scores) if official_rounding else metrics.scores
    share = coverage(items)
    cards = {json.dumps(item["card"], sort_keys=True): item["card"] for item in items}
    notes = [*metrics.notes(items), *remarks(items)]
    number = counts(items)
    # An item that ended as excluded was asked: it is here all the same.
    here = len(items) + sum(other["status"] != EXCLUDED for item in items for other in item.get("skipped") or ())
    questions = items[0]["card"]["questions"]
    if here < questions:
        notes.append(f"{here} of the dataset's {questions} questions are in these files: give all files of the run, "
                     "unless it had --limit")  # fmt: skip
    if len(cards) > 1:
        notes.append(f"the items come from {len(cards)} different protocol cards; the first is shown")
    return {
        "metrics": scores(items),
        "coverage": None if math.isnan(share) else share,
        "counts": number,
        "judge": judge_summary(items),
        "card": next(iter(cards.values())),
        "breakdowns": metrics.breakdowns(items),
        "notes": notes,
    }


def _unjudged(name: str, items: Sequence[Item], rejudge: bool) -> list[Item]:
    """The items that must be judged.

    Raises:
        PackError: Scores of several judges would be mixed, or there is no judge for ``rejudge``.
    """
    todo = [item for item in items if rejudge or item["status"] == UNJUDGED]
    if not tasks()[name].judged:
        return todo
    present = pool().describe()
    if rejudge and present is None:
        raise PackError(f"{name}: --rejudge needs a judge. Set {PREFIX}JUDGE_MODEL")
    judges = [] if rejudge else [item["card"]["judge"] for item in items]
    if todo and present is not None:
        judges.append(present)
    keys = ("model", "endpoint", "temperature")
    different = sorted({json.dumps([judge[key] for key in keys]) for judge in judges if judge is not None})
    if len(different) > 1:
        now = f"; the settings name {json.dumps([present[key] for key in keys])}" if present else ""
        raise PackError(
            f"{name}: judges would be mixed, which are (model, endpoint, temperature) {', '.join(different)}{now}. "
            "Set the JUDGE_* settings to those of the run, or judge every answer again with --rejudge"
        )
    for item in items if todo else ():
        # Items without an answer are not judged, but belong to the same protocol.
        item["card"]["judge"] = item["card"]["judge"] or present
    return todo


def _judge(name: str, items: Sequence[Item], rejudge: bool) -> None:
    judge = room(tasks()[name].benchmark, "task").judge
    present = pool().describe()
    for item in items:
        asked = item["card"]["judge"]
        repeats = ((present if rejudge else asked) or {"repeats": 1})["repeats"]
        if present is not None and tasks()[name].judged:
            item["card"]["judge"] = {**present, "repeats": repeats}
        for key in ("score", "reason", "truncated", "unread", "verdicts", "judge"):
            item.pop(key, None)
        item["status"] = UNJUDGED
        judge(item, repeats)


def read(paths: Sequence[Path], task: str | None = None) -> dict[str, list[Item]]:
    """Reads logs and run records, several of one run together.

    Args:
        paths: Files; a folder stands for the ``.jsonl`` files below it.
        task: Task of the files, where neither their names nor their contents tell it.

    Returns:
        ``{task: items}``, each question once; scored or not, as they stand there.

    Raises:
        PackError: A file cannot be read, belongs to another dataset, or holds another answer than one before it.
    """
    files = [file for path in paths for file in (sorted(path.rglob("*.jsonl")) if path.is_dir() else [path])]
    files = [file for file in dict.fromkeys(files) if _may_be_ours(file, task)]
    found: dict[str, dict[str, Item]] = defaultdict(dict)
    first: dict[str, Path] = {}
    problems: list[str] = []
    for file in files:
        try:
            for item in _items(file, task):
                _add(found[item["task"]], item, file, first.setdefault(item["task"], file))
        except PackError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{file}: {error.strerror}")
    if problems:
        raise PackError(listing("Logs cannot be scored", problems))
    if not found:
        runs = settings.load().root / "runs"
        raise PackError(f"No result of our tasks in {', '.join(map(str, paths)) or 'no file'}. lmms-eval logs samples "
                        f"with --log_samples alone; the answers of every run are in {runs}")  # fmt: skip
    return {name: list(items.values()) for name, items in sorted(found.items())}


def _add(items: dict[str, Item], item: Item, file: Path, first: Path) -> None:
    """Adds an item; the same answer in a log and in a run record counts once, judged if one of the two is."""
    known = items.setdefault(item["id"], item)
    if known["answers"] != item["answers"]:
        raise PackError(f"{file}: {item['id']} has another answer than in {first}. Score the runs one by one")
    if known["status"] == UNJUDGED and item["status"] == SCORED:
        items[item["id"]] = item


def _may_be_ours(file: Path, task: str | None) -> bool:
    """Whether a file's name leaves room for results of ours: those of other tasks stand beside them."""
    match = _LOG_NAME.search(file.name)
    return not file.name.endswith("results.json") and (task is not None or match is None or match[1] in tasks())


def _items(file: Path, task: str | None) -> Iterator[Item]:
    """The items of a file: of a run record, a sample log, or a ``--predict_only`` log."""
    match = _LOG_NAME.search(file.name)
    name = task or (match[1] if match else None)
    bare = []
    for number, sample in _lines(file):
        entry = next((value for value in (sample, *sample.values()) if _is_item(value)), None)
        if entry is not None:
            for item in flat([entry]):
                try:
                    known = _Logged.model_validate(item).task in tasks()
                except ValidationError as error:
                    problem = error.errors()[0]
                    place = ".".join(map(str, problem["loc"]))
                    raise PackError(f"{file}, line {number}: a damaged item ({place}: {problem['msg']})") from None
                if not known:
                    raise PackError(f"{file}, line {number}: {item['task']!r} is no task of this version of the pack")
                yield Item(item)
        elif "doc_id" in sample:
            bare.append((number, sample))
    if bare:
        yield from _joined(file, name, bare)


def _is_item(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    parts = value.get("parts", [value])
    return (
        isinstance(parts, list)
        and bool(parts)
        and all(isinstance(part, dict) and part.keys() >= _KEYS for part in parts)
    )


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = file.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            sample = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines):
                # Torn by a kill: its question was never confirmed as written.
                continue
            raise PackError(f"{file}, line {number}: not JSON. Is it a sample log or a run record?") from None
        if isinstance(sample, dict):
            yield number, sample


def _joined(file: Path, name: str | None, samples: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Item]:
    """Items of a ``--predict_only`` log, which holds answers alone: joined with the prepared dataset by ``doc_id``."""
    if name not in tasks():
        raise PackError(f"{file}: the file's name tells no task of ours ({name!r}). Say --task NAME")
    task = tasks()[name]
    module = room(task.benchmark, "task")
    docs = getattr(module, task.process_docs)(canonical.opened(task.benchmark).rows(task.config))
    for number, sample in samples:
        where = f"{file}, line {number}"
        index = sample["doc_id"]
        if not isinstance(index, int) or not 0 <= index < len(docs):
            raise PackError(f"{where}: doc_id {index!r} is not in the prepared dataset ({len(docs)} docs)")
        doc = docs[index]
        if sample.get("input") != _prompt(module, task, doc):
            raise PackError(f"{where}: its prompt is not that of {doc['id']} in the prepared dataset. Set "
                            f"DATA_{task.benchmark.upper()}, VIDEOS_{task.benchmark.upper()} and ON_MISSING_VIDEO as "
                            "in the run")  # fmt: skip
        answers = sample.get("filtered_resps", sample.get("resps"))
        answers = answers if isinstance(answers, list) else [answers]
        # As lmms-eval strips them before it scores.
        stripped = [answer.strip() for answer in EveryAnswer().apply([answers], None)[0]]
        with _whole_items(where):
            yield from map(Item, flat([module.item(doc, stripped)]))


def _prompt(module: Any, task: Task, doc: Mapping[str, Any]) -> str:
    prompt: str = getattr(module, task.doc_to_text)(doc)
    return prompt
