"""How far judges agree, with each other or with people (MT-Video-Bench paper, section 4.5 and Table 3).

agreement([Path("gemini.jsonl"), Path("gpt.jsonl"), Path("people.csv")])
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.reporting.bootstrap import LEAST_FOR_DIFFERENCE
from lmms_eval_tasks.reporting.raters import Rater, Rating, items_of, raters
from lmms_eval_tasks.results.items import Item, mean

RESAMPLES = 1000
SEED = 0
# Bounds of the interval, in percent of the resamples.
INTERVAL = (2.5, 97.5)
# Of the resamples, this share at least must have the statistic.
ENOUGH = 0.9
# Scores that differ by less are ties: means of thirds differ in their last digit.
DECIMALS = 9

_Array = np.ndarray[Any, np.dtype[Any]]
_Statistic = Callable[[_Array, _Array], float]
_Common = Sequence[tuple[Item, Rating, Rating]]


class Row(NamedTuple):
    """What two raters say of one thing, and the video that it belongs to."""

    video: str
    first: float
    second: float


def agreement(paths: Sequence[Path]) -> dict[str, Any]:
    """Compares raters pairwise, over the items that both have rated and whose answers are the same.

    Args:
        paths: At least two: sample logs, run records or folders of them, each scored by one judge, and ``.csv`` files
            with labels of people. Verdicts that a record does not hold are looked for on disk; nobody is asked.

    Returns:
        ``{"judges": [{"source", "judge"}], "tasks": {task: [pair]}, "notes": […]}``. A pair has its two ``sources``,
        ``dialogues``, ``items``, ``checks`` (see `compare`) and ``notes``.

    Raises:
        PackError: A file cannot be read, holds several judges, or labels do not fit; all of it is named at once.
    """
    if len(paths) < 2:  # noqa: PLR2004
        raise PackError("agreement compares at least two: logs of two judges, or a log and a .csv file of labels")
    judges = raters(paths)
    known = items_of(judges)
    return {
        "judges": [{"source": rater.source, "judge": rater.judge} for rater in judges],
        "tasks": {task: [_pair(*two, task, known[task]) for two in combinations(judges, 2)] for task in sorted(known)},
        "notes": [f"{rater.source}: {text}" for rater in dict.fromkeys(judges) for text in rater.notes],
    }


def table(result: Mapping[str, Any]) -> str:
    """The result of `agreement` as text."""
    lines = [f"{judge['source']}: {judge['judge']}" for judge in result["judges"]]
    for task, pairs in result["tasks"].items():
        for pair in pairs:
            lines.append(f"{task}: {' and '.join(pair['sources'])}")
            for name, level in LEVELS.items():
                of = pair[name]
                lines.append(f"  {of['number']} {name} ({of['videos']} videos)")
                lines += [f"    {statistic:<14}{_text(of[statistic])}" for statistic in level.statistics]
            lines += [f"  note: {note}" for note in pair["notes"]]
    return "\n".join([*lines, *(f"note: {note}" for note in result["notes"])])


def _text(of: Mapping[str, Any]) -> str:
    value = f"{'n/a':>8}" if of["value"] is None else f"{of['value']:>8.3f}"
    interval = "" if of["low"] is None else f"  [{of['low']:.3f}, {of['high']:.3f}]"
    return value + interval + (f"  ({of['reason']})" if "reason" in of else "")


def _pair(first: Rater, second: Rater, task: str, known: Mapping[str, Item]) -> dict[str, Any]:
    ours, theirs = first.ratings.get(task, {}), second.ratings.get(task, {})
    both = [name for name in ours if name in theirs]
    common = [(known[name], ours[name], theirs[name]) for name in both if _same_answers(first, second, task, name)]
    left_out = {
        "are in one of the two alone": len(ours.keys() ^ theirs.keys()),
        "have other answers in the two": len(both) - len(common),
        "have no score in one of the two": len(common) - len(_of_items(common)),
    }
    return {
        "sources": [first.source, second.source],
        **{name: compare(level.rows(common), level) for name, level in LEVELS.items()},
        "notes": [f"{number} items {text}, and are left out" for text, number in left_out.items() if number],
    }


def _same_answers(first: Rater, second: Rater, task: str, name: str) -> bool:
    """Whether two raters saw the same answers; people saw those of the log that they are compared with."""
    answers = [rater.items[task][name]["answers"] for rater in (first, second) if rater.items]
    return answers[1:] in ([], answers[:1])


# ---------------------------------------------------------------------------------------------------- what is compared


def _of_dialogues(common: _Common) -> list[Row]:
    turns: dict[str, list[Row]] = defaultdict(list)
    for item, first, second in common:
        if "dialogue" in item:
            turns[item["dialogue"]] += _of_items([(item, first, second)])
    return [
        Row(rows[0].video, mean(row.first for row in rows), mean(row.second for row in rows))
        for rows in turns.values()
        if rows
    ]


def _of_items(common: _Common) -> list[Row]:
    return [
        Row(item["video"], first.score, second.score)
        for item, first, second in common
        if first.score is not None and second.score is not None
    ]


def _of_checks(common: _Common) -> list[Row]:
    return [
        Row(item["video"], one == "yes", other == "yes")
        for item, first, second in common
        if first.checks and second.checks
        for answers in zip(first.checks, second.checks, strict=True)
        for one, other in zip(*answers, strict=True)
    ]


# ----------------------------------------------------------------------------------------------------------- statistics


def _coefficient(function: Callable[[_Array, _Array], Any]) -> _Statistic:
    def statistic(first: _Array, second: _Array) -> float:
        varied = len(first) > 0 and np.ptp(first) > 0 and np.ptp(second) > 0
        return float(function(first, second).statistic) if varied else math.nan

    return statistic


def same(first: _Array, second: _Array) -> float:
    """Share of equal values, in percent; NaN of nothing."""
    return float(100 * np.mean(first == second)) if len(first) else math.nan


def kappa(first: _Array, second: _Array) -> float:
    """Cohen's kappa of values that are 0 or 1; NaN of nothing, and where chance alone agrees on all."""
    if not len(first):
        return math.nan
    yes, other_yes = first.mean(), second.mean()
    chance = yes * other_yes + (1 - yes) * (1 - other_yes)
    return float((np.mean(first == second) - chance) / (1 - chance)) if chance < 1 else math.nan


