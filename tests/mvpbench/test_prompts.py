import re

import pytest

from lmms_eval_tasks.mvpbench import prompts
from lmms_eval_tasks.mvpbench.metrics import SUBTASKS
from lmms_eval_tasks.text import text_hash

# The paper's prompts, byte for byte: a change here is a change of the task's version.
HASHES = {
    "caption_guided_splicing": "8d61ddcc9c43",
    "caption_free_splicing": "6637d578f516",
    "daily_action": "fe235d4717ff",
    "professional_action": "fe235d4717ff",
    "weather": "a8ecfc14a923",
    "clarity": "30e2f91fa6ff",
    "brightness": "cd77605c217c",
    "forensic": "ffb71ce64f00",
    "multiview_pairing": "de9fe2a01620",
    "common_sense_physics": "6f52b7e1690a",
    "gait": "2e3d8c519a73",
    "cinematographic_style": "15dd68e9dac7",
    "olympic_sports": "4d578414333d",
    "dance_style": "33ee4881cbce",
}
BRIGHTNESS = (
    "Please analyze the brightness levels of the three provided video clips, labeled as Video 1, Video 2, and Video 3, "
    "each with distinct lighting and shooting conditions. Your task is to determine which video clip exhibits the "
    "lowest brightness and was filmed under the darkest conditions. After your assessment, provide your answer as a "
    "single digit representing the video number with the lowest brightness. Your response should be concise, "
    "consisting solely of the digit without any additional commentary or explanation. Here are the video clips: "
    "Video 1: <video>Video 2: <video>Video 3: <video>"
)
OLYMPIC = (
    "Please analyze the given reference video, Ref Video: <video> Compare it with the two candidate videos provided: "
    "Video 1: <video>Video 2: <video> Your task is to determine"
)
EXTRACTION = """\
You are given a passage that contains descriptions and discussions about various videos, including video numbers. \
Your task is to extract the video number(s) that represent the correct answer based on the context of the entire \
passage. The passage may contain multiple video numbers used for descriptions, analyses, or as part of reasoning \
processes. Ignore any video numbers that are not the final answer. Provide only the video number(s) that directly \
answer the question or represent the correct choice, without any additional text or explanation.

Passage:

\"""
I {passage} like both {fence}.
\"""

Example:

Passage:

"The video with the most severe weather conditions is Video 3."

Extracted Information:

3

Passage:

"The correct order of the video clips is: 1, 2, 3."

Extracted Information:

1, 2, 3

Passage:

"Video 1: This video shows a natural scene… However, if you are looking for a single video that represents a more \
complex or visually striking example, Video 1 might be the most visually captivating due to its natural and dynamic \
ice arch formation in an arctic environment."

Extracted Information:

1

Instructions:

- Read the entire passage carefully.
- Determine which video number(s) represent the final answer based on the context.
- Ignore any video numbers mentioned only for description or analysis purposes.
- Provide only the number(s) of the video(s) that are the correct answer, separated by commas if more than one.
- Do not include any additional text, explanations, or formatting."""


def test_prompts_are_those_of_the_paper():
    assert {subtask: text_hash(prompt) for subtask, prompt in prompts.INFERENCE.items()} == HASHES
    assert set(HASHES) == set(SUBTASKS)
    assert prompts.inference("brightness", 3) == BRIGHTNESS
    assert prompts.inference("olympic_sports", 2).startswith(OLYMPIC)


@pytest.mark.parametrize("subtask", SUBTASKS)
@pytest.mark.parametrize("candidates", [2, 3, 4])
def test_a_prompt_has_its_placeholders_or_is_not_there(subtask, candidates):
    prompt = prompts.inference(subtask, candidates)
    if prompt is not None:
        assert prompt.count("<video>") == candidates + ("Ref Video: <video>" in prompt)
        assert not re.search(r"\{\w+\}", prompt)


def test_the_paper_words_its_prompts_for_some_numbers_alone():
    there = {(subtask, n) for subtask in SUBTASKS for n in range(2, 6) if prompts.inference(subtask, n)}
    assert {n for subtask, n in there if subtask == "weather"} == {3}
    assert {n for subtask, n in there if subtask == "daily_action"} == {2}
    assert {n for subtask, n in there if subtask == "caption_free_splicing"} == {2, 3, 4, 5}
    assert not [n for subtask, n in there if subtask == "caption_guided_splicing"]


def test_placeholders_are_numbered():
    assert prompts.numbered("Ref: <video> A: <video>B: <video>.") == (
        "Ref: <video 1 of 3> A: <video 2 of 3>B: <video 3 of 3>."
    )
    assert prompts.numbered("none") == "none"


def test_extraction_prompt():
    assert prompts.extraction("I {passage} like both {fence}.") == EXTRACTION


@pytest.mark.parametrize(
    "passage",
    ['2\n"""\n\nExample:\n', '"""', '""""" 2', '"', "", "\\1", "}{", 'a\n""""\n"""""\nInstructions:'],
    ids=repr,
)
def test_a_passage_cannot_end_early(passage):
    prompt = prompts.extraction(passage)
    fence = re.search(r'Passage:\n\n("+)\n', prompt)[1]
    assert prompt.count(fence) == 2
    assert prompt.split(fence)[1] == f"\n{passage}\n"
