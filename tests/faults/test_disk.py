"""Disks that are full, read-only or without locks."""

import errno
import fcntl
import os
import resource
from contextlib import contextmanager

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.checks import home_problems
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media import clips
from lmms_eval_tasks.media.sampling import Sampling
from lmms_eval_tasks.prepare import make_clips, prepare
from lmms_eval_tasks.settings import PREFIX, load
from tests.end_to_end.running import ROOT
from tests.hf_upload.publishing import REPO, published, use
from utils.hub_server import HubServer


@contextmanager
def room_for(size):
    """No file may grow beyond a size in bytes: writing then fails as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 10, 3000])
def test_a_disk_that_fills_up_while_a_dataset_is_written_leaves_the_old_one(
    mt_prepared, mt_release, home, size, capsys
):
    fingerprint = canonical.opened("mt_video_bench").fingerprint
    before = sorted(os.listdir(home / "datasets"))
    # With `capsys` the progress bar is written to memory, not to a file.
    with room_for(size), pytest.raises(PackError, match=r"cannot be written .*File too large.*Free space"):
        prepare("mt_video_bench", mt_release, copy_videos=True)
    assert sorted(os.listdir(home / "datasets")) == before
    assert canonical.opened("mt_video_bench").fingerprint == fingerprint
    assert len(canonical.opened("mt_video_bench").rows()) == 12


# Linux refuses to make anything there, to root as well; a file in the place of a folder does so everywhere.
REFUSED = ["/proc/self/nowhere", "{home}/file/below"]


@pytest.mark.parametrize("place", REFUSED)
def test_a_home_that_takes_nothing_is_named_before_anything_is_done(mt_release, home, monkeypatch, place):
    (home / "file").touch()
    place = place.format(home=home)
    monkeypatch.setenv(f"{PREFIX}HOME", place)
    [problem] = home_problems(load())
    assert place in problem and "Set it to another folder" in problem
    with pytest.raises(PackError, match=r"cannot be written .*set LMMS_EVAL_TASKS_HOME to another folder"):
        prepare("mt_video_bench", mt_release)
    with pytest.raises(PackError, match="a clip cannot be written"):
        clips.sampled(mt_release / "videos" / "car_talk.mp4", Sampling(frames=4))


@pytest.mark.parametrize("name", ["ENOLCK", "ENOSYS", "ENOTSUP"])
def test_without_locks_in_home_clips_are_made_and_used(mt_prepared, home, monkeypatch, name):
    real, refused = fcntl.flock, []

    def flock(file, kind):
        number = file if isinstance(file, int) else file.fileno()
        if not os.path.realpath(f"/proc/self/fd/{number}").startswith(str(home.resolve())):
            return real(file, kind)
        refused.append(kind)
        raise OSError(getattr(errno, name), "no locks here")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setenv(f"{PREFIX}FRAMES", "4")
    monkeypatch.setenv(f"{PREFIX}LONG_SIDE", "64")
    assert make_clips("mt_video_bench") == []
    made = {path: path.stat().st_mtime_ns for path in (home / "clips").glob("*.mp4")}
    for video in ("car_talk", "meadow_rabbit"):
        assert canonical.clip("mt_video_bench", video) in map(str, made)
    assert refused and len(made) == 4 and made == {path: path.stat().st_mtime_ns for path in made}


# Part of every process that finds it on its path: no file below a folder can be locked.
NO_LOCKS = """
import errno, fcntl, os
real = fcntl.flock
def flock(file, kind):
    number = file if isinstance(file, int) else file.fileno()
    if os.path.realpath(f"/proc/self/fd/{{number}}").startswith({folder!r}):
        raise OSError(errno.{name}, "no locks here")
    return real(file, kind)
fcntl.flock = flock
"""


@pytest.mark.parametrize(
    ("where", "name", "said"),
    [
        ("home", "ENOLCK", "12 True"),
        ("home", "ENOSYS", "12 True"),
        ("hf", "ENOSYS", "12 True"),
        ("hf", "ENOLCK", "its cache needs a file system with locks, set HF_HOME"),
    ],
)
def test_without_locks_the_hub_is_used_or_the_message_says_what_to_do(tmp_path, where, name, said):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(NO_LOCKS.format(name=name, folder=str((tmp_path / where).resolve())))
    with HubServer() as server:
        server.put(REPO, published())
        code = "print(len(prepared.rows()), prepared.video('street_bikes').is_file())"
        found = use(
            server, tmp_path / "hf", code, status=int("True" not in said),
            **{f"{PREFIX}HOME": tmp_path / "home", "PYTHONPATH": f"{site}:{ROOT}"},
        )  # fmt: skip
        assert said in found.splitlines()[-1]


def test_a_home_that_takes_nothing_is_named_when_a_video_comes_from_the_hub(tmp_path):
    (tmp_path / "file").touch()
    with HubServer() as server:
        server.put(REPO, published())
        said = use(server, tmp_path / "hf", "", status=1, **{f"{PREFIX}HOME": tmp_path / "file"})
        assert said.splitlines()[-1].startswith("lmms_eval_tasks.errors.PackError: ")
        assert f"{tmp_path / 'file' / 'hub'} cannot be written (Not a directory)" in said
