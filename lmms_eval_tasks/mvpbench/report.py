"""What a report shows of MVPBench, as the paper's Tables III and IV do."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from lmms_eval_tasks.mvpbench import metrics
from lmms_eval_tasks.reporting.bootstrap import Array, Observation, observed
from lmms_eval_tasks.reporting.layout import Plot, Table
from lmms_eval_tasks.results.items import SCORED

KIND = "subtask"
NAMES: dict[str, str] = {}

TABLES = (
    Table("MVPBench: proficiency by subtask", ("overall", *metrics.SUBTASKS), published=("rows",)),
    Table("MVPBench: proficiency by domain", ("overall", *metrics.DOMAINS)),
)

_EXPECTED = {"expected by guessing": "{}_chance", "share that is right": "first_option_gold/{}"}

PLOTS = (
    Plot("subtasks", "MVPBench: accuracy by subtask, against chance", "bars", metrics.SUBTASKS, "{}_accuracy",
         {"chance level": "{}_chance"}),
    Plot("first_option", "MVPBench: share of answers that are the first option", "bars", metrics.SUBTASKS,
         "{}_first_option", _EXPECTED),
)  # fmt: skip


def observations(items: Iterable[Mapping[str, Any]]) -> Iterator[Observation]:
    """Accuracy, chance level and first options of each subtask's scored items, in percent."""
    items = [item for item in items if item["status"] == SCORED]
    for item in items:
        video, subtask = item["video"], item["subtask"]
        yield video, f"{subtask}_accuracy", item["score"]
        yield video, f"{subtask}_chance", 100 * item["chance"]
        yield video, f"{subtask}_first_option", 100 * item["first"]
    yield from observed(items, metrics.breakdowns)


def combined(means: Mapping[str, Array]) -> dict[str, Array]:
    """Proficiencies beside everything else: of subtasks, of domains and over all, as `metrics.overall` has them."""
    above = {of: means[f"{of}_accuracy"] - means[f"{of}_chance"] for of in metrics.SUBTASKS if f"{of}_chance" in means}
    room = {of: 100 - means[f"{of}_chance"] for of in above}
    groups = {"overall": metrics.SUBTASKS, **metrics.DOMAINS, **{of: (of,) for of in metrics.SUBTASKS}}
    present = {group: [of for of in members if of in above] for group, members in groups.items()}
    shares = {
        group: 100 * np.sum([above[of] for of in members], axis=0) / np.sum([room[of] for of in members], axis=0)
        for group, members in present.items()
        if members
    }
    return {**shares, **means}


def samples(row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The row's one question."""
    yield (
        row["id"],
        {"question": row["query"], "reference": ", ".join(map(str, row["gold"])), "videos": list(row["videos"])},
    )


def checks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Nothing: a judge reads answers, and grades none."""
    return []
