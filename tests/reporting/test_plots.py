import math
from pathlib import Path

import pytest

from lmms_eval_tasks.reporting import plots
from lmms_eval_tasks.reporting.plots import Series, drawings, save
from lmms_eval_tasks.reporting.runs import Run
from lmms_eval_tasks.reporting.tables import Scored

from .stand_ins import RUNS, dialogues

NAMES = ["_under $score$ <b>&amp;", "模型-7B", "a-name-without-a-space-" * 6]


def scored(label, items):
    return Scored(Run(label, label, items[0]["task"], items))


def by_name(rows):
    return {drawing.name: drawing for drawing in drawings(rows)}


def test_the_plots_of_the_papers():
    rows = [scored(f"run {number}", make(number)) for number, (_, make) in enumerate(RUNS.values())]
    assert set(by_name(rows)) == {
        *(f"mt_video_bench_{name}" for name in ("abilities", "turns", "dialogue_length", "scenes", "duration")),
        *("mvpbench_subtasks", "mvpbench_first_option"),
        *("mlvu_categories_dev", "mlvu_generation_dev", "mlvu_duration_dev", "mlvu_duration_local_dev"),
        *("scvbench_history", "scvbench_fqa_duration", "scvbench_pqa_duration", "scvbench_pqa_sub_questions"),
    }


def test_values_are_those_of_the_metrics_with_their_intervals():
    row = scored("m", dialogues(1, 40))
    turns = by_name([row])["mt_video_bench_turns"]
    assert turns.keys == ["2", "3", "4", "5", "6", "7", "8"]
    [series] = turns.series
    assert series.values == [row.values[f"turn/{turn}"] for turn in turns.keys]
    assert series.lows[0] == row.intervals["turn/2"].low < series.values[0]


def test_contexts_of_one_run_are_compared_in_the_paper_s_order():
    tasks = ("mt_video_bench_no_context", "mt_video_bench_self", "mt_video_bench")
    rows = [scored("m", dialogues(1, 8, task=task)) for task in tasks]
    found = by_name([*rows, scored("other", dialogues(2, 8))])
    assert [of.name for of in found["mt_video_bench_context_1"].series] == [
        "golden context", "self-predicted context", "no context",
    ]  # fmt: skip
    assert "mt_video_bench_context_2" not in found
    assert [of.name for of in found["mt_video_bench_turns"].series] == [
        "m, no context", "m, self-predicted context", "m, golden context", "other, golden context",
    ]  # fmt: skip


def test_references_stand_beside_the_bars():
    found = by_name([scored("m", RUNS["comparisons"][1](1))])
    chance = found["mvpbench_subtasks"].references["chance level"]
    assert len(chance) == 14 and all(0 < value <= 50 for value in chance)
    assert set(found["mvpbench_first_option"].references) == {"expected by guessing", "share that is right"}


def test_a_run_without_a_value_leaves_a_gap():
    few = [item for item in dialogues(1, 40) if item["turn"] != 4]
    series = by_name([scored("a", dialogues(2, 40)), scored("b", few)])["mt_video_bench_turns"].series
    assert math.isnan(series[1].values[2]) and not math.isnan(series[0].values[2])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["radar", "lines", "bars"])
def test_any_name_and_number_of_runs_can_be_drawn(kind, tmp_path):
    wanted = {"radar": "abilities", "lines": "turns", "bars": "duration"}[kind]
    drawing = by_name([scored("m", dialogues(1, 8))])[f"mt_video_bench_{wanted}"]
    [one] = drawing.series
    many = [one._replace(name=f"{name} {number}") for number, name in enumerate(NAMES * 5)]
    svg, png = save(drawing._replace(series=many, title="$ <i> " + "long " * 30), tmp_path)
    text = svg.read_text("utf-8")
    assert "&lt;b&gt;&amp;amp;" in text and "模型-7B" in text and "_under $score$" in text
    assert png.stat().st_size > 10_000


def test_series_are_told_apart_without_colours():
    looks = [{key: value for key, value in plots._line(number).items() if key != "color"} for number in range(12)]
    assert all(looks.count(of) == 1 for of in looks)
    assert len(set(plots.HATCHES)) == len(plots.HATCHES) >= 8


def test_the_same_data_give_the_same_file(tmp_path):
    drawing = by_name([scored("m", dialogues(1, 8))])["mt_video_bench_abilities"]
    files = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        files.append([Path(path).read_bytes() for path in save(drawing, tmp_path / name)])
    assert files[0] == files[1]


def test_arms_never_point_inwards():
    of = Series("m", [50.0, math.nan, 60.0], [55.0, math.nan, 50.0], [60.0, math.nan, 55.0])
    assert plots._arms(of)[0][0] == 0 and plots._arms(of)[1][2] == 0
