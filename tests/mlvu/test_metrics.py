import json
from importlib.resources import files

import pytest

from lmms_eval_tasks.mlvu import metrics
from lmms_eval_tasks.results import items

PUBLISHED = json.loads((files("lmms_eval_tasks.mlvu") / "published.json").read_text("utf-8"))
ROWS = [(split, model) for split in ("dev", "test") for model in PUBLISHED[split]["rows"]]

# Rows whose printed averages are not the means of their printed categories. In the first two of the test table, numbers
# stand in each other's columns.
ODD = {
    ("test", "Qwen-VL-Max"),
    ("test", "Video-LLaVA"),
    ("dev", "ShareGPT4Video"),
    ("dev", "TimeChat"),
    ("dev", "Video-CCAM"),
    ("dev", "Video-XL"),
}


def item(category="plot_qa", score=None, **more):
    fields = {"task": "mlvu_mc_dev", "category": category, "status": "scored", "skipped": [], **more}
    return fields if score is None else {**fields, "score": score}


def caption(accuracy, relevance, **more):
    verdict = {"accuracy": accuracy, "relevance": relevance}
    return item("sub_scene_captioning", accuracy + relevance, verdicts=[[verdict]], **more)


def summary(completeness, reliability):
    verdict = {"completeness": completeness, "reliability": reliability}
    return item("video_summarization", completeness + reliability, verdicts=[[verdict]])


def recomputes(split, model):
    row = PUBLISHED[split]["rows"][model]
    means = metrics.over_categories({name: row[name] for name in (*metrics.MULTIPLE_CHOICE, *metrics.GENERATION)})
    return abs(means["m_avg"] - row["m_avg"]) < 0.06 and abs(means["g_avg"] - row["g_avg"]) < 0.0151


@pytest.mark.parametrize(("split", "model"), ROWS)
def test_published_averages_recompute(split, model):
    assert recomputes(split, model) == ((split, model) not in ODD)


def test_published_has_all_rows_and_names_the_odd_ones():
    assert (len(PUBLISHED["dev"]["rows"]), len(PUBLISHED["test"]["rows"])) == (22, 23)
    named = {(split, row["model"]) for split in ("dev", "test")
             for row in PUBLISHED[split]["rows_whose_averages_do_not_recompute"]}  # fmt: skip
    assert named == ODD


def test_m_avg_is_over_categories_and_micro_avg_over_questions():
    items = [item("plot_qa", 100), item("plot_qa", 100), item("plot_qa", 100), item("needle_qa", 0)]
    assert metrics.scores(items) == {
        "m_avg": 50,
        "micro_avg": 75,
        "m_avg_official": 50,
        "needle_qa": 0,
        "plot_qa": 100,
    }


def test_sports_and_tutorials_count_in_m_avg_all_alone():
    items = [item("plot_qa", 100), item("sports_qa", 0), item("tutorial_qa", 50)]
    scores = metrics.scores(items)
    assert (scores["m_avg"], scores["m_avg_all"], scores["micro_avg"]) == (100, 50, 50)
    assert scores["m_avg_official"] == 100
    assert "m_avg_all" not in metrics.scores(items[:1]) and "m_avg" not in metrics.scores(items[1:])


def test_a_category_without_a_scored_question_is_absent():
    items = [item("plot_qa", 100), item("needle_qa", status="no_answer")]
    assert set(metrics.scores(items)) == {"m_avg", "micro_avg", "m_avg_official", "plot_qa"}
    assert metrics.scores([]) == metrics.scores([item(status="no_answer")]) == {}


def test_excluded_rows_are_wrong_in_the_official_average_alone():
    excluded = {"id": "x", "category": "needle_qa", "status": "excluded", "reason": "not among the candidates"}
    missing = {"id": "y", "category": "needle_qa", "status": "no_answer", "reason": "video y is missing"}
    elsewhere = {**excluded, "category": "action_count"}
    items = [
        item("needle_qa", 100, skipped=[excluded, missing, elsewhere]),
        item("needle_qa", 100, skipped=[excluded]),
        item("plot_qa", 40),
        item("plot_qa", status="excluded", reason=metrics.NO_REFERENCE),
    ]
    scores = metrics.scores(items)
    assert (scores["m_avg"], scores["m_avg_official"], scores["needle_qa"]) == (70, 45, 100)


def test_generation_is_on_the_authors_scale():
    items = [caption(3.5, 4), caption(1, 1), summary(5, 5), summary(2, 3)]
    assert metrics.scores(items) == {
        "g_avg": (4.75 + 7.5) / 2,
        "sub_scene_captioning": 4.75,
        "video_summarization": 7.5,
        "ssc_accuracy": 2.25,
        "ssc_relevance": 2.5,
        "vs_completeness": 3.5,
        "vs_reliability": 4,
    }


def test_answers_and_repeats_are_averaged():
    verdicts = [
        [{"accuracy": 5, "relevance": 5}, {"accuracy": 3, "relevance": 5}],
        [{"accuracy": 1, "relevance": 1}] * 2,
    ]
    assert metrics.total(verdicts) == 5.5
    assert metrics.grade({"verdicts": verdicts}, "ssc_accuracy") == 2.5
    assert items.accuracy(["A", None, "C", "B"], ["A", "C"]) == 50


def test_the_worst_answer_scores_two():
    assert metrics.total([[{"accuracy": 1, "relevance": 1}]]) == 2


def test_notes_name_what_the_means_leave_out():
    every = [item(category, 1) for category in metrics.MULTIPLE_CHOICE]
    assert metrics.notes(every) == metrics.notes([]) == []
    assert metrics.notes(every[:-2]) == ["means are over 5 of 7 categories; absent: action_order, action_count"]
    assert metrics.notes([summary(5, 5)]) == ["means are over 1 of 2 categories; absent: sub_scene_captioning"]
    open_ended = [item(status="excluded", reason=metrics.NO_REFERENCE)]
    assert "1 questions have no reference answer" in metrics.notes(open_ended)[0]
    assert "submission" in metrics.notes(open_ended)[1]
    captions = [item("sub_scene_captioning", status="excluded", reason=metrics.NO_REFERENCE)]
    assert len(metrics.notes(captions)) == 1


def test_breakdowns_by_duration():
    items = [
        item("plot_qa", 100, seconds=299.9),
        item("topic_reasoning", 0, seconds=180),
        item("plot_qa", 0, seconds=300.0),
        item("plot_qa", 100, seconds=599),
        item("needle_qa", 100, seconds=599),
        item("plot_qa", 40, seconds=600),
        item("topic_reasoning", 60, seconds=1800),
        item("plot_qa", 100, seconds=None),
        item("plot_qa", seconds=600),
    ]
    tables = metrics.breakdowns(items)
    assert tables["duration"] == {
        "under 5 min": 50,
        "5-10 min": pytest.approx(200 / 3),
        "10-30 min": 40,
        "over 30 min": 60,
    }
    assert list(tables["duration"]) == ["under 5 min", "5-10 min", "10-30 min", "over 30 min"]
    assert tables["duration_local"] == {"under 5 min": 100, "5-10 min": 75, "10-30 min": 40}
