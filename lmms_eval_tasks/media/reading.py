"""Decoding chosen frames of a video, right also where its container tells lies.

PyAV reads everything here, although decord is what most backends read with: PyAV opens more codecs (AV1, 10-bit,
alpha), and telling FFmpeg which frames need not be decoded made it the faster of the two as well (see utils/bench).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

INDEXED = {"h264", "hevc", "av1", "vp9"}
"""Codecs of which one packet is one frame; of all others every frame is decoded and counted."""

SKIPPING = {"h264"}
"""Codecs of which FFmpeg knows, before decoding it, that no other frame needs a frame."""

LEAST_READABLE = 0.95
"""Share of the frames an index lists that must be there; below, the file is cut off and would be half a video."""


class Unreadable(Exception):
    """A video cannot be decoded; the text says why."""


class Misread(Exception):
    """The packets promised a frame that did not come: the index is no use for this file."""


@dataclass(frozen=True)
class Source:
    """A video and how it is read.

    Attributes:
        path: The file.
        threads: Decoder threads.
        tick: Called at every packet: a sign of life.
        opened: Called with the codec's name when it is known.
    """

    path: Path
    threads: int = 1
    tick: Callable[[], None] = lambda: None
    opened: Callable[[str], None] = lambda codec: None


@dataclass(frozen=True)
class Timeline:
    """The frames of a video in the order shown.

    Attributes:
        seconds: When each is shown; the first at 0.
        duration: How long they last together, in seconds.
        stamps: Their presentation timestamps, or None where frames must be counted.
        keys: Presentation timestamps of the frames that decoding can start from, in rising order.
    """

    seconds: Sequence[float]
    duration: float
    stamps: Sequence[int] | None = None
    keys: Sequence[int] = ()


def timeline(source: Source, indexed: bool) -> Timeline:
    """Lists the frames of a video.

    Args:
        source: The video.
        indexed: From the packets, without decoding; else by decoding all.

    Raises:
        Unreadable: There is no frame.
        Misread: The packets do not tell.
    """
    with _opened(source) as (container, stream):
        return (_by_packets if indexed else _by_frames)(container, stream, source.tick)


def frames(source: Source, line: Timeline, indices: Sequence[int]) -> Iterator[VideoFrame]:
    """Decodes frames of a video.

    Args:
        source: The video.
        line: Its timeline.
        indices: Which frames, in rising order, each once.

    Yields:
        The frames, in the order of ``indices``.

    Raises:
        Misread: A frame did not come.
    """
    with _opened(source) as (container, stream):
        if line.stamps is None:
            yield from _counted(container, stream, indices, source.tick)
        else:
            yield from _sought(container, stream, line.keys, [line.stamps[k] for k in indices], source.tick)


@contextmanager
def _opened(source: Source) -> Iterator[tuple[InputContainer, VideoStream]]:
    """The container and its first video stream."""
    try:
        # An absolute path: FFmpeg takes "a:b.mp4" for a protocol.
        container = av.open(str(source.path.absolute()))
    except (av.FFmpegError, OSError) as error:
        raise Unreadable(f"it cannot be opened: {error.strerror or error}") from None
    with container:
        if not container.streams.video:
            raise Unreadable("it holds no video stream")
        stream = container.streams.video[0]
        source.opened(_codec(stream))
        stream.thread_type = "AUTO"
        stream.codec_context.thread_count = source.threads
        yield container, stream


def _codec(stream: VideoStream) -> str:
    # A decoder's own name, such as libdav1d, would tell users little.
    name: str = stream.codec_context.codec.canonical_name
    return name


def _by_packets(container: InputContainer, stream: VideoStream, tick: Callable[[], None]) -> Timeline:
    if _codec(stream) not in INDEXED:
        raise Misread
    shown: list[int] = []
    keys: list[int] = []
    last = 0
    for packet in _packets(container, stream, tick):
        if packet.size == 0 or packet.is_corrupt:
            continue
        if packet.pts is None:
            raise Misread
        if packet.is_keyframe:
            keys.append(packet.pts)
        if not packet.is_discard:
            shown.append(packet.pts)
            last = packet.duration or last
    shown.sort()
    if not shown or not keys or len(set(shown)) < len(shown) or stream.time_base is None:
        raise Misread
    _refuse_cut_off(container, len(shown), stream.frames)
    unit = float(stream.time_base)
    seconds = [(stamp - shown[0]) * unit for stamp in shown]
    return Timeline(seconds, seconds[-1] + last * unit, shown, sorted(keys))


def _by_frames(container: InputContainer, stream: VideoStream, tick: Callable[[], None]) -> Timeline:
    stamps = [frame.pts for frame in _decoded(container, stream, tick)]
    if not stamps:
        raise Unreadable("it holds no frame that can be decoded")
    _refuse_cut_off(container, len(stamps), stream.frames)
    rate = float(stream.average_rate or stream.guessed_rate or 25)
    known = [stamp for stamp in stamps if stamp is not None]
    if stream.time_base and len(known) == len(stamps) and all(a < b for a, b in pairwise(known)):
        seconds = [float((stamp - known[0]) * stream.time_base) for stamp in known]
    else:
        seconds = [k / rate for k in range(len(stamps))]
    return Timeline(seconds, seconds[-1] + 1 / rate)


def _refuse_cut_off(container: InputContainer, there: int, listed: int) -> None:
    # Only an mp4's count is a table of its frames; other containers state a number, which may be wrong.
    if "mp4" in container.format.name and there < LEAST_READABLE * listed:
        raise Unreadable(f"it is cut off: {there} of its {listed} frames are there")


def _counted(
    container: InputContainer, stream: VideoStream, indices: Sequence[int], tick: Callable[[], None]
) -> Iterator[VideoFrame]:
    wanted = iter(indices)
    index = next(wanted, None)
    for count, frame in enumerate(_decoded(container, stream, tick)):
        if count == index:
            yield frame
            index = next(wanted, None)
            if index is None:
                return
    if index is not None:
        raise Misread


def _sought(
    container: InputContainer, stream: VideoStream, keys: Sequence[int], stamps: Sequence[int], tick: Callable[[], None]
) -> Iterator[VideoFrame]:
    """Decodes, for every run of frames that hang on one key frame, from there to the last of them."""
    for place, run in groupby(stamps, lambda stamp: max(0, bisect_right(keys, stamp) - 1)):
        wanted = list(run)
        container.seek(keys[place], stream=stream, backward=True)
        found = {}
        for frame in _until(container, stream, set(wanted), tick):
            if frame.pts in wanted and not frame.is_corrupt:
                found[frame.pts] = frame
                # Handed on as soon as all before it are there, so that few are held at once.
                while wanted and wanted[0] in found:
                    yield found.pop(wanted.pop(0))
        if wanted:
            raise Misread


def _until(
    container: InputContainer, stream: VideoStream, stamps: set[int], tick: Callable[[], None]
) -> Iterator[VideoFrame]:
    """Feeds the decoder until it has had the packets of all stamps, then drains it."""
    context = stream.codec_context
    skips = _codec(stream) in SKIPPING
    missing = set(stamps)
    for packet in _packets(container, stream, tick):
        if packet.size == 0:
            break
        if skips:
            context.skip_frame = "DEFAULT" if packet.pts in stamps else "NONREF"
        yield from _frames_of(packet)
        missing.discard(packet.pts)
        if not missing:
            break
    yield from _drained(stream)


def _decoded(container: InputContainer, stream: VideoStream, tick: Callable[[], None]) -> Iterator[VideoFrame]:
    """All frames that decode whole, in the order shown; damaged packets are passed over."""
    for packet in _packets(container, stream, tick):
        if packet.size and not packet.is_corrupt:
            yield from (frame for frame in _frames_of(packet) if not frame.is_corrupt)
    yield from (frame for frame in _drained(stream) if not frame.is_corrupt)


def _packets(container: InputContainer, stream: VideoStream, tick: Callable[[], None]) -> Iterator[Any]:
    """The stream's packets, as far as the file can be read."""
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets)
        except (StopIteration, av.FFmpegError):
            return
        tick()
        yield packet


def _frames_of(packet: Any) -> list[VideoFrame]:
    try:
        decoded: list[VideoFrame] = packet.decode()
    except av.FFmpegError:
        return []
    return decoded


def _drained(stream: VideoStream) -> list[VideoFrame]:
    try:
        return list(stream.codec_context.decode(None))
    except av.FFmpegError:
        return []
