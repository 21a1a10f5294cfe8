import json
import math
from importlib.resources import files

import pytest

from lmms_eval_tasks.mt_video_bench import metrics

PUBLISHED = json.loads((files("lmms_eval_tasks.mt_video_bench") / "published.json").read_text())["rows"]

# The paper's appendix C, Figures 18-23: what the judge said, what was expected, the printed score of 5.
WORKED_CASES = {
    "answer_refusal": ("no no no yes no", "yes yes yes no yes", 0),
    "object_reference": ("no no no no no", "yes yes yes no yes", 1),
    "memory_recall": ("yes yes no no no", "no yes yes yes yes", 1),
    "proactive_interaction": ("yes no no yes no", "yes yes yes no no", 2),
    "topic_shifting": ("no no no no no", "yes yes yes no yes", 1),
    "content_summary": ("no no no no yes", "yes yes no yes yes", 2),
}


def item(ability="memory_recall", dialogue="a", score=None, turn=2, turns=5, **more):
    fields = {"task": "mt_video_bench", "ability": ability, "dialogue": dialogue, "turn": turn, "turns": turns, **more}
    return fields if score is None else {**fields, "score": score}


@pytest.mark.parametrize("name", WORKED_CASES)
def test_worked_cases_of_the_paper(name):
    verdict, expected, correct = WORKED_CASES[name]
    assert metrics.answer_score(expected.split(), [verdict.split()]) == 20 * correct


def test_repeats_are_averaged():
    assert metrics.answer_score(["yes", "no"], [["yes", "no"], ["no", "no"], ["no", "yes"]]) == pytest.approx(50)


@pytest.mark.parametrize("model", PUBLISHED)
def test_published_overall_recomputes(model):
    row = PUBLISHED[model]
    overall = metrics.over_abilities({ability: row[ability] for ability in metrics.ABILITIES})["overall"]
    assert abs(overall - row["overall"]) <= 0.005 + 1e-9


def test_published_has_all_rows():
    assert len(PUBLISHED) == 24


def test_dialogues_weigh_equally_whatever_their_number_of_turns():
    items = [item(dialogue="a", score=100), item(dialogue="a", score=0), item(dialogue="b", score=100)]
    assert metrics.by_ability(items) == {"memory_recall": 75}


def test_unscored_turns_are_left_out_of_their_dialogue():
    items = [item(dialogue="a", score=80), item(dialogue="a"), item(dialogue="b")]
    assert metrics.by_ability(items) == {"memory_recall": 80}


def test_overall_is_the_unweighted_mean_of_abilities():
    items = [item("memory_recall", "a", 10), item("memory_recall", "b", 20), item("answer_refusal", "c", 90)]
    scores = metrics.scores(items)
    assert scores == {
        "overall": 52.5,
        "perceptivity": 15,
        "interactivity": 90,
        "memory_recall": 15,
        "answer_refusal": 90,
    }
    assert list(scores)[:3] == ["overall", "perceptivity", "interactivity"]
    assert "object_reference" in metrics.notes(items)[0]


def test_one_ability_of_six_is_noted_and_a_task_of_one_ability_is_not():
    assert "1 of 6 abilities" in metrics.notes([item(score=1)])[0]
    assert metrics.notes([item(score=1, task="mt_video_bench_memory_recall")]) == []


def test_nothing_scored_gives_no_metric_and_no_crash():
    assert metrics.scores([item()]) == {}
    assert metrics.scores([]) == {}


def test_official_rounding_rounds_at_each_level():
    items = [item(dialogue=str(n), score=100 / 3) for n in range(2)]
    assert metrics.scores(items, metrics.official)["memory_recall"] == 33.33
    assert metrics.scores([item(score=100 / 3), item(score=100 / 3)], metrics.official)["overall"] == 33.33


def test_a_verdict_of_another_length_is_no_score():
    with pytest.raises(ValueError):
        metrics.answer_score(["yes", "no"], [["yes"]])


def test_breakdowns_group_and_order():
    items = [
        item(score=10, turn=10, turns=12, seconds=900.0, scenes=5),
        item(score=20, turn=2, turns=5, seconds=901.0, scenes=6),
        item(score=40, turn=2, turns=5, seconds=None, scenes=21),
        item(turn=3),
    ]
    tables = metrics.breakdowns(items)
    assert tables["turn"] == {"2": 30, "10": 10}
    assert list(tables["turn"]) == ["2", "10"]
    assert tables["dialogue_length"] == {"5": 30, "12": 10}
    assert tables["duration"] == {"up to 15 min": 10, "over 15 min": 20}
    assert tables["scenes"] == {"1-5": 10, "6-10": 20, ">20": 40}


def test_means_are_exact_whatever_the_order():
    scores = [100 * k / 7 for k in range(1000)]
    forward = metrics.by_ability(item(dialogue="a", score=score) for score in scores)
    backward = metrics.by_ability(item(dialogue="a", score=score) for score in reversed(scores))
    assert forward == backward
    assert math.isclose(forward["memory_recall"], sum(scores) / 1000)
