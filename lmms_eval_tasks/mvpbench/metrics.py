"""Scores of MVPBench (paper, section IV-A): pure functions over items."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.results.items import SCORED, mean

DOMAINS = {
    "temporal_segment_splicing": ("caption_guided_splicing", "caption_free_splicing"),
    "content_assessment": ("daily_action", "professional_action", "weather"),
    "video_quality_assessment": ("clarity", "brightness", "forensic"),
    "video_logic_inference": ("multiview_pairing", "common_sense_physics"),
    "similar_video_pairing": ("gait", "cinematographic_style", "olympic_sports", "dance_style"),
}
SUBTASKS = tuple(subtask for subtasks in DOMAINS.values() for subtask in subtasks)
DOMAIN_OF = {subtask: domain for domain, subtasks in DOMAINS.items() for subtask in subtasks}
RANKINGS = ("caption_guided_splicing", "caption_free_splicing", "clarity")
"""Subtasks whose answer is an order of all videos; those of the others is one number."""

Items = Iterable[Mapping[str, Any]]


def chance_level(subtask: str, candidates: int) -> float:
    """The share of right answers that guessing gives: 1/n! for an order of n videos, else 1/k.

    Args:
        subtask: Name of the subtask.
        candidates: Number of videos to choose from, or to put in order.
    """
    return 1 / (math.factorial(candidates) if subtask in RANKINGS else candidates)


def first_option(candidates: Sequence[int]) -> list[int]:
    """The answer that positional bias leads to, of the length of another one: video 1, or the order 1, 2, 3, …."""
    return list(range(1, len(candidates) + 1))


def proficiency(accuracy: float, chance: float) -> float:
    """Accuracy above chance, as a share of what is to be had above it (paper, equation 2).

    Args:
        accuracy: From 0 to 1.
        chance: From 0 to less than 1.

    Returns:
        Percent; below 0 where the accuracy is below chance.
    """
    return 100 * (accuracy - chance) / (1 - chance)


def overall(accuracy: Mapping[str, float], chance: Mapping[str, float]) -> float:
    """Mean proficiency over subtasks, each weighted by what is to be had above its chance (paper, equation 3).

    Args:
        accuracy: ``{subtask: accuracy from 0 to 1}``; a subtask that is absent is left out.
        chance: ``{subtask: chance level}``, at least for the same subtasks.

    Returns:
        Percent; NaN without any subtask.
    """
    weights = {subtask: 1 - chance[subtask] for subtask in accuracy}
    weighted = (weights[subtask] * proficiency(accuracy[subtask], chance[subtask]) for subtask in accuracy)
    return math.fsum(weighted) / math.fsum(weights.values()) if weights else math.nan


def accuracies(items: Items) -> dict[str, float]:
    """``{subtask: accuracy from 0 to 1}`` over scored items, in the paper's order."""
    return _means(items, lambda item: item["score"] / 100)


def chances(items: Items) -> dict[str, float]:
    """``{subtask: chance level}``, the mean over scored items, in the paper's order."""
    return _means(items, lambda item: item["chance"])


def first_options(items: Items) -> dict[str, float]:
    """``{subtask: share of answers that are the first option}`` over scored items, in percent (paper, Table IV)."""
    return _means(items, lambda item: 100 * item["first"])


def scores(items: Items) -> dict[str, float]:
    """All scores of a run by name, in percent; what nothing was scored for is absent."""
    items = list(items)
    accuracy, chance = accuracies(items), chances(items)
    if not accuracy:
        return {}
    domains = {
        domain: overall(present, chance)
        for domain, subtasks in DOMAINS.items()
        if (present := {subtask: accuracy[subtask] for subtask in subtasks if subtask in accuracy})
    }
    return {
        "overall": overall(accuracy, chance),
        **domains,
        **{subtask: proficiency(accuracy[subtask], chance[subtask]) for subtask in accuracy},
        **{f"{subtask}_accuracy": 100 * value for subtask, value in accuracy.items()},
        **{f"{subtask}_chance": 100 * value for subtask, value in chance.items()},
        **{f"{subtask}_first_option": value for subtask, value in first_options(items).items()},
    }


def notes(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of the overall score must know: subtasks that it leaves out."""
    scored = accuracies(items)
    if all(item["task"].endswith(item["subtask"]) for item in items):
        return []
    absent = [subtask for subtask in SUBTASKS if subtask not in scored]
    if not absent:
        return []
    return [f"overall is over {len(scored)} of {len(SUBTASKS)} subtasks; absent: {', '.join(absent)}"]


def breakdowns(items: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Positional bias by subtask, in percent (paper, Table IV).

    Returns:
        ``{"first_option": …, "first_option_expected": …, "first_option_gold": …}``: how often the first option is
        the answer, would be by guessing, and is right.
    """
    return {
        "first_option": first_options(items),
        "first_option_expected": {subtask: 100 * value for subtask, value in chances(items).items()},
        "first_option_gold": _means(items, lambda item: 100 * (item["gold"] == first_option(item["gold"]))),
    }


def _means(items: Items, value: Callable[[Mapping[str, Any]], float]) -> dict[str, float]:
    groups: dict[str, list[float]] = defaultdict(list)
    for item in items:
        if item["status"] == SCORED:
            groups[item["subtask"]].append(value(item))
    return {subtask: mean(groups[subtask]) for subtask in SUBTASKS if subtask in groups}
