import math
import random
from collections import defaultdict

import numpy as np
import pytest

from lmms_eval_tasks.benchmarks import room
from lmms_eval_tasks.reporting import bootstrap
from lmms_eval_tasks.reporting.bootstrap import Difference, differences, intervals, mean_of
from lmms_eval_tasks.reporting.layout import layout

from .stand_ins import RUNS, dialogues

# Scores that no interval is given for: they count rows that belong to no video.
WITHOUT = {"m_avg_official"}


def by_video(items):
    groups = defaultdict(list)
    for item in items:
        if "score" in item:
            groups[item["video"]].append(item)
    return groups


def drawn(groups, weights):
    """The items of one resample: those of a video drawn twice are twice there, as dialogues of their own."""
    return [
        {**item, "dialogue": f"{item.get('dialogue')}#{copy}"}
        for video, times in zip(sorted(groups), weights, strict=True)
        for copy in range(times)
        for item in groups[video]
    ]


def values(metrics, items):
    tables = metrics.breakdowns(items).items()
    flat = {f"{name}/{group}": value for name, groups in tables for group, value in groups.items()}
    return {**metrics.scores(items), **flat}


@pytest.mark.parametrize("name", RUNS)
def test_the_point_is_the_metric_itself(name):
    benchmark, make = RUNS[name]
    items, see = make(1), layout(benchmark)
    expected = values(room(benchmark, "metrics"), items)
    videos = sorted(by_video(items))
    found = bootstrap.point(bootstrap.add_up(see.observations(items), videos), see.combined)
    assert found.keys() >= expected.keys() - WITHOUT
    assert {name: found[name] for name in expected.keys() - WITHOUT} == pytest.approx(
        {name: expected[name] for name in expected.keys() - WITHOUT}, rel=1e-12, abs=1e-9
    )


@pytest.mark.parametrize("name", RUNS)
def test_each_resample_is_the_metric_of_the_items_drawn(name, monkeypatch):
    monkeypatch.setattr(bootstrap, "RESAMPLES", 30)
    monkeypatch.setattr(bootstrap, "_BATCH", 7)
    bootstrap._weights.cache_clear()
    benchmark, make = RUNS[name]
    items, see, metrics = make(2), layout(benchmark), room(benchmark, "metrics")
    groups = by_video(items)
    sums = bootstrap.add_up(see.observations(items), sorted(groups))
    found = bootstrap.resampled(sums, see.combined)
    for number, weights in enumerate(bootstrap._weights(len(groups))):
        assert sum(weights) == len(groups)
        expected = values(metrics, drawn(groups, weights))
        for score, of in found.items():
            if not math.isnan(of[number]):
                assert of[number] == pytest.approx(expected[score], rel=1e-9, abs=1e-9), score
            else:
                # It, or something that it is a mean over, is not in this resample.
                assert 0 in weights @ sums.numbers, score
    bootstrap._weights.cache_clear()


def test_an_independent_bootstrap_gives_the_same_interval():
    items = dialogues(3, videos=40)
    see, metrics, groups = layout("mt_video_bench"), room("mt_video_bench", "metrics"), by_video(items)
    ours = intervals(see.observations(items), see.combined)["overall"]
    dice = random.Random(5)
    scores = []
    for _ in range(400):
        times = [0] * len(groups)
        for _ in groups:
            times[dice.randrange(len(groups))] += 1
        scores.append(metrics.scores(drawn(groups, times))["overall"])
    width = ours.high - ours.low
    # Ends of 400 resamples lie within about a tenth of the width of those of 10,000.
    assert np.percentile(scores, [2.5, 97.5]) == pytest.approx([ours.low, ours.high], abs=0.15 * width)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Means of normal numbers, of which the truth is known: 95 of 100 intervals hold it."""
    dice = random.Random(7)
    held = 0
    for _ in range(200):
        of = [(f"video_{number}", "mean", dice.gauss(50, 10)) for number in range(60)]
        low, high = intervals(of, dict)["mean"]
        held += low <= 50 <= high
    assert 0.90 <= held / 200 <= 0.99


def test_videos_are_drawn_whole():
    """A hundred equal answers about one video are no more certain than one."""
    once = [(f"video_{number}", "mean", float(number % 2)) for number in range(20)]
    assert intervals(once * 100, dict)["mean"] == pytest.approx(intervals(once, dict)["mean"])


def test_the_same_in_every_run_and_order():
    items = dialogues(4)
    see = layout("mt_video_bench")
    one = intervals(see.observations(items), see.combined)
    bootstrap._weights.cache_clear()
    other = intervals(see.observations(items[::-1]), see.combined)
    assert one.keys() == other.keys() and all(one[name] == pytest.approx(other[name]) for name in one)


def shifted(of, by):
    return [(video, name, value + by) for video, name, value in of]


def made(number=30, seed=0):
    dice = random.Random(seed)
    return [(f"video_{place}", "mean", dice.gauss(50, 20)) for place in range(number)]


def test_a_difference_is_paired():
    """What two runs have in common, such as how hard a video is, does not blur their difference."""
    one, other = made(), shifted(made(), -1)
    found = differences(one, other, dict)["mean"]
    assert (found.value, found.low, found.high) == pytest.approx((1, 1, 1))
    assert found.clear and found.p == pytest.approx(2 / 10_001)
    spread = intervals(one, dict)["mean"]
    assert spread.high - spread.low > 10


def test_a_run_does_not_differ_from_itself():
    found = differences(made(), made(), dict)["mean"]
    assert found == Difference(0, 0, 0, 1) and not found.clear


def test_differences_turn_their_sign_with_the_order():
    one, other = made(seed=1), made(seed=2)
    there, back = differences(one, other, dict)["mean"], differences(other, one, dict)["mean"]
    assert (there.value, there.low, there.high, there.p) == pytest.approx((-back.value, -back.high, -back.low, back.p))


def test_of_equal_models_about_one_pair_in_twenty_differs():
    clear = sum(differences(made(seed=2 * k), made(seed=2 * k + 1), dict)["mean"].clear for k in range(200))
    assert 2 <= clear <= 22


@pytest.mark.parametrize(
    "videos, interval, difference",
    [(0, False, False), (1, False, False), (2, True, False), (5, True, False), (6, True, True)],
)
def test_too_few_videos_give_no_interval_or_no_difference(videos, interval, difference):
    of = [(f"video_{number}", "mean", float(number)) for number in range(videos)] * 9
    assert bool(intervals(of, dict)) == interval
    assert bool(differences(of, shifted(of, 1), dict)) == difference


def test_a_score_needs_enough_videos_behind_each_of_its_means():
    of = [*made(), ("video_0", "rare", 1.0)]

    def combined(means):
        return {"both": mean_of(means.values()), **means}

    assert intervals(of, combined).keys() == {"mean"}
    assert differences(of, of, combined).keys() == {"mean"}


def test_what_a_resample_does_not_hold_is_left_out_there():
    of = [*made(), *((f"video_{number}", "some", 7.0) for number in range(6))]
    sums = bootstrap.add_up(of, sorted({video for video, _, _ in of}))
    drawn_without = np.isnan(bootstrap.resampled(sums, dict)["some"]).mean()
    assert drawn_without == pytest.approx((1 - 6 / 30) ** 30, abs=0.002) and drawn_without > 0
    assert intervals(of, dict)["some"] == (7, 7)
