"""Releases of nearly the right shape: read, with what is wrong excluded or noted, or refused in words."""

import json
import tempfile
from pathlib import Path
from types import ModuleType

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.benchmarks import room
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media.sources import check_name
from lmms_eval_tasks.releases import videos_of
from lmms_eval_tasks.text import digest
from tests.fuzz import folders
from tests.fuzz.running import fuzz

_CHECKS = {"round index": 2, "Q1": "Is it red?", "A1": "Yes", "Q2": "Is it blue?", "A2": "No"}
_ROUNDS = {f"Round {n}": {"User": f"What is {n}?", "Assistant": "A dog.", "Ability": "Others"} for n in (1, 2)}
_ORDER = {
    "id": "7",
    "query": "Sort: Video 1: <video>Video 2: <video>",
    "video_options": ["a.mp4", "b.mp4"],
    "options": ["1", "2"],
    "answer": "2, 1",
}
_GAIT = {**_ORDER, "id": "r.mp4", "query": "Ref: <video> Video 1: <video>Video 2: <video>", "answer": "2"}
_PLOT = {
    "video": "v.mp4",
    "duration": 246,
    "question": "What colour is it?",
    "candidates": ["Yellow", "Red", "Green", "Blue"],
    "answer": "Red",
    "question_type": "plotQA",
}
_CAPTION = {
    "video": "v.mp4",
    "question": "Describe it.",
    "answer": "A man runs.",
    "question_type": "subPlot",
    "scoring_points": ["A man runs"],
}
_TEST = {**_PLOT, "candidates": list("uvwxyz"), "answer": "x", "question_id": "AR_0"}
_WRITTEN = {
    "video_name": "v.mp4",
    "question": "What?\n(A) Yellow\n(B) Red",
    "candidates": ["Yellow", "Red", "Green", "Blue"],
    "answer": "B",
    "task_type": "plotQA",
    "question_id": "PQA_0",
}
_FILM = {
    "video_id": "v",
    "question": "Which order?",
    "options": ["A. one", "B. two", "C. three"],
    "answer": "B",
    "sub_questions": [{"question": "Who?", "answer": "Ann"}, {"question": "Where?", "answer": "At home"}],
    "title": "Rain",
    "duration": "10:12",
}

# Benchmark -> its release's files, with whether they are JSON lines, and what is in them.
RELEASES = {
    "mt_video_bench": {
        "mtqa/memory_recall.json": (False, {"v.mp4": [{"event_index": 1, "mtqa": _ROUNDS, "scenes": 3}]}),
        "checklist/memory_recall_CheckList.json": (False, {"v.mp4": {"1": [_CHECKS]}}),
    },
    "mvpbench": {"gait/gait.jsonl": (True, [_GAIT, _GAIT]), "clarity/clarity.jsonl": (True, [_ORDER])},
    "mlvu": {
        "1_plotQA.json": (False, [_PLOT, _PLOT]),
        "8_sub_scene.json": (False, [_CAPTION]),
        "test_multi_choice_tasks.json": (False, [_TEST]),
        "copy.jsonl": (True, [{**_WRITTEN, "task_type": "needle"}]),
    },
    "scvbench": {"scvbench.jsonl": (True, [_FILM, {"video_id": "w", "questions": [_FILM]}])},
}


def _read(benchmark: str, files: dict[str, bytes], names: list[str]) -> None:
    reader = room(benchmark, "release")
    with tempfile.TemporaryDirectory() as folder:
        source = folders.place(Path(folder), files, names)
        folders.around(source)
        try:
            found = reader.read(source)
        except PackError as error:
            assert str(error).strip() and folder in str(error)
            return
    _sound(reader, found)


def _sound(reader: ModuleType, found: object) -> None:
    """What all that comes later relies on: names, ids, and texts that parquet takes."""
    rows = [row for of in found.rows.values() for row in of]
    ids = [row["id"] for row in rows]
    assert all(isinstance(name, str) and name for name in ids) and len(set(ids)) == len(ids)
    for row in rows:
        if reader.questions(row):
            for name in videos_of(row):
                check_name(name)
    pyarrow.Table.from_pylist(rows, schema=reader.features().arrow_schema)
    assert digest(rows)
    assert all(isinstance(line, str) for line in found.notes)
    assert (
        all(entry["id"] in ids and isinstance(entry["reason"], str) for entry in found.excluded) or "turns" in rows[0]
    )


@pytest.mark.parametrize("benchmark", RELEASES)
def test_the_right_release_is_read_and_sound(benchmark, tmp_path):
    files = RELEASES[benchmark]
    written = {name: _plain(*of) for name, of in files.items()}
    source = folders.place(tmp_path, written, ["{}"] * len(written))
    found = room(benchmark, "release").read(source)
    assert found.excluded == [] and sum(map(len, found.rows.values())) >= 1
    _sound(room(benchmark, "release"), found)


def _plain(lines: bool, value: object) -> bytes:
    return ("\n".join(map(json.dumps, value)) if lines else json.dumps(value)).encode()


@pytest.mark.parametrize("benchmark", RELEASES)
@fuzz
@given(data=st.data())
def test_a_release_is_read_or_refused_in_words(benchmark, data):
    files = {name: data.draw(folders.written(value, lines)) for name, (lines, value) in RELEASES[benchmark].items()}
    _read(benchmark, files, data.draw(folders.names(len(files))))


_LONG = "9" * 5000
# What once ended in a traceback: a file of a release, and what is in it.
FOUND = [
    (
        "mt_video_bench",
        "checklist/memory_recall_CheckList.json",
        {"v.mp4": {"1": [{**_CHECKS, f"Q{_LONG}": "Is it?"}]}},
    ),
    ("mt_video_bench", "checklist/memory_recall_CheckList.json", {"v.mp4": {"1": [{**_CHECKS, "round index": _LONG}]}}),
    ("mt_video_bench", "mtqa/memory_recall.json", {"v.mp4": [{"event_index": 1, "mtqa": {f"Round {_LONG}": {}}}]}),
    ("mt_video_bench", "mtqa/memory_recall.json", {"\ud800": [{"event_index": 1, "mtqa": _ROUNDS}]}),
    ("mt_video_bench", "mtqa/memory_recall.json", {"v": [{"event_index": "\ud800", "mtqa": _ROUNDS}]}),
    ("mlvu", "1_plotQA.json", [{**_PLOT, "question": "\ud800"}]),
    ("mlvu", "copy.jsonl", [{**_WRITTEN, "task_type": "needle", "candidates": ["\ud800", "b"]}]),
]


@pytest.mark.parametrize(("benchmark", "file", "content"), FOUND)
def test_what_was_found(benchmark, file, content):
    files = {name: _plain(*of) for name, of in RELEASES[benchmark].items()}
    files[file] = _plain(file.endswith(".jsonl"), content)
    _read(benchmark, files, ["{}"] * len(files))
