"""What a room's `report` module says of its tables and plots, and where a report finds it.

Such a module is optional; it offers what `reporting.plain` does, which stands in for it:

- ``KIND``: the item's key that says what a question tests, such as ``"ability"``;
- ``NAMES``: what its tasks are called in tables and plots, where the name alone is not clear;
- ``TABLES`` and ``PLOTS``, of the types below;
- ``observations(items)`` and ``combined(means)``: what the scores are means of, for `reporting.bootstrap`;
- ``samples(row)``: what the page shows of a canonical row's questions, by id;
- ``checks(item)``: what a judge was asked of an answer.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from types import ModuleType
from typing import Literal, NamedTuple

from lmms_eval_tasks.benchmarks import room
from lmms_eval_tasks.reporting import plain


class Table(NamedTuple):
    """A table of a report; its rows are runs, and published ones beside them.

    Attributes:
        title: Its heading.
        columns: Names of scores, the main one first; empty: all that the runs have.
        tasks: Tasks whose runs it shows, the paper's own first; empty: all of the room.
        published: Keys that lead to the rows in ``published.json``; empty: nothing is published.
        unit: What the numbers are in.
    """

    title: str
    columns: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    unit: str = "percent"


class Plot(NamedTuple):
    """A plot of a table's runs.

    Attributes:
        name: Its file's name, without ending.
        title: What it shows, in words.
        kind: How it is drawn.
        keys: What stands along its axis: names that `value` turns into scores, or a breakdown, all of its groups.
        value: The pattern of the scores' names; a breakdown has its own.
        references: Further marks beside each run's: label and pattern.
        axis: What the keys are.
        unit: What the values are in.
        tasks: As for a table.
        contexts: Whether it compares the tasks of one run, one plot for each run that has several, instead of runs.
    """

    name: str
    title: str
    kind: Literal["radar", "lines", "bars"]
    keys: tuple[str, ...] | str
    value: str = "{}"
    references: Mapping[str, str] = {}
    axis: str = ""
    unit: str = "percent"
    tasks: tuple[str, ...] = ()
    contexts: bool = False


def layout(benchmark: str) -> ModuleType:
    """A room's `report` module, or `reporting.plain` where it has none."""
    return room(benchmark, "report") if find_spec(f"lmms_eval_tasks.{benchmark}.report") else plain


def task_name(benchmark: str, task: str) -> str:
    """What a task is called among those of its benchmark; empty for the one that has the benchmark's name."""
    short = task.removeprefix(benchmark).strip("_").replace("_", " ")
    return str(layout(benchmark).NAMES.get(task, short))
