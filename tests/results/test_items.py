import copy
import json
import pickle
import threading

import pytest

from lmms_eval_tasks.answers.failures import NO_CONTENT
from lmms_eval_tasks.judging.items import judge, settle
from lmms_eval_tasks.judging.pool import pool
from lmms_eval_tasks.results import items
from lmms_eval_tasks.results.items import Item
from utils.openai_server import Fault

pytestmark = pytest.mark.usefixtures("quick_retries")


def submit(prompts=("p",), repeats=1, score=lambda values: 50.0):
    item = Item(id="a/1", task="mt_video_bench", answers=["x"] * len(prompts), status=items.UNJUDGED)
    judge(item, prompts, lambda text: [text] if text.startswith("Y") else None, score, repeats)
    return item


# ------------------------------------------------------------------------------------------------------------ settling

COPIES = {
    "pickle": lambda item: pickle.loads(pickle.dumps(item)),
    "pickle in a list": lambda item: pickle.loads(pickle.dumps([item]))[0],
    "old pickle": lambda item: pickle.loads(pickle.dumps(item, 0)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_waits_and_is_complete(judge_server, name):
    judge_server.reply, judge_server.latency = lambda *_: "Y", 0.1
    item = submit()
    part = item.project("id", "score", "absent")
    assert "score" not in item and part == {}
    copied = COPIES[name](part)
    assert type(copied) is Item and copied == {"id": "a/1", "score": 50.0}
    whole = COPIES[name](item)
    assert whole["status"] == "scored" and whole["score"] == 50.0 and whole["verdicts"] == [[["Y"]]]
    assert whole.settle() == item.settle() == whole


def test_settling_twice_asks_and_scores_once(judge_server):
    judge_server.reply = lambda *_: "Y"
    calls = []
    item = submit(score=lambda values: calls.append(values) or 1.0)
    settle([item, item.project("score"), item])
    item.settle()
    assert len(calls) == len(judge_server.requests) == 1


def test_an_interrupted_settling_can_be_repeated(judge_server):
    item, first = submit(), []
    finish = item.finish

    def interrupted():
        if not first:
            first.append(1)
            raise KeyboardInterrupt
        return finish()

    judge_server.reply = lambda *_: "Y"
    item.finish = interrupted
    with pytest.raises(KeyboardInterrupt):
        item.settle()
    assert item.settle()["status"] == "scored"


def test_values_come_per_answer_and_repeat_whatever_the_order(judge_server):
    numbers = {"p": iter(range(3)), "q": iter(range(3, 6))}
    lock = threading.Lock()

    def reply(body, n):
        with lock:
            return f"Y{next(numbers[body['messages'][0]['content']])}"

    judge_server.reply = reply
    item = submit(["p", "q"], repeats=3, score=lambda values: float(sum(map(len, values)))).settle()
    assert [sorted(value[0] for value in of) for of in item["verdicts"]] == [["Y0", "Y1", "Y2"], ["Y3", "Y4", "Y5"]]
    assert item["score"] == 6.0


def test_an_item_is_scored_only_when_every_repeat_is(judge_server):
    bad = Fault("status", status=400, message="no", code="content_filter")
    judge_server.reply = lambda body, n: bad if n == 1 else "Y" * 40
    item = submit(["p" * 400], repeats=3, score=lambda _: pytest.fail("scored")).settle()
    assert item["status"] == "unjudged" and "score" not in item
    assert item["reason"].startswith("Refused: HTTP 400")
    assert item["judge"] == {"models": ["test-judge"], "judgements": 2, "input_tokens": 200, "output_tokens": 20}


def test_different_reasons_are_all_named(judge_server):
    fault = Fault("status", status=400, message="no", code="content_filter")
    judge_server.reply = lambda body, n: fault if "p" in body["messages"][0]["content"] else "n"
    assert submit(["p", "q"]).settle()["reason"].split("; ")[1] == "unreadable after 4 replies"


def test_verdicts_of_another_shape_cost_the_item_alone(judge_server):
    judge_server.reply = lambda *_: "Y"

    def score(values):
        raise TypeError("int is not a list")

    item = submit(score=score).settle()
    assert (item["status"], "score" in item) == ("unjudged", False)
    assert "another shape (int is not a list)" in item["reason"]


def test_usage_counts_what_verdicts_on_disk_had_cost(judge_server):
    judge_server.reply = lambda *_: "Y" * 40
    first = submit(["p" * 400]).settle()["judge"]
    assert first == submit(["p" * 400]).settle()["judge"]
    assert first == {"models": ["test-judge"], "judgements": 1, "input_tokens": 100, "output_tokens": 10}


def test_an_item_of_no_answers_is_judged_at_once(judge_server):
    assert submit([], score=lambda values: 0.0).settle()["status"] == "scored"
    assert pool().judge is not None and judge_server.requests == []


# ----------------------------------------------------------------------------------------------------- answers, counts


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["It is red."], ["It is red."]),
        (["<think>a</think>b", "c"], ["b", "c"]),
        ([""], [""]),
        (["Sorry, [ERROR] is what I see"], ["Sorry, [ERROR] is what I see"]),
        (["a", NO_CONTENT], None),
        (["[LMMS_EVAL_REQUEST_FAILED after 3] x"], None),
        (["  [LMMS_EVAL_BUDGET_EXCEEDED]"], None),
        (["[ERROR] no connection " + "x" * 500], None),
    ],
)
def test_answers_are_read_or_missing(answers, expected):
    item = Item(answers=answers, status=items.UNJUDGED)
    assert items.answers_read(item) == expected
    assert item["status"] == (items.UNJUDGED if expected else items.NO_ANSWER)
    if expected is None:
        assert item["reason"] and len(item["reason"]) <= 200


