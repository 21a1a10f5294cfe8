"""Strips of frames that a model was shown, from the clips that its run has left."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import av
from PIL import Image

from lmms_eval_tasks import canonical, settings
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media import shelf
from lmms_eval_tasks.media.clips import clip_of
from lmms_eval_tasks.media.sampling import Sampling

SHOWN = 4
"""Frames of a strip: of the middles of as many equal parts of the clip."""

HEIGHT = 90
"""Of a strip, in pixels."""


def clip_at_hand(benchmark: str, video: str, described: Mapping[str, Any], videos: int) -> Path | None:
    """The clip that a run made of a video; None where the video or its clip is not on this machine.

    Args:
        benchmark: Name of the benchmark's room.
        video: Name of the video in the dataset's rows.
        described: The sampling in the run's protocol card.
        videos: How many videos the question has, which share its frames.
    """
    try:
        path = canonical.opened(benchmark).videos.find(video)
        if path is None:
            return None
        clip = clip_of(path, _sampling(described, videos), settings.load().root)
    except (PackError, TypeError, KeyError):
        # Also a card of another version, with other keys.
        return None
    return clip if shelf.whole(clip) else None


def _sampling(described: Mapping[str, Any], videos: int) -> Sampling:
    fields = {key: value for key, value in described.items() if key not in ("clips", "frames_per_question")}
    if fields["frames"] is None:
        fields["frames"] = described["frames_per_question"] // videos
    return Sampling(**{**fields, "size": tuple(fields["size"]) if fields["size"] else None})


def write_strip(clip: Path, target: Path) -> bool:
    """Writes frames of a clip side by side as one small JPEG.

    Args:
        clip: A clip of key frames alone, as the pack makes them: each is decoded by itself.
        target: The file.

    Returns:
        False where the clip cannot be read after all; there is no file then.
    """
    try:
        with av.open(str(clip)) as container:
            stream = container.streams.video[0]
            packets = [packet for packet in container.demux(stream) if packet.size]
            chosen = [packets[(2 * place + 1) * len(packets) // (2 * SHOWN)] for place in range(SHOWN)]
            frames = [frame for packet in dict.fromkeys(chosen) for frame in packet.decode()]
            frames += stream.decode(None)
            width = max(2, round(HEIGHT * frames[0].width / frames[0].height))
            pictures = [frame.to_image(width=width, height=HEIGHT) for frame in frames]
    except (OSError, ValueError, IndexError):
        return False
    strip = Image.new("RGB", (width * len(pictures), HEIGHT))
    for place, picture in enumerate(pictures):
        strip.paste(picture, (place * width, 0))
    strip.save(target, quality=75)
    return True
