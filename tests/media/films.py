"""Small videos whose frames carry their own number as a picture, and reading the numbers back."""

import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import av
import cv2
import decord
import numpy as np

SIDE = 4
BITS = SIDE * SIDE - 2
SIZE = (96, 64)


def picture(number: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    """Black and white cells in grey: white, the number's bits, black; upside down it cannot be read."""
    bits = [1, *(number >> k & 1 for k in range(BITS)), 0]
    cells = np.array(bits, np.uint8).reshape(SIDE, SIDE) * 200 + 28
    rows = np.arange(size[1]) * SIDE // size[1]
    columns = np.arange(size[0]) * SIDE // size[0]
    return np.repeat(cells[np.ix_(rows, columns)][..., None], 3, axis=2)


def number(image: np.ndarray) -> int:
    """Reads a picture's number; -1 when it shows none."""
    height, width = image.shape[:2]
    centres = [(2 * k + 1) / (2 * SIDE) for k in range(SIDE)]
    cells = [int(image[int(y * height), int(x * width)].mean() > 128) for y in centres for x in centres]
    return sum(bit << k for k, bit in enumerate(cells[1:-1])) if cells[0] and not cells[-1] else -1


def write(
    path: Path,
    frames: int,
    *,
    codec: str = "libx264",
    pixels: str = "yuv420p",
    size: tuple[int, int] = SIZE,
    fps: Fraction | int = 25,
    seconds: Sequence[float] | None = None,
    options: dict[str, str] | None = None,
    turns: int = 0,
    container: str | None = None,
) -> Path:
    """Writes a video of numbered frames, at a rate or at given seconds, turned by quarters clockwise on top of that."""
    options = options if options is not None else {"preset": "ultrafast", "g": "50"} if codec == "libx264" else {}
    with av.open(str(path), "w", format=container) as out:
        stream = out.add_stream(codec, rate=fps, options=options)
        (stream.width, stream.height), stream.pix_fmt = size, pixels
        if seconds is not None:
            stream.codec_context.time_base = stream.time_base = Fraction(1, 10_000)
        for k in range(frames):
            image = np.ascontiguousarray(np.rot90(picture(k, size if turns % 2 == 0 else size[::-1]), -turns))
            frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format=pixels)
            frame.pts = k if seconds is None else round(seconds[k] * 10_000)
            frame.time_base = 1 / Fraction(fps) if seconds is None else Fraction(1, 10_000)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def rotated(path: Path, degrees: int) -> Path:
    """Makes an mp4 say that it is to be turned clockwise when shown, as phones do."""
    matrices = {90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}
    a, b, c, d = (value << 16 for value in matrices[degrees])
    data = bytearray(path.read_bytes())
    place = data.index(b"tkhd") + 4 + 40  # version 0: the matrix follows 40 bytes of fields
    data[place : place + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    return path


def by_pyav(path: Path) -> tuple[list[int], list[float], float]:
    """(numbers, seconds, average rate) of a video, seen through PyAV."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        shown = [(number(frame.to_ndarray(format="rgb24")), frame.time) for frame in container.decode(stream)]
        return [n for n, _ in shown], [second for _, second in shown], float(stream.average_rate)


def by_decord(path: Path) -> tuple[list[int], list[float], float]:
    """The same through decord."""
    video = decord.VideoReader(str(path))
    images = video.get_batch(list(range(len(video)))).asnumpy()
    seconds = [start for start, _ in video.get_frame_timestamp(range(len(video)))]
    return [number(image) for image in images], seconds, video.get_avg_fps()


def by_opencv(path: Path) -> tuple[list[int], list[float], float]:
    """The same through OpenCV, which tells no seconds of single frames."""
    video = cv2.VideoCapture(str(path))
    rate = video.get(cv2.CAP_PROP_FPS)
    numbers = [number(image) for image in _captured(video)]
    assert len(numbers) == video.get(cv2.CAP_PROP_FRAME_COUNT)
    return numbers, [], rate


def _captured(video: cv2.VideoCapture) -> Iterator[np.ndarray]:
    while (got := video.read())[0]:
        yield got[1]


READERS = {"pyav": by_pyav, "decord": by_decord, "opencv": by_opencv}
