"""Verdicts on disk: each is written the moment it is parsed, and never asked for again.

One folder per judge below ``HOME/judgements``; in it one append-only file per process, one verdict a line. A line that
a kill has torn is ignored. No locks, so it works on network file systems.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lmms_eval_tasks.log import logger
from lmms_eval_tasks.results.records import LineFile


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
        self._known = {key: verdict for path in sorted(folder.glob("*.jsonl")) for key, verdict in _read(path)}
        self._file = LineFile(folder, "verdicts")

    def get(self, key: str) -> Verdict | None:
        """The verdict under a key, if there is one."""
        return self._known.get(key)

    def forget(self) -> None:
        """Knows no earlier verdict any more; the files stay, and later verdicts win over earlier ones."""
        self._known.clear()

    def put(self, key: str, verdict: Verdict) -> None:
        """Keeps a verdict and writes it; one that the disk does not take still counts."""
        self._known[key] = verdict
        line = {"key": key, **asdict(verdict)}
        del line["reason"]
        self._file.append(line)


def _read(path: Path) -> Iterator[tuple[str, Verdict]]:
    """The verdicts of a file; whatever else it holds, after a crash or a full disk, is passed over."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        logger.warning(f"{path} cannot be read ({error.strerror}): its verdicts are asked for again")
        return
    # Behind the last line's end there is nothing, or a line that a kill has torn.
    for line in lines[:-1]:
        try:
            values = json.loads(line)
            key = values.pop("key")
            verdict = Verdict(**values)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        typed = all(isinstance(getattr(verdict, field.name), type(field.default)) for field in fields(verdict)[1:])
        if typed and isinstance(key, str) and verdict.value is not None:
            yield key, verdict
