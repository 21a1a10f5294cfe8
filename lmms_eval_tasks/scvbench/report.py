"""What a report shows of SCVBench, as the paper's Table 2 and Figure 4 do."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lmms_eval_tasks.reporting.bootstrap import Array, Observation, observed
from lmms_eval_tasks.reporting.layout import Plot, Table
from lmms_eval_tasks.scvbench import metrics

# A film is a question's video; there are no categories.
KIND = ""
NAMES = {
    "scvbench_fqa": "FQA",
    "scvbench_pqa": "PQA",
    "scvbench_pqa_gold": "PQA with reference sub-answers",
    "scvbench_storycot": "PQA with StoryCoT",
}

TABLES = (Table("SCVBench", metrics.METRICS, published=("rows",)),)

PLOTS = (
    Plot("history", "SCVBench: final questions without and with history", "bars", ("fqa", "pqa")),
    Plot("fqa_duration", "SCVBench: FQA by length of the film", "lines", "fqa_by_duration", axis="film"),
    Plot("pqa_duration", "SCVBench: PQA by length of the film", "lines", "pqa_by_duration", axis="film"),
    Plot("pqa_sub_questions", "SCVBench: PQA by number of sub-questions", "lines", "pqa_by_sub_questions",
         axis="sub-questions"),
)  # fmt: skip


def observations(items: Iterable[Mapping[str, Any]]) -> Iterator[Observation]:
    """What each question adds to each metric, also within the breakdowns."""
    for item in items:
        for name, value in metrics.values(item).items():
            yield item["video"], name, value
        yield from observed([item], metrics.breakdowns)


def combined(means: Mapping[str, Array]) -> dict[str, Array]:
    """The means themselves."""
    return dict(means)


def samples(row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The row's final question, after its sub-questions."""
    yield (
        row["id"],
        {
            "question": row["question"],
            "options": list(row["options"]),
            "reference": row["answer"],
            "history": [[of["question"], of["answer"]] for of in row["sub_questions"]],
            "videos": [row["video"]],
        },
    )


def checks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Nothing: rules read the answers."""
    return []
