"""Judging items: what rules know already is not asked about, and a missing verdict is never a zero."""

import pytest

from lmms_eval_tasks.judging.items import judge_unread, settle
from lmms_eval_tasks.judging.pool import pool
from lmms_eval_tasks.results.items import Item

NUMBERS = {"two": [2], "none": []}


def scored(choices, judge=True, score=None):
    """An item whose answers were read as the choices; the judge's prompt for answer k is "k"."""
    item = Item(id="a", task="mvpbench", status="unjudged", card={"judge": pool().describe() if judge else None})
    score = score or (lambda values: {"score": 100 * sum(value == [2] for value in values) / len(values), "first": 0})
    judge_unread(item, choices, [str(k) for k in range(len(choices))], NUMBERS.get, "number", score)
    assert "score" not in item
    return item.settle()


def test_what_rules_read_is_not_asked_about(judge_server):
    item = scored([[2], [1]])
    assert judge_server.requests == []
    assert item == {"id": "a", "task": "mvpbench", "card": item["card"], "status": "scored", "choices": [[2], [1]],
                    "score": 50, "first": 0}  # fmt: skip


def test_the_others_are_asked_about_once_whatever_the_repeats(judge_server, monkeypatch):
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE_REPEATS", "3")
    judge_server.reply = lambda body, n: "two"
    item = scored([[1], None, [2], None])
    assert sorted(request["messages"][0]["content"] for request in judge_server.requests) == ["1", "3"]
    assert (item["choices"], item["score"], item["judge"]["judgements"]) == ([[1], [2], [2], [2]], 75, 2)


def test_no_choice_is_a_verdict_that_counts_as_unread(judge_server):
    judge_server.reply = lambda body, n: "none"
    assert (scored([None])["score"], scored([None])["unread"], len(judge_server.requests)) == (0, 1, 1)


def test_a_failed_judge_leaves_the_item_without_a_score_and_without_flags(judge_server):
    judge_server.reply = lambda body, n: "?"
    item = scored([[2], None])
    assert item["status"] == "unjudged" and "unreadable" in item["reason"]
    assert not {"score", "unread", "first"} & set(item) and item["choices"] == [[2], None]


def test_an_item_whose_card_names_no_judge_counts_as_it_is(judge_server):
    item = scored([None, [2], []], judge=False)
    assert (item["status"], item["unread"], item["choices"]) == ("scored", 2, [None, [2], []])
    assert item["score"] == pytest.approx(100 / 3) and judge_server.requests == []


def test_a_judge_that_has_gone_since_the_run_is_a_missing_verdict(judge_server, monkeypatch):
    card = {"judge": pool().describe()}
    monkeypatch.delenv("LMMS_EVAL_TASKS_JUDGE_MODEL")
    item = Item(id="a", task="mvpbench", card=card)
    judge_unread(item, [None], ["0"], NUMBERS.get, "number", lambda values: {"score": 0})
    settle([item])
    assert (item["status"], item["reason"]) == ("unjudged", "no judge is configured") and "score" not in item


def test_choices_of_another_shape_cost_their_item_alone(judge_server):
    item = scored([[2]], score=lambda values: {"score": values[9]})
    assert item["status"] == "unjudged" and "another shape" in item["reason"]
