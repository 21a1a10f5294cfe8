"""Scores of SCVBench (paper, section 5.1): pure functions over items.

An item's ``score`` is that of the final question as its task asks it; where the task asks it with a history, the item
holds as ``without_history`` what came of asking it without.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.answers.reasoning import strip_reasoning
from lmms_eval_tasks.results.items import mean

METRICS = ("fqa", "pqa", "hdu")

Items = Iterable[Mapping[str, Any]]
# What a group sorts by, and its name.
_Group = tuple[float, str]

# Minutes below which a film belongs to a bin; the films last 5 to 37, on average 13.
_MINUTES = ((10, "under 10 min"), (15, "10-15 min"), (20, "15-20 min"), (float("inf"), "20 min and more"))


def values(item: Mapping[str, Any]) -> dict[str, float]:
    """What a question adds to each metric, in percent; what does not exist of it is absent.

    HDU, the difference of two accuracies over the same questions, is a mean of differences: a question adds to it only
    where it was answered both with history and without.
    """
    if "score" not in item:
        return {}
    without = item.get("without_history")
    if without is None:
        return {"fqa": item["score"]}
    if "score" not in without:
        return {"pqa": item["score"]}
    return {"fqa": without["score"], "pqa": item["score"], "hdu": item["score"] - without["score"]}


def scores(items: Items) -> dict[str, float]:
    """All scores of a run by name, in percent (HDU in percentage points); what nothing was scored for is absent."""
    found = [values(item) for item in items]
    present = {name: [of[name] for of in found if name in of] for name in METRICS}
    return {name: mean(of) for name, of in present.items() if of}


def notes(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of the scores must know.

    FQA and HDU may be over fewer questions than PQA, and what was cut inside its reasoning is missing in a history.
    """
    found = [values(item) for item in items]
    asked = sum("pqa" in of for of in found)
    both = sum("hdu" in of for of in found)
    lines = []
    if asked != both:
        lines.append(f"fqa and hdu are over {both} of the {asked} questions of pqa: the request without history failed "
                     "in the others")  # fmt: skip
    turns = [turn for item in items for of in item.get("transcripts", ()) for turn in of if not turn["name"]]
    cut = sum(strip_reasoning(turn["reply"]).truncated for turn in turns)
    if cut:
        lines.append(
            f"{cut} of {len(turns)} replies before the final questions were cut inside their reasoning, and are "
            "missing in the histories: give the model more tokens, as in --gen_kwargs max_new_tokens=8192"
        )
    return lines


def breakdowns(items: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Accuracies by the film's duration (paper, Figure 4) and by the number of sub-questions, in percent.

    Returns:
        ``{"fqa_by_duration": {"10-15 min": …}, "pqa_by_duration": …, "fqa_by_sub_questions": {"4": …}, …}``; items
        that do not know their duration are left out there.
    """
    groups: dict[str, Callable[[Mapping[str, Any]], _Group | None]] = {
        "duration": lambda item: _bin(item.get("seconds")),
        "sub_questions": lambda item: (item["sub_questions"], str(item["sub_questions"])),
    }
    return {
        f"{metric}_by_{name}": table
        for name, group in groups.items()
        for metric in ("fqa", "pqa")
        if (table := _table(items, metric, group))
    }


def _table(items: Items, metric: str, group: Callable[[Mapping[str, Any]], _Group | None]) -> dict[str, float]:
    found: dict[_Group, list[float]] = defaultdict(list)
    for item in items:
        of, value = group(item), values(item).get(metric)
        if of is not None and value is not None:
            found[of].append(value)
    return {of[1]: mean(found[of]) for of in sorted(found)}


def _bin(seconds: float | None) -> _Group | None:
    return next(of for of in _MINUTES if seconds < of[0] * 60) if seconds is not None else None
