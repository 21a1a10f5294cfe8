import pytest
from PIL import Image

from lmms_eval_tasks import canonical
from lmms_eval_tasks.reporting.frames import HEIGHT, clip_at_hand, write_strip
from lmms_eval_tasks.settings import PREFIX

FRAMES = 8


@pytest.fixture
def clip(mt_prepared, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", str(FRAMES))
    return canonical.clip("mt_video_bench", "car_talk")


def test_the_clip_of_a_run_is_found_by_its_card(clip, monkeypatch):
    card = canonical.sampling()
    monkeypatch.setenv(f"{PREFIX}FRAMES", "16")
    assert str(clip_at_hand("mt_video_bench", "car_talk", card, 1)) == clip
    shared = canonical.sampling() | {"frames": None, "frames_per_question": 3 * FRAMES}
    assert str(clip_at_hand("mt_video_bench", "car_talk", shared, 3)) == clip


def test_no_clip_no_frames(clip):
    card = canonical.sampling()
    for video, sampling in {
        "meadow_rabbit": card,
        "nowhere": card,
        "car_talk": {**card, "frames": 9},
    }.items():
        assert clip_at_hand("mt_video_bench", video, sampling, 1) is None
    assert clip_at_hand("mt_video_bench", "car_talk", {"clips": True, "of": "another version"}, 1) is None
    assert clip_at_hand("mvpbench", "car_talk", card, 1) is None


def test_a_strip_is_one_small_picture(clip, tmp_path):
    assert write_strip(clip, tmp_path / "strip.jpg")
    with Image.open(tmp_path / "strip.jpg") as strip:
        # Four frames of a clip of 176 x 144.
        assert strip.size == (4 * 110, HEIGHT)
        parts = [strip.crop((110 * place, 0, 110 * place + 110, HEIGHT)).tobytes() for place in range(4)]
    assert len(set(parts)) == 4
    assert (tmp_path / "strip.jpg").stat().st_size < 40_000


def test_a_clip_of_one_frame_gives_one(mt_prepared, monkeypatch, tmp_path):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "1")
    assert write_strip(canonical.clip("mt_video_bench", "car_talk"), tmp_path / "strip.jpg")
    with Image.open(tmp_path / "strip.jpg") as strip:
        assert strip.size == (110, HEIGHT)


def test_a_clip_that_cannot_be_read_leaves_no_file(tmp_path):
    (tmp_path / "clip.mp4").write_bytes(b"no video")
    assert not write_strip(tmp_path / "clip.mp4", tmp_path / "strip.jpg")
    assert not (tmp_path / "strip.jpg").exists()
