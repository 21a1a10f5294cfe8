"""True command-line runs, as a lab would call them."""

import json
import os
import subprocess
import sys
import time

import pytest

from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import BIN, ROOT, command, metrics
from utils.openai_server import OpenAIServer, rule_based
from utils.sample_release import sample_answers

KEY = "sk-a-key-that-must-not-be-seen"


@pytest.fixture
def server(mt_release):
    with OpenAIServer(reply=rule_based(sample_answers(mt_release))) as server:
        yield server


@pytest.fixture
def environment(server, home):
    return {
        f"{PREFIX}HOME": home,
        f"{PREFIX}JUDGE_BASE_URL": server.url,
        f"{PREFIX}JUDGE_MODEL": "judge",
        f"{PREFIX}JUDGE_API_KEY": KEY,
        f"{PREFIX}JUDGE_REPEATS": 2,
        f"{PREFIX}FRAMES": 8,
        f"{PREFIX}LONG_SIDE": 64,
        "HF_HOME": home / "hf",
    }


def arguments(server, *more):
    model = f"model_version=model,base_url={server.url},api_key=none,num_concurrent=4,max_frames_num=4"
    return ["lmms-eval", "--model", "openai", "--model_args", model, *more]


def write_other_task(folder):
    """A task of another pack, text alone."""
    folder.mkdir()
    (folder / "rows.json").write_text(json.dumps([{"question": "How many?", "answer": "seven"}]))
    (folder / "other.yaml").write_text(
        f"task: other\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {folder / 'rows.json'}}}}}\n"
        "test_split: test\noutput_type: generate_until\ndoc_to_text: question\ndoc_to_target: answer\n"
        "generation_kwargs: {until: []}\nmetric_list: [{metric: bypass}]\n"
    )
    return folder


