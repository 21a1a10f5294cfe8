"""Which frames of a video a model sees, at which size and at which seconds."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.settings import PREFIX, Settings

OFFICIAL_FPS = 15
"""Frame rate of the clips that the authors' scripts write."""


@dataclass(frozen=True)
class Sampling:
    """What a clip holds.

    Attributes:
        frames: How many frames, at least 1.
        long_side: Limit of the longer side in pixels; the aspect is kept and nothing is enlarged.
        size: A fixed (width, height) in pixels instead; the aspect is not kept.
        pad: Repeat frames of a video that has fewer than ``frames``.
        timing: ``"source"``: each frame at its second in the source; ``"official"``: 15 frames a second.
        quality: ``"default"``: H.264 4:2:0; ``"lossless"``: the resized RGB frames bit by bit.
    """

    frames: int = 128
    long_side: int = 720
    size: tuple[int, int] | None = None
    pad: bool = True
    timing: Literal["source", "official"] = "source"
    quality: Literal["default", "lossless"] = "default"

    @classmethod
    def of(cls, specific: Mapping[str, Any] | None, settings: Settings, videos: int = 1) -> "Sampling":
        """The sampling of a task for one model.

        Args:
            specific: The task's ``lmms_eval_specific_kwargs``; the keys ``frames``, ``long_side`` and ``size``
                (``448``, ``[448, 448]`` or ``"448x448"``) are read.
            settings: ``FRAMES`` and ``LONG_SIDE`` win over the task; ``LONG_SIDE`` also over its fixed size.
            videos: How many videos the question has; several share the frames of `frames_per_question`.

        Raises:
            PackError: A key has a value that makes no sense, or there are fewer frames than videos.
        """
        specific = specific or {}
        size = None if settings.long_side else specific.get("size")
        frames = settings.frames or _frames(specific)
        budget = frames_per_question(specific, settings)
        if videos > 1 and budget is not None:
            frames = budget // videos
            if not frames:
                raise PackError(f"{budget} frames per question are too few for {videos} videos: "
                                f"set {PREFIX}FRAMES_PER_QUESTION to {videos} or more")  # fmt: skip
        return cls(
            frames=frames,
            long_side=_positive("long_side", settings.long_side or specific.get("long_side") or cls.long_side, 2),
            size=None if size is None else _size(size),
            pad=settings.pad_short,
            timing=settings.clip_timing,
            quality=settings.clip_quality,
        )

    def describe(self) -> dict[str, Any]:
        """The sampling as a small JSON object, for protocol cards and fingerprints."""
        return {**asdict(self), "size": list(self.size) if self.size else None}


def frames_per_question(specific: Mapping[str, Any] | None, settings: Settings) -> int | None:
    """The frames that the videos of a question share where there are several.

    Args:
        specific: As for `Sampling.of`.
        settings: ``FRAMES_PER_QUESTION`` wins over ``FRAMES``, which is for each video.

    Returns:
        Their number, None where each video has its own ``FRAMES``.
    """
    return settings.frames_per_question or (None if settings.frames else _frames(specific or {}))


def _frames(specific: Mapping[str, Any]) -> int:
    return _positive("frames", specific.get("frames") or Sampling.frames)


def frame_indices(total: int, frames: int) -> list[int]:
    """The frames that the authors' script takes (MT-Video-Bench, Qwen script).

    Args:
        total: Frames of the source.
        frames: Frames asked for.

    Returns:
        All indices when there are no more than ``frames``, else ``linspace(0, total - 1, frames)`` truncated, as
        numpy computes it.
    """
    if total <= frames:
        return list(range(total))
    if frames == 1:
        return [0]
    step = (total - 1) / (frames - 1)
    return [*(int(k * step) for k in range(frames - 1)), total - 1]


def schedule(seconds: Sequence[float], duration: float, sampling: Sampling) -> list[tuple[int, float]]:
    """What a clip shows: which frame of the source, and when.

    A frame that is repeated because the source is short stands at the seconds at which the source shows it, so
    that the clip's frames are evenly spaced wherever the source's are.

    Args:
        seconds: When the source shows each of its frames, in rising order, from 0.
        duration: How long the source lasts, in seconds; only used for a source of one frame.
        sampling: Its ``frames``, ``pad`` and ``timing`` are read.

    Returns:
        (index in the source, second in the clip) of each frame of the clip.
    """
    total, frames = len(seconds), sampling.frames
    if total < frames and sampling.pad:
        ends = [*seconds[1:], seconds[-1] if total > 1 else duration]
        places = _positions(total, frames) if total > 1 else [Fraction(k, frames) for k in range(frames)]
        pairs = [(int(p), seconds[int(p)] + float(p % 1) * (ends[int(p)] - seconds[int(p)])) for p in places]
    else:
        pairs = [(index, seconds[index]) for index in frame_indices(total, frames)]
    if sampling.timing == "official":
        return [(index, k / OFFICIAL_FPS) for k, (index, _) in enumerate(pairs)]
    return pairs


def fitted(width: int, height: int, sampling: Sampling) -> tuple[int, int]:
    """The size of a clip's frames.

    Args:
        width: Of the upright source, in pixels.
        height: Of the upright source, in pixels.
        sampling: Its ``size`` or ``long_side`` is read.

    Returns:
        (width, height) in pixels, both even and at least 2.
    """
    if sampling.size:
        return sampling.size
    scale = min(Fraction(1), Fraction(sampling.long_side, max(width, height)))
    return _even(width * scale, width), _even(height * scale, height)


def _positions(total: int, frames: int) -> list[Fraction]:
    return [Fraction(k * (total - 1), max(frames - 1, 1)) for k in range(frames)]


def _even(length: Fraction, limit: int) -> int:
    """The nearest even number that is no larger than the source's side (and at least 2)."""
    return max(2, min(2 * round(length / 2), limit - limit % 2))


def _positive(key: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]+", str(value).strip()) or int(value) < least:
        raise PackError(f"lmms_eval_specific_kwargs: {key}={value!r} is not a whole number of at least {least}")
    return int(value)


def _size(value: Any) -> tuple[int, int]:
    sides = (
        value.lower().split("x") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    )
    try:
        width, height = (_positive("size", side, 2) for side in (sides * 2 if len(sides) == 1 else sides))
    except ValueError:
        raise PackError(f"lmms_eval_specific_kwargs: size={value!r} is no width and height") from None
    if width % 2 or height % 2:
        raise PackError(f"lmms_eval_specific_kwargs: size={value!r} must be even, such as [448, 448]")
    return width, height
