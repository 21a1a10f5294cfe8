"""A judge's replies with scores: hostile ones by the table, and the laws that hold for all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.judging.scores import HIGHEST, LOWEST, read_scores

CAPTION = {"accuracy": float, "relevance": int}
SUMMARY = {"completeness": int, "reliability": int}
RIGHT = '{"accuracy": 3.5, "relevance": 4}'
READ = {"accuracy": 3.5, "relevance": 4}

READABLE = {
    "the object alone": RIGHT,
    "reasons full of numbers": f"Point 1 gets 5, point 2 gets 2. 5 + 2 = 7, 7 / 2 = 3.5; relevance: 1? No, 4.\n{RIGHT}",
    "a fence": f"Reasons.\n```json\n{RIGHT}\n```\n",
    "a polite end": f"{RIGHT}\n\nLet me know if you need more detail.",
    "an object in the reasons": f'The form is {{"a": 1}}, so:\n{RIGHT}',
    "a form that is no JSON": f'I fill in {{"accuracy": <number>, "relevance": <whole number>}}:\n{RIGHT}',
    "an unclosed brace before": f"Set {{1, 2, 3.\n{RIGHT}",
    "braces in a text": '{"rationale": "uses {x} and {\\"accuracy\\": 1}", "accuracy": 3.5, "relevance": 4}',
    "line breaks in a text": '{"rationale": "Point 1: 5\nPoint 2: 2", "accuracy": 3.5, "relevance": 4}',
    "more fields": '{"points": [5, 2], "relevance": 4, "reason": null, "accuracy": 3.5}',
    "the same object twice": f"{RIGHT}\n\nFinal:\n{RIGHT}",
    "two objects": '{"accuracy": 3.5}\n{"relevance": 4}',
    "nested": '{"scores": {"accuracy": 3.5, "relevance": 4}}',
    "a list": f"[{RIGHT}]",
    "texts": '{"accuracy": "3.5", "relevance": " 4 "}',
    "texts of five": '{"accuracy": "3.5/5", "relevance": "4 / 5"}',
    "a whole number with a point": '{"accuracy": 3.5, "relevance": 4.0}',
    "another case": '{"Accuracy": 3.5, "RELEVANCE": 4}',
    "names with the word score": '{"accuracy_score": 3.5, "score_relevance": 4}',
    "a comma too many": '{"accuracy": 3.5, "relevance": 4,\n}',
    "reasoning with other scores": f'<think>{{"accuracy": 1, "relevance": 1}}</think>{RIGHT}',
    "reasoning without its start": f'maybe {{"accuracy": 1, "relevance": 1}}</think>{RIGHT}',
    "an answer tag": f"<answer>{RIGHT}</answer>",
}

REFUSED = {
    "nothing": "",
    "no JSON": "Accuracy: 3.5\nRelevance: 4",
    "a missing score": '{"accuracy": 3.5}',
    "an empty object": "{}",
    "above the scale": '{"accuracy": 5.5, "relevance": 4}',
    "below the scale": '{"accuracy": 3.5, "relevance": 0}',
    "negative": '{"accuracy": -3.5, "relevance": 4}',
    "of ten": '{"accuracy": 7, "relevance": 8}',
    "a text of ten": '{"accuracy": "3.5/10", "relevance": "4/10"}',
    "half a relevance": '{"accuracy": 3.5, "relevance": 3.5}',
    "half a relevance as text": '{"accuracy": 3.5, "relevance": "3.5"}',
    "a boolean": '{"accuracy": true, "relevance": true}',
    "nothing as a score": '{"accuracy": null, "relevance": 4}',
    "not a number": '{"accuracy": NaN, "relevance": 4}',
    "infinite": '{"accuracy": Infinity, "relevance": 4}',
    "a huge number": '{"accuracy": 1' + "0" * 400 + ', "relevance": 4}',
    "a number of too many digits": '{"accuracy": 1' + "0" * 5000 + ', "relevance": 4}',
    "a word": '{"accuracy": "high", "relevance": 4}',
    "a range": '{"accuracy": "3-4", "relevance": 4}',
    "a comma in a number": '{"accuracy": "3,5", "relevance": 4}',
    "a list as a score": '{"accuracy": [5, 2], "relevance": 4}',
    "an object as a score": '{"accuracy": {"value": 3.5}, "relevance": 4}',
    "the form": '{"accuracy": <number>, "relevance": <whole number>}',
    "a contradiction": f'{{"accuracy": 2, "relevance": 4}}\n{RIGHT}',
    "a contradiction in one object": '{"accuracy": 2, "accuracy": 3.5, "relevance": 4}',
    "a contradiction of names": '{"accuracy": 2, "accuracy_score": 3.5, "relevance": 4}',
    "a contradiction inside": '{"draft": {"accuracy": 2}, "accuracy": 3.5, "relevance": 4}',
    "scores for each point": '{"accuracy": 5}\n{"accuracy": 2}\n' + RIGHT,
    "taken back in words": f"{RIGHT}\nActually, the relevance should be lower.",
    "taken back in numbers": f"{RIGHT}\nI mean 3.",
    "cut off": '{"accuracy": 3.5, "relevance": 4',
    "cut off in a second object": f'{RIGHT}\nOnce more:\n{{"accuracy": 2, "rel',
    "cut off in reasoning": f"<think>Could be {RIGHT}",
    "single quotes": "{'accuracy': 3.5, 'relevance': 4}",
    "other names": '{"completeness": 3, "reliability": 4}',
    "endless": "x" * 30_000 + RIGHT,
    "braces without end": "{" * 10_000,
    "deep nesting": '{"a":' * 4_000,
    "a lone surrogate": "\ud800{",
}


@pytest.mark.parametrize("name", READABLE)
def test_reads(name):
    assert read_scores(READABLE[name], CAPTION) == READ


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    assert read_scores(REFUSED[name], CAPTION) is None


@pytest.mark.parametrize("scores", [(1, 1), (5, 5), (2, 4)])
def test_whole_scores(scores):
    reply = json.dumps(dict(zip(SUMMARY, scores, strict=True)))
    assert read_scores(reply, SUMMARY) == dict(zip(SUMMARY, scores, strict=True))
    assert read_scores(reply.replace(str(scores[0]), "2.5"), SUMMARY) is None


@given(st.text(alphabet="abc 123.:\n", max_size=80), st.floats(1, 5), st.integers(1, 5), st.booleans())
def test_what_is_written_is_read(reasons, accuracy, relevance, fenced):
    body = json.dumps({"accuracy": accuracy, "relevance": relevance})
    reply = f"{reasons}\n" + (f"```json\n{body}\n```" if fenced else body)
    assert read_scores(reply, CAPTION) == {"accuracy": accuracy, "relevance": relevance}


_PIECES = [*"{}[]\",:.'\n 0123456", "accuracy", "relevance", '"accuracy"', '"relevance": 4', "true", "NaN", "1e999"]
_PIECES += ["<think>", "</think>", "\\", "5/5", RIGHT]


@given(st.one_of(st.text(), st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)))
def test_any_text_is_read_whole_or_not_at_all(reply):
    scores = read_scores(reply, CAPTION)
    assert scores is None or (
        list(scores) == list(CAPTION)
        and all(LOWEST <= score <= HIGHEST for score in scores.values())
        and scores["relevance"] == int(scores["relevance"])
    )


@given(st.integers(0, len(RIGHT) - 1))
def test_a_cut_off_object_is_not_read(length):
    assert read_scores(RIGHT[:length], CAPTION) is None
