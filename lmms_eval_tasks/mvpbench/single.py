"""Questions about several videos, answered from one video at a time (paper, section IV-C, Table V): programs."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks.dialogue.program import Program, Turn
from lmms_eval_tasks.mvpbench import prompts
from lmms_eval_tasks.mvpbench.metrics import RANKINGS

HIGHEST = 10.0
# Splicing asks for the order from beginning to end; clarity from highest to lowest.
_ASCENDING = ("caption_guided_splicing", "caption_free_splicing")
_NUMBER = r"(?<![\w.-])(?<!\d[,:])(\d+(?:\.\d+)?)(?![\w:]|[.,-]\d)"
# What says of which scale a score is: `of 10`, `from 0 to 10`.
_SCALE = re.compile(r"\s{0,4}(?:/|(?:out )?of)\s{0,4}10(?:\.0)?\b|(?<![\d.])0\s{0,4}(?:to|and|[-–])\s{0,4}10\b")
_STATED = re.compile(
    rf"\b(?:score|rating|rate)\b[^\d\n]{{0,20}}?{_NUMBER}(?!\s{{0,4}}(?:to|and|or|–)\s{{0,4}}\d)"
    rf"|^[ \t]{{0,4}}{_NUMBER}\.?[ \t]{{0,4}}$",
    re.IGNORECASE | re.MULTILINE,
)
# Differences that are equal but for the rounding of floats are equal.
_PLACES = 6


def captions(doc: Mapping[str, Any]) -> Program:
    """Each video alone is described; the descriptions stand in the place of the videos in the question."""
    told = []
    for video in doc["videos"]:
        told.append((yield Turn(prompts.CAPTION, [video], once=True)))
    return (yield Turn(prompts.with_captions(doc["query"], told)))


def scores(doc: Mapping[str, Any]) -> Program:
    """Each video alone is given a score for the quality that the question is about; the scores are the answer."""
    given = []
    for video in doc["videos"]:
        given.append(read_score((yield Turn(prompts.score(doc["subtask"], doc["query"]), [video], once=True))))
    return choice(doc["subtask"], given, doc["reference"])


def read_score(reply: str) -> float | None:
    """The score from 0 to 10 that a reply gives; None where it gives none, or several."""
    text = _SCALE.sub("", reply.replace("*", ""))
    stated = [labelled or alone for labelled, alone in _STATED.findall(text)]
    values = {float(number) for number in stated or re.findall(_NUMBER, text)}
    return values.pop() if len(values) == 1 and max(values) <= HIGHEST else None


def choice(subtask: str, given: Sequence[float | None], reference: bool) -> str:
    """The answer that scores give.

    Args:
        subtask: Name of the subtask.
        given: The score of each video, None where it could not be read.
        reference: Whether the first video is the one that the others are compared with.

    Returns:
        The number of the highest score, or of the nearest to the reference's, or all numbers in the order of their
        scores; empty where a score is missing, or equal scores leave it open.
    """
    known = [value for value in given if value is not None]
    if len(known) < len(given):
        return ""
    values = [-round(abs(value - known[0]), _PLACES) for value in known[1:]] if reference else known
    order = sorted(range(len(values)), key=lambda place: values[place], reverse=subtask not in _ASCENDING)
    if subtask in RANKINGS:
        return ", ".join(str(place + 1) for place in order) if len(set(values)) == len(values) else ""
    return str(order[0] + 1) if values.count(values[order[0]]) == 1 else ""
