"""Run records: every item is on disk before it is judged.

One file per process and run of a task, ``HOME/runs/<time>-<task>-<host>-<pid>.jsonl``, one item a line. The verdicts
are in ``HOME/judgements``; `score` brings the two together.
"""

import json
import os
import socket
import threading
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.log import logger

_files: dict[str, IO[str] | None] = {}
_lock = threading.Lock()


def begin(task: str) -> None:
    """Starts a new run of a task in this process: its next item opens a new file."""
    with _lock:
        file = _files.pop(task, None)
    if file is not None:
        file.close()


def append(item: Mapping[str, Any]) -> None:
    """Writes an item to its task's run record and flushes it.

    A disk that refuses is reported once per run and does not stop it: the item is still judged, and logged by
    lmms-eval at the end.
    """
    task = item["task"]
    line = json.dumps(item, ensure_ascii=True) + "\n"
    with _lock:
        try:
            if task not in _files:
                _files[task] = _open(task)
            file = _files[task]
            if file is not None:
                file.write(line)
                file.flush()
        except OSError as error:
            logger.error(f"Run record of {task} cannot be written ({error}): answers are in lmms-eval's logs alone")
            _files[task] = None


def _open(task: str) -> IO[str]:
    folder = settings.load().root / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    return unique_file(folder, task).open("x", encoding="utf-8")


def unique_file(folder: Path, name: str) -> Path:
    """A file name that no other process writes to: time, name, host and process."""
    time = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    return folder / f"{time}-{name}-{socket.gethostname()}-{os.getpid()}.jsonl"
