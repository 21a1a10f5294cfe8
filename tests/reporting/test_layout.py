import json
from inspect import signature

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.benchmarks import BENCHMARKS, FOLDER, room, tasks
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.releases import videos_of
from lmms_eval_tasks.reporting import layout as layouts
from lmms_eval_tasks.reporting import plain
from lmms_eval_tasks.reporting.layout import layout, task_name
from lmms_eval_tasks.reporting.runs import Run
from lmms_eval_tasks.reporting.tables import fill
from utils.sample_release import MAKERS

from .stand_ins import RUNS, dialogues, questions

FUNCTIONS = ("observations", "combined", "samples", "checks")


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_room_offers_what_the_plain_one_does(benchmark):
    see = layout(benchmark)
    assert see is not plain
    for name in ("KIND", "NAMES", "TABLES", "PLOTS"):
        assert type(getattr(see, name)) is type(getattr(plain, name))
    for name in FUNCTIONS:
        assert list(signature(getattr(see, name)).parameters) == list(signature(getattr(plain, name)).parameters)
        assert getattr(see, name).__doc__


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_task_of_a_room_is_in_a_table_and_every_name_is_a_task_s(benchmark):
    see = layout(benchmark)
    ours = {name for name, task in tasks().items() if task.benchmark == benchmark}
    assert set(see.NAMES) <= ours
    assert {name for table in see.TABLES for name in table.tasks or ours} == ours
    assert {name for plot in see.PLOTS for name in plot.tasks} <= ours
    names = [task_name(benchmark, task) for task in ours]
    assert len(set(names)) == len(names)
    assert len({plot.name for plot in see.PLOTS}) == len(see.PLOTS)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_published_rows_are_found_and_have_the_columns(benchmark):
    published = json.loads((FOLDER / benchmark / "published.json").read_text("utf-8"))
    for table in layout(benchmark).TABLES:
        if table.published:
            rows = published
            for key in table.published:
                rows = rows[key]
            printed = {name for row in rows.values() for name in row}
            assert table.columns[0] in printed and len(printed & set(table.columns)) > 1


@pytest.mark.parametrize("name", RUNS)
def test_the_main_column_is_a_score_of_the_metrics(name):
    benchmark, make = RUNS[name]
    items = make(1)
    scores = room(benchmark, "metrics").scores(items)
    [table, *_] = fill([Run("m", "m", items[0]["task"], items)])
    assert table.columns[0] in scores and len(set(table.columns) & set(scores)) >= min(3, len(scores))


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_samples_know_every_question_and_its_videos(benchmark, tmp_path):
    prepare(benchmark, MAKERS[benchmark](tmp_path / "release"))
    prepared, see = canonical.opened(benchmark), layout(benchmark)
    known = {name: sample for row in prepared.rows() for name, sample in see.samples(row)}
    of = [task for task in tasks().values() if task.benchmark == benchmark and prepared.questions(task.config)]
    for task in of:
        docs = getattr(room(benchmark, "task"), task.process_docs)(prepared.rows(task.config))
        for doc in (part for each in docs for part in each.get("parts") or [each]):
            sample = known[doc["id"]]
            assert sample["question"] and sample["reference"] and sample["videos"] == videos_of(doc)
    assert of
    json.dumps(known)


def test_grades_are_checks_without_an_expected_answer():
    item = next(item for item in questions(1, "mlvu_gen_dev") if item["category"] == "video_summarization")
    item["verdicts"] = [[{"completeness": 3, "reliability": 5}, {"completeness": 2, "reliability": 4}]]
    assert layout("mlvu").checks(item) == [
        {"question": "completeness", "expected": "", "given": ["3", "2"]},
        {"question": "reliability", "expected": "", "given": ["5", "4"]},
    ]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize("verdicts", [{}, {"verdicts": None}, {"verdicts": []}, {"verdicts": [[None]]}])
def test_checks_of_what_is_not_judged(benchmark, verdicts):
    item = {"status": "unjudged", "checklist": [{"question": "Is it?", "expected": "yes"}], **verdicts}
    assert all(check["given"] == [] for check in layout(benchmark).checks(item))


def test_a_room_without_a_layout_has_one_table_of_all_its_scores(monkeypatch):
    monkeypatch.setattr(layouts, "find_spec", lambda name: None)
    [table] = fill([Run("m", "m", "mt_video_bench", dialogues(1, 40)), Run("n", "n", "mt_video_bench", dialogues(2))])
    assert (table.table.title, table.columns[0]) == ("mt_video_bench", "overall")
    assert table.rows[0].intervals == {} and table.pairs[0].differences == {}
