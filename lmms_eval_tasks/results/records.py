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
from typing import Any, BinaryIO

from lmms_eval_tasks import settings
from lmms_eval_tasks.log import logger


class LineFile:
    """A file of JSON lines that this process alone writes, each line at once; safe for many threads.

    A disk that refuses is reported once and raises nothing: what it did not take is kept, and written again from the
    start of its first line with the next one. So no line is ever torn but the last, by a kill.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Opens nothing yet.

        Args:
            folder: Where the file will be; made with the first line.
            name: What is in it, for its name and for messages.
        """
        self._folder, self._name = folder, name
        self._file: BinaryIO | None = None
        self._size = 0
        self._waiting: list[bytes] = []
        self._reported = False
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        """The file, or its folder before the first line is written."""
        return Path(self._file.name) if self._file is not None else self._folder

    def append(self, value: Mapping[str, Any]) -> None:
        """Writes a line; it is with the operating system when this returns."""
        line = json.dumps(value, ensure_ascii=True, default=str).encode() + b"\n"
        with self._lock:
            self._waiting.append(line)
            try:
                self._write()
            except OSError as error:
                if not self._reported:
                    logger.error(f"{self._folder} takes no {self._name} ({error}): tried again with each new one")
                self._reported = True

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    def _write(self) -> None:
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = _unique_file(self._folder, self._name).open("xb", buffering=0)
        self._file.seek(self._size)
        left = memoryview(b"".join(self._waiting))
        length = len(left)
        while left:
            left = left[self._file.write(left) :]
        self._size += length
        self._waiting.clear()


_files: dict[tuple[Path, str], LineFile] = {}
_lock = threading.Lock()


def begin(task: str) -> None:
    """Starts a new run of a task in this process: its next item opens a new file."""
    root = settings.load().root
    with _lock:
        files = [_files.pop((root / name, task), None) for name in ("runs", "replies")]
    for file in filter(None, files):
        file.close()


def append(item: Mapping[str, Any]) -> None:
    """Writes an item to its task's run record.

    A disk that refuses does not stop the run: the item is still judged, and logged by lmms-eval at the end.
    """
    _append(_folder(), item["task"], item)


def reply(task: str, doc: str, step: int, prompt: str, text: str | None) -> None:
    """Writes a reply of a conversation that is under way to ``HOME/replies``; its item holds all of them at its end."""
    line = {"task": task, "doc": doc, "step": step, "prompt": prompt, "reply": text}
    _append(settings.load().root / "replies", task, line)


def _append(folder: Path, task: str, line: Mapping[str, Any]) -> None:
    with _lock:
        new = (folder, task) not in _files
        file = _files.setdefault((folder, task), LineFile(folder, task))
    file.append(line)
    if new and file.path != folder:
        logger.info(f"{task}: {folder.name} are kept in {file.path}")


def _folder() -> Path:
    return settings.load().root / "runs"


def _unique_file(folder: Path, name: str) -> Path:
    """A file name that no other process writes to: time, name, host and process."""
    time = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    return folder / f"{time}-{name}-{socket.gethostname()}-{os.getpid()}.jsonl"
