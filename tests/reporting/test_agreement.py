"""Agreement of judges: the coefficients by scipy and by their definitions, and everything that has none."""

import copy
import json
import random
from itertools import combinations
from statistics import mean

import pytest
from scipy import stats

from lmms_eval_tasks import canonical
from lmms_eval_tasks.cli import main
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.judging import pool as pool_module
from lmms_eval_tasks.mt_video_bench import metrics, task
from lmms_eval_tasks.reporting import agreement as module
from lmms_eval_tasks.reporting.agreement import LEVELS, Row, agreement, compare, table
from lmms_eval_tasks.reporting.raters import majority
from lmms_eval_tasks.results.score import score
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import judge_by_phrases, text_of

NAME = "mt_video_bench"
EXPECTED = ["yes", "yes", "no"]
COEFFICIENTS = ("spearman", "kendall_tau", "pearson")


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr(module, "RESAMPLES", 50)


def item(number, verdicts=None, model="judge", **changes):
    """An item of dialogue ``number // 2`` and video ``number // 4``; its score is that of its verdicts."""
    fields = {
        "id": f"d{number // 2}/{number % 2}",
        "task": NAME,
        "video": f"v{number // 4}",
        "dialogue": f"d{number // 2}",
        "ability": "memory_recall",
        "turn": 2,
        "turns": 5,
        "answers": ["an answer"],
        "status": "unjudged",
        "checklist": [{"question": "?", "expected": word} for word in EXPECTED],
        "card": {"judge": {"model": model, "endpoint": "e", "temperature": None, "repeats": 1}, "questions": 24},
    }
    if verdicts is not None:
        fields.update(verdicts=[verdicts], score=metrics.answer_score(EXPECTED, verdicts), status="scored")
    return {**fields, **changes}


def write(path, items):
    path.write_text("".join(json.dumps(item) + "\n" for item in items), "utf-8")
    return path


def verdicts(seed, repeats=3):
    dice = random.Random(seed)
    return [[dice.choice(["yes", "no"]) for _ in EXPECTED] for _ in range(repeats)]


def log(path, seed, number=24, **changes):
    return write(path, [item(k, verdicts(f"{seed}/{k}"), model=str(seed), **changes) for k in range(number)])


def compared(*paths, name=NAME):
    [pair] = agreement(list(paths))["tasks"][name]
    return pair


def by_definition(first, second):
    """Kendall's tau-b, pair by pair."""
    pairs = [(a - c, b - d) for (a, b), (c, d) in combinations(list(zip(first, second, strict=True)), 2)]
    concordance = sum((x * y > 0) - (x * y < 0) for x, y in pairs)
    return concordance / (sum(x != 0 for x, _ in pairs) * sum(y != 0 for _, y in pairs)) ** 0.5


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_are_scipys_and_those_of_the_definitions(tmp_path, seed):
    logs = [log(tmp_path / f"{name}.jsonl", f"{seed}{name}") for name in "ab"]
    pair = compared(*logs)
    items = [[json.loads(line) for line in path.read_text().splitlines()] for path in logs]
    scores = {
        "items": [[one["score"] for one in of] for of in items],
        "dialogues": [[mean(one["score"] for one in of[k : k + 2]) for k in range(0, 24, 2)] for of in items],
    }
    for level, raw in scores.items():
        found = {name: pair[level][name]["value"] for name in COEFFICIENTS}
        # Equal means of thirds may differ in their last digit, and would be no ties.
        first, second = ([round(of, 9) for of in scores] for scores in raw)
        assert found["spearman"] == pytest.approx(stats.spearmanr(first, second).statistic)
        assert found["kendall_tau"] == pytest.approx(stats.kendalltau(first, second).statistic)
        assert found["kendall_tau"] == pytest.approx(by_definition(first, second))
        assert found["pearson"] == pytest.approx(stats.pearsonr(*raw).statistic)
        for name in COEFFICIENTS:
            assert -1 <= pair[level][name]["low"] <= found[name] <= pair[level][name]["high"] <= 1
    assert (pair["dialogues"]["number"], pair["items"]["number"], pair["checks"]["number"]) == (12, 24, 72)
    assert pair["items"]["videos"] == 6 and pair["notes"] == []


