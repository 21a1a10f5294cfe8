"""Prompt texts of MVPBench (paper, Tables VI-VIII and section VII).

The paper's typesetting has turned straight quotation marks into curly ones; here they are straight again.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import count

from lmms_eval_tasks.text import fill

PLACEHOLDER = "<video>"

_ACTION = """\
Please watch the two video clips provided, labeled as Video 1 and Video 2. Each clip contains similar content and \
tasks being performed. Your task is to compare these clips and evaluate which one demonstrates better task and action \
completion. After reviewing both videos, select the number corresponding to the video that performed the task more \
effectively. Your response should be either the number 1 or 2, without any additional commentary or explanation. Here \
are the video clips: {videos}"""

INFERENCE: Mapping[str, str] = {
    "caption_guided_splicing": """\
You are tasked with sorting video clips that correspond to steps in a recipe. Each video is numbered sequentially \
based on the order of input, such as 1, 2, 3, and so on. The videos are currently in a shuffled order, and your goal \
is to arrange them according to the correct sequence described in the recipe. The final output should be a sequence \
of numbers representing the correct order of the videos without any additional information. Here is the information \
provided: {videos} Recipe Description: {steps} Please determine and provide the correct sequence of video numbers.""",
    "caption_free_splicing": """\
You are tasked with sorting video clips based on their content or logical sequence. Each video is numbered \
sequentially based on the order of input, such as 1, 2, 3, and so on. The videos are currently in a shuffled order, \
and your goal is to determine the correct order of these video clips. The final output should be a sequence of \
numbers representing the correct order of the videos without any additional information. Here are the video clips: \
{videos} Please determine and provide the correct sequence of video numbers.""",
    "daily_action": _ACTION,
    "professional_action": _ACTION,
    "weather": """\
Please evaluate the three provided video clips, labeled as Video 1, Video 2, and Video 3. Each clip depicts the same \
type of weather, but with varying intensity levels: severe, moderate, and mild. Your task is to examine the weather \
conditions in each video to identify which one exhibits the most severe weather. After assessing the videos, provide \
a single digit corresponding to the video number that shows the most severe weather conditions. Your response should \
be concise, consisting solely of the digit without any additional commentary or explanation. Here are the video \
clips: {videos}""",
    "clarity": """\
Please evaluate the three provided video clips, labeled as Video 1, Video 2, and Video 3, focusing on their video \
quality, specifically in terms of clarity and smoothness. Your task is to rank these videos from highest to lowest \
quality based solely on these criteria. Indicate your ranking by listing only the corresponding numbers of each video \
in the order of quality, such as "3, 2, 1" if Video 3 is the highest quality, followed by Video 2, and then Video 1. \
Ensure your response includes only the ranking numbers without any additional explanation or commentary. Here are the \
video clips: {videos}""",
    "brightness": """\
Please analyze the brightness levels of the three provided video clips, labeled as Video 1, Video 2, and Video 3, \
each with distinct lighting and shooting conditions. Your task is to determine which video clip exhibits the lowest \
brightness and was filmed under the darkest conditions. After your assessment, provide your answer as a single digit \
representing the video number with the lowest brightness. Your response should be concise, consisting solely of the \
digit without any additional commentary or explanation. Here are the video clips: {videos}""",
    "forensic": """\
Please evaluate the three provided video clips, labeled as Video 1, Video 2, and Video 3. Each clip contains similar \
content, but two are AI-generated, and one is authentic. Your task is to compare these videos and determine which one \
is real. After reviewing all three, respond with the number of the video you believe is genuine. Your response should \
be a single digit, representing the video number, without any additional commentary or explanation. Here are the \
video clips: {videos}""",
    "multiview_pairing": """\
Please analyze the given reference video, Ref Video: <video> Compare it with the three candidate videos provided: \
{videos} The task is to identify the candidate video that corresponds to the reference video. The reference video is \
presented from a first-person perspective, while the correct candidate video is shown from a second-person \
perspective of the same scene. The other two candidate videos are considered distractors and do not match the \
reference video. Please examine each video closely and identify the candidate video that accurately matches the \
reference video. Provide your answer solely as a single digit that corresponds to the number of the correct candidate \
video, without any additional explanation or information.""",
    "common_sense_physics": """\
Please evaluate the three provided video clips, labeled as Video 1, Video 2, and Video 3. Among these clips, two \
contain elements that clearly violate natural physical laws, while one depicts a scenario consistent with typical \
physical principles. Your task is to identify the video that aligns with normal physical laws. After reviewing all \
three, respond with the number of the video indicating the number of the video that follows the laws of physics. Your \
response should be a single digit, representing the video number, without any additional commentary or explanation. \
Here are the video clips: {videos}""",
    "gait": """\
Please analyze the given reference video, Ref Video: <video> Compare it with the three candidate videos provided: \
{videos} The task is to identify which candidate video features the same individual as the reference video, based on \
their gait, which should be identical. The other two candidate videos are distractors, featuring different \
individuals with different gaits. Please examine each video closely and identify the candidate video that accurately \
matches the reference video. Provide your answer solely as a single digit that corresponds to the number of the \
correct candidate video, without any additional explanation or information.""",
    "cinematographic_style": """\
Please analyze the given reference video, Ref Video: <video> Compare it with the three candidate videos provided: \
{videos} Your task is to identify which candidate video shares the same filming style as the reference video, \
focusing specifically on camera movement and video processing techniques. Among the three candidate videos, only one \
will match the reference video in these aspects, while the other two will not. Please examine each video closely and \
identify the candidate video that accurately matches the reference video. Provide your answer solely as a single \
digit that corresponds to the number of the correct candidate video, without any additional explanation or \
information.""",
    "olympic_sports": """\
