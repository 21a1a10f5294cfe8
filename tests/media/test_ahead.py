"""Clips made ahead: all of them, in the background, by many processes at once, and under the knife."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media import ahead, clips
from lmms_eval_tasks.media.clips import sampled
from lmms_eval_tasks.media.sampling import Sampling
from lmms_eval_tasks.settings import PREFIX
from tests.media import films

SMALL = Sampling(frames=16)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def twenty(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("twenty")
    return [films.write(folder / f"{k}.mp4", 30 + k) for k in range(20)]


def made(home: Path) -> list[Path]:
    return sorted(home.rglob("clips/*.mp4"))


def python(code: str, *arguments: object, **kwargs: object) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, **kwargs)


ALL = """
import sys
from pathlib import Path
from lmms_eval_tasks.media.clips import sampled
from lmms_eval_tasks.media.sampling import Sampling
for path in sys.argv[1:]:
    print(sampled(Path(path), Sampling(frames=16)), flush=True)
"""


def test_all_with_failures_and_repetitions(twenty, tmp_path, home, capsys):
    (tmp_path / "bad.mp4").write_bytes(b"bad")
    paths = [*twenty[:3], tmp_path / "bad.mp4", *twenty[:3], tmp_path / "gone.mp4"]
    failures = ahead.make_all([(path, SMALL) for path in paths], workers=2)
    assert ["bad.mp4" in failures[0], "gone.mp4" in failures[1]] == [True, True]
    assert len(failures) == 2
    assert len(made(home)) == 3
    assert "5/5" in capsys.readouterr().err
    before = [path.stat().st_mtime_ns for path in made(home)]
    assert ahead.make_all([(path, SMALL) for path in twenty[:3]], progress=False) == []
    assert [path.stat().st_mtime_ns for path in made(home)] == before
    assert capsys.readouterr() == ("", "")


def test_shards_are_disjoint_and_complete():
    jobs = [(Path(f"{k}"), SMALL) for k in range(10)] * 2
    parts = [ahead.shard(jobs, f"{k}/3") for k in (1, 2, 3)]
    assert sorted(job for part in parts for job in part) == sorted(set(jobs))
    assert [len(part) for part in parts] == [4, 3, 3]
    for senseless in ("0/3", "4/3", "1", "a/b", "1/0", "-1/3"):
        with pytest.raises(PackError, match="I/N"):
            ahead.shard(jobs, senseless)


def test_prefetch_works_in_order_and_says_nothing(twenty, tmp_path, home, capfd):
    (tmp_path / "bad.mp4").write_bytes(b"bad")
    running = ahead.prefetch([(path, SMALL) for path in [tmp_path / "bad.mp4", *twenty[:4]]], workers=1)
    running.wait()
    assert capfd.readouterr() == ("", "")
    order = sorted(made(home), key=lambda path: path.stat().st_mtime_ns)
    assert order == [clips.clip_of(path, SMALL, home) for path in twenty[:4]]
    with pytest.raises(PackError, match=r"bad\.mp4"):
        sampled(tmp_path / "bad.mp4", SMALL)


def test_prefetch_stops(twenty, home):
    running = ahead.prefetch([(path, SMALL) for path in twenty], workers=1)
    running.stop()
    running.wait()
    assert len(made(home)) <= 1


def test_prefetch_leaves_a_full_cache_alone(twenty, home, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}CLIP_CACHE_GB", "1e-5")
    running = ahead.prefetch([(path, SMALL) for path in twenty[:6]], workers=1)
    running.wait()
    assert len(made(home)) < 6


def test_no_prefetch_without_clips(twenty, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}CLIPS", "0")
    assert ahead.prefetch([(twenty[0], SMALL)]) is None


def test_eight_processes_make_each_clip_once(twenty, home, tmp_path):
    # Whoever makes a clip starts a worker, which this counts.
    counter = tmp_path / "site"
    counter.mkdir()
    log = tmp_path / "made"
    (counter / "sitecustomize.py").write_text(
        f"import sys\nif 'worker' in str(sys.orig_argv):\n    print('made', file=open({str(log)!r}, 'a'))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(counter)}
    processes = [python(ALL, *twenty, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    said = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    assert said == [said[0]] * 8
    assert len(set(said[0])) == 20
    assert len(log.read_text().split()) == 20
    assert not list(home.rglob("*.part"))
    for k, clip in enumerate(said[0]):
        assert films.by_pyav(Path(clip))[0] == films.by_decord(Path(clip))[0]
        assert films.by_pyav(Path(clip))[0][-1] == 29 + k


def workers_of(home: Path) -> list[int]:
    """Processes that write below a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"media.worker" in command and str(home).encode() in command:
                found.append(int(entry.name))
    return found


def until(condition, limit=20.0):
    began = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() - began < limit
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("victim", ["parent", "worker"])
def test_killed_in_the_middle(tmp_path, home, victim):
    source = films.write(tmp_path / "a.mp4", 1500, size=(640, 360))
    sampling = Sampling(frames=16)
    process = python(ALL, source, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until(lambda: list(home.rglob("*.part")))
    worker = until(lambda: workers_of(home))
    os.kill(process.pid if victim == "parent" else worker[0], signal.SIGKILL)
    assert process.wait() != 0
    until(lambda: not workers_of(home))
    assert not made(home)
    clip = sampled(source, sampling)
    assert films.by_decord(clip)[0][-1] == 1499
    assert not list(home.rglob("*.part"))


@pytest.mark.slow
def test_killed_at_any_moment(twenty, home):
    """Whenever a writer is killed, nothing broken is ever read."""
    for k in range(12):
        process = python(ALL, *twenty, stdout=subprocess.DEVNULL)
        time.sleep(0.3 + 0.15 * k)
        process.kill()
        process.wait()
        for path in made(home):
            assert len(films.by_pyav(path)[0]) == 16
    assert ahead.make_all([(path, SMALL) for path in twenty], progress=False) == []
    assert len(made(home)) == 20


def test_a_parent_that_forks_and_threads_is_no_problem(twenty, home):
    """A clip is made in a forked child of a process with threads, as data loaders are."""
    code = """
import os, sys, threading
from pathlib import Path
from lmms_eval_tasks.media import ahead
from lmms_eval_tasks.media.clips import sampled
from lmms_eval_tasks.media.sampling import Sampling
jobs = [(Path(path), Sampling(frames=16)) for path in sys.argv[1:]]
ahead.prefetch(jobs, workers=2)
child = os.fork()
for path, sampling in jobs:
    sampled(path, sampling)
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""
    assert python(code, *twenty[:6]).wait(60) == 0
    assert len(made(home)) == 6