@pytest.mark.slow
def test_the_whole_job(server, environment, mt_release, tmp_path):
    prepared = command(
        "lmms-eval-tasks", "prepare", "mt_video_bench", "--source", mt_release, cwd=tmp_path, **environment
    )
    assert "24" in prepared and "mt_video_bench" in prepared
    other = write_other_task(tmp_path / "others")
    printed = command(
        *arguments(server, "--tasks", "mt_video_bench,other", "--include_path", other, "--output_path", "logs"),
        "--log_samples", cwd=tmp_path, **environment,
    )  # fmt: skip
    for text in ("|mt_video_bench", "|proactive_interaction", "|coverage", "|other", "up to 48 calls"):
        assert text in printed
    [results_file] = (tmp_path / "logs").rglob("*_results.json")
    results = json.loads(results_file.read_text())
    assert results["usage"]["by_source"]["judge"]["n_api_calls"] == 48
    assert results["versions"]["mt_video_bench"] == "2-A"

    [log] = (tmp_path / "logs").rglob("*_samples_mt_video_bench.jsonl")
    expected = metrics(results, "mt_video_bench")
    for files in ([log], [tmp_path / "logs"], [home_runs(environment)], [log, home_runs(environment)]):
        printed = command("lmms-eval-tasks", "score", *files, "--json", cwd=tmp_path, **environment)
        found = json.loads(printed[printed.index("{\n") :])["mt_video_bench"]
        assert {**found["metrics"], "coverage": found["coverage"]} == expected
        assert found["counts"] == {
            "scored": 24, "unjudged": 0, "no_answer": 0, "excluded": 0, "unread": 0, "truncated": 0
        }  # fmt: skip
        assert found["judge"]["judgements"] == 48
    table = command("lmms-eval-tasks", "score", log, "--output", "scores.json", cwd=tmp_path, **environment)
    assert f"{expected['overall']:.2f}" in table and (tmp_path / "scores.json").exists()

    found = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    home = environment[f"{PREFIX}HOME"]
    found += [path for path in home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert found == [] and KEY not in printed


def home_runs(environment):
    return environment[f"{PREFIX}HOME"] / "runs"


@pytest.mark.slow
def test_what_is_missing_is_said_before_the_model_with_status_1(server, environment, tmp_path):
    printed = command(*arguments(server, "--tasks", "mt_video_bench"), cwd=tmp_path, status=1, **environment)
    assert "mt_video_bench is not prepared" in printed and "lmms-eval-tasks prepare mt_video_bench" in printed
    assert "Traceback" not in printed
    assert server.requests == []


@pytest.mark.slow
def test_two_runs_at_once_share_a_home(server, environment, mt_release, tmp_path):
    command("lmms-eval-tasks", "prepare", "mt_video_bench", "--source", mt_release, cwd=tmp_path, **environment)
    launchers = {
        "module": [str(BIN / "python"), "-m", "lmms_eval"],
        "accelerate": [str(BIN / "accelerate"), "launch", "--num_processes", "1", "-m", "lmms_eval"],
    }
    runs = [
        subprocess.Popen(
            [*launcher, *arguments(server, "--tasks", "mt_video_bench", "--output_path", name)[1:]],
            cwd=tmp_path,
            env={**os.environ, **{key: str(value) for key, value in environment.items()}},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for name, launcher in launchers.items()
    ]
    printed = [run.communicate(timeout=300)[0].decode() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], printed
    first, second = (
        metrics(json.loads(next((tmp_path / name).rglob("*_results.json")).read_text()), "mt_video_bench")
        for name in launchers
    )
    assert first == second and first["coverage"] == 100


@pytest.mark.slow
def test_a_run_killed_while_it_judges_loses_no_answer(server, environment, mt_release, tmp_path):
    command("lmms-eval-tasks", "prepare", "mt_video_bench", "--source", mt_release, cwd=tmp_path, **environment)
    whole = command(
        *arguments(server, "--tasks", "mt_video_bench", "--output_path", "whole"), cwd=tmp_path, **environment
    )
    assert "|coverage" in whole
    [results] = (tmp_path / "whole").rglob("*_results.json")
    expected = metrics(json.loads(results.read_text()), "mt_video_bench")

    fresh = {**environment, f"{PREFIX}HOME": tmp_path / "home"}
    command("lmms-eval-tasks", "prepare", "mt_video_bench", "--source", mt_release, cwd=tmp_path, **fresh)
    server.reset()
    answer = server.reply

    def slow_judge(body, n):
        if body["model"] == "judge" and "hecklist" in str(body["messages"]):
            server.wait(0.5)
        return answer(body, n)

    server.reply = slow_judge
    run = subprocess.Popen(
        [str(BIN / "lmms-eval"), *arguments(server, "--tasks", "mt_video_bench")[1:]],
        cwd=tmp_path,
        env={**os.environ, **{key: str(value) for key, value in fresh.items()}, f"{PREFIX}JUDGE_CONCURRENCY": "4"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    verdicts = tmp_path / "home" / "judgements"
    deadline = time.monotonic() + 120
    while sum(len(file.read_text().splitlines()) for file in verdicts.rglob("*.jsonl")) < 5:
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    run.kill()
    run.wait()
    [record] = (tmp_path / "home" / "runs").glob("*.jsonl")
    assert len(record.read_text().splitlines()) == 24
    server.reply = answer
    asked = len(server.requests)
    printed = command("lmms-eval-tasks", "score", record, "--json", cwd=tmp_path, **fresh)
    found = json.loads(printed[printed.index("{\n") :])["mt_video_bench"]
    assert {**found["metrics"], "coverage": found["coverage"]} == expected
    # 24 answers, judged twice; of those that were asked before the kill only the ones in flight are asked again.
    assert 48 - 5 - 4 <= len(server.requests) - asked <= 48 - 5


def test_verbs_help_and_fail_as_they_should(tmp_path):
    run = [sys.executable, "-m", "lmms_eval_tasks"]
    for verb in ("list", "path", "doctor", "prepare", "score"):
        done = subprocess.run([*run, verb, "--help"], capture_output=True, text=True, cwd=ROOT, check=True)
        assert verb in done.stdout
    done = subprocess.run([*run, "score", "nowhere.jsonl"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1 and "nowhere.jsonl: No such file" in done.stderr and "Traceback" not in done.stderr
