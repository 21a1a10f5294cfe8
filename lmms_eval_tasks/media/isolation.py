"""Making a clip in a process of its own, so that a file that hangs or crashes a decoder takes nothing else with it."""

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

# A process that is forked while another thread starts a worker would keep the worker's pipes open: their end would
# never be seen, and with data loaders that live as long as the run, nor would the clip.
_starting = threading.Lock()
os.register_at_fork(before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_starting.release)


def run(job: dict[str, Any], patience: float) -> dict[str, str]:
    """Has a process make a clip.

    Args:
        job: ``source``, ``target``, ``sampling`` (as ``Sampling.describe``) and ``threads``.
        patience: Seconds without a sign of life after which the process is ended.

    Returns:
        What the worker said (see there), ``"unreadable"`` also where it hung or crashed.
    """
    with _started(job) as process:
        try:
            said, silent = _listened(process, patience)
            status = None if silent else process.wait()
        finally:
            process.kill()
    outcome: dict[str, str] = {}
    for line in said.splitlines():
        outcome |= json.loads(line)
    if silent:
        outcome["unreadable"] = f"decoding it made no progress for {patience:.0f} s and was ended"
    elif not outcome.keys() & {"made", "unreadable", "unwritable"}:
        outcome["unreadable"] = f"decoding it crashed ({_named(status)})"
    return outcome


def _started(job: dict[str, Any]) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    with _starting:
        return subprocess.Popen(
            [sys.executable, "-m", "lmms_eval_tasks.media.worker", json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # The directory one happens to stand in must not shadow modules.
            env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        )


def _listened(process: "subprocess.Popen[bytes]", patience: float) -> tuple[str, bool]:
    """What a process writes, and whether it fell silent before it ended."""
    assert process.stdout is not None
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(patience):
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                return said.decode(), False
            said += chunk
    return said.decode(), True


def _named(status: int | None) -> str:
    return signal.Signals(-status).name if status is not None and status < 0 else f"exit status {status}"
