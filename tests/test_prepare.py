import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.cli import main
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.mt_video_bench import release
from lmms_eval_tasks.prepare import make_clips, prepare
from lmms_eval_tasks.settings import PREFIX


@pytest.fixture
def copy(mt_release, tmp_path):
    """A copy of the sample release that a test may damage."""
    return shutil.copytree(mt_release, tmp_path / "release")


def leftovers(home):
    """What stands beside the one dataset and its link."""
    place = home / "datasets"
    kept = {"mt_video_bench", (place / "mt_video_bench").resolve().name}
    return sorted(path.name for path in place.iterdir() if path.name not in kept)


def test_the_summary_counts_and_the_dataset_loads(mt_release, home):
    summary = prepare("mt_video_bench", mt_release)
    assert summary.folder == home / "datasets" / "mt_video_bench"
    assert summary.table[-1] == ("all", 12, 24, 4)
    assert summary.missing == summary.broken == summary.excluded == []
    assert "object_reference" in str(summary)
    prepared = canonical.opened("mt_video_bench")
    rows = prepared.rows()
    assert len(rows) == 12 and sum(map(release.questions, rows)) == prepared.questions() == 24
    assert rows.features == release.features()
    assert [row["ability"] for row in rows] == sorted((row["ability"] for row in rows), key=release.ABILITIES.index)
    assert all(5 < row["seconds"] < 15 for row in rows)
    assert set(prepared.rows("memory_recall")["ability"]) == {"memory_recall"}
    assert prepared.questions("memory_recall") == sum(map(release.questions, prepared.rows("memory_recall")))


def test_videos_are_linked_or_copied(mt_release):
    folder = prepare("mt_video_bench", mt_release).folder
    assert all(video.is_symlink() for video in (folder / "videos").iterdir())
    folder = prepare("mt_video_bench", mt_release, copy_videos=True).folder
    videos = list((folder / "videos").iterdir())
    assert len(videos) == 4 and not any(video.is_symlink() for video in videos)


def test_missing_and_broken_videos_are_listed_and_not_fatal(copy, mt_release):
    (copy / "videos" / "street_bikes.mp4").unlink()
    (copy / "videos" / "car_talk.mp4").write_bytes(b"no video")
    summary = prepare("mt_video_bench", copy)
    assert summary.missing == ["street_bikes"]
    assert "car_talk.mp4" in summary.broken[0]
    assert "1 videos missing:\n  - street_bikes" in str(summary)
    assert canonical.opened("mt_video_bench").missing_videos() == ["street_bikes", "car_talk"]
    shutil.copyfile(mt_release / "videos" / "car_talk.mp4", copy / "videos" / "car_talk.mp4")
    assert canonical.opened("mt_video_bench").missing_videos() == ["street_bikes"]


def test_videos_may_lie_elsewhere(copy, tmp_path):
    (copy / "videos").rename(tmp_path / "elsewhere")
    assert len(prepare("mt_video_bench", copy).missing) == 4
    assert prepare("mt_video_bench", copy, videos=tmp_path / "elsewhere").missing == []
    with pytest.raises(PackError, match=r"--videos .* is not a folder"):
        prepare("mt_video_bench", copy, videos=tmp_path / "nowhere")


def test_the_fingerprint_is_of_the_rows_alone(copy, home, monkeypatch, tmp_path):
    first = prepare("mt_video_bench", copy).folder
    fingerprint = canonical.opened("mt_video_bench").fingerprint
    (copy / "videos" / "street_bikes.mp4").unlink()
    prepare("mt_video_bench", copy)
    assert canonical.opened("mt_video_bench").fingerprint == fingerprint
    path = copy / "mtqa" / "summary.json"
    path.write_text(path.read_text().replace("rabbit", "hare"))
    assert prepare("mt_video_bench", copy).folder == first
    assert canonical.opened("mt_video_bench").fingerprint != fingerprint


def test_rows_are_never_those_of_an_earlier_dataset(copy, mt_release, monkeypatch, tmp_path):
    prepare("mt_video_bench", copy)
    before = canonical.opened("mt_video_bench").rows()["turns"]
    path = copy / "mtqa" / "summary.json"
    path.write_text(path.read_text().replace("rabbit", "hare"))
    prepare("mt_video_bench", copy)
    after = canonical.opened("mt_video_bench").rows()["turns"]
    assert "hare" in str(after) and "hare" not in str(before)
    monkeypatch.setenv(f"{PREFIX}HOME", str(tmp_path / "another" / "home"))
    prepare("mt_video_bench", mt_release)
    assert canonical.opened("mt_video_bench").rows()["turns"] == before


def test_preparing_again_leaves_one_dataset(mt_release, home):
    for _ in range(3):
        prepare("mt_video_bench", mt_release)
    assert leftovers(home) == []


