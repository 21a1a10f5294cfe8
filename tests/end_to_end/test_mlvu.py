"""MLVU through lmms-eval's own evaluator, with real videos, a local model and a local judge."""

import json
from collections import Counter

import pytest

from lmms_eval_tasks.cli import main
from lmms_eval_tasks.mlvu import metrics as rules
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.results.score import score
from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import evaluate, metrics, save, texts
from utils.openai_server import Fault
from utils.sample_release.mlvu import grade, make_mlvu, mlvu_gold_answers, mlvu_reply, mlvu_sample_answers

TASKS = ["mlvu_mc_dev", "mlvu_gen_dev", "mlvu_mc_test", "mlvu_gen_test"]
CHOICES = {"m_avg", "micro_avg", "m_avg_official", *rules.MULTIPLE_CHOICE, "coverage"}
GENERATION = {"g_avg", *rules.GENERATION, *rules.GRADES, "coverage"}
EXPECTED = {
    "mlvu_mc_dev": CHOICES,
    "mlvu_gen_dev": GENERATION,
    "mlvu_mc_test": {*CHOICES, "m_avg_all", *rules.EXTRA},
    "mlvu_gen_test": GENERATION,
}


@pytest.fixture(scope="module")
def mlvu_release(tmp_path_factory):
    return make_mlvu(tmp_path_factory.mktemp("release") / "mlvu")


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    return tmp_path_factory.mktemp("clips")


@pytest.fixture(autouse=True)
def mlvu_prepared(mlvu_release, clips, home, monkeypatch):
    """The sample release, prepared; frames that travel fast, and clips that all tests share."""
    (home / "clips").symlink_to(clips)
    monkeypatch.setenv(f"{PREFIX}FRAMES", "4")
    monkeypatch.setenv(f"{PREFIX}LONG_SIDE", "64")
    return prepare("mlvu", mlvu_release).folder


def rows(mlvu_release, *names):
    return [row for name in names for path in mlvu_release.rglob(name) for row in json.loads(path.read_text())]


def test_gold_answers_score_full_marks(judge_server):
    judge_server.reply = mlvu_reply(mlvu_gold_answers())
    results = evaluate(TASKS, judge_server)
    for task in TASKS:
        found = metrics(results, task)
        assert set(found) == EXPECTED[task]
        full = dict.fromkeys(found, 100)
        if "gen" in task:
            full |= {"g_avg": 10, **dict.fromkeys(rules.GENERATION, 10), **dict.fromkeys(rules.GRADES, 5)}
        assert found == full


def test_the_group_runs_the_dev_tasks(judge_server):
    results = evaluate(["mlvu"], judge_server, limit=1)
    assert {"mlvu_mc_dev", "mlvu_gen_dev"} <= set(results["results"])
    assert set(results["samples"]) == {"mlvu_mc_dev", "mlvu_gen_dev"}


# Right letters of the sample's middling model, by hand: of each category, those of its questions that it gets right.
MIDDLING = {
    "topic_reasoning": 50,
    "anomaly_recognition": 100,
    "needle_qa": 50,
    "ego_reasoning": 100,
    "plot_qa": 200 / 3,
    "action_order": 50,
    "action_count": 50,
}


def test_a_middling_model_scores_the_same_in_every_way_to_run_it(judge_server, mlvu_release, tmp_path):
    answers = mlvu_sample_answers()
    judge_server.reply = mlvu_reply(answers)
    results = evaluate(TASKS, judge_server)
    found = {task: metrics(results, task) for task in TASKS}

    dev = {name: found["mlvu_mc_dev"][name] for name in MIDDLING}
    assert dev == pytest.approx(MIDDLING)
    assert found["mlvu_mc_dev"]["m_avg"] == pytest.approx((400 + 200 / 3) / 7)
    assert found["mlvu_mc_dev"]["micro_avg"] == pytest.approx(100 * 10 / 15)
    test = found["mlvu_mc_test"]
    assert test["m_avg"] == pytest.approx(100 * 5 / 7) and test["m_avg_all"] == pytest.approx(100 * 6 / 9)

    graded = {
        row["question"]: json.loads(grade(answers[row["question"]], points(row), row["answer"]).split("\n")[1])
        for row in rows(mlvu_release, "8_sub_scene.json", "9_summary.json")
    }
    means = [
        sum(sum(graded[row["question"]].values()) for row in of) / len(of)
        for of in (rows(mlvu_release, "8_sub_scene.json"), rows(mlvu_release, "9_summary.json"))
    ]
    gen = found["mlvu_gen_dev"]
    assert [gen["sub_scene_captioning"], gen["video_summarization"]] == pytest.approx(means)
    assert gen["g_avg"] == pytest.approx(sum(means) / 2) and 2 < gen["g_avg"] < 10
    assert gen["ssc_accuracy"] + gen["ssc_relevance"] == pytest.approx(means[0])
    assert gen["vs_completeness"] + gen["vs_reliability"] == pytest.approx(means[1])

    simple = evaluate(TASKS, judge_server, force_simple=True)
    assert {task: metrics(simple, task) for task in TASKS} == found

    predicted = evaluate(TASKS, judge_server, predict_only=True)
    for kind, run in (("scored", results), ("predicted", predicted)):
        offline = score([save(tmp_path / kind / task, run, task) for task in TASKS])
        assert {task: {**of["metrics"], "coverage": of["coverage"]} for task, of in offline.items()} == found
    assert offline["mlvu_mc_dev"]["breakdowns"]["duration"] == {"under 5 min": found["mlvu_mc_dev"]["micro_avg"]}


