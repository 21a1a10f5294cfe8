"""Scores of MT-Video-Bench (paper, section 3.4): pure functions over items."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.results.items import mean

PERCEPTIVITY = ("object_reference", "memory_recall", "content_summary")
INTERACTIVITY = ("answer_refusal", "topic_shifting", "proactive_interaction")
ABILITIES = (*PERCEPTIVITY, *INTERACTIVITY)
GROUPS = {"overall": ABILITIES, "perceptivity": PERCEPTIVITY, "interactivity": INTERACTIVITY}

Items = Iterable[Mapping[str, Any]]
# What a group sorts by, and its name.
_Group = tuple[float, str]
Rounding = Callable[[float], float]


def exact(score: float) -> float:
    """No rounding."""
    return score


def official(score: float) -> float:
    """The rounding of the authors' script: two decimals, at each level."""
    return round(score, 2)


def answer_score(expected: Sequence[str], verdicts: Sequence[Sequence[str]]) -> float:
    """Share of a checklist that an answer gets right, over the judge's repeats, in percent.

    Args:
        expected: The expected answer to each of the n questions, ``"yes"`` or ``"no"``.
        verdicts: The judge's answers, one list of n for each repeat.

    Raises:
        ValueError: A verdict has another length.
    """
    hits = [sum(given == right for given, right in zip(verdict, expected, strict=True)) for verdict in verdicts]
    return mean(100 * number / len(expected) for number in hits)


def by_ability(items: Items, rounding: Rounding = exact) -> dict[str, float]:
    """Mean over turns in each dialogue, then over dialogues in each ability.

    Args:
        items: Items with ``ability``, ``dialogue`` and, where scored, ``score`` in percent.
        rounding: Applied at each level.

    Returns:
        ``{ability: percent}``, in the paper's order, for the abilities that have a scored turn.
    """
    dialogues = _grouped(items, lambda item: (item["ability"], item["dialogue"]), rounding)
    abilities: dict[str, list[float]] = {ability: [] for ability in ABILITIES}
    for (ability, _), scores in dialogues.items():
        abilities[ability].append(rounding(mean(scores)))
    return {ability: rounding(mean(scores)) for ability, scores in abilities.items() if scores}


def over_abilities(scores: Mapping[str, float], rounding: Rounding = exact) -> dict[str, float]:
    """Unweighted means over abilities: overall, perceptivity, interactivity.

    Args:
        scores: ``{ability: percent}``; an ability that is absent is left out of the means.
        rounding: Applied to the results.

    Returns:
        ``{"overall", "perceptivity", "interactivity"}`` in percent, each where at least one ability is there.
    """
    present = {group: [scores[of] for of in members if of in scores] for group, members in GROUPS.items()}
    return {group: rounding(mean(values)) for group, values in present.items() if values}


def scores(items: Items, rounding: Rounding = exact) -> dict[str, float]:
    """All scores of a run by name, in percent; what nothing was scored for is absent."""
    abilities = by_ability(items, rounding)
    return {**over_abilities(abilities, rounding), **abilities}


def official_scores(items: Items) -> dict[str, float]:
    """`scores`, rounded as the authors' script does."""
    return scores(items, official)


def notes(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of the means must know: abilities that they leave out."""
    scored = by_ability(items)
    if all(item["task"].endswith(item["ability"]) for item in items):
        return []
    absent = [ability for ability in ABILITIES if ability not in scored]
    if not absent:
        return []
    return [f"means are over {len(scored)} of {len(ABILITIES)} abilities; absent: {', '.join(absent)}"]


# The paper's break between short and long videos is 15 minutes; its scene counts are those of Figure 4.
_MINUTES = ((15, "up to 15 min"), (float("inf"), "over 15 min"))
_SCENES = ((5, "1-5"), (10, "6-10"), (20, "11-20"), (float("inf"), ">20"))


def breakdowns(items: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean turn scores by turn number, dialogue length, video duration and number of scenes, in percent.

    Returns:
        ``{"turn": {"2": …}, "dialogue_length": …, "duration": …, "scenes": …}``; items that do not know their duration
        or scenes are left out there.
    """
    keys: dict[str, Callable[[Mapping[str, Any]], _Group | None]] = {
        "turn": lambda item: (item["turn"], str(item["turn"])),
        "dialogue_length": lambda item: (item["turns"], str(item["turns"])),
        "duration": lambda item: _bin(item.get("seconds"), 60, _MINUTES),
        "scenes": lambda item: _bin(item.get("scenes"), 1, _SCENES),
    }
    tables = {name: _grouped((item for item in items if key(item)), key) for name, key in keys.items()}
    return {name: {group[1]: mean(table[group]) for group in sorted(table)} for name, table in tables.items()}


def _grouped(
    items: Items, key: Callable[[Mapping[str, Any]], Any], rounding: Rounding = exact
) -> dict[Any, list[float]]:
    groups: dict[Any, list[float]] = defaultdict(list)
    for item in items:
        if "score" in item:
            groups[key(item)].append(rounding(item["score"]))
    return groups


def _bin(value: float | None, unit: float, bins: Sequence[tuple[float, str]]) -> _Group | None:
    return next((group for group in bins if value <= group[0] * unit), None) if value is not None else None