Please analyze the given reference video, Ref Video: <video> Compare it with the {number} candidate videos provided: \
{videos} Your task is to determine which of the candidate videos depicts the same sports activity as the reference \
video. Note that one candidate video matches the reference video while the others serves as a distractor. Please \
examine each video closely and identify the candidate video that accurately matches the reference video. Provide your \
answer solely as a single digit that corresponds to the number of the correct candidate video, without any additional \
explanation or information.""",
    "dance_style": """\
Please analyze the given reference video, Ref Video: <video> Compare it with the three candidate videos provided: \
{videos} Your task is to determine which of the candidate videos features the same dance type as the reference video. \
Note that one candidate video matches the reference video while the others serves as a distractor. Please examine \
each video closely and identify the candidate video that accurately matches the reference video. Provide your answer \
solely as a single digit that corresponds to the number of the correct candidate video, without any additional \
explanation or information.""",
}

EXTRACTION = """\
You are given a passage that contains descriptions and discussions about various videos, including video numbers. \
Your task is to extract the video number(s) that represent the correct answer based on the context of the entire \
passage. The passage may contain multiple video numbers used for descriptions, analyses, or as part of reasoning \
processes. Ignore any video numbers that are not the final answer. Provide only the video number(s) that directly \
answer the question or represent the correct choice, without any additional text or explanation.

Passage:

{fence}
{passage}
{fence}

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

CAPTION = """\
Please describe the video: what happens in it and in which order, how it is done and how well, where and under which \
conditions, and how it is filmed."""

SCORE = """\
Please watch the video and give it a score from 0 to 10, with decimals if you like: {quality} Provide the number \
alone, without any additional commentary or explanation."""

_PROGRESS = "0 if it shows the very beginning of what is being done, 10 if it shows the very end."
_ACTION_QUALITY = "0 if the action is carried out as badly as can be, 10 if it is perfect."

QUALITIES: Mapping[str, str] = {
    "caption_guided_splicing": _PROGRESS,
    "caption_free_splicing": _PROGRESS,
    "daily_action": _ACTION_QUALITY,
    "professional_action": _ACTION_QUALITY,
    "weather": "0 if the weather in it is as mild as can be, 10 if it is as severe as can be.",
    "clarity": "0 if its quality is the lowest, 10 if it is the highest, in terms of clarity and smoothness alone.",
    "brightness": "0 if it is as bright as can be, 10 if it was filmed under the darkest conditions.",
    "forensic": "0 if it certainly is AI-generated, 10 if it certainly is authentic.",
    "multiview_pairing": "0 if nobody does anything in it, 10 if a person's hands are busy all the time.",
    "common_sense_physics": "0 if it clearly violates the laws of physics, 10 if it is consistent with all of them.",
    "gait": "0 if the person walks in the stiffest and slowest way, 10 if in the loosest and fastest way.",
    "cinematographic_style": "0 if it is filmed with a camera at rest and not processed, 10 if camera movement and "
    "processing are as strong as can be.",
    "olympic_sports": "0 if the sport in it is one of strength or precision alone, 10 if it is one of speed alone.",
    "dance_style": "0 if the dance in it is as slow and formal as can be, 10 if it is as fast and free as can be.",
}
"""What a video alone is scored for, where its question is answered by comparing scores (paper, section IV-C)."""

# For how many candidates a prompt of the paper is worded; three where nothing is said here.
_CANDIDATES: Mapping[str, Collection[int]] = {
    "caption_free_splicing": range(2, 100),
    "daily_action": (2,),
    "professional_action": (2,),
    "olympic_sports": (2, 3),
}
_NUMBERS = {2: "two", 3: "three"}


def inference(subtask: str, candidates: int) -> str | None:
    """The paper's prompt, for data without a query.

    Args:
        subtask: Name of the subtask.
        candidates: Number of videos to choose from, or to put in order.

    Returns:
        The prompt with a placeholder for each video; None where the paper has none: for another number of candidates,
        or for captions, which only the query could hold.
    """
    template = INFERENCE[subtask]
    if "{steps}" in template or candidates not in _CANDIDATES.get(subtask, (3,)):
        return None
    videos = "".join(f"Video {number}: {PLACEHOLDER}" for number in range(1, candidates + 1))
    return fill(template, videos=videos, number=_NUMBERS.get(candidates, candidates))


def score(subtask: str, query: str) -> str:
    """The prompt that has one video scored for the quality that its question is about.

    Args:
        subtask: Name of the subtask.
        query: The question, whose recipe is told where it has one.
    """
    recipe = re.search(r"Recipe Description:\s*(.*?)\s*(?:Please determine|\Z)", query, re.DOTALL)
    told = f" What is being done is this recipe: {recipe[1]}" if recipe else ""
    return fill(SCORE, quality=QUALITIES[subtask] + told)


def with_captions(query: str, captions: Sequence[str]) -> str:
    """A query in which a description stands in the place of each video."""
    told = iter(captions)
    return re.sub(re.escape(PLACEHOLDER), lambda _: f'"{next(told)}" ', query)


def numbered(query: str) -> str:
    """A query for backends that take text and videos apart: its placeholders say which video stands there."""
    numbers, total = count(1), query.count(PLACEHOLDER)
    return re.sub(re.escape(PLACEHOLDER), lambda _: f"<video {next(numbers)} of {total}>", query)


def extraction(passage: str) -> str:
    """The judge's prompt for an answer in which the rules find no choice (paper, section VII).

    Args:
        passage: The model's answer, without its reasoning. It stands between lines of more quotation marks than it has
            in a row anywhere, so that it cannot end early.
    """
    longest = max(map(len, re.findall('"+', passage)), default=0)
    return fill(EXTRACTION, fence='"' * max(3, longest + 1), passage=passage)
