"""Real multi-process runs: the numbers and the items of any number of ranks are those of one."""

import json
from pathlib import Path

import pytest

from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import ROOT, command, metrics
from utils.sample_release import sample_answers


@pytest.fixture
def run(mt_prepared, mt_release, judge_server, monkeypatch, tmp_path):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "8")
    monkeypatch.setenv(f"{PREFIX}LONG_SIDE", "64")
    monkeypatch.setenv(f"{PREFIX}JUDGE_REPEATS", "2")
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps(sample_answers(mt_release)))

    def run(ranks, *limit, task="mt_video_bench"):
        # A judge of its own for each number of ranks, so that no verdict is on disk.
        monkeypatch.setenv(f"{PREFIX}JUDGE_MODEL", f"judge-of-{ranks}")
        output = tmp_path / f"{ranks}.json"
        script = Path(__file__).with_name("one_rank.py")
        command(
            "torchrun", "--standalone", "--nproc_per_node", ranks, script, task, answers, output, *limit,
            cwd=tmp_path, PYTHONPATH=ROOT,
        )  # fmt: skip
        return json.loads(output.read_text())

    return run


def comparable(found):
    """Items by id, without what names the judge."""
    kept = ("answers", "status", "score", "verdicts", "checklist", "skipped")
    return {item["id"]: {key: item[key] for key in kept} for item in found["items"]}


@pytest.mark.slow
def test_two_ranks_give_the_numbers_of_one(run, judge_server):
    one, two = run(1), run(2)
    assert metrics(one, "mt_video_bench") == metrics(two, "mt_video_bench")
    assert comparable(one) == comparable(two) and len(comparable(one)) == 24
    asked = [request["model"] for request in judge_server.requests]
    # The check before the run, and two judgements of 24 answers: nothing is judged twice.
    assert asked.count("judge-of-1") == asked.count("judge-of-2") == 1 + 48


@pytest.mark.slow
def test_two_ranks_hold_the_conversations_of_one(run):
    task = "mt_video_bench_self"
    one, two = run(1, task=task), run(2, task=task)
    assert metrics(one, task) == metrics(two, task)
    assert comparable(one) == comparable(two) and len(comparable(one)) == 24


@pytest.mark.slow
def test_fewer_docs_than_ranks(run):
    found = run(3, 2)
    assert [item["status"] for item in found["items"]] == ["scored", "scored"]
    assert metrics(found, "mt_video_bench")["coverage"] == 100
