import numpy as np
import pytest

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media.sampling import Sampling, fitted, frame_indices, schedule
from lmms_eval_tasks.settings import PREFIX, load


@pytest.mark.parametrize("frames", [1, 2, 3, 10, 32, 64, 127, 128, 768])
def test_indices_are_those_of_the_authors_script(frames):
    for total in [*range(1, 300), 1000, 3749, 3750, 4000, 9999, 54321, 216_000]:
        expected = range(total) if total <= frames else np.linspace(0, total - 1, frames).astype(int)
        assert frame_indices(total, frames) == list(expected), total


def seconds(total, fps=25.0):
    return [k / fps for k in range(total)]


@pytest.mark.parametrize("total", [2, 3, 40, 127, 128, 129, 4000])
def test_index_over_rate_is_the_second_of_the_source(total):
    plan = schedule(seconds(total), total / 25, Sampling())
    assert len(plan) == 128
    mean = plan[-1][1] / 127
    for k, (index, second) in enumerate(plan):
        assert second == pytest.approx(k * mean, abs=1 / 25)
        assert index == int(second * 25 + 1e-6), "a frame is shown while the source shows it"
    assert plan[0] == (0, 0)
    assert plan[-1] == (total - 1, pytest.approx((total - 1) / 25))


def test_short_source_repeats_frames_evenly():
    counts = np.bincount([index for index, _ in schedule(seconds(40), 1.6, Sampling())], minlength=40)
    assert counts.sum() == 128
    assert set(counts[:-1]) <= {3, 4}


def test_single_frame_fills_its_own_duration():
    plan = schedule([0.0], 2.56, Sampling())
    assert plan == [(0, pytest.approx(k * 0.02)) for k in range(128)]


def test_uneven_source_keeps_its_seconds():
    times = [0.0, 0.1, 5.0, 5.1, 9.0]
    assert schedule(times, 9.1, Sampling(frames=5)) == list(enumerate(times))
    assert schedule(times, 9.1, Sampling(frames=3)) == [(0, 0.0), (2, 5.0), (4, 9.0)]
    assert schedule(times, 9.1, Sampling(frames=9))[3] == (1, pytest.approx(0.1 + 0.5 * 4.9))


def test_no_padding_and_official_timing():
    assert [index for index, _ in schedule(seconds(40), 1.6, Sampling(pad=False))] == list(range(40))
    plan = schedule(seconds(4000), 160, Sampling(timing="official"))
    assert [second for _, second in plan] == [k / 15 for k in range(128)]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1280, 720), (720, 404)),
        ((720, 1280), (404, 720)),
        ((1920, 1080), (720, 404)),
        ((640, 480), (640, 480)),
        ((720, 720), (720, 720)),
        ((721, 721), (720, 720)),
        ((641, 361), (640, 360)),
        ((97, 65), (96, 64)),
        ((1, 1), (2, 2)),
        ((4000, 10), (720, 2)),
    ],
)
def test_size_is_even_limited_and_never_enlarged(size, expected):
    assert fitted(*size, Sampling()) == expected


def test_fixed_size():
    assert fitted(1280, 720, Sampling(size=(448, 448))) == (448, 448)


@pytest.mark.parametrize(
    ("specific", "expected"),
    [
        (None, Sampling()),
        ({}, Sampling()),
        ({"pre_prompt": "x", "frames": 16}, Sampling(frames=16)),
        ({"frames": "16", "long_side": 360}, Sampling(frames=16, long_side=360)),
        ({"size": 448}, Sampling(size=(448, 448))),
        ({"size": [640, 360]}, Sampling(size=(640, 360))),
        ({"size": "728x728"}, Sampling(size=(728, 728))),
        ({"size": "448"}, Sampling(size=(448, 448))),
    ],
)
def test_keys_of_a_task(specific, expected):
    assert Sampling.of(specific, load()) == expected


@pytest.mark.parametrize(
    "specific",
    [{"frames": "many"}, {"frames": 1.5}, {"frames": True}, {"long_side": 1}, {"size": [448]} | {"frames": -1}]
    + [{"size": size} for size in ("448x", [1, 2, 3], 447, [448, 3], "wide", {})],
)
def test_senseless_keys(specific):
    with pytest.raises(PackError):
        Sampling.of(specific, load())


def test_settings_win(monkeypatch):
    for name, value in {"FRAMES": "8", "LONG_SIDE": "100", "PAD_SHORT": "0", "CLIP_TIMING": "official"}.items():
        monkeypatch.setenv(PREFIX + name, value)
    monkeypatch.setenv(f"{PREFIX}CLIP_QUALITY", "lossless")
    sampling = Sampling.of({"frames": 16, "size": 448}, load())
    assert sampling == Sampling(8, 100, None, False, "official", "lossless")
    assert sampling.describe() == {
        "frames": 8, "long_side": 100, "size": None, "pad": False, "timing": "official", "quality": "lossless",
    }  # fmt: skip
