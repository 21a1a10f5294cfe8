import json

import pytest

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.reporting.runs import find_runs

from .conftest import JUDGE, write_log
from .stand_ins import dialogues, questions


def labels(*given):
    return [(run.label, run.task) for run in find_runs([str(path) for path in given])]


def short(**more):
    return dialogues(1, videos=1, of_video=1, **more)


def judged_by(items, model):
    return [{**item, "card": {**item["card"], "judge": {**JUDGE, "model": model}}} for item in items]


def test_a_run_has_the_name_that_lmms_eval_wrote(tmp_path):
    write_log(tmp_path / "logs" / "folder", "some/where/Qwen/Qwen3-VL-8B", short())
    assert labels(tmp_path) == [("Qwen/Qwen3-VL-8B", "mt_video_bench")]


@pytest.mark.parametrize("results", [None, "", "[]", "{}", '{"model_name": ""}', "{"])
def test_or_else_its_folder_s(tmp_path, results):
    log = write_log(tmp_path / "Qwen__Qwen3-VL-8B", "", short())
    if results is not None:
        (log.parent / "20260101_000000_results.json").write_text(results)
    assert labels(tmp_path) == [("Qwen/Qwen3-VL-8B", "mt_video_bench")]


def test_or_the_one_that_is_given(tmp_path):
    log = write_log(tmp_path / "a=b", "model", short())
    assert labels(f"mine={log}") == [("mine", "mt_video_bench")]
    assert labels(f"a = 1={tmp_path}") == [("a = 1", "mt_video_bench")]
    assert labels(log) == [("model", "mt_video_bench")]


def test_tasks_and_models_of_one_folder_are_told_apart(tmp_path):
    write_log(tmp_path / "a", "a", short())
    write_log(tmp_path / "a", "a", short(task="mt_video_bench_no_context"))
    write_log(tmp_path / "a", "a", questions(1))
    write_log(tmp_path / "b", "b", short())
    (tmp_path / "b" / "20260101_000000_samples_videomme.jsonl").write_text('{"doc_id": 0}\n')
    assert labels(tmp_path) == [
        ("a", "mlvu_mc_dev"),
        ("a", "mt_video_bench"),
        ("a", "mt_video_bench_no_context"),
        ("b", "mt_video_bench"),
    ]


def test_judges_tell_runs_of_a_model_apart_then_times_then_numbers(tmp_path):
    write_log(tmp_path / "1", "m", judged_by(short(), "gemini"))
    write_log(tmp_path / "2", "m", judged_by(short(), "gpt"))
    write_log(tmp_path / "2", "m", judged_by(dialogues(2, videos=1, of_video=1), "gpt"), stamp="20260102_000000")
    write_log(tmp_path / "3", "m", judged_by(short(), "gpt"), stamp="20260102_000000")
    write_log(tmp_path / "4", "other", short())
    assert [label for label, _ in labels(tmp_path)] == [
        "m, judged by gemini",
        "m, judged by gpt, 20260101_000000",
        "m, judged by gpt, 20260102_000000, run 3",
        "m, judged by gpt, 20260102_000000, run 4",
        "other",
    ]


def test_run_records_are_one_run(tmp_path):
    items = short()
    for rank in range(2):
        lines = "".join(json.dumps(item) + "\n" for item in items[rank::2])
        (tmp_path / f"20260101-000000-000000-mt_video_bench-host-{rank}.jsonl").write_text(lines)
    [run] = find_runs([f"mine={tmp_path}"])
    assert run.label == "mine" and len(run.items) == len(items)


def test_everything_wrong_is_said_at_once(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.jsonl").write_text("{\n{}\n")
    with pytest.raises(PackError) as raised:
        find_runs([str(tmp_path / "nowhere"), str(tmp_path / "empty"), str(tmp_path / "bad.jsonl")])
    text = str(raised.value)
    assert "nowhere does not exist" in text and "No result of our tasks" in text and "bad.jsonl, line 1" in text
