"""What a report shows of MT-Video-Bench, as the paper's Table 2 and Figures 4 to 6 do."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lmms_eval_tasks.mt_video_bench import metrics
from lmms_eval_tasks.reporting.bootstrap import Array, Observation, mean_of, observed
from lmms_eval_tasks.reporting.layout import Plot, Table
from lmms_eval_tasks.results.items import mean

KIND = "ability"

NAMES = {
    "mt_video_bench": "golden context",
    "mt_video_bench_chat": "golden context, as chat",
    "mt_video_bench_self": "self-predicted context",
    "mt_video_bench_no_context": "no context",
}

TABLES = (
    Table(
        "MT-Video-Bench",
        columns=("overall", "perceptivity", "interactivity", *metrics.ABILITIES),
        published=("rows",),
    ),
)

PLOTS = (
    Plot("abilities", "MT-Video-Bench: score by ability", "radar", metrics.ABILITIES),
    Plot("turns", "MT-Video-Bench: score by turn of the dialogue", "lines", "turn", axis="turn"),
    Plot("dialogue_length", "MT-Video-Bench: score by number of turns", "lines", "dialogue_length", axis="turns"),
    Plot("scenes", "MT-Video-Bench: score by number of scenes", "lines", "scenes", axis="scenes"),
    Plot("duration", "MT-Video-Bench: score by length of the video", "bars", "duration", axis="video"),
    Plot("context", "MT-Video-Bench: score by dialogue context", "bars", ("overall", *metrics.ABILITIES),
         tasks=tuple(NAMES), contexts=True),
)  # fmt: skip


def observations(items: Iterable[Mapping[str, Any]]) -> Iterator[Observation]:
    """Dialogues' scores by ability, and turns' scores by what `metrics.breakdowns` groups them by."""
    items = list(items)
    dialogues: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for item in items:
        if "score" in item:
            dialogues[item["video"], item["ability"], item["dialogue"]].append(item["score"])
    for (video, ability, _), scores in dialogues.items():
        yield video, ability, mean(scores)
    yield from observed(items, metrics.breakdowns)


def combined(means: Mapping[str, Array]) -> dict[str, Array]:
    """The means over abilities beside everything else, as `metrics.over_abilities` has them."""
    present = {
        group: [means[ability] for ability in members if ability in means] for group, members in metrics.GROUPS.items()
    }
    return {**{group: mean_of(of) for group, of in present.items() if of}, **means}


def samples(row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The turns of a dialogue, each with those before it."""
    history: list[list[str]] = []
    for number, turn in enumerate(row["turns"], start=1):
        question, answer = turn["question"], turn["answer"]
        yield (
            f"{row['id']}/{number}",
            {"question": question, "reference": answer, "history": [*history], "videos": [row["video"]]},
        )
        history.append([question, answer])


def checks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The checklist, with what the judge said in each of its repeats, answer by answer."""
    verdicts = [verdict or () for of in item.get("verdicts") or () for verdict in of]
    return [
        {**check, "given": [verdict[number] for verdict in verdicts if number < len(verdict)]}
        for number, check in enumerate(item.get("checklist") or ())
    ]
