"""A published dataset for tests, made once by the real upload, and the commands that make and use it."""

import os
import tempfile
from functools import cache
from pathlib import Path

from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import ROOT, command
from utils.hub_server import HubServer
from utils.sample_release import make_mt_video_bench

REPO = "org/mt"
DATA = f"{PREFIX}DATA_MT_VIDEO_BENCH"


def upload(server, cache, *options, status=0, repo=REPO, **environment):
    """Runs `python -m hf_upload mt_video_bench` and returns what it printed."""
    arguments = ("python", "-m", "hf_upload", "mt_video_bench", "--repo", repo, *options)
    return command(*arguments, cwd=ROOT, status=status, **{**server.environment(cache), **environment})


def use(server, cache, code, data=REPO, status=0, **environment):
    """Runs Python that has the dataset on the server as `prepared`, and returns what it printed."""
    start = "from lmms_eval_tasks import canonical\nprepared = canonical.opened('mt_video_bench')\n"
    return command(
        "python", "-c", start + code, cwd=ROOT, status=status,
        **{**server.environment(cache), DATA: data, "HF_HUB_DISABLE_PROGRESS_BARS": "1", **environment},
    )  # fmt: skip


@cache
def published() -> dict[str, bytes]:
    """The files of the sample release as they are published."""
    folder = Path(tempfile.mkdtemp(prefix="published-"))
    release = make_mt_video_bench(folder / "release")
    home = {f"{PREFIX}HOME": folder / "home"}
    command("lmms-eval-tasks", "prepare", "mt_video_bench", "--source", release, cwd=ROOT, **home)
    with HubServer() as server:
        upload(server, folder / "hf", "--yes", **home)
        return server.files(REPO)


def videos(server):
    """Names of the videos that were downloaded, one for each time."""
    asked = [request for request in server.requests if request.method == "GET" and "/resolve/" in request.path]
    return [os.path.basename(request.path) for request in asked if "/videos/" in request.path]
