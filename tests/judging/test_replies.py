"""A judge's replies: hostile ones by the table, and the laws that hold for all."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.judging.replies import read_checklist

_HERE = Path(__file__).parent
_SHARED = _HERE.parents[2] / "shared" / "cases" / "checklist_replies.jsonl"


def _cases(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


@pytest.mark.parametrize("case", _cases(_HERE / "cases" / "checklist_replies.jsonl"), ids=lambda case: case["kind"])
def test_reads_or_refuses(case):
    assert read_checklist(case["reply"], case["questions"]) == case["expected"]


@pytest.mark.parametrize("case", _cases(_SHARED))
def test_shared_cases(case):
    assert read_checklist(case["reply"], case["questions"]) == case["expected"]


def _lines(template):
    return lambda words: "\n".join(template.format(number, word) for number, word in enumerate(words, 1))


_FORMATS = {
    "object": lambda words: json.dumps({f"A{number}": word for number, word in enumerate(words, 1)}),
    "indented": lambda words: json.dumps({f"q{number}": word for number, word in enumerate(words, 1)}, indent=2),
    "booleans": lambda words: json.dumps({f"{number}": word == "Yes" for number, word in enumerate(words, 1)}),
    "reversed": lambda words: json.dumps({f"A{number}": words[number - 1] for number in range(len(words), 0, -1)}),
    "python": lambda words: repr({f"A{number}": word for number, word in enumerate(words, 1)}),
    "array": lambda words: json.dumps({"answers": words}),
    "records": lambda words: json.dumps([{"question": n, "answer": word} for n, word in enumerate(words, 1)]),
    "reasons": lambda words: json.dumps({f"A{n}": {"answer": w, "reason": "Yes, no"} for n, w in enumerate(words, 1)}),
    "lines": _lines("A{}: {}"),
    "numbers": _lines("{}. {}"),
    "bold": _lines("- **Q{}:** {} - as the model says"),
    "table": _lines("| {} | {} |"),
    "echoes": _lines("Q{0}: Does the model say no to it?\nA{0}: {1}"),
    "list": ", ".join,
}
_NOISE = st.sampled_from(["", "Here are my verdicts.", "```", "## Evaluation", "I checked each of them [see above]."])


@pytest.mark.parametrize("name", _FORMATS)
@given(data=st.data())
def test_what_is_written_is_read(name, data):
    verdicts = data.draw(st.lists(st.sampled_from(["yes", "no"]), min_size=1, max_size=12))
    before, after = data.draw(_NOISE), data.draw(_NOISE)
    body = _FORMATS[name]([verdict.title() for verdict in verdicts])
    assert read_checklist(f"{before}\n\n{body}\n\n{after}", len(verdicts)) == verdicts
    assert read_checklist(f"<think>A1: No\nA1: Yes</think>{body}", len(verdicts)) == verdicts
    assert read_checklist(body, len(verdicts) + 1) is None
    assert read_checklist(body, len(verdicts) - 1) is None


_PIECES = [
    *"{}[]()\"':,.-|?#*`_\\/\n\t \x00\ud800\u200b。\uff1a“”",
    "A1",
    "A2",
    "Q1",
    "1",
    "2",
    "0",
    "answer",
    "Answer:",
]
_PIECES += ["Yes", "No", "yes", "no", "true", "null", "是", "不是", "<think>", "</think>", "Maybe", "reason"]
_PIECES += ["//", "/*"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)), st.integers(0, 4))
def test_any_text_is_read_whole_or_not_at_all(reply, questions):
    verdicts = read_checklist(reply, questions)
    assert verdicts is None or (len(verdicts) == questions > 0 and set(verdicts) <= {"yes", "no"})


@given(st.lists(st.sampled_from(["Yes", "No"]), min_size=2, max_size=8), st.data())
def test_a_cut_off_object_is_not_read(words, data):
    body = _FORMATS[data.draw(st.sampled_from(["object", "indented", "array", "records", "python"]))](words)
    assert read_checklist(body[: data.draw(st.integers(0, len(body) - 1))], len(words)) is None


@pytest.mark.parametrize(
    "piece", ["[", '["', '{"A1":', "['a'b", "[/*,", "[\u201c", "A1: Yes\n", "1. ", "\n", "| ", "Yes, ", "Q1: a? "]
)
def test_a_long_reply_is_read_in_linear_time(piece):
    start = time.process_time()
    read_checklist(piece * (200_000 // len(piece)), 5)
    assert time.process_time() - start < 5  # a quadratic reader takes minutes
