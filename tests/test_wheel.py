"""The wheel, built and installed into an empty folder."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lmms_eval_tasks.benchmarks import groups, tasks

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "lmms_eval_tasks"):
        # Links keep stale build folders of the checkout out of the wheel.
        (source / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_it_holds_the_task_files_and_nothing_of_the_checkouts_tools(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    room = "lmms_eval_tasks/mt_video_bench/"
    for name in ("mt_video_bench.yaml", "_default_template_yaml", "published.json", "README.md"):
        assert room + name in names
    for name in ("mt_video_bench/own_dialogues.md", "reporting/report.css", "reporting/report.js"):
        assert f"lmms_eval_tasks/{name}" in names
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"lmms_eval_tasks"}


@pytest.mark.slow
def test_its_tasks_are_listed_from_an_empty_target_in_another_folder(wheel, tmp_path):
    target = tmp_path / "target"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    done = subprocess.run(
        [sys.executable, "-m", "lmms_eval_tasks", "list"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {line.split()[0] for line in done.stdout.splitlines()} == set(tasks()) | set(groups())
    done = subprocess.run(
        [sys.executable, "-m", "lmms_eval_tasks", "path"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(done.stdout.strip()) == target / "lmms_eval_tasks"
