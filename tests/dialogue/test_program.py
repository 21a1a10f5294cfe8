import json

import pytest

from lmms_eval_tasks.answers.failures import FAILED, NO_CONTENT, is_failure
from lmms_eval_tasks.dialogue.program import Running, Transcript, Turn


def two_turns():
    first = yield Turn("one?", ["a.mp4"])
    return (yield Turn(f"{first} two?"))


def scored():
    first = yield Turn("score?")
    return str(int(first) + 1)


def play(program, *replies):
    running = Running(program)
    for reply in replies:
        running.reply(reply)
    return running


def test_a_program_runs_to_its_answer():
    running = play(two_turns(), "uno")
    assert running.turn == Turn("uno two?")
    running.reply("due")
    assert running.turn is None
    assert running.transcript() == Transcript(
        [
            {"name": "", "prompt": "one?", "videos": ["a.mp4"], "reply": "uno"},
            {"name": "", "prompt": "uno two?", "videos": [], "reply": "due"},
        ],
        "due",
    )


def test_reasoning_is_kept_in_the_transcript_and_not_in_later_prompts():
    running = play(two_turns(), "<think>hm</think>uno")
    assert running.turn.text == "uno two?"
    running.reply("<think>cut off")
    said = running.transcript()
    assert said.turns[0]["reply"] == "<think>hm</think>uno"
    assert said.answer == "<think>cut off"


def test_an_answer_that_is_no_reply_is_taken_as_it_is():
    assert play(scored(), "<think>4</think>5").transcript().answer == "6"


@pytest.mark.parametrize("reply", [None, NO_CONTENT, "[LMMS_EVAL_REQUEST_FAILED after 5 retries] 500"])
def test_a_failed_request_ends_the_conversation(reply):
    running = play(two_turns(), reply)
    said = running.transcript()
    assert running.turn is None and len(said.turns) == 1
    assert is_failure(said.answer) and said.answer == (reply or NO_CONTENT)
    assert said.reply(1) == said.answer


@pytest.mark.parametrize(("reply", "text"), [("half \ud800", "half ?"), (7, "7"), ({"a": 1}, "{'a': 1}")])
def test_whatever_a_backend_returns_is_a_text_that_every_request_can_hold(reply, text):
    running = play(two_turns(), reply)
    assert running.turn.text == f"{text} two?" and running.turn.text.encode()
    running.reply(reply)
    assert running.transcript().answer == text


def test_a_program_that_fails_costs_its_own_conversation(logged):
    running = play(scored(), "no number")
    assert running.turn is None and running.transcript().answer.startswith(f"{FAILED} ValueError")
    assert any("no number" in line for line in logged)


@pytest.mark.parametrize("answer", ["plain", "", "{", '{"a": 1}', "\ud800\x00\u202e", "x" * 200_000])
def test_a_transcript_survives_its_journey(answer):
    said = Transcript([{"name": "", "prompt": answer, "videos": [], "reply": answer}], answer)
    text = said.dump()
    assert text.startswith("{") and json.loads(text) and Transcript.load(text) == said


@pytest.mark.parametrize(
    "text",
    [
        *("", "an answer", "{", "[]", "null", "3", "[" * 100_000, '{"answer": "A"}', '{"turns": 3, "answer": ""}'),
        *('{"turns": [], "answer": null}', '{"turns": "A", "answer": ""}', '{"turns": [{}], "answer": ""}'),
    ],
)
def test_what_is_no_transcript_is_a_failure(text):
    assert is_failure(Transcript.load(text).answer)


def test_a_failed_request_in_the_place_of_a_transcript_stays_what_it_is():
    assert Transcript.load(NO_CONTENT) == Transcript([], NO_CONTENT)


def test_a_turn_that_was_not_reached_has_no_reply():
    said = Transcript([{"name": "first", "prompt": "", "videos": [], "reply": "one"}], "one")
    assert said.reply(0) == said.reply("first") == "one"
    assert said.reply(1) == said.reply("second") == NO_CONTENT
