"""What judges write: read whole or not at all, never as a verdict that the reply does not hold."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.judging.replies import _SIGNS, _SPOKEN, read_checklist
from lmms_eval_tasks.judging.scores import HIGHEST, LOWEST, read_scores
from lmms_eval_tasks.mt_video_bench.checklist import faults, read_draft
from tests.fuzz import texts
from tests.fuzz.running import fuzz
from tests.fuzz.texts import AROUND, REASONING, SCORES, VERDICTS, around, plain

SCALES = {"accuracy": float, "relevance": int}
verdicts = texts.texts(VERDICTS)
scores = texts.texts(SCORES)


@fuzz
@given(verdicts, st.integers(0, 4))
def test_no_verdict_is_read_that_the_reply_does_not_hold(reply, questions):
    read = read_checklist(reply, questions)
    said = {verdict for word, verdict in {**_SPOKEN, **_SIGNS}.items() if plain(word) in plain(reply)}
    assert read is None or (len(read) == questions > 0 and set(read) <= said)


@fuzz
@given(verdicts, st.integers(1, 4), AROUND)
def test_verdicts_are_the_same_whatever_stands_around_them(reply, questions, frame):
    assert read_checklist(around(frame, reply), questions) == read_checklist(reply, questions)


@fuzz
@given(
    st.lists(st.sampled_from(["Yes", "No"]), min_size=1, max_size=6), st.sampled_from(["lines", "object"]), st.data()
)
def test_bold_and_invisible_characters_change_no_verdict(words, form, data):
    keyed = {f"A{number}": word for number, word in enumerate(words, 1)}
    lines = [f"{key}: {word}" for key, word in keyed.items()]
    hidden = data.draw(st.sampled_from(["", "\u200b", "\u200f", "\u2060", "\ufeff"]))
    reply = json.dumps(keyed) if form == "object" else f"{hidden}\n".join(lines)
    spaced = reply.replace(" ", f" {hidden}")
    assert read_checklist(f"**{spaced}**", len(words)) == [word.lower() for word in words]


@fuzz
@given(verdicts, st.lists(st.sampled_from(["Yes", "No"]), min_size=1, max_size=4))
def test_what_a_judge_only_thinks_is_no_verdict(thought, words):
    reply = json.dumps({f"A{number}": word for number, word in enumerate(words, 1)})
    thought = "".join(of for of in thought if of not in "<[◁`'\"|")
    assert read_checklist(f"<think>{thought}</think>{reply}", len(words)) == [word.lower() for word in words]


@fuzz
@given(st.one_of(scores, texts.texts(SCORES, REASONING)), AROUND)
def test_scores_are_held_by_the_reply_and_within_the_scale(reply, frame):
    read = read_scores(reply, SCALES)
    if read is not None:
        assert list(read) == list(SCALES) and all(LOWEST <= value <= HIGHEST for value in read.values())
        assert read["relevance"].is_integer() and all(f"{value:g}"[:1] in plain(reply) for value in read.values())
    assert read_scores(around(frame, reply), SCALES) == read


@fuzz
@given(verdicts, st.integers(1, 5))
def test_any_reply_is_a_draft_of_a_checklist_or_none(reply, number):
    draft = read_draft(reply)
    assert draft is None or all(isinstance(text, str) for text in draft.values())
    assert draft is None or all(fault.encode() for fault in faults(draft, number, reply))


READERS = {
    "read_checklist": lambda text: read_checklist(text, 5),
    "read_scores": lambda text: read_scores(text[:20_000], SCALES),
    "read_draft": read_draft,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("piece", [" ", "\n", '{"Q1": 1}'])
def test_200_kb_are_read_in_bounded_time(reader, piece):
    text = f"a{piece * (200_000 // len(piece))}b"
    start = time.process_time()
    READERS[reader](text)
    assert time.process_time() - start < 30  # a quadratic reader takes minutes
