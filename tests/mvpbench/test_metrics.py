import json
import math
import random
from fractions import Fraction
from importlib.resources import files

import pytest

from lmms_eval_tasks.mvpbench import metrics
from lmms_eval_tasks.mvpbench.metrics import SUBTASKS

PUBLISHED = json.loads((files("lmms_eval_tasks.mvpbench") / "published.json").read_text())["rows"]
MISPRINT = "LLaVA-NeXT-Video-7B"

# The chance levels behind Table III. Two models order no clips rightly, and so have -C / (1 - C) in splicing: -7.90 and
# -16.06 percent.
CHANCE = {
    **dict.fromkeys(SUBTASKS, 1 / 3),
    "caption_guided_splicing": 0.0790 / 1.0790,
    "caption_free_splicing": 0.1606 / 1.1606,
    "daily_action": 1 / 2,
    "professional_action": 1 / 2,
    "clarity": 1 / 6,
    "olympic_sports": 1 / 2,
}


def item(subtask="gait", score=None, gold=(2,), chance=1 / 3, first=0.0, task="mvpbench"):
    fields = {"task": task, "subtask": subtask, "status": "unjudged", "gold": list(gold), "chance": chance}
    return fields if score is None else {**fields, "status": "scored", "score": score, "first": first}


def recomputed(row):
    accuracy = {subtask: CHANCE[subtask] + row[subtask] / 100 * (1 - CHANCE[subtask]) for subtask in SUBTASKS}
    return metrics.overall(accuracy, CHANCE)


@pytest.mark.parametrize("model", [model for model in PUBLISHED if model != MISPRINT])
def test_published_overall_recomputes(model):
    assert abs(recomputed(PUBLISHED[model]) - PUBLISHED[model]["overall"]) <= 0.012


def test_the_sixteenth_row_has_lost_its_sign_in_print():
    row = PUBLISHED[MISPRINT]
    assert row["overall"] > 0 and abs(recomputed(row) + row["overall"]) <= 0.012


def test_published_has_all_rows_and_subtasks():
    assert len(PUBLISHED) == 16
    assert all(set(row) == {*SUBTASKS, "overall"} for row in PUBLISHED.values())


def test_fourteen_subtasks_in_five_domains():
    assert (len(SUBTASKS), len(set(SUBTASKS)), len(metrics.DOMAINS)) == (14, 14, 5)
    assert set(metrics.RANKINGS) < set(SUBTASKS)


@pytest.mark.parametrize(
    "accuracy, chance, expected",
    [(1, 1 / 3, 100), (1 / 3, 1 / 3, 0), (0, 1 / 2, -100), (0, 1 / 3, -50), (0, 1 / 6, -20), (0.75, 0.5, 50)],
)
def test_proficiency_is_accuracy_above_chance(accuracy, chance, expected):
    assert metrics.proficiency(accuracy, chance) == pytest.approx(expected)


@pytest.mark.parametrize(
    "subtask, candidates, expected",
    [("gait", 3, 1 / 3), ("gait", 2, 1 / 2), ("weather", 4, 1 / 4), ("clarity", 3, 1 / 6), ("clarity", 2, 1 / 2),
     ("caption_free_splicing", 4, 1 / 24), ("caption_guided_splicing", 10, 1 / 3628800)],
)  # fmt: skip
def test_chance_is_one_in_k_or_in_n_factorial(subtask, candidates, expected):
    assert metrics.chance_level(subtask, candidates) == expected


def test_overall_weighs_subtasks_by_what_is_above_chance():
    accuracy, chance = {"gait": 1.0, "daily_action": 0.5}, {"gait": 1 / 3, "daily_action": 0.5, "clarity": 1 / 6}
    assert metrics.overall(accuracy, chance) == pytest.approx(100 * (2 / 3) / (2 / 3 + 1 / 2))
    assert metrics.overall({"daily_action": 0.25}, chance) == pytest.approx(-50)
    assert math.isnan(metrics.overall({}, chance))


def test_scores_of_a_mixed_run_equal_fractions_computed_by_hand():
    dice = random.Random(7)
    items, per = [], {}
    for _ in range(500):
        subtask, k, score = dice.choice(SUBTASKS[3:]), dice.choice((2, 3, 4)), dice.choice((0, 50, 100))
        chance = Fraction(1, math.factorial(k) if subtask == "clarity" else k)
        items.append(item(subtask, score, chance=metrics.chance_level(subtask, k), first=float(score == 50)))
        per.setdefault(subtask, []).append((Fraction(score, 100), chance, score == 50))
    means = {
        subtask: (sum(a for a, _, _ in of) / len(of), sum(c for _, c, _ in of) / len(of)) for subtask, of in per.items()
    }
    found = metrics.scores(items)
    for subtask, (accuracy, chance) in means.items():
        assert found[subtask] == pytest.approx(float(100 * (accuracy - chance) / (1 - chance)), abs=1e-9)
        assert found[f"{subtask}_accuracy"] == pytest.approx(float(100 * accuracy), abs=1e-9)
        assert found[f"{subtask}_chance"] == pytest.approx(float(100 * chance), abs=1e-9)
        share = sum(first for _, _, first in per[subtask]) / len(per[subtask])
        assert found[f"{subtask}_first_option"] == pytest.approx(100 * share, abs=1e-9)
    groups = {"overall": means, **{name: set(of) & set(means) for name, of in metrics.DOMAINS.items()}}
    for name, members in groups.items():
        if members:
            above = sum(means[subtask][0] - means[subtask][1] for subtask in members)
            expected = float(100 * above / sum(1 - means[subtask][1] for subtask in members))
            assert found[name] == pytest.approx(expected, abs=1e-9)
    assert "temporal_segment_splicing" not in found and "content_assessment" in found
    assert len(found) == 1 + 4 + 4 * 11


def test_what_is_not_scored_counts_nowhere():
    scored = [item(score=100, chance=1 / 2)]
    assert metrics.scores([*scored, item(chance=1 / 3), item("weather")]) == metrics.scores(scored)
    assert metrics.scores([item()]) == metrics.scores([]) == {}


def test_absent_subtasks_are_noted_where_the_task_has_all():
    [note] = metrics.notes([item(score=0), item("weather")])
    assert "overall is over 1 of 14 subtasks" in note and "weather" in note and "gait" not in note
    assert metrics.notes([item(score=0, task="mvpbench_gait")]) == []
    assert metrics.notes([item(subtask, 100) for subtask in SUBTASKS]) == []


def test_positional_bias_stands_beside_its_expectation_and_the_gold_share():
    items = [
        item(score=0, gold=[2], first=1.0),
        item(score=100, gold=[1], first=1.0),
        item(score=0, gold=[3], first=0.0, chance=1 / 2),
        item("clarity", 0, gold=[1, 2, 3], chance=1 / 6, first=0.5),
        item("clarity", 0, gold=[1, 3, 2], chance=1 / 6),
        item("weather", gold=[1]),
    ]
    tables = metrics.breakdowns(items)
    assert tables["first_option"] == pytest.approx({"clarity": 25, "gait": 200 / 3})
    assert tables["first_option_expected"] == pytest.approx({"clarity": 100 / 6, "gait": 100 * (2 / 3 + 1 / 2) / 3})
    assert tables["first_option_gold"] == pytest.approx({"clarity": 50, "gait": 100 / 3})