class Level(NamedTuple):
    """What is compared one by one: its name, where it is found in the items that are common, and its statistics."""

    one: str
    rows: Callable[[_Common], list[Row]]
    statistics: Mapping[str, _Statistic]


_COEFFICIENTS = {
    "spearman": _coefficient(stats.spearmanr),
    "kendall_tau": _coefficient(stats.kendalltau),
    "pearson": _coefficient(stats.pearsonr),
}
LEVELS = {
    "dialogues": Level("dialogue", _of_dialogues, _COEFFICIENTS),
    "items": Level("item", _of_items, _COEFFICIENTS),
    "checks": Level("check", _of_checks, {"agreement": same, "kappa": kappa}),
}


def compare(rows: Sequence[Row], level: Level) -> dict[str, Any]:
    """The statistics of two raters, with 95 % intervals of a bootstrap over videos.

    Args:
        rows: What the two say, thing by thing.
        level: What the things are.

    Returns:
        ``{"number", "videos", statistic: {"value", "low", "high"}}``: Spearman's rho, Kendall's tau-b, Pearson's r and
        Cohen's kappa from -1 to 1, ``agreement`` in percent. What does not exist is None, and ``reason`` says why.
    """
    videos: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        videos[row.video].append(index)
    first, second = (np.round(np.array([row[of] for row in rows], dtype=float), DECIMALS) for of in (1, 2))
    resamples = list(_resamples([np.array(of) for of in videos.values()]))
    result: dict[str, Any] = {"number": len(rows), "videos": len(videos)}
    for name, statistic in level.statistics.items():
        value = statistic(first, second)
        if math.isnan(value):
            why = {0: f"no {level.one} is common to both", 1: f"there is one {level.one} alone"}
            reason = why.get(len(rows), f"one of the two says the same of every {level.one}")
            result[name] = {"value": None, "low": None, "high": None, "reason": reason}
        else:
            result[name] = {"value": value, **_interval([statistic(first[of], second[of]) for of in resamples])}
    return result


def _resamples(videos: Sequence[_Array]) -> Iterator[_Array]:
    """Indices of the rows of as many videos, drawn with replacement; none below `LEAST_FOR_DIFFERENCE` videos."""
    if len(videos) >= LEAST_FOR_DIFFERENCE:
        dice = np.random.default_rng(SEED)
        for _ in range(RESAMPLES):
            yield np.concatenate([videos[of] for of in dice.integers(len(videos), size=len(videos))])


def _interval(values: Sequence[float]) -> dict[str, Any]:
    defined = [value for value in values if not math.isnan(value)]
    if not values:
        return {"low": None, "high": None, "reason": f"no interval from fewer than {LEAST_FOR_DIFFERENCE} videos"}
    if len(defined) < ENOUGH * len(values):
        return {"low": None, "high": None, "reason": "too many resamples are without it for an interval"}
    low, high = np.percentile(defined, INTERVAL)
    return {"low": float(low), "high": float(high)}