def points(row):
    number = enumerate(row.get("scoring_points", ()), start=1)
    return "\n".join(f"{n}. {point}" for n, point in number) or None


def test_the_model_gets_the_protocols_prompts(judge_server, mlvu_release):
    evaluate(["mlvu_mc_test", "mlvu_gen_test"], judge_server)
    asked = Counter(dict(texts(request))["user"] for request in judge_server.requests if request["model"] == "model")
    expected = Counter()
    for row in rows(mlvu_release, "test_multi_choice_tasks.json", "test_generation_tasks.json"):
        prompt = row["question"]
        if "candidates" in row:
            options = "\n".join(f"({letter}) {text}" for letter, text in zip("ABCDEF", row["candidates"], strict=True))
            prompt = f"Question: {prompt}\nOptions:\n{options}\nOnly give the best option.\nBest option: ("
        expected[prompt] += 1
    assert asked == expected


def test_the_video_stands_before_the_question(judge_server):
    evaluate(["mlvu_mc_dev"], judge_server, limit=1)
    [request] = [request for request in judge_server.requests if request["model"] == "model"]
    assert [part["type"] for part in request["messages"][0]["content"]] == [*["image_url"] * 4, "text"]


def test_scores_outside_the_scale_leave_answers_unjudged(judge_server):
    played = mlvu_reply(mlvu_gold_answers())

    def reply(body, n):
        text = played(body, n)
        return text.replace('"reliability": 5', '"reliability": 6')

    judge_server.reply = reply
    results = evaluate(["mlvu_gen_dev"], judge_server)
    found = metrics(results, "mlvu_gen_dev")
    assert found["sub_scene_captioning"] == found["g_avg"] == 10 and found["coverage"] == 50
    assert str(found["video_summarization"]) == "nan"
    statuses = Counter(sample["g_avg"]["status"] for sample in results["samples"]["mlvu_gen_dev"])
    assert statuses == {"scored": 2, "unjudged": 2}


def test_failed_requests_and_unreadable_answers_are_told_apart(judge_server):
    gold = mlvu_gold_answers()

    def reply(body, n, played=mlvu_reply(gold)):
        text = str(body["messages"])
        if "the big animal" in text:
            return Fault("status", status=400, message="too long")
        return "I would rather not say." if "when it stands up" in text else played(body, n)

    judge_server.reply = reply
    results = evaluate(["mlvu_mc_dev"], judge_server)
    found = metrics(results, "mlvu_mc_dev")
    assert found["plot_qa"] == 50 and found["coverage"] == pytest.approx(100 * 14 / 15)
    items = [sample["m_avg"] for sample in results["samples"]["mlvu_mc_dev"]]
    assert [item["status"] for item in items[:2]] == ["no_answer", "scored"] and items[1]["unread"] == 1


def test_repeats_are_averaged(judge_server):
    gold = mlvu_gold_answers()

    def reply(body, n):
        return "(Z)" if n % 2 else mlvu_reply(gold)(body, n)

    judge_server.reply = reply
    results = evaluate(["mlvu_mc_test"], judge_server, repeats=2)
    items = [sample["m_avg"] for sample in results["samples"]["mlvu_mc_test"]]
    assert sum(item["score"] for item in items) == 450 and all(len(item["choices"]) == 2 for item in items)


def test_a_test_set_without_answers_ends_in_the_leaderboards_file(judge_server, mlvu_release, home, tmp_path, capsys):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("test_multi_choice_tasks.json", "test_generation_tasks.json"):
        without = [{key: row[key] for key in row if key not in ("answer", "scoring_points")}
                   for row in rows(mlvu_release, name)]  # fmt: skip
        (bare / name).write_text(json.dumps(without))
    prepare("mlvu", bare, videos=mlvu_release)
    judge_server.reply = mlvu_reply(mlvu_sample_answers())
    results = evaluate(["mlvu_mc_test", "mlvu_gen_test"], judge_server)
    found = metrics(results, "mlvu_mc_test")
    assert {str(value) for value in found.values()} == {"nan"}
    log = save(tmp_path / "logs", results, "mlvu_mc_test")

    offline = score([log])["mlvu_mc_test"]
    assert offline["metrics"] == {} and offline["coverage"] is None
    assert offline["counts"] == {**dict.fromkeys(offline["counts"], 0), "excluded": 9, "unread": 1}
    assert offline["notes"][:2] == [
        "9 questions have no reference answer and are not scored",
        "`lmms-eval-tasks submission mlvu LOG -o test_res.json` writes the leaderboard's file",
    ]
    assert not any("in these files" in note for note in offline["notes"])

    output = tmp_path / "test_res.json"
    assert main(["submission", "mlvu", str(log), "-o", str(output)]) == 1
    printed = capsys.readouterr().err
    assert "TQA_0: no choice in 'I see an old wall and nothing else.'" in printed and not output.exists()
    assert main(["submission", "mlvu", str(home / "runs"), "-o", str(output), "--allow-missing"]) == 0
    assert json.loads(output.read_text())[:2] == [
        {"question_id": "TR_0", "question_type": "topic_reasoning", "option": "F"},
        {"question_id": "AR_0", "question_type": "anomaly_reco", "option": "D"},
    ]
    assert len(json.loads(output.read_text())) == 8
