import json

import pytest

from lmms_eval_tasks.mt_video_bench import metrics
from lmms_eval_tasks.reporting.runs import Run
from lmms_eval_tasks.reporting.tables import described, differing, fill

from .stand_ins import RUNS, dialogues, questions


def run(label, items):
    return Run(label, label, items[0]["task"], items)


@pytest.fixture(scope="module")
def filled():
    runs = [run("good", dialogues(1, 40, skill=0.7)), run("equal", dialogues(2, 40, skill=0.7)),
            run("bad", dialogues(3, 40, skill=0.3))]  # fmt: skip
    [table] = fill(runs)
    return table


def test_rows_are_the_runs_in_their_order_with_the_scores_of_the_metrics(filled):
    assert [row.run.label for row in filled.rows] == ["good", "equal", "bad"]
    for row in filled.rows:
        scores = metrics.scores(row.run.items)
        assert {name: row.values[name] for name in filled.columns} == {name: scores[name] for name in filled.columns}
        for name in filled.columns:
            assert row.intervals[name].low < row.values[name] < row.intervals[name].high


def test_published_rows_stand_beside_them(filled):
    assert filled.published["Gemini-2.5-Pro"]["overall"] == 76.95 and "Table 2" in filled.source


def test_every_two_runs_are_compared_over_what_both_have_scored(filled):
    assert [(pair.one, pair.other) for pair in filled.pairs] == [(0, 1), (0, 2), (1, 2)]
    good, equal, _ = filled.rows
    both = {i["id"] for i in good.run.items if "score" in i} & {i["id"] for i in equal.run.items if "score" in i}
    pair = filled.pairs[0]
    assert pair.items == len(both) < len(good.run.items)
    means = [metrics.scores([i for i in row.run.items if i["id"] in both])["overall"] for row in (good, equal)]
    assert pair.differences["overall"].value == pytest.approx(means[0] - means[1])


def test_nothing_is_best_within_its_interval(filled):
    assert not filled.pairs[0].differences["overall"].clear and filled.best("overall") is None
    assert filled.pairs[1].differences["overall"].clear and filled.pairs[2].differences["overall"].clear


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_is_clearly_ahead_of_all_is_best(order):
    of = [run("good", dialogues(1, 40, skill=0.7)), run("bad", dialogues(3, 40, skill=0.3))]
    [table] = fill([of[place] for place in order])
    assert table.rows[table.best("overall")].run.label == "good"


def test_one_run_is_not_the_best_of_itself():
    [table] = fill([run("only", dialogues(1, 40))])
    assert table.best("overall") is None and table.pairs == []


def test_tables_show_their_tasks_alone():
    tables = fill([run("m", questions(1)), run("m", questions(1, "mlvu_gen_dev"))])
    assert [(of.table.title, [row.run.task for row in of.rows]) for of in tables] == [
        ("MLVU dev: multiple choice", ["mlvu_mc_dev"]),
        ("MLVU dev: generation", ["mlvu_gen_dev"]),
    ]


def test_conditions_that_differ_are_named():
    one, other = run("a", dialogues(1, 2)), run("b", dialogues(2, 2))
    assert differing([one, other]) == ()
    for item in other.items:
        item["card"] = {**item["card"], "dataset": "beef", "judge": None}
    assert differing([one, other]) == ("dataset", "judge")


@pytest.mark.parametrize("name", RUNS)
def test_all_of_it_is_json(name):
    _, make = RUNS[name]
    tables = fill([run("a", make(1)), run("b", make(2))])
    assert tables
    for table in tables:
        again = json.loads(json.dumps(described(table), allow_nan=False))
        assert [row["run"] for row in again["rows"]] == ["a", "b"]
        assert set(again["rows"][0]["scores"]) >= set(again["columns"]) & set(table.rows[0].values)


def test_nothing_scored_is_a_row_without_scores():
    items = [{key: value for key, value in item.items() if key != "score"} | {"status": "unjudged"}
             for item in dialogues(1, 3)]  # fmt: skip
    [table] = fill([run("silent", items), run("other", dialogues(2, 3))])
    assert described(table)["rows"][0]["coverage"] == 0 and table.rows[0].intervals == {}
