import shutil

import pytest

from lmms_eval_tasks.checks import Conditions, before_run
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import Fault
from utils.sample_release.mvpbench import make_mvpbench


def test_tasks_of_others_are_passed_over():
    before_run(["videomme", "mmmu_val"], Conditions())


def test_a_dataset_that_is_not_prepared_names_the_command():
    with pytest.raises(PackError, match="lmms-eval-tasks prepare mt_video_bench --source"):
        before_run(["mt_video_bench"], Conditions())


def test_a_folder_that_is_not_prepared_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv(f"{PREFIX}DATA_MT_VIDEO_BENCH", str(tmp_path))
    with pytest.raises(PackError, match=f"DATA_MT_VIDEO_BENCH={tmp_path} is not a prepared dataset"):
        before_run(["mt_video_bench"], Conditions())


def test_everything_wrong_is_said_at_once(mt_prepared, monkeypatch):
    (mt_prepared / "videos" / "street_bikes.mp4").unlink()
    with pytest.raises(PackError) as raised:
        before_run(["mt_video_bench", "mt_video_bench_chat"], Conditions(simple=True))
    assert "street_bikes" in str(raised.value) and "chat messages" in str(raised.value)


@pytest.fixture
def mvp_prepared(tmp_path):
    return prepare("mvpbench", make_mvpbench(tmp_path / "mvpbench")).folder


@pytest.mark.parametrize(
    ("model", "simple", "said"),
    [
        ("llava_onevision", False, "sees the first video alone"),
        ("llava_vid", True, "the text of an error"),
        ("internvl3_5", False, "stops at a question with several videos"),
        ("qwen2_5_vl", True, "leave out --force_simple"),
    ],
)
def test_a_backend_that_takes_one_video_is_refused_where_questions_have_several(mvp_prepared, model, simple, said):
    with pytest.raises(PackError, match=f"mvpbench_weather: {model} is no backend for several videos: .*{said}"):
        before_run(["mvpbench_weather"], Conditions(model=model, simple=simple))


def test_a_backend_that_takes_one_video_runs_tasks_that_show_one_at_a_time(mvp_prepared):
    before_run(["mvpbench_captions", "mvpbench_single_scores"], Conditions(model="llava_onevision"))


def test_the_frames_of_a_question_are_told_to_a_backend_that_takes_one_number(mvp_prepared, logged):
    before_run(["mvpbench"], Conditions(model="qwen2_5_vl", model_args="max_num_frames=128"))
    assert any("add to --model_args: max_num_frames=32" in line for line in logged)
    logged.clear()
    before_run(["mvpbench_weather"], Conditions(model="qwen2_5_vl", model_args="max_num_frames=42"))
    assert not any("max_num_frames" in line for line in logged)


def test_videos_in_another_folder_are_found(mt_prepared, monkeypatch, tmp_path):
    (mt_prepared / "videos" / "street_bikes.mp4").rename(tmp_path / "Street_Bikes.MP4")
    monkeypatch.setenv(f"{PREFIX}VIDEOS_MT_VIDEO_BENCH", str(tmp_path))
    before_run(["mt_video_bench"], Conditions())


def test_a_folder_of_videos_that_does_not_exist_is_named(mt_prepared, monkeypatch, tmp_path):
    monkeypatch.setenv(f"{PREFIX}VIDEOS_MT_VIDEO_BENCH", str(tmp_path / "nowhere"))
    with pytest.raises(PackError, match=r"VIDEOS_MT_VIDEO_BENCH=.*nowhere is not a folder"):
        before_run(["mt_video_bench"], Conditions())


def test_a_run_without_any_video_stops_even_if_missing_ones_are_skipped(mt_prepared, monkeypatch):
    for video in (mt_prepared / "videos").iterdir():
        video.unlink()
    monkeypatch.setenv(f"{PREFIX}ON_MISSING_VIDEO", "skip")
    with pytest.raises(PackError, match="4 of 4 videos are missing"):
        before_run(["mt_video_bench"], Conditions())


def test_a_working_judge_is_tried_once_and_its_work_is_announced(mt_prepared, judge_server, logged):
    before_run(["mt_video_bench"], Conditions())
    assert len(judge_server.requests) == 1
    assert any("up to 24 calls, about" in line for line in logged)


def test_without_judge_the_run_is_told_so_once(mt_prepared, logged):
    before_run(["mt_video_bench"], Conditions())
    assert sum("No judge is configured" in line for line in logged) == 1


def test_predictions_need_no_judge(mt_prepared, judge_server):
    before_run(["mt_video_bench"], Conditions(predict_only=True))
    assert judge_server.requests == []


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_unusable_judge_stops_the_run(mt_prepared, judge_server, status):
    text = "Incorrect API key provided: sk-secret-of-the-test-judge"
    judge_server.reply = lambda body, n: Fault("status", status=status, message=text)
    with pytest.raises(PackError) as raised:
        before_run(["mt_video_bench"], Conditions())
    assert f"is unusable: HTTP {status}: " in str(raised.value) and "JUDGE_API_KEY" in str(raised.value)
    assert "Incorrect API key provided: [key]" in str(raised.value) and "sk-secret" not in str(raised.value)
    assert len(judge_server.requests) == 1


def test_a_judge_that_cannot_be_reached_stops_the_run(mt_prepared, judge_server, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}JUDGE_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(PackError, match=r"cannot be reached.*Check LMMS_EVAL_TASKS_JUDGE_BASE_URL"):
        before_run(["mt_video_bench"], Conditions())


def test_a_busy_judge_is_only_warned_of(mt_prepared, judge_server, logged):
    judge_server.reply = lambda body, n: Fault("status", status=429, message="slow down", retry_after=0.01)
    before_run(["mt_video_bench"], Conditions())
    assert any("WARNING The judge did not answer the try (HTTP 429" in line for line in logged)


def test_a_home_that_cannot_be_written_to_stops_the_run(mt_prepared, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(f"{PREFIX}DATA_MT_VIDEO_BENCH", str(mt_prepared))
    monkeypatch.setenv(f"{PREFIX}HOME", str(tmp_path / "file"))
    with pytest.raises(PackError, match=r"HOME=.*file cannot be written to"):
        before_run(["mt_video_bench"], Conditions())


def test_misspelt_settings_are_warned_of(mt_prepared, monkeypatch, logged):
    monkeypatch.setenv(f"{PREFIX}JUDGE_REPEAT", "1")
    before_run(["mt_video_bench"], Conditions())
    assert any("LMMS_EVAL_TASKS_JUDGE_REPEAT is no setting of ours" in line for line in logged)


def test_a_video_that_cannot_be_opened_stops_the_run(mt_release, tmp_path, monkeypatch):
    copy = shutil.copytree(mt_release, tmp_path / "release")
    (copy / "videos" / "car_talk.mp4").write_bytes(b"no video")
    prepare("mt_video_bench", copy)
    with pytest.raises(PackError, match="1 of 4 videos are missing: car_talk"):
        before_run(["mt_video_bench"], Conditions())
    monkeypatch.setenv(f"{PREFIX}ON_MISSING_VIDEO", "skip")
    before_run(["mt_video_bench"], Conditions())


def test_other_ranks_leave_the_judge_to_rank_0(mt_prepared, judge_server, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    before_run(["mt_video_bench"], Conditions())
    assert judge_server.requests == []
