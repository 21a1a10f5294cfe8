"""What models write: read without an error, never as more than it says, and the same whatever stands around it."""

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.answers.choices import read_choice
from lmms_eval_tasks.answers.failures import EveryAnswer, is_failure
from lmms_eval_tasks.answers.numbers import read_number, read_ranking
from lmms_eval_tasks.answers.phrases import CJK_NUMBERS, NUMBERS, ORDINALS
from lmms_eval_tasks.answers.reasoning import strip_reasoning
from lmms_eval_tasks.dialogue.program import Running, Transcript, Turn
from lmms_eval_tasks.mvpbench.single import HIGHEST, read_score
from lmms_eval_tasks.mvpbench.task import read_reply
from tests.fuzz import texts
from tests.fuzz.running import fuzz
from tests.fuzz.texts import AROUND, LETTERS, RATINGS, REASONING, SAID, around, plain

OPTIONS = [
    ("Yellow", "Red", "Green", "Blue"),
    ("",) * 6,
    ("red", "red", "Blue", ""),
    ("2", "3", "10", "0"),
    ("A", "B", "C", "D"),
    ("B", "A", "a dog", "A dog"),
    ("(1)->(2)->(3)", "(3)->(2)->(1)", "(2)->(1)->(3)"),
    ("none of the above", "all of the above", "A and B", "not B"),
    ("c++", "a|b", "(", ".*", "[A-Z]+", "{answer}", "%s", "\\"),
    ("it is red", "it is not red"),
    ("\u202eder", "\x00", "\ud800", " ", "\u200b"),
    (),
]
answers = texts.texts(LETTERS, SAID, [option for of in OPTIONS for option in of])
numbered = texts.texts(texts.NUMBERS, SAID)


@fuzz
@given(answers, st.sampled_from(OPTIONS))
def test_no_letter_is_read_that_the_answer_does_not_hold(answer, options):
    letter = read_choice(answer, options)
    if letter is not None:
        place = ord(letter) - ord("A")
        text = re.sub(r"\\[a-z]+", " ", plain(answer))
        bare = re.sub(r"\W", "", plain(options[place]))
        assert letter.lower() in text or bare in re.sub(r"\W", "", text) or NUMBERS.get(text.strip(" .")) is not None
        assert place < len(options)


@fuzz
@given(answers, st.sampled_from(OPTIONS), AROUND)
def test_a_choice_is_the_same_whatever_stands_around_it(answer, options, frame):
    letter = read_choice(answer, options)
    assert read_choice(around(frame, answer), options) == letter
    assert read_choice(f"**{answer}**", options) == letter


@fuzz
@given(st.lists(st.sampled_from([*LETTERS, *SAID, "Yellow", "Red"]), min_size=1, max_size=12), st.data())
def test_invisible_characters_between_words_change_no_choice(words, data):
    hidden = data.draw(st.lists(st.sampled_from("\u200b\u200f\u2060\ufeff"), min_size=len(words), max_size=len(words)))
    noisy = "".join(word + noise for word, noise in zip(words, hidden, strict=True))
    assert read_choice(noisy, OPTIONS[0]) == read_choice("".join(words), OPTIONS[0])


def _held(value: int, text: str) -> bool:
    text = re.sub(r"[*`\"]", "", text)  # markup and quotes, which stand in words and numbers too: `**1**0`
    words = [word for table in (NUMBERS, ORDINALS, CJK_NUMBERS) for word, number in table.items() if number == value]
    written = [str(value) in text, *(word in text for word in words)]
    return any(written) or any(int(digits) == value for digits in re.findall(r"\d{1,400}", text))


@fuzz
@given(numbered, st.integers(0, 5))
def test_no_number_is_read_that_the_answer_does_not_hold(answer, candidates):
    text = plain(answer)
    number, order = read_number(answer, candidates), read_ranking(answer, candidates)
    assert number is None or _held(number, text)
    assert order is None or (len(set(order)) == len(order) == candidates and all(_held(of, text) for of in order))


@fuzz
@given(numbered, st.integers(1, 5), AROUND)
def test_numbers_are_the_same_whatever_stands_around_them(answer, candidates, frame):
    for reader in (read_number, read_ranking):
        assert reader(around(frame, answer), candidates) == reader(answer, candidates)
        assert reader(f"**{answer}**", candidates) == reader(answer, candidates)


