"""Judging that is killed, or fails, and is finished by `score`: the same numbers, and no verdict paid for twice."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from lmms_eval_tasks.judging import pool as pool_module
from lmms_eval_tasks.judging.client import Judge
from lmms_eval_tasks.results.score import score
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import Fault, rule_based, scripted_fault

pytestmark = pytest.mark.usefixtures("quick_retries")

NAME = "mt_video_bench"
IN_FLIGHT = 4
REPEATS = 2
CALLS = 24 * REPEATS

# Imports once, then forks a process for each line "HOME run" or "HOME score", which is killed or not.
NURSERY = """
import os, sys
from pathlib import Path
from lmms_eval_tasks import canonical
from lmms_eval_tasks.mt_video_bench import task
from lmms_eval_tasks.results.score import score
from utils.sample_release import sample_answers

docs = list(task.process_docs(canonical.opened("mt_video_bench").rows()))
said = sample_answers(Path(sys.argv[1]))
import openai
for line in sys.stdin:
    home, what = line.split()
    child = os.fork()
    if child:
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)
        continue
    os.environ["LMMS_EVAL_TASKS_HOME"] = home
    if what == "run":
        task.score([task.process_results(doc, [said[doc["question"]]])["overall"] for doc in docs])
    else:
        score([Path(home) / "runs"])
    os._exit(0)
"""


class Nursery:
    """Processes that judge, and that can be killed."""

    def __init__(self, release):
        root = Path(__file__).parents[2]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", NURSERY, str(release)], cwd=root, **pipes)

    def start(self, home, what):
        print(home, what, file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def end(self):
        return int(self.process.stdout.readline())


@pytest.fixture
def nursery(mt_release, mt_prepared, judge_server, monkeypatch):
    for name, value in {"REPEATS": REPEATS, "CONCURRENCY": IN_FLIGHT, "TIMEOUT": 20}.items():
        monkeypatch.setenv(f"{PREFIX}JUDGE_{name}", str(value))
    monkeypatch.setenv(f"{PREFIX}DATA_MT_VIDEO_BENCH", str(mt_prepared))
    found = Nursery(mt_release)
    yield found
    found.process.kill()
    found.process.wait()


def wait_for(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.001)


def killed(nursery, server, home, what, calls):
    """Starts a process, and kills it when it has sent so many requests; how many it has sent."""
    before = len(server.requests)
    child = nursery.start(home, what)
    records = home / "runs"
    wait_for(lambda: records.is_dir() and sum(path.read_bytes().count(b"\n") for path in records.iterdir()) == 24)
    wait_for(lambda: len(server.requests) - before >= calls)
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(nursery.end()) == signal.SIGKILL


def finished(home, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}HOME", str(home))
    pool_module._pool.cache_clear()
    return score([home / "runs"])[NAME]


def numbers(result):
    return [result[key] for key in ("metrics", "coverage", "counts", "judge", "card", "breakdowns", "notes")]


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_a_killed_run_ends_in_the_numbers_of_an_uninterrupted_one(nursery, judge_server, tmp_path, monkeypatch, kills):
    judge_server.latency = 0.02
    whole = tmp_path / "whole"
    nursery.start(whole, "run")
    assert nursery.end() == 0
    assert len(judge_server.requests) == CALLS
    expected = finished(whole, monkeypatch)
    assert len(judge_server.requests) == CALLS
    assert expected["coverage"] == 100 and 0 < expected["metrics"]["overall"] < 100

    dice = random.Random(os.urandom(8))
    for number in range(kills):
        home = tmp_path / str(number)
        judge_server.reset()
        deaths = 1
        killed(nursery, judge_server, home, "run", dice.randint(0, CALLS - 8))
        if len(judge_server.requests) < CALLS - 2 * IN_FLIGHT:
            # `score` can be killed as well.
            killed(nursery, judge_server, home, "score", dice.randint(1, IN_FLIGHT))
            deaths += 1
        assert numbers(finished(home, monkeypatch)) == numbers(expected)
        assert CALLS <= len(judge_server.requests) <= CALLS + deaths * IN_FLIGHT
        paid = len(judge_server.requests)
        assert numbers(finished(home, monkeypatch)) == numbers(expected)
        assert len(judge_server.requests) == paid


BAD_DAY = [
    Fault("status", status=429, message="slow down", retry_after=0.01),
    Fault("status", status=429, message="slow down"),
    Fault("status", status=500, message="boom"),
    Fault("status", status=502),
    Fault("status", status=503, message="overloaded"),
    Fault("status", status=400, message="no", code="content_filter"),
    Fault("status", status=400, message="context too long"),
    Fault("status", status=200, message="an error in place of choices"),
    Fault("hang", seconds=2),
    Fault("drip", seconds=4),
    Fault("cut"),
    Fault("nonsense"),
    Fault("empty"),
]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_judge_that_fails_often_ends_in_the_same_numbers(make_run, judge_server, home, set_judge, monkeypatch, seed):
    set_judge(repeats=REPEATS, timeout=0.4, concurrency=16)
    run = make_run().process()
    metrics, _ = run.metrics()
    record = next((home / "runs").iterdir())
    expected = score([record])[NAME]

    # Without the SDK's retries every fault costs a judgement; without the verdicts all is asked again.
    monkeypatch.setattr(pool_module, "Judge", partial(Judge, retries=0))
    monkeypatch.setattr(pool_module, "REASKS", 0)
    monkeypatch.setenv(f"{PREFIX}HOME", str(home / "another"))
    pool_module._pool.cache_clear()
    judge_server.reset()
    judge_server.reply, judge_server.faults = rule_based(), {"rate": 0.3, "kinds": BAD_DAY, "seed": seed}
    coverages = []
    while not coverages or coverages[-1] < 100:
        result = score([record])[NAME]
        coverages.append(result["coverage"])
        assert sum(result["counts"].values()) == 24
        assert result["metrics"].keys() <= metrics.keys()
        assert len(coverages) < 30
    assert len(coverages) > 1 and coverages == sorted(coverages)
    assert numbers(result) == numbers(expected)
    good = [n for n in range(len(judge_server.requests)) if not scripted_fault(judge_server.faults, n)]
    assert len(good) == CALLS
