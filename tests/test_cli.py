import json
from pathlib import Path

import pytest

from lmms_eval_tasks import __version__
from lmms_eval_tasks.benchmarks import groups, tasks
from lmms_eval_tasks.cli import main
from lmms_eval_tasks.settings import PREFIX

TASKS = {
    "mt_video_bench",
    "mt_video_bench_object_reference",
    "mt_video_bench_memory_recall",
    "mt_video_bench_content_summary",
    "mt_video_bench_answer_refusal",
    "mt_video_bench_topic_shifting",
    "mt_video_bench_proactive_interaction",
    "mt_video_bench_no_context",
    "mt_video_bench_self",
    "mt_video_bench_chat",
}


def test_the_public_names():
    assert {name for name in tasks() if name.startswith("mt_video_bench")} == TASKS


def test_list_tells_what_is_prepared(mt_prepared, capsys):
    assert main(["list"]) == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert set(lines) == set(tasks()) | set(groups()) and lines["mt_video_bench"] == "24 questions"
    assert lines["mt_video_bench_memory_recall"] == "4 questions"


def test_list_without_any_dataset(capsys):
    assert main(["list", "--json"]) == 0
    states = json.loads(capsys.readouterr().out)
    assert {states[name] for name in tasks()} == {"not prepared"}
    assert states["mlvu"] == "group of mlvu_mc_dev, mlvu_gen_dev"


def test_path_is_the_folder_for_include_path(capsys):
    assert main(["path"]) == 0
    assert (Path(capsys.readouterr().out.strip()) / "mt_video_bench" / "mt_video_bench.yaml").is_file()


def test_doctor_finds_nothing_wrong(mt_prepared, judge_server, capsys):
    status = main(["doctor"])
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert "24 questions, 4 of 4 videos found" in printed and "test-judge at" in printed
    assert "sk-secret" not in printed


PROBLEMS = {
    "a judge that is not there": ({"JUDGE_BASE_URL": "http://127.0.0.1:9/v1"}, "judge", "cannot be reached"),
    "a dataset that is not there": ({"DATA_MT_VIDEO_BENCH": "/nowhere"}, "mt_video_bench", "not a prepared dataset"),
    "a misspelt setting": ({"JUDGE_MODELL": "x"}, "settings", "JUDGE_MODELL"),
    "a bad setting": ({"FRAMES": "x"}, "settings", "FRAMES='x'"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_doctor_names_problem_and_remedy(mt_prepared, judge_server, monkeypatch, capsys, name):
    variables, subject, text = PROBLEMS[name]
    for variable, value in variables.items():
        monkeypatch.setenv(PREFIX + variable, value)
    assert main(["doctor", "--json"]) == 1
    problems = [finding for finding in json.loads(capsys.readouterr().out) if not finding["ok"]]
    assert [finding["subject"] for finding in problems] == [subject]
    assert text in problems[0]["text"]


def test_doctor_counts_missing_videos(mt_prepared, judge_server, capsys):
    (mt_prepared / "videos" / "car_talk.mp4").unlink()
    assert main(["doctor"]) == 1
    assert "3 of 4 videos found" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and __version__ in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["prepare"], ["prepare", "other", "--source", "."]])
def test_a_wrong_command_line_ends_with_status_2(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
