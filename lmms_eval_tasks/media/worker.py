"""Makes one clip in a process of its own: ``python -m lmms_eval_tasks.media.worker``.

A file from the internet may hang or crash a decoder; here it takes nothing else with it. The process imports neither
torch nor lmms-eval, prints nothing but its protocol, and ends when its parent does.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from lmms_eval_tasks.media import reading, seal, writing
from lmms_eval_tasks.media.sampling import Sampling, fitted, schedule

HEARTBEAT_S = 0.5
"""Seconds between two signs of life, as long as there is progress."""


def make(source: reading.Source, target: Path, sampling: Sampling) -> None:
    """Writes, seals and flushes the clip of a video.

    Args:
        source: The video.
        target: The file to write.
        sampling: What the clip holds.

    Raises:
        Unreadable: The video cannot be decoded.
        OSError: The clip cannot be written.
    """
    try:
        _make(source, target, sampling, indexed=True)
    except reading.Misread:
        try:
            _make(source, target, sampling, indexed=False)
        except reading.Misread:
            raise reading.Unreadable("it decodes differently every time") from None
    seal.close(target)


def _make(source: reading.Source, target: Path, sampling: Sampling, indexed: bool) -> None:
    line = reading.timeline(source, indexed)
    plan = schedule(line.seconds, line.duration, sampling)
    indices = [index for index, _ in plan]
    shots = _repeated(reading.frames(source, line, list(dict.fromkeys(indices))), indices)
    first = next(shots)
    upright = (first.height, first.width) if round(first.rotation / 90) % 2 else (first.width, first.height)
    size = fitted(*upright, sampling)
    writing.write(target, chain([first], shots), [second for _, second in plan], size, sampling.quality)


def _repeated(frames: Iterator[Any], indices: Sequence[int]) -> Iterator[Any]:
    """Each frame as often as its index stands in a row."""
    last, frame = None, None
    for index in indices:
        if index != last:
            last, frame = index, next(frames)
        yield frame


def main(job: dict[str, Any]) -> None:
    """Does one job.

    Prints JSON objects, a line each: the codec as soon as it is known, empty ones as signs of life, and at last
    ``unreadable`` or ``unwritable`` with the reason, or ``made``.
    """
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    last = 0.0

    def tick() -> None:
        nonlocal last
        if time.monotonic() - last > HEARTBEAT_S:
            last = time.monotonic()
            _say({})

    size = job["sampling"].pop("size")
    sampling = Sampling(**job["sampling"], size=tuple(size) if size else None)
    source = reading.Source(Path(job["source"]), job["threads"], tick, lambda codec: _say({"codec": codec}))
    try:
        make(source, Path(job["target"]), sampling)
        outcome = {"made": job["target"]}
    except reading.Unreadable as error:
        outcome = {"unreadable": str(error)}
    except OSError as error:
        outcome = {"unwritable": error.strerror or str(error)}
    except Exception as error:
        outcome = {"unreadable": f"{type(error).__name__}: {error}"}
    _say(outcome)


def _say(what: dict[str, str]) -> None:
    print(json.dumps(what), flush=True)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
