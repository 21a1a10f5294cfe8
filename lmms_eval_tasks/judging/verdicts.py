"""Verdicts on disk: each is written the moment it is parsed, and never asked for again.

One folder per judge below ``HOME/judgements``; in it one append-only file per process, one verdict a line. A line that
a kill has torn is ignored. No locks, so it works on network file systems.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from lmms_eval_tasks.log import logger
from lmms_eval_tasks.results.records import unique_file


@dataclass(frozen=True)
class Verdict:
    """A parsed judgement, or (``value`` None) why there is none.

    Attributes:
        value: What the room's parser read, JSON-able; None when unjudged.
        model: The model name that the endpoint returned.
        input_tokens: Tokens of the prompts, over all askings.
        output_tokens: Tokens of the replies, over all askings.
        prompt: Hash of the prompt's text.
        reason: Why there is no value.
    """

    value: Any
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    prompt: str = ""
    reason: str = ""


class VerdictStore:
    """The verdicts of one judge, by key; safe for many threads and processes."""

    def __init__(self, folder: Path) -> None:
        """Reads what is there.

        Args:
            folder: The judge's folder; made at the first verdict.
        """
        self._folder = folder
        self._lines = {key: line for path in sorted(folder.glob("*.jsonl")) for key, line in _read(path)}
        self._file: IO[str] | None = None
        self._lock = threading.Lock()
        self._broken = False

    def get(self, key: str) -> Verdict | None:
        """The verdict under a key, if there is one."""
        line = self._lines.get(key)
        if line is None:
            return None
        fields = json.loads(line)
        del fields["key"]
        return Verdict(**fields)

    def put(self, key: str, verdict: Verdict) -> None:
        """Keeps a verdict and writes it. A disk that refuses is reported once; the verdict still counts."""
        fields = asdict(verdict)
        del fields["reason"]
        line = json.dumps({"key": key, **fields}, ensure_ascii=True)
        with self._lock:
            self._lines[key] = line
            if self._broken:
                return
            try:
                if self._file is None:
                    self._folder.mkdir(parents=True, exist_ok=True)
                    self._file = unique_file(self._folder, "verdicts").open("x", encoding="utf-8")
                self._file.write(line + "\n")
                self._file.flush()
            except OSError as error:
                self._broken = True
                logger.error(f"Verdicts cannot be written ({error}): they will be asked for again in the next run")


def _read(path: Path) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.endswith("\n"):
                continue
            try:
                yield json.loads(line)["key"], line
            except (ValueError, TypeError, KeyError):
                continue
