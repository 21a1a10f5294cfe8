"""Tables: runs beside published rows, with intervals, and the differences between runs."""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache, cached_property
from itertools import combinations
from typing import Any, NamedTuple

from lmms_eval_tasks.benchmarks import FOLDER
from lmms_eval_tasks.reporting.bootstrap import Difference, Interval, Observation, differences, intervals
from lmms_eval_tasks.reporting.layout import Table, layout
from lmms_eval_tasks.reporting.runs import Run
from lmms_eval_tasks.results.score import result

CONDITIONS = ("dataset", "version", "prompts", "sampling", "judge")
"""Keys of a protocol card in which runs should agree where their scores are compared."""


class Scored:
    """A run with its numbers, each computed once."""

    def __init__(self, run: Run) -> None:
        """Computes nothing yet."""
        self.run = run
        self._layout = layout(run.benchmark)

    @cached_property
    def result(self) -> dict[str, Any]:
        """What `results.score` says of it."""
        return result(self.run.task, self.run.items)

    @cached_property
    def videos(self) -> int:
        """How many videos its scored items are about."""
        return len({item["video"] for item in self.run.items if "score" in item})

    @cached_property
    def values(self) -> dict[str, float]:
        """Scores by name, and breakdowns as ``breakdown/group``."""
        tables = self.result["breakdowns"].items()
        flat = {f"{name}/{group}": value for name, groups in tables for group, value in groups.items()}
        return {**self.result["metrics"], **flat}

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """Intervals by the same names, where there are any."""
        return intervals(self._layout.observations(self.run.items), self._layout.combined)

    def minus(self, other: "Scored") -> tuple[dict[str, Difference], int]:
        """The differences to another run by score, over the items that both have scored, and how many these are."""
        ids = {item["id"] for item in self.run.items if "score" in item}
        ids &= {item["id"] for item in other.run.items if "score" in item}
        ours, theirs = (of.observations(ids) for of in (self, other))
        return differences(ours, theirs, self._layout.combined), len(ids)

    def observations(self, ids: Container[str]) -> list[Observation]:
        """What its scores, without breakdowns, are means of, over the items with some ids."""
        seen = self._layout.observations([item for item in self.run.items if item["id"] in ids])
        return [of for of in seen if "/" not in of[1]]


class Pair(NamedTuple):
    """Two rows of a table, compared.

    Attributes:
        one: Number of the row.
        other: Number of the row that is subtracted.
        differences: By score.
        items: How many items both have scored.
        conditions: Those of `CONDITIONS` in which the two runs differ.
    """

    one: int
    other: int
    differences: Mapping[str, Difference]
    items: int
    conditions: tuple[str, ...]


class Filled(NamedTuple):
    """A table with its rows.

    Attributes:
        benchmark: Name of the room.
        table: What it shows.
        columns: Names of the scores.
        rows: The runs, in the order they were given.
        pairs: Every two of them, compared.
        published: ``{model: {score: value}}``.
        source: Where the published rows are from.
    """

    benchmark: str
    table: Table
    columns: tuple[str, ...]
    rows: Sequence[Scored]
    pairs: Sequence[Pair]
    published: Mapping[str, Mapping[str, float]]
    source: str

    def best(self, column: str) -> int | None:
        """The row that is better in a score than every other one, each difference clear of 0; None without one."""
        for row in range(len(self.rows)):
            signs = [_sign(pair, column, row) for pair in self.pairs if row in (pair.one, pair.other)]
            if signs and min(signs) > 0:
                return row
        return None


def fill(runs: Iterable[Run]) -> list[Filled]:
    """The tables of all benchmarks that have a run, without those that would be empty."""
    by_room: dict[str, list[Scored]] = {}
    for run in runs:
        by_room.setdefault(run.benchmark, []).append(Scored(run))
    # Two tables may show the same runs.
    minus = cache(Scored.minus)
    filled = []
    for benchmark, scored in by_room.items():
        for table in layout(benchmark).TABLES or (Table(benchmark),):
            rows = [row for row in scored if not table.tasks or row.run.task in table.tasks]
            pairs = [
                Pair(one, other, *minus(rows[one], rows[other]), differing([rows[one].run, rows[other].run]))
                for one, other in combinations(range(len(rows)), 2)
            ]
            if rows:
                published = _published(benchmark, table)
                filled.append(Filled(benchmark, table, _columns(table, rows), rows, pairs, *published))
    return filled


def _columns(table: Table, rows: Sequence[Scored]) -> tuple[str, ...]:
    return table.columns or tuple(dict.fromkeys(name for row in rows for name in row.values if "/" not in name))


def differing(runs: Sequence[Run]) -> tuple[str, ...]:
    """The `CONDITIONS` in which runs differ."""
    return tuple(key for key in CONDITIONS if len({json.dumps(run.card[key], sort_keys=True) for run in runs}) > 1)


def _published(benchmark: str, table: Table) -> tuple[Mapping[str, Mapping[str, float]], str]:
    path = FOLDER / benchmark / "published.json"
    if not table.published or not path.is_file():
        return {}, ""
    found: Any = json.loads(path.read_text("utf-8"))
    source = str(found.get("source", ""))
    for key in table.published:
        found = found[key]
    return found, source


def _sign(pair: Pair, column: str, row: int) -> int:
    """1 where the row is clearly ahead of the other, -1 where behind, 0 where nobody can tell."""
    difference = pair.differences.get(column)
    if difference is None or not difference.clear:
        return 0
    return 1 if (difference.value > 0) == (row == pair.one) else -1


def described(filled: Filled) -> dict[str, Any]:
    """A table as JSON-able values."""
    return {
        "title": filled.table.title,
        "benchmark": filled.benchmark,
        "unit": filled.table.unit,
        "columns": list(filled.columns),
        "rows": [_described(row) for row in filled.rows],
        "published": {"source": filled.source, "rows": filled.published},
        "clearly_best": {column: filled.best(column) for column in filled.columns},
        "differences": [
            {
                "one": filled.rows[pair.one].run.label,
                "other": filled.rows[pair.other].run.label,
                "one_task": filled.rows[pair.one].run.task,
                "other_task": filled.rows[pair.other].run.task,
                "items": pair.items,
                "conditions_that_differ": list(pair.conditions),
                "scores": {
                    column: {**pair.differences[column]._asdict(), "clear": pair.differences[column].clear}
                    for column in filled.columns
                    if column in pair.differences
                },
            }
            for pair in filled.pairs
        ],
    }


def _described(row: Scored) -> dict[str, Any]:
    return {
        "run": row.run.label,
        "model": row.run.model,
        "task": row.run.task,
        "videos": row.videos,
        "scores": {
            name: {"value": value, **(row.intervals[name]._asdict() if name in row.intervals else {})}
            for name, value in row.values.items()
        },
        **{key: row.result[key] for key in ("coverage", "counts", "judge", "card", "notes")},
    }