reasoned = texts.texts(REASONING, LETTERS, SAID)


@fuzz
@given(reasoned, AROUND)
def test_stripping_invents_nothing(answer, frame):
    left, truncated = strip_reasoning(answer)
    letters = iter(answer)
    assert left == left.strip() and all(letter in letters for letter in left if not letter.isspace())
    assert strip_reasoning(f"\n{answer} \n") == (left, truncated)


TAGS = [("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"), ("", "</think>")]
thoughts = texts.texts(LETTERS, SAID).filter(lambda text: not re.search(r"[<\[◁`'\"]", text))


@fuzz
@given(st.sampled_from(TAGS), thoughts, st.sampled_from("ABCD"))
def test_nothing_of_a_closed_reasoning_is_left(tags, thought, letter):
    assert strip_reasoning(f"{tags[0]}{thought}{tags[1]}{letter}") == (letter, False)


rated = texts.texts(RATINGS, SAID)


@fuzz
@given(rated, AROUND)
def test_a_score_of_one_video_is_held_by_its_reply_and_within_the_scale(reply, frame):
    score = read_score(reply)
    assert score is None or (0 <= score <= HIGHEST and any(float(of) == score for of in _decimals(reply)))
    assert read_score(around(frame, reply)) == score and read_score(f"**{reply}**") == score


def _decimals(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text.replace("*", ""))


@fuzz
@given(numbered, st.sampled_from(["gait", "clarity"]), st.integers(2, 5), st.sampled_from(["{} ", "\n{}\n"]))
def test_a_judge_that_extracts_invents_no_choice(reply, subtask, candidates, frame):
    choice = read_reply(reply, subtask, candidates)
    assert choice is None or len(choice) in (0, candidates if subtask == "clarity" else 1)
    assert all(_held(number, plain(strip_reasoning(reply).text)) for number in choice or ())
    assert read_reply(around(frame, reply), subtask, candidates) == choice


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([*LETTERS, "[LMMS_EVAL_REQUEST_FAILED]"]),
    lambda of: st.lists(of, max_size=3) | st.dictionaries(st.sampled_from(["turns", "answer", "reply", "name"]), of),
    max_leaves=8,
)


_nearly = st.tuples(_json, _json).map(lambda of: json.dumps({"answer": of[0], "turns": of[1]}))


@fuzz
@given(st.one_of(reasoned, _json.map(json.dumps), _nearly, st.integers(1, 20_000).map(lambda depth: "[" * depth)))
def test_any_text_is_a_transcript_or_a_failure(text):
    found = Transcript.load(text)
    assert isinstance(found.answer, str) and all(isinstance(turn, dict) for turn in found.turns)
    assert found.turns or is_failure(found.answer) or '"turns"' in text
    assert isinstance(found.reply(0), str) and isinstance(found.reply("caption"), str)


@fuzz
@given(st.lists(st.one_of(reasoned, st.none()), min_size=1, max_size=4), st.booleans())
def test_a_transcript_is_read_as_it_was_written(replies, asks_more):
    def program():
        said = yield Turn("{answer} %s", ["v"])
        return (yield Turn(said)) if asks_more else said

    running = Running(program())
    for reply in replies:
        if running.turn is not None:
            [[text]] = EveryAnswer().apply([[reply]], None)
            running.reply(text)
    assert Transcript.load(running.transcript().dump()) == running.transcript()


READERS = {
    "strip_reasoning": strip_reasoning,
    "read_choice": lambda text: read_choice(text, OPTIONS[0]),
    "read_number": lambda text: read_number(text, 4),
    "read_ranking": lambda text: read_ranking(text, 4),
    "read_score": read_score,
    "read_reply": lambda text: read_reply(text, "gait", 4),
    "read_reply of an order": lambda text: read_reply(text, "clarity", 4),
    "Transcript.load": Transcript.load,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("piece", [" ", "\n", "out of 10 "])
def test_200_kb_are_read_in_bounded_time(reader, piece):
    text = f"a{piece * (200_000 // len(piece))}b"
    start = time.process_time()
    READERS[reader](text)
    assert time.process_time() - start < 30  # a quadratic reader takes minutes
