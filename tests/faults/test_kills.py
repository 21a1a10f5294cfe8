"""kill -9 at any moment of prepare, clip making and upload; tests/results/test_resume.py does so while it judges."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import count

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.media import shelf
from lmms_eval_tasks.prepare import make_clips, prepare
from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import ROOT
from tests.hf_upload.publishing import published
from utils.hub_server import HubServer

pytestmark = pytest.mark.slow

# Imports once, then forks a process for each line "JOB ARGUMENT SECONDS", which is killed when it takes longer.
NURSERY = """
import os, signal, sys, time
from hf_upload.__main__ import main
from lmms_eval_tasks.prepare import make_clips, prepare
import datasets, pyarrow.parquet, huggingface_hub
JOBS = {
    "prepare": lambda release: prepare("mt_video_bench", release),
    "clips": lambda _: make_clips("mt_video_bench"),
    "upload": lambda repo: main(["mt_video_bench", "--repo", repo, "--yes"]),
}
for line in sys.stdin:
    job, argument, seconds = line.split()
    began, child = time.monotonic(), os.fork()
    if not child:
        # What the job prints is none of the conversation.
        os.dup2(2, 1)
        os._exit(1 if JOBS[job](argument) == 1 else 0)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() - began > float(seconds):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    print(ended[1], flush=True)
"""


class Nursery:
    """Processes that do a job, and that can be killed."""

    def __init__(self, **environment):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY], cwd=ROOT, env={**os.environ, **environment}, **pipes
        )
        self.seconds = 0.0

    def run(self, job, argument="-"):
        """Does the whole job, and notes the seconds that it takes."""
        began = time.monotonic()
        assert self._status(job, argument, 1000) == 0
        self.seconds = max(self.seconds, time.monotonic() - began)

    def kill(self, dice, job, argument="-"):
        """Kills the job at a random moment; whether it was still at work."""
        status = self._status(job, argument, dice.uniform(0, self.seconds))
        assert status in (0, signal.SIGKILL)
        if status == 0:
            self.seconds *= 0.8
        return status == signal.SIGKILL

    def _status(self, *line):
        print(*line, file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())


@pytest.fixture
def nursery():
    started = []

    def start(**environment):
        started.append(Nursery(**environment))
        return started[0]

    yield start
    for found in started:
        found.process.kill()
        found.process.wait()


@pytest.fixture
def dice():
    return random.Random(os.urandom(8))


def test_prepare(nursery, dice, mt_release):
    jobs = nursery()
    jobs.run("prepare", mt_release)
    fingerprint, rows = (
        canonical.opened("mt_video_bench").fingerprint,
        canonical.opened("mt_video_bench").rows().to_list(),
    )
    killed = 0
    while killed < 35:
        killed += jobs.kill(dice, "prepare", mt_release)
        assert canonical.opened("mt_video_bench").fingerprint == fingerprint
        assert canonical.opened("mt_video_bench").rows().to_list() == rows
    prepare("mt_video_bench", mt_release)
    assert canonical.opened("mt_video_bench").rows().to_list() == rows


def test_clips(nursery, dice, mt_prepared, home, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "4")
    monkeypatch.setenv(f"{PREFIX}LONG_SIDE", "64")
    jobs, folder = nursery(), home / "clips"
    jobs.run("clips")
    expected = {path.name: path.read_bytes() for path in folder.glob("*.mp4")}
    killed = 0
    while killed < 35:
        for name in dice.sample(sorted(expected), 2):
            (folder / name).unlink(missing_ok=True)
        killed += jobs.kill(dice, "clips")
        assert all(shelf.whole(path) for path in folder.glob("*.mp4"))
    assert make_clips("mt_video_bench") == []
    assert {path.name: path.read_bytes() for path in folder.glob("*.mp4")} == expected
    assert list(folder.glob("*.part")) == []


def is_whole(files, expected):
    """Whether these are all files of the dataset, as its manifest lists them; the card holds the repository's name."""
    listed = {path: entry["sha256"] for path, entry in json.loads(files["manifest.json"])["files"].items()}
    found = {path: hashlib.sha256(content).hexdigest() for path, content in files.items() if path != "manifest.json"}
    own = ("manifest.json", "README.md")
    same = all(files.get(path) == content for path, content in expected.items() if path not in own)
    return same and found == listed and files.keys() == expected.keys()


def test_upload(nursery, dice, mt_prepared, tmp_path):
    with HubServer() as server:
        jobs = nursery(**server.environment(tmp_path / "hf"), HF_HUB_DISABLE_PROGRESS_BARS="1")
        jobs.run("upload", "org/whole")
        expected = server.files("org/whole")
        assert is_whole(expected, published())
        killed, numbers = 0, count()
        while killed < 20:
            repo = f"org/mt-{next(numbers)}"
            killed += jobs.kill(dice, "upload", repo)
            there = {}
            with suppress(KeyError):  # Its repository was not made yet.
                there = server.files(repo)
            # What lists the videos comes after them: whoever loads it finds all that it names.
            assert "manifest.json" not in there or is_whole(there, expected)
            jobs.run("upload", repo)
            assert is_whole(server.files(repo), expected)
