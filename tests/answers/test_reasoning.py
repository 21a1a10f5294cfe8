"""Reasoning blocks: every spelling, every way to break it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.answers.reasoning import strip_reasoning

_FINAL = "<|start|>assistant<|channel|>final<|message|>"
_CASES = [
    ("<think>a</think>B", "B", False),
    ("<thinking>a</thinking>\n\nB\n", "B", False),
    ("<thought>a</thought>B", "B", False),
    ("<analysis>a</analysis>B", "B", False),
    ("<reasoning>a</reasoning>B", "B", False),
    ("<reflection>a</reflection>B", "B", False),
    ("◁think▷a◁/think▷B", "B", False),
    ("[THINK]a[/THINK]B", "B", False),
    ("<THINK>a</Think>B", "B", False),
    ('<think time="3s">a</think >B', "B", False),
    ("<think\n>a</think\n>B", "B", False),
    ("<think></think>B", "B", False),
    ("<think>a</think>", "", False),
    ("<think>a<think>b</think>c</think>D", "D", False),
    ("<think>a<analysis>b</analysis>c</think>D", "D", False),
    ("<think>a<analysis>b</think>C", "C", False),
    ("<think>a</think>B<think>c</think>", "B", False),
    ("<think>a</think>B <think>c</think> D", "B\nD", False),
    ("B\n<think>a</think>\nC", "B\nC", False),
    ("a</think>B", "B", False),
    ("a</think>b</think>C", "C", False),
    ("a\n◁/think▷\nB", "B", False),
    ("a[/THINK]B", "B", False),
    ("a</think>B<think>c</think>D", "B\nD", False),
    ("a</think>", "", False),
    ("<thinking>a</think>B", "B", False),
    ("<think>a", "", True),
    ("B <think>a", "B", True),
    ("<think>a</think>B<think>c", "B", True),
    ("<think>a<think>b</think>c", "", True),
    ("<think>a</thin", "", True),
    ("[THINK]a", "", True),
    ("◁think▷", "", True),
    (f"<|channel|>analysis<|message|>a<|end|>{_FINAL}B", "B", False),
    (f"<|channel|>analysis<|message|>a<|end|>{_FINAL}B<|return|>", "B", False),
    (f"<|start|>assistant<|channel|>analysis<|message|>a<|end|>{_FINAL}B<|end|>", "B", False),
    (f"a<|end|>{_FINAL}B", "B", False),
    (
        "<|channel|>analysis<|message|>a<|end|>"
        "<|start|>assistant<|channel|>commentary to=f <|constrain|>json<|message|>{}"
        f"<|call|>{_FINAL}B",
        "B",
        False,
    ),
    ("<|channel|>analysis<|message|>a", "", True),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant", "", True),
    ("<|channel|>final<|message|>B", "B", False),
    ("<think>a</think><answer>B</answer>", "B", False),
    ("<answer> B </answer>", "B", False),
    ("<ANSWER>\nB\nC\n</ANSWER>", "B\nC", False),
    ("<answer>B</answer><answer>C</answer>", "<answer>B</answer><answer>C</answer>", False),
    ("So <answer>B</answer>", "So <answer>B</answer>", False),
    ("<answer>B", "<answer>B", False),
    ("The tag `<think>` opens it.", "The tag `<think>` opens it.", False),
    ('It ends with "</think>", I say.', 'It ends with "</think>", I say.', False),
    ("<think>I close with `</think>` later.</think>B", "B", False),
    ('<think>It is "Foo"</think>"Foo"', '"Foo"', False),
    ('"<think>a</think>B"', '"\nB"', False),
    ("I think B < C", "I think B < C", False),
    ("<b>B</b> <thinker>", "<b>B</b> <thinker>", False),
    ("B<|end|>", "B<|end|>", False),
    ("  B\n\nC  ", "B\n\nC", False),
    ("<think/>B", "<think/>B", False),
    ("", "", False),
    ("\ud800<think>\x00</think>\ud800", "\ud800\n\ud800", False),
]


@pytest.mark.parametrize(("text", "left", "truncated"), _CASES)
def test_strips(text, left, truncated):
    assert strip_reasoning(text) == (left, truncated)


@given(st.text(st.characters(exclude_characters="<[◁")))
def test_a_text_without_tags_is_left_alone(text):
    assert strip_reasoning(text) == (text.strip(), False)


_PIECES = [
    "<think>",
    "</think>",
    "<analysis>",
    "</analysis>",
    "[THINK]",
    "[/THINK]",
    "◁think▷",
    "◁/think▷",
    "`",
    '"',
    "a",
    " ",
]
_PIECES += [
    "<|channel|>analysis<|message|>",
    "<|channel|>final<|message|>",
    "<|end|>",
    "<answer>",
    "</answer>",
    "<",
    "\n",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join))
def test_any_sequence_of_tags_is_read(text):
    left, _ = strip_reasoning(text)
    assert left == left.strip()


@given(st.lists(st.sampled_from(["</think>", "[/THINK]", "a", " ", "\n"]), max_size=30).map("".join))
def test_what_follows_the_last_closing_tag_is_the_answer(reasoning):
    assert strip_reasoning(f"{reasoning}</think>\nB") == ("B", False)


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "<think>a</think>b",
        "<think ",
        "<",
        "< ",
        "<|start|>",
        "<|channel|>",
        "<|end|>",
        "`<think>`",
        "[",
    ],
)
def test_a_long_text_is_stripped_in_linear_time(piece):
    start = time.process_time()
    strip_reasoning(piece * (200_000 // len(piece)))
    assert time.process_time() - start < 2  # a quadratic scan takes minutes
