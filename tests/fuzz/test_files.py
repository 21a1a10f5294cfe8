"""Files that came from elsewhere or were damaged: manifests, lists of files, logs."""

import copy
import json
import tempfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks import canonical, hub
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.judging.verdicts import VerdictStore
from lmms_eval_tasks.results.items import STATUSES
from lmms_eval_tasks.results.score import score, table
from tests.fuzz import folders
from tests.fuzz.running import fuzz

_FILE = {"size": 3, "sha256": "a" * 64}
_MANIFEST = {
    "format": canonical.FORMAT,
    "benchmark": "mlvu",
    "pack": "0.1",
    "fingerprint": "0" * 16,
    "configs": {"mc_dev": {"rows": 2, "questions": 1, "videos_of_a_question": [1]}},
    "videos": {"1_plotQA/v.mp4": ["mc_dev"], "w.mp4": ["mc_dev"]},
    "broken": ["w.mp4"],
    "excluded": [{"id": "x", "reason": "why"}],
    "hub": {"repo": "org/name", "revision": "0" * 40, "files": {"videos/w.mp4": _FILE}},
}


@fuzz
@given(folders.written(_MANIFEST))
def test_a_manifest_is_read_or_refused_in_words(data):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setenv("LMMS_EVAL_TASKS_DATA_MLVU", folder)
        (Path(folder) / hub.MANIFEST).write_bytes(data)
        try:
            prepared = canonical.opened("mlvu")
            assert isinstance(prepared.questions(), int) and isinstance(prepared.fingerprint, str)
            assert prepared.videos_of_a_question() is not None
            canonical.attributes("mlvu")("fingerprint")
            for name in {*prepared.missing_videos(), *prepared.not_fetched("mc_dev")}:
                assert name in prepared.video_names()
        except PackError as error:
            assert str(error).strip()


@fuzz
@given(folders.damaged({"videos/a.mp4": _FILE, "data/mc_dev.parquet": {"size": 1, "sha256": None}}))
def test_no_list_of_files_leads_out_of_its_folder(described):
    try:
        found = hub.files(described, "org/name")
    except PackError as error:
        assert "org/name" in str(error)
        return
    for path, file in found.items():
        assert not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts and "\\" not in path
        assert file.size >= 0


_CARD = {"version": "1-A", "prompts": {}, "sampling": {"clips": True}, "dataset": "0", "questions": 2, "judge": None}
_SKIPPED = {"id": "z", "status": "excluded", "reason": "why", "category": "plot_qa", "ability": "memory_recall"}
_ITEM = {"version": "1-A", "status": "scored", "score": 100.0, "skipped": [_SKIPPED]}
_JUDGE = {"model": "judge", "endpoint": "http://judge", "temperature": None, "repeats": 1}
ITEMS = {
    "mt_video_bench": {
        **_ITEM,
        **{"id": "memory_recall/v/1/2", "video": "v", "dialogue": "memory_recall/v/1", "ability": "memory_recall"},
        **{"turn": 2, "turns": 3, "seconds": 9.0, "scenes": 2, "answers": ["A dog."], "verdicts": [[["yes"]]]},
        "checklist": [{"question": "Is it red?", "expected": "yes"}],
        "judge": {"models": ["judge"], "judgements": 1, "input_tokens": 1, "output_tokens": 1},
        "card": {**_CARD, "judge": _JUDGE},
    },
    "mvpbench": {
        **_ITEM,
        **{"id": "gait/0", "video": "v", "subtask": "gait", "candidates": 3, "gold": [1], "chance": 0.25, "first": 1.0},
        **{"seconds": None, "answers": ["1", "2"], "choices": [[1], [2]], "unread": 1, "card": _CARD},
    },
    "mlvu_mc_dev": {
        **_ITEM,
        **{"id": "1_plotQA/0", "video": "v", "category": "plot_qa", "candidates": ["a", "b"], "letters": ["A"]},
        **{"seconds": 60.0, "answers": ["A"], "choices": ["A"], "question": "q", "answer": "a", "card": _CARD},
        "scoring_points": [],
    },
    "scvbench_pqa": {
        **_ITEM,
        **{"id": "v/1", "video": "v", "options": ["a", "b"], "letters": ["A"], "answers": ["A"], "choices": ["A"]},
        **{"sub_questions": 2, "seconds": 60.0, "card": _CARD},
        "without_history": {"answers": ["B"], "choices": ["B"], "score": 0.0, "status": "scored"},
    },
}
LOGS = {task: {**item, "task": task, "card": {**item["card"], "task": task}} for task, item in ITEMS.items()}


def _scored(task: str, data: bytes, sample: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / (f"20260101_samples_{task}.jsonl" if sample else f"20260101-{task}-host-1.jsonl")
        file.write_bytes(data)
        try:
            results = score([file])
        except PackError as error:
            assert str(error).strip()
            return
    for result in results.values():
        assert result["coverage"] is None or 0 <= result["coverage"] <= 100
        assert result["counts"].keys() >= set(STATUSES)
    assert table(results) and json.dumps(results)


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("task", LOGS)
def test_whole_logs_are_scored(task, sample, tmp_path):
    item = LOGS[task]
    lines = [
        {"doc_id": 0, "input": "x", "overall": item} if sample else item,
        {**item, "status": "unjudged", "id": "b"},
    ]
    file = tmp_path / f"20260101_samples_{task}.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    assert score([file])[task]["counts"]["scored"] >= 1


@pytest.mark.parametrize("task", LOGS)
@fuzz
@given(data=st.data())
def test_a_damaged_log_is_scored_or_refused_in_words(task, data):
    sample = data.draw(st.booleans())
    other = {**copy.deepcopy(LOGS[task]), "id": "b", "status": "unjudged"}
    lines = [{"doc_id": place, "overall": of} if sample else of for place, of in enumerate((LOGS[task], other))]
    _scored(task, data.draw(folders.written(lines, lines=True)), sample)


@fuzz
@given(
    folders.written(
        [{"key": "a", "value": ["yes"], "model": "m", "input_tokens": 1, "output_tokens": 1, "prompt": "p"}], True
    )
)
def test_damaged_verdicts_are_asked_for_again(data):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "verdicts.jsonl").write_bytes(data)
        verdict = VerdictStore(Path(folder)).get("a")
    assert verdict is None or (verdict.value is not None and isinstance(verdict.model, str))


# What once ended in a traceback, or without an end.
FOUND = [
    *(
        {"seconds": float("nan")},
        {"score": 1e308},
        {"score": float("nan")},
        {"id": []},
        {"task": {}},
        {"status": "odd"},
    ),
    *({"answers": []}, {"card": None}, {"card": {**_CARD, "judge": {**_JUDGE, "repeats": 10**30}}}, {"parts": [{}]}),
    *(
        {"card": {**_CARD, "judge": {}}},
        {"skipped": [{}]},
        {"judge": {**ITEMS["mt_video_bench"]["judge"], "models": [1]}},
    ),
]


@pytest.mark.parametrize("change", FOUND, ids=repr)
@pytest.mark.parametrize("task", LOGS)
def test_what_was_found(task, change):
    lines = [{**LOGS[task], **change, "status": change.get("status", status)} for status in ("scored", "unjudged")]
    _scored(task, "\n".join(map(json.dumps, lines)).encode(), sample=False)
