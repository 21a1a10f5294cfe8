"""The report of a room without a `report` module of its own: every score, without intervals."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval_tasks.reporting.bootstrap import Array, Observation
    from lmms_eval_tasks.reporting.layout import Plot, Table

KIND = ""
NAMES: dict[str, str] = {}
TABLES: "tuple[Table, ...]" = ()
PLOTS: "tuple[Plot, ...]" = ()


def observations(items: Iterable[Mapping[str, Any]]) -> "Iterable[Observation]":
    """What the scores are means of: ``(video, name of the mean, value)``.

    Args:
        items: Items; those without a score are passed over.
    """
    return []


def combined(means: "Mapping[str, Array]") -> "dict[str, Array]":
    """The scores, and the breakdowns as ``breakdown/group``, from means.

    Args:
        means: ``{name: one mean for each resample}``; NaN where a resample holds none of its observations.
    """
    return dict(means)


def samples(row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The questions of a canonical row: id and, as far as there are such, ``question``, ``reference``, ``options``
    (texts), ``history`` (earlier ``[question, answer]``) and ``videos`` (names).
    """  # noqa: D205
    yield from ()


def checks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a judge was asked of an item's answers: ``question``, ``expected`` and ``given``, one answer a judging."""
    return []