def test_kappa_by_a_worked_table():
    # 20 both yes, 15 both no, 5 and 10 apart: 70 % agree, 50 % do by chance.
    answers = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    found = compare([Row(str(k % 7), *of) for k, of in enumerate(answers)], LEVELS["checks"])
    assert found["agreement"]["value"] == pytest.approx(70)
    assert found["kappa"]["value"] == pytest.approx(0.4)
    assert found["kappa"]["low"] < 0.4 < found["kappa"]["high"]


def test_single_answers_are_those_of_the_majority_and_where_even_of_the_first():
    assert majority([["yes", "no"], ["no", "no"], ["no", "yes"]]) == ["no", "no"]
    assert majority([["yes", "no"], ["no", "yes"]]) == ["yes", "no"]
    with pytest.raises(ValueError):
        majority([["yes"], ["yes", "no"]])


def test_checks_are_compared_answer_by_answer(tmp_path):
    said = {"a": [[["yes", "no", "no"]], [["no", "no", "no"]]], "b": [[["yes", "no", "no"]], [["yes", "yes", "no"]]]}
    shared = {"answers": ["x", "y"], "status": "scored", "score": 50}
    first, second = (write(tmp_path / name, [{**item(0), **shared, "verdicts": of}]) for name, of in said.items())
    assert compared(first, second)["checks"]["agreement"]["value"] == pytest.approx(100 * 4 / 6)


def test_intervals_draw_whole_videos_and_are_the_same_each_time(tmp_path):
    dice = random.Random(3)
    rows = [Row(str(k), float(a), a + dice.gauss(0, 2)) for k in range(12) for a in [dice.randint(0, 5)]]
    # The same numbers ten times within each video say no more than once.
    once, often = (compare(of, LEVELS["items"])["pearson"] for of in (rows, [row for row in rows for _ in range(10)]))
    assert (often["low"], often["high"]) == (pytest.approx(once["low"]), pytest.approx(once["high"]))
    alone = compare([Row(str(k), row.first, row.second) for k, row in enumerate(rows * 10)], LEVELS["items"])["pearson"]
    assert alone["high"] - alone["low"] < (once["high"] - once["low"]) / 2
    assert compare(rows, LEVELS["items"])["pearson"] == once


def test_ties_do_not_hang_on_the_last_digit():
    third = 100 / 3
    rows = [Row("v", 10.0, third), Row("w", 20.0, third + 1e-13), Row("x", 30.0, third)]
    assert compare(rows, LEVELS["items"])["kendall_tau"]["value"] is None
    assert "says the same of every item" in compare(rows, LEVELS["items"])["kendall_tau"]["reason"]


def same(number):
    return [["yes", "yes", "no"]] if number % 2 else [["yes", "no", "no"]]


