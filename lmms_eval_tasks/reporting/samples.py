"""The data of the samples page: small scripts beside the page, which it loads as they are looked at.

A page that is opened from a disk may not read files, but may run scripts beside it: each file calls
``report.take(kind, number, value)`` with one chunk. ``index`` holds what lists and filters need of all samples;
``questions`` and ``answers`` hold the texts, `CHUNK` to a file.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval_tasks import canonical
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.reporting.frames import clip_at_hand, write_strip
from lmms_eval_tasks.reporting.layout import layout, task_name
from lmms_eval_tasks.reporting.runs import Run
from lmms_eval_tasks.results.items import STATUSES, with_skipped
from lmms_eval_tasks.text import digest

CHUNK = 250

# What of an item the page shows beside its checks.
_KEYS = ("answers", "choices", "reason", "unread", "truncated")


def write_samples(runs: Sequence[Run], folder: Path) -> int:
    """Writes the data of all samples of some runs.

    Args:
        runs: The runs.
        folder: Where ``samples/`` goes.

    Returns:
        How many samples there are.
    """
    (folder / "samples").mkdir()
    texts = {benchmark: _texts(benchmark) for benchmark in dict.fromkeys(run.benchmark for run in runs)}
    strips = _Strips(folder / "samples")
    questions: dict[tuple[str, str], int] = {}
    index: dict[str, list[Any]] = {key: [] for key in ("question", "run", "status", "score", "kind", "turn")}
    answers: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for number, run in enumerate(runs):
        see = layout(run.benchmark)
        for item in with_skipped(run.items):
            place = questions.setdefault((run.benchmark, item["id"]), len(questions))
            text = texts[run.benchmark].get(item["id"], {})
            if place == len(shown):
                shown.append({"id": item["id"], **{key: text[key] for key in text if key != "videos"}})
            for key, value in (
                ("question", place),
                ("run", number),
                ("status", STATUSES.index(item["status"])),
                ("score", round(item["score"], 4) if "score" in item else None),
                ("kind", item.get(see.KIND, "")),
                ("turn", item.get("turn")),
            ):
                index[key].append(value)
            answers.append(
                {key: item[key] for key in _KEYS if item.get(key)}
                | {"checks": see.checks(item)}
                | {"frames": strips.of(run.benchmark, text.get("videos", ()), item.get("card"))}
            )
    strips.write()
    head = {
        "runs": [
            {
                "label": run.label,
                "task": run.task,
                "name": task_name(run.benchmark, run.task),
                "benchmark": run.benchmark,
                "unit": "" if (unit := _unit(run)) == "percent" else unit,
            }
            for run in runs
        ],
        "statuses": STATUSES,
        "chunk": CHUNK,
        "strips": strips.shown,
        **index,
    }
    _write(folder / "samples" / "index.js", "index", 0, head)
    for kind, values in (("questions", shown), ("answers", answers)):
        for number, start in enumerate(range(0, len(values), CHUNK)):
            _write(folder / "samples" / f"{kind}-{number}.js", kind, number, values[start : start + CHUNK])
    return len(answers)


def script(kind: str, number: int, value: Any) -> str:
    """A chunk as a script; whatever texts it holds, none of them can end a script or a string."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f'report.take("{kind}",{number},{text});\n'


def _write(path: Path, kind: str, number: int, value: Any) -> None:
    path.write_text(script(kind, number, value), "ascii")


def _unit(run: Run) -> str:
    tables = layout(run.benchmark).TABLES
    return next((table.unit for table in tables if not table.tasks or run.task in table.tasks), "percent")


def _texts(benchmark: str) -> dict[str, dict[str, Any]]:
    """What is asked, by id; empty where the benchmark is not prepared on this machine."""
    try:
        rows = canonical.opened(benchmark).rows()
    except PackError:
        return {}
    see = layout(benchmark)
    return {name: sample for row in rows for name, sample in see.samples(row)}


class _Strips:
    """Strips of the frames that models were shown, one file for each video and sampling."""

    def __init__(self, folder: Path) -> None:
        self.shown: list[dict[str, Any]] = []
        self._folder = folder
        self._known: dict[str, int | None] = {}
        self._jobs: list[Callable[[], bool]] = []

    def of(self, benchmark: str, videos: Sequence[str], card: Mapping[str, Any] | None) -> list[int]:
        """Numbers of the strips of a question's videos; without those whose clip is not there."""
        if card is None or not card["sampling"].get("clips"):
            return []
        found = (self._strip(benchmark, video, len(videos), card["sampling"]) for video in videos)
        return [number for number in found if number is not None]

    def _strip(self, benchmark: str, video: str, videos: int, described: Mapping[str, Any]) -> int | None:
        key = digest([benchmark, video, videos, described])
        if key not in self._known:
            clip = clip_at_hand(benchmark, video, described, videos)
            self._known[key] = None if clip is None else len(self.shown)
            if clip is not None:
                self._jobs.append(partial(write_strip, clip, self._folder / f"{key}.jpg"))
                self.shown.append({"file": f"{key}.jpg", "video": video})
        return self._known[key]

    def write(self) -> None:
        """Writes the files, several at a time; a clip that cannot be read leaves none, and the page shows none."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda job: job(), self._jobs))
