"""Scores of MLVU (paper, section 4 and appendix G.3): pure functions over items.

Multiple choice is in percent. Generation is on the authors' scale: an item's ``score`` is the sum of its two grades, 2
to 10, and so are its category's mean and G-Avg; the four grades by themselves are means from 1 to 5.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.results.items import EXCLUDED, mean, with_skipped

MULTIPLE_CHOICE = (
    "topic_reasoning",
    "anomaly_recognition",
    "needle_qa",
    "ego_reasoning",
    "plot_qa",
    "action_order",
    "action_count",
)
# Only in the test set, and not in the paper's M-Avg.
EXTRA = ("sports_qa", "tutorial_qa")
GENERATION = ("sub_scene_captioning", "video_summarization")
GRADES = {
    "ssc_accuracy": ("sub_scene_captioning", "accuracy"),
    "ssc_relevance": ("sub_scene_captioning", "relevance"),
    "vs_completeness": ("video_summarization", "completeness"),
    "vs_reliability": ("video_summarization", "reliability"),
}
# The tasks that need local information, over which the paper's Figure 3 averages.
LOCAL = ("needle_qa", "ego_reasoning", "plot_qa", "action_order", "action_count")

NO_REFERENCE = "no reference answer"
"""Reason of items that are predictions only: neither right nor wrong, nor a failure."""

Items = Iterable[Mapping[str, Any]]

# Seconds below which a video belongs to a bin.
_BINS = ((300, "under 5 min"), (600, "5-10 min"), (1800, "10-30 min"), (float("inf"), "over 30 min"))


def total(verdicts: Sequence[Sequence[Mapping[str, float]]]) -> float:
    """The sum of an answer's two grades, 2 to 10, averaged over answers and the judge's repeats.

    Args:
        verdicts: ``{grade: 1 to 5}``, a list of repeats for each answer.
    """
    return mean(sum(verdict.values()) for of in verdicts for verdict in of)


def grade(item: Mapping[str, Any], name: str) -> float:
    """One grade of a scored item, 1 to 5, averaged over answers and repeats.

    Args:
        item: An item with ``verdicts``.
        name: A key of `GRADES`.
    """
    return mean(verdict[GRADES[name][1]] for of in item["verdicts"] for verdict in of)


def by_category(items: Items) -> dict[str, float]:
    """Mean score of each category that has a scored question, in the paper's order."""
    groups: dict[str, list[float]] = defaultdict(list)
    for item in items:
        if "score" in item:
            groups[item["category"]].append(item["score"])
    return {name: mean(groups[name]) for name in (*MULTIPLE_CHOICE, *EXTRA, *GENERATION) if name in groups}


def over_categories(categories: Mapping[str, float]) -> dict[str, float]:
    """Unweighted means over categories: the paper's M-Avg and G-Avg, and ours over all multiple-choice categories.

    Args:
        categories: ``{category: mean}``; one that is absent is left out of the means.

    Returns:
        ``{"m_avg", "m_avg_all", "g_avg"}``, each where at least one of its categories is there; ``m_avg_all`` only
        where one of `EXTRA` is.
    """
    members = {
        "m_avg": MULTIPLE_CHOICE,
        "m_avg_all": (*MULTIPLE_CHOICE, *EXTRA) if set(EXTRA) & set(categories) else (),
        "g_avg": GENERATION,
    }
    present = {name: [categories[of] for of in group if of in categories] for name, group in members.items()}
    return {name: mean(values) for name, values in present.items() if values}


def official(items: Items) -> dict[str, float]:
    """M-Avg as the authors' script computes it: excluded rows count, and as wrong.

    Two of the three rows that are excluded in the dev set have no right answer among the candidates. The third has no
    question: it is not asked, and a model that would have guessed its letter gets 0.05 more from the authors' script.

    Returns:
        ``{"m_avg_official"}`` in percent, empty without a scored question.
    """
    items = list(items)
    scored = by_category(items)
    wrong = [
        {"category": row["category"], "score": 0.0}
        for row in with_skipped(items)
        if row["status"] == EXCLUDED and row.get("reason") != NO_REFERENCE and row["category"] in scored
    ]
    means = over_categories(by_category([*items, *wrong]))
    return {"m_avg_official": means["m_avg"]} if "m_avg" in means else {}


def scores(items: Items) -> dict[str, float]:
    """All scores of a run by name; what nothing was scored for is absent."""
    items = list(items)
    categories = by_category(items)
    choices = [item["score"] for item in items if "score" in item and item["category"] not in GENERATION]
    grades = {
        name: [grade(item, name) for item in items if "score" in item and item["category"] == category]
        for name, (category, _) in GRADES.items()
    }
    return {
        **over_categories(categories),
        **({"micro_avg": mean(choices)} if choices else {}),
        **official(items),
        **categories,
        **{name: mean(values) for name, values in grades.items() if values},
    }


def notes(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of the means must know: categories that they leave out, and questions without an answer."""
    scored = by_category(items)
    expected = GENERATION if any(item["category"] in GENERATION for item in items) else MULTIPLE_CHOICE
    absent = [category for category in expected if category not in scored]
    found = []
    if scored and absent:
        number = len(expected) - len(absent)
        found.append(f"means are over {number} of {len(expected)} categories; absent: {', '.join(absent)}")
    predictions = [item for item in items if item.get("reason") == NO_REFERENCE]
    if predictions:
        found.append(f"{len(predictions)} questions have {NO_REFERENCE} and are not scored")
    if any(item["category"] not in GENERATION for item in predictions):
        found.append("`lmms-eval-tasks submission mlvu LOG -o test_res.json` writes the leaderboard's file")
    return found


def breakdowns(items: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Scores by the duration that the annotations give for the video.

    Returns:
        ``{"duration": …, "duration_local": …}``: means over questions, and means over the five categories that need
        local information, unweighted, as in the paper's Figure 3. Items that do not know their duration are left out.
    """
    bins = {label: [item for item in items if "score" in item and _bin(item) == label] for _, label in _BINS}
    local = {label: [by_category(of)[name] for name in LOCAL if name in by_category(of)] for label, of in bins.items()}
    return {
        "duration": {label: mean(item["score"] for item in of) for label, of in bins.items() if of},
        "duration_local": {label: mean(values) for label, values in local.items() if values},
    }


def _bin(item: Mapping[str, Any]) -> str | None:
    seconds = item.get("seconds")
    return None if seconds is None else next(label for below, label in _BINS if seconds < below)
