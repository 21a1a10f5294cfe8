"""Writing sampled frames as a clip: a small H.264 file of key frames alone, which reads fast everywhere."""

import errno
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

TICKS = 90_000
"""Ticks a second of a clip's timestamps: fine enough for 30000/1001, small enough for days."""

NOMINAL_FPS = 25
"""What the encoder is told; a clip's own times are put on its packets."""

_INTRA = {"preset": "veryfast", "tune": "fastdecode", "g": "1", "bf": "0"}

ENCODERS = {
    "default": ("libx264", {"qp": "10", "8x8dct": "0", **_INTRA}),
    "lossless": ("libx264rgb", {"qp": "0", **_INTRA}),
}
"""Quality -> encoder and its options.

A fixed quantiser, because rate control would give frames that are minutes apart less; no 8x8 transform, because its
coefficients take an eighth more time to read and bring nothing at this quality.
"""


def write(
    path: Path, shots: Iterable[VideoFrame], seconds: Sequence[float], size: tuple[int, int], quality: str
) -> None:
    """Writes a clip.

    The last frame lasts one mean interval, so that index / average rate is a frame's second wherever the frames are
    evenly spaced.

    Args:
        path: The file to write, whose name need not end in ``.mp4``.
        shots: The frames, upright or with a rotation, of any size and pixel format; one for each of ``seconds``.
        seconds: When each is shown, in rising order, from 0.
        size: (width, height) of the clip in pixels, even.
        quality: A key of ``ENCODERS``.

    Raises:
        OSError: The file cannot be written, such as on a full disk.
    """
    encoder, options = ENCODERS[quality]
    unit = Fraction(1, TICKS)
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream(encoder, rate=NOMINAL_FPS, options=dict(options))
        stream.width, stream.height = size
        stream.time_base = unit
        for packet, (start, length) in zip(_packets(stream, shots, size, quality), _ticks(seconds), strict=True):
            packet.time_base = unit
            packet.pts = packet.dts = start
            packet.duration = length
            container.mux(packet)
    with av.open(str(path)) as container:
        there = sum(packet.size > 0 and not packet.is_corrupt for packet in container.demux(video=0))
    if there != len(seconds):
        raise OSError(errno.EIO, f"only {there} of {len(seconds)} frames arrived on the disk")


def _packets(stream: VideoStream, shots: Iterable[VideoFrame], size: tuple[int, int], quality: str) -> Iterator[Packet]:
    context = stream.codec_context
    for k, shot in enumerate(shots):
        picture = _picture(shot, size, quality)
        if k == 0:
            context.pix_fmt = picture.format.name
            if picture.format.name != "rgb24" and _is_yuv(shot):
                context.colorspace, context.color_range = shot.colorspace, shot.color_range
        picture.pts, picture.time_base = k, Fraction(1, NOMINAL_FPS)
        picture.pict_type = 0  # how the source's frame was coded says nothing about its copy
        yield from stream.encode(picture)
    yield from stream.encode(None)


def _ticks(seconds: Sequence[float]) -> list[tuple[int, int]]:
    """(start, length) of each frame in ticks; starts rise by at least one."""
    starts: list[int] = []
    for second in seconds:
        starts.append(max(round(second * TICKS), starts[-1] + 1 if starts else 0))
    mean = round(starts[-1] / (len(starts) - 1)) if len(starts) > 1 else TICKS
    return [(start, end - start) for start, end in pairwise([*starts, starts[-1] + mean])]


def _picture(shot: VideoFrame, size: tuple[int, int], quality: str) -> VideoFrame:
    """The frame upright, at the clip's size and in the encoder's pixel format."""
    turns = round(shot.rotation / 90) % 4
    width, height = size[::-1] if turns % 2 else size
    if quality == "lossless":
        # PyAV alone would take every matrix for BT.601 and every range for limited; decord and OpenCV do not.
        colours: dict[str, Any] = (
            {"dst_colorspace": "ITU601", "src_color_range": int(shot.color_range)} if _is_yuv(shot) else {}
        )
        scaled = shot.reformat(width, height, "rgb24", interpolation="BICUBIC", **colours)
    else:
        # YUV is scaled as it is: a trip through RGB costs time, and colours where a reader takes another matrix.
        pixels = "yuvj420p" if shot.format.name.startswith("yuvj") else "yuv420p"
        scaled = shot.reformat(width, height, pixels, interpolation="BICUBIC")
    return _turned(scaled, turns) if turns else scaled


def _is_yuv(shot: VideoFrame) -> bool:
    return shot.format.name.startswith(("yuv", "nv", "p0"))


def _turned(picture: VideoFrame, turns: int) -> VideoFrame:
    """Turns a picture by quarters, counter-clockwise."""
    width, height, name = picture.width, picture.height, picture.format.name
    array = picture.to_ndarray()
    if name == "rgb24":
        turned = np.rot90(array, turns)
    else:
        luma, chroma = np.split(array.ravel(), [width * height])
        planes = [luma.reshape(height, width), *chroma.reshape(2, height // 2, width // 2)]
        flat = np.concatenate([np.rot90(plane, turns).ravel() for plane in planes])
        turned = flat.reshape(-1, height if turns % 2 else width)
    return VideoFrame.from_ndarray(np.ascontiguousarray(turned, dtype=np.uint8), format=name)