def test_a_failed_preparation_leaves_the_old_dataset(copy, home, monkeypatch):
    prepare("mt_video_bench", copy)
    fingerprint = canonical.opened("mt_video_bench").fingerprint
    (copy / "mtqa" / "summary.json").write_text("{")
    with pytest.raises(PackError, match=r"summary\.json, line 1"):
        prepare("mt_video_bench", copy)
    (copy / "mtqa" / "summary.json").unlink()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PackError, match=r"cannot be written .*No space left"):
        prepare("mt_video_bench", copy)
    monkeypatch.undo()
    monkeypatch.setenv(f"{PREFIX}HOME", str(home))
    assert canonical.opened("mt_video_bench").fingerprint == fingerprint
    assert leftovers(home) == []


def command(source):
    return [sys.executable, "-m", "lmms_eval_tasks", "prepare", "mt_video_bench", "--source", str(source)]


def test_several_at_once_leave_a_whole_dataset(mt_release):
    processes = [subprocess.Popen(command(mt_release), stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(canonical.opened("mt_video_bench").rows()) == 12


@pytest.mark.slow
def test_killed_at_any_moment_it_leaves_the_old_dataset_or_the_new_one(copy, home):
    prepare("mt_video_bench", copy)
    path = copy / "mtqa" / "summary.json"
    for number in range(8):
        path.write_text(path.read_text().replace("rabbit", "rabbit "))
        process = subprocess.Popen(command(copy), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5 + 0.3 * number)
        process.kill()
        process.wait()
        assert len(canonical.opened("mt_video_bench").rows()) == 12
    day = 24 * 3600
    for folder in leftovers(home):
        os.utime(home / "datasets" / folder, (time.time() - 2 * day,) * 2, follow_symlinks=False)
    prepare("mt_video_bench", copy)
    assert leftovers(home) == []


def test_a_release_without_any_question_is_refused(copy, home):
    shutil.rmtree(copy / "checklist")
    with pytest.raises(PackError, match="holds no question that can be evaluated; nothing was written"):
        prepare("mt_video_bench", copy)
    assert not (home / "datasets").exists()


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_damaged_manifest_is_named(mt_prepared, text):
    (mt_prepared / "manifest.json").write_text(text)
    with pytest.raises(PackError, match=r"manifest\.json is damaged"):
        canonical.opened("mt_video_bench")


def test_clips_that_do_not_fit_are_a_failure(mt_prepared, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "8")
    assert make_clips("mt_video_bench") == []
    monkeypatch.setenv(f"{PREFIX}FRAMES", "9")
    monkeypatch.setenv(f"{PREFIX}CLIP_CACHE_GB", "0.00001")
    [failure] = make_clips("mt_video_bench")
    assert "CLIP_CACHE_GB=1e-05 is too small for all" in failure


def test_the_shares_of_a_job_array_make_all_clips(mt_prepared, home, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "8")
    assert [make_clips("mt_video_bench", part=f"{number}/3") for number in (1, 2, 3)] == [[], [], []]
    assert len(list((home / "clips").glob("*.mp4"))) == 4


def test_another_format_is_refused(mt_prepared):
    path = mt_prepared / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(PackError, match="Run `lmms-eval-tasks prepare mt_video_bench` again"):
        canonical.opened("mt_video_bench")


def test_a_prepared_folder_elsewhere_is_used(mt_prepared, monkeypatch, tmp_path):
    moved = shutil.copytree(mt_prepared, tmp_path / "moved")
    monkeypatch.setenv(f"{PREFIX}HOME", str(tmp_path / "empty"))
    monkeypatch.setenv(f"{PREFIX}DATA_MT_VIDEO_BENCH", str(moved))
    assert canonical.opened("mt_video_bench").folder == moved
    assert len(canonical.opened("mt_video_bench").rows()) == 12


def test_the_fingerprint_for_caches_sees_videos_and_sampling(mt_prepared, monkeypatch):
    fingerprint = canonical.attributes("mt_video_bench")
    first = fingerprint("fingerprint")
    assert fingerprint("fingerprint") == first
    monkeypatch.setenv(f"{PREFIX}FRAMES", "8")
    second = fingerprint("fingerprint")
    os.utime((mt_prepared / "videos" / "car_talk.mp4").resolve())
    third = fingerprint("fingerprint")
    monkeypatch.setenv(f"{PREFIX}CLIPS", "0")
    assert len({first, second, third, fingerprint("fingerprint")}) == 4
    with pytest.raises(AttributeError):
        fingerprint("another")


def test_on_the_command_line_a_problem_is_a_text_and_status_1(tmp_path, capsys):
    assert main(["prepare", "mt_video_bench", "--source", str(tmp_path / "nowhere")]) == 1
    assert "is not a folder" in capsys.readouterr().err
