"""Intervals and differences from a cluster bootstrap: whole videos are drawn, with all their questions.

A room says what its scores are means of (`observations`) and how they come out of those means (`combined`). A resample
gives each video a weight, so that all resamples together are one matrix product.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Observation = tuple[str, str, float]
"""A video, the name of a mean, and a value that counts once in it."""
Combined = Callable[[Mapping[str, Array]], dict[str, Array]]

RESAMPLES = 10_000
SEED = 0
LEVEL = 95
"""Of intervals, in percent."""

LEAST_VIDEOS = 2
"""Below so many videos behind any of a score's means there is no interval."""

LEAST_FOR_DIFFERENCE = 6
"""Below so many no two runs are told apart: all of five videos point to the same side by chance in one of 16 cases,
which is more than an interval of 95 percent may leave out."""

FEW_VIDEOS = 20
"""Below so many, a percentile interval is known to be too narrow."""

_BATCH = 1000


class Interval(NamedTuple):
    """The middle `LEVEL` percent of the resamples."""

    low: float
    high: float


class Difference(NamedTuple):
    """One score of a run minus that of another, over what both have scored.

    Attributes:
        value: In the score's unit.
        low: Lower end of its interval.
        high: Upper end of its interval.
        p: Two-sided p-value: twice the smaller share of resamples on one side of 0, at most 1.
    """

    value: float
    low: float
    high: float
    p: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0 or self.high < 0


class Sums(NamedTuple):
    """Observations, added up by video.

    Attributes:
        names: Names of the K means.
        totals: Sums of values, of shape (videos, K).
        numbers: How many values are in them, of shape (videos, K).
    """

    names: list[str]
    totals: Array
    numbers: Array


def observed(
    items: Iterable[Mapping[str, Any]], breakdowns: Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]]
) -> Iterator[Observation]:
    """The observations of breakdowns whose entries are plain means over items: ``turn/2`` and the like.

    Args:
        items: Items with ``video``; those without a score are passed over.
        breakdowns: A room's function; that of one item alone tells where the item belongs.
    """
    for item in items:
        if "score" in item:
            for name, groups in breakdowns([item]).items():
                for group, value in groups.items():
                    yield item["video"], f"{name}/{group}", value


def mean_of(means: Iterable[Array]) -> Array:
    """The unweighted mean of means, resample by resample; NaN where one of them is: it would be another score."""
    return np.asarray(np.mean(list(means), axis=0))


def add_up(observations: Iterable[Observation], videos: Sequence[str]) -> Sums:
    """Adds observations up by video.

    Args:
        observations: Of these videos alone.
        videos: Names, each once: the rows of the sums.
    """
    rows = {video: row for row, video in enumerate(videos)}
    columns: dict[str, int] = {}
    entries = [(rows[video], columns.setdefault(name, len(columns)), value) for video, name, value in observations]
    totals, numbers = np.zeros((2, len(videos), len(columns)))
    if entries:
        where, which, values = zip(*entries, strict=True)
        np.add.at(totals, (where, which), values)
        np.add.at(numbers, (where, which), 1)
    return Sums(list(columns), totals, numbers)


def point(sums: Sums, combined: Combined) -> dict[str, float]:
    """The scores themselves: every video counts once."""
    return {name: float(of[0]) for name, of in _scores(sums, combined, np.ones((1, len(sums.totals)))).items()}


def resampled(sums: Sums, combined: Combined) -> dict[str, Array]:
    """The scores of all resamples, of shape (`RESAMPLES`,) each; NaN where a resample holds nothing of a score."""
    weights = _weights(len(sums.totals))
    batches = [weights[start : start + _BATCH].astype(float) for start in range(0, RESAMPLES, _BATCH)]
    parts = [_scores(sums, combined, batch) for batch in batches]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def intervals(observations: Iterable[Observation], combined: Combined) -> dict[str, Interval]:
    """The interval of each score that rests on `LEAST_VIDEOS` or more."""
    observations = list(observations)
    sums = add_up(observations, sorted({video for video, _, _ in observations}))
    sound = _sound(sums, combined, LEAST_VIDEOS)
    return {name: _middle(of) for name, of in resampled(sums, combined).items() if name in sound} if sound else {}


def differences(one: Iterable[Observation], other: Iterable[Observation], combined: Combined) -> dict[str, Difference]:
    """The differences of two runs' scores; each resample draws the same videos for both.

    Args:
        one: Observations of a run.
        other: Observations of another one, over the same questions.
        combined: The room's function.

    Returns:
        Those of the scores that both have, and that rest on `LEAST_FOR_DIFFERENCE` or more.
    """
    both = list(one), list(other)
    videos = sorted({video for of in both for video, _, _ in of})
    sums = [add_up(of, videos) for of in both]
    sound = set.intersection(*(_sound(of, combined, LEAST_FOR_DIFFERENCE) for of in sums))
    if not sound:
        return {}
    points = [point(of, combined) for of in sums]
    draws = [resampled(of, combined) for of in sums]
    found = {}
    for name in sound:
        values = draws[0][name] - draws[1][name]
        values = values[~np.isnan(values)]
        # With one more, as if the observed difference were a resample, p is never 0.
        smaller = min(np.count_nonzero(values <= 0), np.count_nonzero(values >= 0))
        p = min(1.0, 2 * (smaller + 1) / (len(values) + 1))
        found[name] = Difference(points[0][name] - points[1][name], *_middle(values), float(p))
    return found


def _middle(values: Array) -> Interval:
    low, high = np.percentile(values[~np.isnan(values)], [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return Interval(float(low), float(high))


def _sound(sums: Sums, combined: Combined, least: int) -> set[str]:
    """Names of the scores whose means rest on enough videos each: what depends on another one comes out as NaN."""
    enough = np.count_nonzero(sums.numbers, axis=0) >= least
    marks = {name: np.array([1.0 if of else np.nan]) for name, of in zip(sums.names, enough, strict=True)}
    return {name for name, of in combined(marks).items() if not np.isnan(of[0])}


def _scores(sums: Sums, combined: Combined, weights: Array) -> dict[str, Array]:
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (weights @ sums.totals) / (weights @ sums.numbers)
        return combined({name: means[:, column] for column, name in enumerate(sums.names)})


@lru_cache(maxsize=4)
def _weights(videos: int) -> npt.NDArray[np.uint16]:
    """How often each resample draws each video, of shape (`RESAMPLES`, videos): the same ones in every run."""
    draws = np.random.default_rng(SEED).integers(videos, size=(RESAMPLES, videos), dtype=np.int32)
    weights = np.empty((RESAMPLES, videos), np.uint16)
    for row, drawn in zip(weights, draws, strict=True):
        row[:] = np.bincount(drawn, minlength=videos)
    return weights
