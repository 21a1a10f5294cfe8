import json
import random
from fractions import Fraction
from importlib.resources import files

import pytest

from lmms_eval_tasks.results import items
from lmms_eval_tasks.scvbench import metrics

PUBLISHED = json.loads((files("lmms_eval_tasks.scvbench") / "published.json").read_text())


def item(score=None, without=..., **more):
    fields = {"task": "scvbench_pqa", "sub_questions": 4, "seconds": 800.0, **more}
    if score is not None:
        fields["score"] = score
    if without is not ...:
        fields["without_history"] = {"answers": ["A"]} if without is None else {"answers": ["A"], "score": without}
    return fields


@pytest.mark.parametrize(
    "choices, right, expected",
    [
        (["B"], ["B"], 100),
        (["B"], ["A"], 0),
        ([None], ["A"], 0),
        (["B", "A"], ["A", "C"], 50),
        (["C"], ["A", "C"], 100),
    ],
)
def test_accuracy_is_over_repeats_and_takes_every_letter_of_the_right_text(choices, right, expected):
    assert items.accuracy(choices, right) == expected


@pytest.mark.parametrize(
    "given, expected",
    [
        (item(), {}),
        (item(without=None), {}),
        (item(100), {"fqa": 100}),
        (item(100, without=None), {"pqa": 100}),
        (item(100, without=0), {"fqa": 0, "pqa": 100, "hdu": 100}),
        (item(0, without=100), {"fqa": 100, "pqa": 0, "hdu": -100}),
        # Without history it was answered, with history not: the question is scored nowhere.
        (item(without=100), {}),
    ],
)
def test_what_a_question_adds(given, expected):
    assert metrics.values(given) == expected


def test_scores_are_means_over_what_there_is():
    items = [item(100, without=0), item(0, without=0), item(100, without=100), item(100, without=None), item()]
    assert metrics.scores(items) == pytest.approx({"fqa": 100 / 3, "pqa": 75, "hdu": 100 / 3})
    assert list(metrics.scores(items)) == ["fqa", "pqa", "hdu"]
    assert metrics.scores([item(100), item(0), item()]) == {"fqa": 50}
    assert metrics.scores([item()]) == metrics.scores([]) == {}


def test_hdu_is_pqa_minus_fqa_over_the_same_questions():
    dice = random.Random(3)
    pairs = [(dice.choice((0, 50, 100)), dice.choice((0, 50, 100))) for _ in range(1253)]
    found = metrics.scores(item(with_history, without=without) for with_history, without in pairs)
    fqa = Fraction(sum(without for _, without in pairs), len(pairs))
    pqa = Fraction(sum(with_history for with_history, _ in pairs), len(pairs))
    assert found == pytest.approx({"fqa": float(fqa), "pqa": float(pqa), "hdu": float(pqa - fqa)}, abs=1e-9)


def test_questions_that_fqa_and_hdu_leave_out_are_noted():
    assert metrics.notes([item(100, without=0), item(0, without=None), item()]) == [
        "fqa and hdu are over 1 of the 2 questions of pqa: the request without history failed in the others"
    ]
    assert metrics.notes([item(100, without=0), item()]) == metrics.notes([item(100), item()]) == []


def test_it_is_told_when_a_history_lacks_what_was_cut():
    said = [("", "<think>hm"), ("", "<think>hm</think>fine"), ("pqa", "<think>hm"), ("fqa", "A")]
    turns = [{"name": name, "reply": reply} for name, reply in said]
    [note] = metrics.notes([{**item(100, without=0), "transcripts": [turns]}])
    assert note.startswith("1 of 2 replies before the final questions were cut")
    assert metrics.notes([{**item(100, without=0), "transcripts": [turns[1:]]}]) == []


def test_breakdowns_by_duration_and_number_of_sub_questions():
    items = [
        item(100, without=0, seconds=599.9, sub_questions=10),
        item(0, without=0, seconds=600.0, sub_questions=3),
        item(100, without=100, seconds=600.0, sub_questions=3),
        item(100, without=None, seconds=2220.0, sub_questions=3),
        item(100, without=100, seconds=None, sub_questions=4),
        item(seconds=900.0),
    ]
    tables = metrics.breakdowns(items)
    assert tables == {
        "fqa_by_duration": {"under 10 min": 0, "10-15 min": 50},
        "pqa_by_duration": {"under 10 min": 100, "10-15 min": 50, "20 min and more": 100},
        "fqa_by_sub_questions": {"3": 50, "4": 100, "10": 0},
        "pqa_by_sub_questions": {"3": pytest.approx(200 / 3), "4": 100, "10": 100},
    }
    assert list(tables["pqa_by_sub_questions"]) == ["3", "4", "10"]
    assert set(metrics.breakdowns([item(100)])) == {"fqa_by_duration", "fqa_by_sub_questions"}
    assert metrics.breakdowns([]) == {}


def test_published_numbers_are_the_papers():
    rows = PUBLISHED["rows"]
    assert all(set(row) <= {"fqa", "pqa", "pqa_gold", "storycot"} for row in rows.values())
    assert all(0 < value < 100 for row in rows.values() for value in row.values())
    # The text prints no HDU; of one model it prints both accuracies, and another's follow from its leads.
    video, lead = rows["LLaVA-Video"], PUBLISHED["leads"]["LLaVA-Video over Oryx"]
    oryx = {name: video[name] - lead[name] for name in lead}
    hdu = {name: metrics.scores([item(of["pqa"], without=of["fqa"])])["hdu"] for name, of in
           (("LLaVA-Video", video), ("Oryx", oryx))}  # fmt: skip
    assert hdu == pytest.approx({"LLaVA-Video": 12.3, "Oryx": 0.3})
    # As the text says of the two: the one understands the history better.
    one = rows["LLaVA-OneVision-7B"]
    assert one["pqa"] < one["storycot"] < one["pqa_gold"]
