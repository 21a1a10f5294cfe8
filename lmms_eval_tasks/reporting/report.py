"""`report`: finished runs -> a folder with a page, plots, CSV files and a JSON file.

Layout of the folder::

    report.html            tables, differences, plots and samples
    report.json            all numbers, with the runs' protocol cards
    scores.csv             one line for each run, published row and score
    differences.csv        one line for each two runs and score
    plots/                 each plot as SVG and PNG
    samples/               what the page shows of each answer
"""

import csv
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks import __version__
from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.reporting.bootstrap import LEVEL, RESAMPLES, SEED
from lmms_eval_tasks.reporting.page import page
from lmms_eval_tasks.reporting.plots import drawings, save
from lmms_eval_tasks.reporting.runs import Run, find_runs
from lmms_eval_tasks.reporting.samples import write_samples
from lmms_eval_tasks.reporting.tables import described, fill

PAGE = "report.html"
_ENTRIES = {PAGE, "report.json", "scores.csv", "differences.csv", "plots", "samples"}


def report(logs: Sequence[str], folder: Path) -> dict[str, Any]:
    """Writes a report, in the place of an earlier one; no judge is asked.

    Args:
        logs: Sample logs, results folders and run records, each as it is or as ``NAME=PATH``.
        folder: Where to write it.

    Returns:
        What ``report.json`` holds: ``{"pack", "bootstrap", "tables", "plots", "samples"}``.

    Raises:
        PackError: A run cannot be read, or the folder cannot be written or holds something else.
    """
    _check(folder)
    runs = find_runs(logs)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            draft.chmod(0o755)
            whole = _write(runs, draft)
            if folder.exists():
                shutil.rmtree(folder)
            draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise PackError(f"--output {folder} cannot be written ({error.strerror or error})") from None
    return whole


def _check(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise PackError(f"--output {folder} is a file. Name a folder")
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    # An earlier report is thrown away whole, and nothing else may go with it.
    strange = sorted(there - _ENTRIES) or ([] if PAGE in there else sorted(there))
    if strange:
        raise PackError(listing(f"--output {folder} holds other files than a report. Name a new folder", strange))


def _write(runs: Sequence[Run], folder: Path) -> dict[str, Any]:
    tables = fill(runs)
    rows = list(dict.fromkeys(row for filled in tables for row in filled.rows))
    (folder / "plots").mkdir()
    plots = [(drawing, *save(drawing, folder / "plots")) for drawing in drawings(rows)]
    samples = write_samples([row.run for row in rows], folder)
    whole: dict[str, Any] = {
        "pack": __version__,
        "bootstrap": {"resamples": RESAMPLES, "seed": SEED, "level": LEVEL, "cluster": "video"},
        "tables": [described(filled) for filled in tables],
        "plots": [{"title": drawing.title, "files": [f"plots/{svg.name}", f"plots/{png.name}"]}
                  for drawing, svg, png in plots],
        "samples": samples,
    }  # fmt: skip
    (folder / "report.json").write_text(json.dumps(whole, indent=1, ensure_ascii=True) + "\n", "utf-8")
    _write_csv(folder / "scores.csv", _SCORES, _score_lines(whole["tables"]))
    _write_csv(folder / "differences.csv", _DIFFERENCES, _difference_lines(whole["tables"]))
    # Last, because it is what tells a report from other folders.
    (folder / PAGE).write_text(page(tables, [(drawing, svg) for drawing, svg, _ in plots], samples), "utf-8")
    return whole


_SCORES = ("table", "source", "run", "task", "judge", "score", "value", "low", "high", "coverage", "scored", "unjudged",
           "no_answer", "excluded", "unread", "truncated")  # fmt: skip
_DIFFERENCES = ("table", "one", "one_task", "other", "other_task", "items", "score", "value", "low", "high", "p",
                "clear", "conditions_that_differ")  # fmt: skip


def _score_lines(tables: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for table in tables:
        for row in table["rows"]:
            judge = (row["card"]["judge"] or {}).get("model", "")
            facts = {"table": table["title"], "source": "run", "judge": judge, "coverage": row["coverage"]}
            for name, score in row["scores"].items():
                yield {"run": row["run"], "task": row["task"], **facts, **row["counts"], "score": name, **score}
        for model, scores in table["published"]["rows"].items():
            for name in table["columns"]:
                if name in scores:
                    yield {"table": table["title"], "source": "published", "run": model, "score": name,
                           "value": scores[name]}  # fmt: skip


def _difference_lines(tables: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for table in tables:
        for pair in table["differences"]:
            facts = {key: pair[key] for key in ("one", "one_task", "other", "other_task", "items")}
            conditions = " ".join(pair["conditions_that_differ"])
            for name, score in pair["scores"].items():
                yield {"table": table["title"], **facts, "score": name, **score, "conditions_that_differ": conditions}


def _write_csv(path: Path, columns: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(lines)