def test_cut_reasoning_is_counted():
    item = Item(answers=["<think>a", "b", "c<think>"], status=items.UNJUDGED)
    assert items.answers_read(item) == ["", "b", "c"]
    assert item["truncated"] == 2


def doc(name, status=None):
    return {"id": name} | ({"status": status, "reason": f"{name} is bad"} if status else {})


@pytest.mark.parametrize(
    ("docs", "asked"),
    [
        ("a b c", {"a": "", "b": "", "c": ""}),
        ("a -b c", {"a": "b", "c": ""}),
        ("-a -b c -d -e f", {"c": "abde", "f": ""}),
        ("a -b -c", {"a": "bc"}),
    ],
)
def test_what_is_not_asked_stands_beside_what_is(docs, asked):
    marked = [doc(name[-1], "excluded" if name[0] == "-" else None) for name in docs.split()]
    found = items.with_neighbours(marked)
    assert {of["id"]: "".join(skipped["id"] for skipped in of["skipped"]) for of in found} == asked


def test_counts_and_coverage_know_the_skipped():
    of = [
        {"status": "scored", "score": 1.0, "truncated": 2, "skipped": [doc("x", "excluded"), doc("y", "no_answer")]},
        {"status": "unjudged", "reason": "busy", "skipped": None},
        {"status": "no_answer", "reason": "gone", "unread": 1},
        {"status": "scored", "score": 0.0},
    ]
    assert items.counts(of) == {
        "scored": 2,
        "unjudged": 1,
        "no_answer": 2,
        "excluded": 1,
        "unread": 1,
        "truncated": 2,
    }
    assert items.coverage(of) == 40.0
    lines = items.remarks(of)
    assert "1 of 6 unjudged: busy" in lines and "1 of 6 excluded: x is bad" in lines
    assert "2 answers truncated, which count as they are" in lines


def test_means_and_coverage_of_nothing_are_no_numbers():
    assert str(items.mean([])) == str(items.coverage([])) == "nan"
    assert str(items.coverage([doc("a", "excluded")])) == "nan"
    assert items.mean([0.1] * 10) == 0.1


def test_a_settled_item_is_json(judge_server):
    judge_server.reply = lambda *_: "Y"
    item = submit().settle()
    assert json.loads(json.dumps(item)) == item
