"""What a report shows of MLVU, as the paper's Table 2 and Figure 3 do."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lmms_eval_tasks.mlvu import metrics
from lmms_eval_tasks.reporting.bootstrap import Array, Observation, mean_of, observed
from lmms_eval_tasks.reporting.layout import Plot, Table

KIND = "category"
NAMES: dict[str, str] = {}

_CHOICES = ("m_avg", *metrics.MULTIPLE_CHOICE)
_GRADES = ("g_avg", *metrics.GENERATION)
_POINTS = "points from 2 to 10"

TABLES = (
    Table("MLVU dev: multiple choice", _CHOICES, ("mlvu_mc_dev",), ("dev", "rows")),
    Table("MLVU dev: generation", _GRADES, ("mlvu_gen_dev",), ("dev", "rows"), _POINTS),
    Table("MLVU test: multiple choice", (*_CHOICES, *metrics.EXTRA), ("mlvu_mc_test",), ("test", "rows")),
    Table("MLVU test: generation", _GRADES, ("mlvu_gen_test",), ("test", "rows"), _POINTS),
)

PLOTS = tuple(
    plot
    for split in ("dev", "test")
    for plot in (
        Plot(f"categories_{split}", f"MLVU {split}: accuracy by category", "radar", metrics.MULTIPLE_CHOICE,
             tasks=(f"mlvu_mc_{split}",)),
        Plot(f"generation_{split}", f"MLVU {split}: generation", "bars", metrics.GENERATION, unit=_POINTS,
             tasks=(f"mlvu_gen_{split}",)),
        Plot(f"duration_{split}", f"MLVU {split}: accuracy by length of the video", "lines", "duration", axis="video",
             tasks=(f"mlvu_mc_{split}",)),
        Plot(f"duration_local_{split}", f"MLVU {split}: the five local categories by length of the video", "lines",
             "duration_local", axis="video", tasks=(f"mlvu_mc_{split}",)),
    )
)  # fmt: skip


def observations(items: Iterable[Mapping[str, Any]]) -> Iterator[Observation]:
    """Scores by category, also within each duration; over all multiple choice; and grades of generation."""
    items = [item for item in items if "score" in item]
    for item in items:
        video, category, score = item["video"], item["category"], item["score"]
        yield video, category, score
        if category not in metrics.GENERATION:
            yield video, "micro_avg", score
        for name, (of, _) in metrics.GRADES.items():
            if of == category:
                yield video, name, metrics.grade(item, name)
    for video, name, score in observed(items, lambda of: _by_category(*of)):
        yield video, name, score


def _by_category(item: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The breakdowns of one item; what is a mean over categories is split by them."""
    found = metrics.breakdowns([item])
    local = {f"{group}/{item['category']}": value for group, value in found["duration_local"].items()}
    return {**found, "duration_local": local}


def combined(means: Mapping[str, Array]) -> dict[str, Array]:
    """Means over categories beside everything else, as `metrics.over_categories` has them."""
    groups: dict[str, tuple[str, ...]] = {
        "m_avg": metrics.MULTIPLE_CHOICE,
        "m_avg_all": (*metrics.MULTIPLE_CHOICE, *metrics.EXTRA) if set(metrics.EXTRA) & set(means) else (),
        "g_avg": metrics.GENERATION,
    }
    split = [name for name in means if name.startswith("duration_local/")]
    groups |= {of: tuple(name for name in split if name.startswith(f"{of}/")) for of in _parents(split)}
    present = {group: [means[of] for of in members if of in means] for group, members in groups.items()}
    whole = {name: of for name, of in means.items() if name not in split}
    return {**{group: mean_of(of) for group, of in present.items() if of}, **whole}


def _parents(names: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in names}


def samples(row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The row's one question."""
    yield (
        row["id"],
        {
            "question": row["question"],
            "options": list(row["candidates"]),
            "reference": row["answer"],
            "videos": [row["video"]],
        },
    )


def checks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The grades of generation, one for each judging; nothing is expected of them."""
    verdicts = [verdict or {} for of in item.get("verdicts") or () for verdict in of]
    names = dict.fromkeys(name for verdict in verdicts for name in verdict)
    return [
        {"question": name, "expected": "", "given": [f"{verdict[name]:g}" for verdict in verdicts if name in verdict]}
        for name in names
    ]