ALTERNATING = [item(k, same(k)) for k in range(24)]
DEGENERATE = {
    "no common items": ([item(0, same(0))], [item(1, same(1))], None, "no item is common"),
    "nothing scored": ([item(0), item(1)], [item(0, same(0))], None, "no item is common"),
    "one item": ([item(0, same(0))], [item(0, same(1))], None, "one item alone"),
    "constant scores": ([item(k, same(1)) for k in range(24)], ALTERNATING, None, "the same of every item"),
    "few videos": (ALTERNATING[:20], ALTERNATING, 1, "fewer than 6 videos"),
    "one item that differs": (*[[item(k, same(k > 22)) for k in range(24)]] * 2, 1, "many resamples"),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.filterwarnings("error")
def test_what_does_not_exist_is_null_with_a_reason(tmp_path, name, monkeypatch):
    first, second, value, reason = DEGENERATE[name]
    result = agreement([write(tmp_path / "a.jsonl", first), write(tmp_path / "b.jsonl", second)])
    pair = result["tasks"][NAME][0]
    for statistic in COEFFICIENTS:
        found = pair["items"][statistic]
        assert found["value"] == (value if value is None else pytest.approx(value))
        assert (found["low"], found["high"]) == (None, None)
        assert reason in found["reason"]
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert reason in table(result)


def test_kappa_of_judges_that_always_say_the_same_does_not_exist(tmp_path):
    logs = [write(tmp_path / name, [item(k, [["yes"] * 3]) for k in range(24)]) for name in ("a", "b")]
    pair = compared(*logs)
    assert pair["checks"]["agreement"] == {"value": 100, "low": 100, "high": 100}
    assert pair["checks"]["kappa"]["value"] is None


def test_what_the_two_do_not_share_is_left_out_and_counted(tmp_path):
    items = [item(k, verdicts(k)) for k in range(12)]
    other = [*copy.deepcopy(items[:10]), item(20, verdicts(20))]
    other[0]["answers"] = ["another answer"]
    del other[1]["score"]
    pair = compared(write(tmp_path / "a.jsonl", items), write(tmp_path / "b.jsonl", other))
    assert pair["items"]["number"] == 8
    assert [note.split(",")[0] for note in pair["notes"]] == [
        "3 items are in one of the two alone",
        "1 items have other answers in the two",
        "1 items have no score in one of the two",
    ]


def test_three_judges_are_three_pairs_and_items_of_any_benchmark_do(tmp_path):
    grades = {"verdicts": [[{"accuracy": 4.0}]], "status": "scored", "task": "mlvu_gen_dev"}
    logs = []
    for name in "abc":
        items = [{**item(k), **grades, "score": random.Random(f"{name}{k}").uniform(0, 100)} for k in range(12)]
        for each in items:
            del each["dialogue"]
        logs.append(write(tmp_path / f"{name}.jsonl", items))
    result = agreement(logs)
    pairs = result["tasks"]["mlvu_gen_dev"]
    assert [pair["sources"] for pair in pairs] == [[str(a), str(b)] for a, b in combinations(logs, 2)]
    assert all(pair["items"]["spearman"]["value"] is not None for pair in pairs)
    assert {pair[level]["number"] for pair in pairs for level in ("dialogues", "checks")} == {0}


def test_a_judge_agrees_with_itself(tmp_path):
    path = log(tmp_path / "a.jsonl", 1)
    pair = compared(path, path)
    assert [pair["items"][name]["value"] for name in COEFFICIENTS] == pytest.approx([1, 1, 1])
    assert pair["checks"]["kappa"]["value"] == pytest.approx(1)


# ------------------------------------------------------------------------------------------------------------- people


def csv(path, *lines):
    path.write_text("\n".join(lines) + "\n", "utf-8-sig")
    return path


def test_labels_of_checks_are_scored_as_the_judges_are(tmp_path):
    items = [item(k, verdicts(k, repeats=1)) for k in range(24)]
    rows = [
        f"{one['id']},{number},{word.title()}.,whatever"
        for one in items
        for number, word in enumerate(one["verdicts"][0][0], start=1)
    ]
    people = csv(tmp_path / "people.csv", "ID, check,verdict,comment", *rows)
    pair = compared(people, write(tmp_path / "a.jsonl", items))
    assert [pair["items"][name]["value"] for name in COEFFICIENTS] == pytest.approx([1, 1, 1])
    assert (pair["checks"]["number"], pair["checks"]["agreement"]["value"]) == (72, 100)


def test_annotators_are_averaged_and_their_majority_answers(tmp_path):
    said = {"ann": ["yes", "yes", "no"], "bob": ["no", "yes", "no"], "cy": ["no", "no", "yes"]}
    rows = [f"d0/0,{n},{word},{who}" for who, words in said.items() for n, word in enumerate(words, 1)]
    rows += [f"d0/1,{n},yes,ann" for n in (3, 1, 2)]
    people = csv(tmp_path / "people.csv", "id,check,verdict,annotator", *rows)
    log = write(tmp_path / "a.jsonl", [item(0, [["no", "yes", "no"]]), item(1, [["yes", "yes", "yes"]])])
    [rater, _] = module.raters([people, log])
    assert rater.ratings[NAME]["d0/0"].score == pytest.approx((100 + 200 / 3 + 0) / 3)
    assert rater.ratings[NAME]["d0/0"].checks == [["no", "yes", "no"]]
    assert rater.ratings[NAME]["d0/1"].score == pytest.approx(200 / 3)
    assert compared(people, log)["checks"]["agreement"]["value"] == 100


def test_labels_may_be_scores(tmp_path):
    items = [item(k, verdicts(k)) for k in range(24)]
    rows = [f"{one['id']},{one['score'] / 2},{who}" for one in items for who in "ab"]
    pair = compared(
        write(tmp_path / "a.jsonl", items), csv(tmp_path / "p.csv", "id,score,annotator", *rows, "d9/9,1,a")
    )
    assert pair["items"]["pearson"]["value"] == pytest.approx(1)
    assert pair["checks"]["number"] == 0
    result = agreement([tmp_path / "a.jsonl", tmp_path / "p.csv"])
    assert "1 of 25 labelled ids are in no log, such as 'd9/9'" in result["notes"][0]


def test_people_are_compared_with_each_other(tmp_path):
    log(tmp_path / "a.jsonl", 1)
    for name in ("p", "q"):
        csv(tmp_path / f"{name}.csv", "id,score", *(f"d{k}/0,{k}" for k in range(4)))
    pairs = agreement([tmp_path / name for name in ("a.jsonl", "p.csv", "q.csv")])["tasks"][NAME]
    assert pairs[2]["items"]["spearman"]["value"] == pytest.approx(1) and pairs[2]["items"]["number"] == 4


REFUSED = {
    "no usable columns": (["name,score", "d0/0,1"], r"has the columns name, score\. It needs id and score, or"),
    "nothing": ([], r"has the columns \(none\)"),
    "no row": (["id,score"], "there is no row"),
    "both kinds": (["id,score,check,verdict", "d0/0,1,1,yes"], "It needs id and score, or"),
    "no number": (["id,score", "d0/0,good"], r"line 2: score is 'good': .*valid number"),
    "an empty score": (["id,score", "d0/0,"], "line 2: score is ''"),
    "not a percentage": (["id,score", "d0/0,101", "d0/1,-1"], r"line 2: score is '101'[\s\S]*line 3: score is '-1'"),
    "not a number at all": (["id,score", "d0/0,nan"], "line 2: score is 'nan'"),
    "no id": (["id,score", ",5"], "line 2: id is ''"),
    "neither yes nor no": (["id,check,verdict", "d0/0,1,maybe"], "line 2: verdict is 'maybe'"),
    "a check of another number": (["id,check,verdict", *(f"d0/0,{n},yes" for n in (1, 2, 4))], "of the checks 1, 2, 4"),
    "a check too few": (["id,check,verdict", "d0/0,1,yes"], r"line 2: 'd0/0' has 3 checks"),
    "a check twice": (["id,check,verdict", *(f"d0/0,{n},yes" for n in (1, 2, 2, 3))], "of the checks 1, 2, 2, 3"),
    "two scores": (["id,score", "d0/0,1", "d0/0,2"], "line 3: a second score of 'd0/0'"),
    "another task": (["id,score,task", "d0/0,1,mlvu"], "line 2: task 'mlvu' is none of the logs' mt_video_bench"),
    "a broken quote": (["id,score", '"d0/0,1'], "cannot be read as CSV"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_labels_that_cannot_be_used_are_refused_by_line(tmp_path, name):
    lines, message = REFUSED[name]
    with pytest.raises(PackError, match=message) as raised:
        agreement([log(tmp_path / "a.jsonl", 1), csv(tmp_path / "people.csv", *lines)])
    assert "people.csv" in str(raised.value)


def test_items_without_checklist_or_with_several_answers_take_scores_alone(tmp_path):
    items = [item(0, verdicts(0), checklist=[]), item(1, verdicts(1), answers=["a", "b"])]
    path = write(tmp_path / "a.jsonl", items)
    people = csv(tmp_path / "p.csv", "id,check,verdict", "d0/0,1,yes", "d0/1,1,yes")
    with pytest.raises(PackError, match=r"line 2: 'd0/0' has no checklist.*\s.*line 3: 'd0/1' has several answers"):
        agreement([path, people])


def test_all_files_that_cannot_be_read_are_named_at_once(tmp_path):
    mixed = write(tmp_path / "mixed.jsonl", [item(0, verdicts(0), model="x"), item(1, verdicts(1), model="y")])
    with pytest.raises(PackError) as raised:
        agreement([tmp_path / "nowhere.jsonl", mixed])
    assert "nowhere.jsonl" in str(raised.value) and "verdicts of 2 judges (x e; y e)" in str(raised.value)
    with pytest.raises(PackError, match="at least two"):
        agreement([mixed])
    with pytest.raises(PackError, match="need the log"):
        agreement([csv(tmp_path / "p.csv", "id,score", "a,1")] * 2)


def test_tasks_are_compared_by_themselves_and_labels_name_theirs(tmp_path):
    items = [item(k, verdicts(k), task=name) for name in (NAME, f"{NAME}_no_context") for k in range(12)]
    path = write(tmp_path / "a.jsonl", items)
    assert set(agreement([path, path])["tasks"]) == {NAME, f"{NAME}_no_context"}
    with pytest.raises(PackError, match="task '' is none of the logs'"):
        agreement([path, csv(tmp_path / "p.csv", "id,score", "d0/0,1")])
    rows = [f"{one['id']},{one['score']},{one['task']}" for one in items[:12]]
    tables = agreement([path, csv(tmp_path / "p.csv", "id,score,task", *rows)])["tasks"]
    assert tables[NAME][0]["items"]["number"] == 12
    assert tables[f"{NAME}_no_context"][0]["items"]["number"] == 0


# -------------------------------------------------------------------------------------------------------- real records


@pytest.fixture
def record(mt_prepared, judge_server, home):
    """A run record, judged by ``test-judge``, with verdicts that are on disk alone."""
    docs = list(task.process_docs(canonical.opened(NAME).rows()))
    results = [task.process_results(doc, [doc["reference"] if k % 3 else "x"]) for k, doc in enumerate(docs)]
    task.score([result["overall"] for result in results])
    return next((home / "runs").iterdir())


@pytest.mark.parametrize("temperature", ["", "0"])
def test_a_record_and_another_judges_items_are_compared_without_asking(
    mt_prepared, judge_server, home, tmp_path, monkeypatch, capsys, temperature, request
):
    monkeypatch.setenv(f"{PREFIX}JUDGE_TEMPERATURE", temperature)
    record = request.getfixturevalue("record")
    monkeypatch.setenv(f"{PREFIX}JUDGE_MODEL", "strict-judge")
    judge_server.reply = lambda body, n: judge_by_phrases(
        text_of(body["messages"][0])[:900], "Q1: a\nQ2: a\nQ3: a\nQ4: a\nQ5: a"
    )
    other = tmp_path / "strict.jsonl"
    assert main(["score", str(record), "--rejudge", "--items", str(other)]) == 0
    pool_module._pool.cache_clear()
    asked = len(judge_server.requests)
    capsys.readouterr()
    monkeypatch.setenv(f"{PREFIX}JUDGE_TEMPERATURE", "1")
    assert main(["agreement", str(record), str(other), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["judges"] == [
        {"source": str(record), "judge": "test-judge"},
        {"source": str(other), "judge": "strict-judge"},
    ]
    [pair] = result["tasks"][NAME]
    assert (pair["dialogues"]["number"], pair["items"]["number"], pair["checks"]["number"]) == (12, 24, 120)
    assert len(judge_server.requests) == asked
    assert main(["agreement", str(record), str(other)]) == 0
    assert "24 items (4 videos)" in capsys.readouterr().out


def test_what_is_on_disk_nowhere_is_left_out_and_nobody_is_asked(record, judge_server, monkeypatch, tmp_path):
    monkeypatch.setenv(f"{PREFIX}HOME", str(tmp_path / "another"))
    pool_module._pool.cache_clear()
    asked = len(judge_server.requests)
    result = agreement([record, record])
    assert len(judge_server.requests) == asked
    assert result["tasks"][NAME][0]["items"]["number"] == 0
    assert result["notes"] == [f"{record}: 24 items are not judged yet: `lmms-eval-tasks score` judges them"]
    # Whoever judges later in the same process is not held back.
    assert score([record])[NAME]["coverage"] == 100
