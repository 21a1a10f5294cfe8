"""Finding the runs in what a report is given: sample logs, results folders and run records."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.benchmarks import tasks
from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.reporting.verdicts import look_up
from lmms_eval_tasks.results.items import Item
from lmms_eval_tasks.results.score import read

_SAMPLES = "_samples_"


class Run(NamedTuple):
    """One task answered by one model, and judged by one judge.

    Attributes:
        model: The model's name, or the one that was given.
        label: Its name in the report: the model's, and what tells it from other runs of that model on that task.
        task: Name of the task.
        items: Its items, scored as far as that asks nobody.
    """

    model: str
    label: str
    task: str
    items: list[Item]

    @property
    def benchmark(self) -> str:
        """Name of the room."""
        return tasks()[self.task].benchmark

    @property
    def card(self) -> Mapping[str, Any]:
        """The protocol card of the first item."""
        card: Mapping[str, Any] = self.items[0]["card"]
        return card


class _Found(NamedTuple):
    model: str
    stamp: str
    task: str
    items: list[Item]


def find_runs(logs: Sequence[str]) -> list[Run]:
    """Reads runs; nobody is asked for a verdict.

    Sample logs of one folder and time are one run, which has the name of the model in the ``…_results.json`` beside
    them, else the folder's. Other files are one run for each argument.

    Args:
        logs: Files and folders, each as it is or as ``NAME=PATH``.

    Returns:
        The runs in the given order; no two have both their label and their task in common.

    Raises:
        PackError: A path does not exist or cannot be read, or holds no result of ours; all that is wrong is named.
    """
    found: list[_Found] = []
    problems = []
    for given in logs:
        name, path = _named(given)
        try:
            if not path.exists():
                raise PackError(f"{path} does not exist")
            found += _below(path, name)
        except PackError as error:
            problems.append(str(error))
    if problems:
        raise PackError(listing("These runs cannot be read", problems))
    look_up(item for run in found for item in run.items)
    labels = _labels(found)
    return [Run(run.model, label, run.task, run.items) for run, label in zip(found, labels, strict=True)]


def judge_of(card: Mapping[str, Any]) -> str:
    """Name of the judge that a card names, empty without one."""
    return str((card["judge"] or {}).get("model", ""))


def _named(given: str) -> tuple[str, Path]:
    """A name and a path; either may hold ``=`` itself."""
    parts = given.split("=")
    splits = [("=".join(parts[:place]), Path("=".join(parts[place:]))) for place in range(len(parts))]
    return next((split for split in splits if split[1].exists()), splits[:2][-1])


def _below(path: Path, name: str) -> list[_Found]:
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    groups: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    for file in files:
        stamp, samples, task = file.stem.partition(_SAMPLES)
        if not samples:
            groups[path, ""].append(file)
        elif task in tasks():
            groups[file.parent, stamp].append(file)
    found = [
        _Found(name or _model(folder, stamp), stamp, task, items)
        for (folder, stamp), of in groups.items()
        for task, items in read(of).items()
    ]
    # Says what is needed where there is nothing of ours.
    return found or [_Found(name, "", task, items) for task, items in read([path]).items()]


def _model(folder: Path, stamp: str) -> str:
    """The model's name as lmms-eval wrote it beside the logs, else the name of the folder or file."""
    name = ""
    if stamp:
        try:
            results = json.loads((folder / f"{stamp}_results.json").read_text("utf-8"))
            name = "/".join(str(results["model_name"]).rstrip("/").split("/")[-2:])
        except (OSError, ValueError, KeyError, TypeError):
            pass
    return name or folder.stem.replace("__", "/") or str(folder)


def _labels(found: Sequence[_Found]) -> list[str]:
    """The models' names, with as much behind them as tells several runs of a model on one task apart."""
    labels = [run.model for run in found]
    for tell in (
        lambda run: f"judged by {judge_of(run.items[0]['card']) or 'nobody'}",
        lambda run: run.stamp,
        lambda run: f"run {found.index(run) + 1}",
    ):
        rows = Counter((label, run.task) for label, run in zip(labels, found, strict=True))
        several = {label for (label, _), number in rows.items() if number > 1}
        texts = [tell(run) if label in several else "" for label, run in zip(labels, found, strict=True)]
        kinds = {label: {text for text, of in zip(texts, labels, strict=True) if of == label} for label in several}
        labels = [
            f"{label}, {text}" if text and len(kinds[label]) > 1 else label
            for label, text in zip(labels, texts, strict=True)
        ]
    return labels
