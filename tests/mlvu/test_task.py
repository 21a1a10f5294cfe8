import json
import math

import pytest
from datasets import Dataset

from lmms_eval_tasks import canonical
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.hooks import coverage
from lmms_eval_tasks.mlvu import metrics, prompts, release, task
from utils.sample_release.mlvu import mlvu_gold_answers, mlvu_reply

CONFIGS = ["mc_dev", "gen_dev", "mc_test", "gen_test"]


@pytest.fixture
def docs(mlvu_prepared):
    return {config: task.process_docs(canonical.opened("mlvu").rows(config)) for config in CONFIGS}


def row(name="x", **more):
    fields = {
        "id": name,
        "category": "plot_qa",
        "question_type": "plotQA",
        "video": "v.mp4",
        "question": "What?",
        "candidates": ["a one", "a two", "a three", "a two"],
        "letters": ["B", "D"],
        "answer": "a two",
        "scoring_points": [],
        "duration": None,
        "seconds": None,
        "excluded": None,
    }
    return {**fields, **more}


def expand(*rows, config="mc_dev"):
    dataset = Dataset.from_list(list(rows), features=release.features())
    dataset.info.config_name = config
    return task.process_docs(dataset)


def results_of(docs, answers):
    return [task.process_results(doc, [answers[doc["question"]]]) for doc in docs]


def test_one_doc_for_each_question(docs):
    assert [len(of) for of in docs.values()] == [15, 4, 9, 2]
    for config, of in docs.items():
        assert set(of["task"]) == {f"mlvu_{config}"}
    [duration] = {doc["seconds"] for doc in docs["mc_dev"] if doc["video"] == "1_plotQA/rabbit.mp4"}
    assert duration == 132 / 20


def test_the_annotated_duration_goes_before_the_files(mlvu_prepared):
    docs = expand(row("a", duration=300.0, seconds=5.0), row("b", seconds=5.0))
    assert docs["seconds"] == [300, 5]


def test_excluded_rows_are_not_asked_and_counted(mlvu_prepared):
    [doc] = expand(row("a"), row("b", excluded="bad data"))
    assert [(other["id"], other["category"], other["status"]) for other in doc["skipped"]] == [
        ("b", "plot_qa", "excluded")
    ]
    result = task.process_results(doc, ["B"])
    assert coverage([result["coverage"]]) == 100
    assert (task.m_avg([result["m_avg"]]), task.m_avg_official([result["m_avg_official"]])) == (100, 50)
    with pytest.raises(PackError, match="No question can be asked"):
        expand(row("a", excluded="bad data"))


def test_prompts_and_messages(docs):
    choice, caption = docs["mc_test"][0], docs["gen_dev"][0]
    assert task.doc_to_text(choice) == prompts.multiple_choice(choice["question"], choice["candidates"])
    assert task.doc_to_text(caption) == caption["question"]
    [message] = task.doc_to_messages(choice, {"text_first": False})
    assert [part["type"] for part in message["content"]] == ["video", "text"]
    assert message["content"][1]["text"] == task.doc_to_text(choice)
    assert task.doc_to_visual(choice) == [message["content"][0]["url"]]


@pytest.mark.parametrize("config", CONFIGS)
def test_gold_answers_score_full_marks(docs, judge_server, config):
    judge_server.reply = mlvu_reply({})
    results = results_of(docs[config], mlvu_gold_answers())
    full = {"g_avg": 10, **dict.fromkeys(metrics.GENERATION, 10), **dict.fromkeys(metrics.GRADES, 5)}
    functions = {name: getattr(task, name) for name in ("m_avg", "m_avg_all", "m_avg_official", "g_avg")}
    for name in {name for result in results for name in result} - {"coverage"}:
        part = [result[name] for result in results if name in result]
        assert functions.get(name, task.score)(part) == full.get(name, 100)


def test_a_doc_returns_the_keys_that_it_belongs_to(docs, judge_server):
    judge_server.reply = mlvu_reply({})
    keys = {"m_avg", "m_avg_official", "micro_avg", "coverage"}
    assert set(task.process_results(docs["mc_dev"][0], ["A"])) == keys | {"plot_qa"}
    assert set(task.process_results(docs["mc_test"][7], ["A"])) == keys | {"sports_qa", "m_avg_all"}
    caption = task.process_results(docs["gen_dev"][0], ["A rabbit."])
    assert set(caption) == {"g_avg", "sub_scene_captioning", "ssc_accuracy", "ssc_relevance", "coverage"}
    for name in ("coverage", "ssc_accuracy"):
        assert set(caption[name].settle()) <= {"video", "score", "status", "skipped"}


ANSWERS = {
    "a letter": ("(B)", 100, 0),
    "the other letter with the same text": ("D", 100, 0),
    "the text": ("a two", 100, 0),
    "another letter": ("(A)", 0, 0),
    "none": ("I do not know.", 0, 1),
    "nothing": ("", 0, 1),
    "reasoning": ("<think>A or B?</think>(B)", 100, 0),
    "a letter that is not offered": ("(F)", 0, 1),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_choices_are_scored_at_once(mlvu_prepared, name):
    answer, score, unread = ANSWERS[name]
    [doc] = expand(row())
    item = task.process_results(doc, [answer])["m_avg"]
    assert (item["status"], item["score"], item.get("unread", 0)) == ("scored", score, unread)


def test_an_answer_cut_in_its_reasoning_is_wrong_and_counted(mlvu_prepared):
    [doc] = expand(row())
    item = task.process_results(doc, ["<think>It is B"])["m_avg"]
    assert (item["score"], item["truncated"], item["unread"]) == (0, 1, 1)


def test_every_repeat_is_scored_and_averaged(mlvu_prepared):
    [doc] = expand(row())
    item = task.process_results(doc, ["B", "A", "?", "D"])["m_avg"]
    assert (item["score"], item["unread"], item["choices"]) == (50, 1, ["B", "A", None, "D"])


@pytest.mark.parametrize("config", ["mc_dev", "gen_dev"])
@pytest.mark.parametrize("answer", ["[LMMS_EVAL_REQUEST_FAILED after 5 retries] boom", "[LMMS_EVAL_BUDGET_EXCEEDED]"])
def test_a_failed_request_is_no_answer(docs, judge_server, config, answer):
    result = task.process_results(docs[config][0], [answer])
    item = next(iter(result.values())).settle()
    assert item["status"] == "no_answer" and "score" not in item and judge_server.requests == []
    assert all("score" not in part.settle() for part in result.values())


def test_the_judge_sees_points_for_captions_and_the_reference_for_summaries(docs, judge_server):
    judge_server.reply = mlvu_reply({})
    for doc in (docs["gen_dev"][0], docs["gen_dev"][2]):
        task.process_results(doc, ["<think>hm</think>A rabbit."])["g_avg"].settle()
    sent = [request["messages"][0]["content"] for request in judge_server.requests]
    caption, summary = docs["gen_dev"][0], docs["gen_dev"][2]
    assert set(sent) == {
        prompts.sub_scene_captioning(caption["question"], caption["scoring_points"], "A rabbit."),
        prompts.video_summarization(summary["answer"], "A rabbit."),
    }
    assert caption["answer"] not in "".join(sent)


REPLIES = {
    "a score outside the scale": '{"accuracy": 0, "relevance": 4}',
    "a missing score": '{"accuracy": 4}',
    "no JSON": "Very good, 5 of 5.",
    "half a relevance": '{"accuracy": 4, "relevance": 3.5}',
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_that_cannot_be_read_is_asked_for_again_then_unjudged(docs, judge_server, name):
    judge_server.reply = lambda body, n: REPLIES[name]
    result = task.process_results(docs["gen_dev"][0], ["A rabbit."])
    item = result["g_avg"].settle()
    assert item["status"] == "unjudged" and "score" not in item and len(judge_server.requests) == 4
    assert math.isnan(task.g_avg([result["g_avg"]])) and math.isnan(task.score([result["ssc_accuracy"]]))


def test_the_worst_answer_scores_two(docs, judge_server):
    judge_server.reply = lambda body, n: 'Nothing fits. {"accuracy": 1, "relevance": 1}'
    result = task.process_results(docs["gen_dev"][0], [""])
    assert result["g_avg"].settle()["score"] == task.g_avg([result["g_avg"]]) == 2
    assert task.score([result["ssc_accuracy"]]) == 1


def test_real_numbers_in_accuracy(docs, judge_server):
    judge_server.reply = lambda body, n: '{"accuracy": 3.6666, "relevance": 4}'
    result = task.process_results(docs["gen_dev"][0], ["A rabbit."])
    assert task.g_avg([result["g_avg"]]) == pytest.approx(7.6666)


NO_REFERENCE = {"letters": [], "answer": "", "scoring_points": []}


@pytest.mark.parametrize("category", ["plot_qa", "sub_scene_captioning", "video_summarization"])
def test_without_a_reference_answers_are_neither_wrong_nor_unjudged(mlvu_prepared, judge_server, category):
    candidates = ["a", "b"] if category == "plot_qa" else []
    [doc] = expand(row(**NO_REFERENCE, category=category, candidates=candidates), config="mc_test")
    result = task.process_results(doc, ["A"])
    item = next(iter(result.values()))
    assert (item["status"], item["reason"]) == ("excluded", "no reference answer")
    assert "score" not in item and judge_server.requests == []
    assert {name: part.settle().get("score") for name, part in result.items()} == dict.fromkeys(result)


def test_the_item_is_on_disk_with_all_that_scoring_needs(docs, home, judge_server):
    task.process_results(docs["mc_dev"][0], ["(B)"])
    [record] = (home / "runs").glob("*-mlvu_mc_dev-*.jsonl")
    item = json.loads(record.read_text().splitlines()[-1])
    assert (item["answers"], item["status"], item["letters"]) == (["(B)"], "unjudged", ["B"])
    assert item["candidates"] == docs["mc_dev"][0]["candidates"]


def test_without_a_judge_captions_are_unjudged_and_choices_are_scored(docs):
    item = task.process_results(docs["gen_dev"][0], ["A rabbit."])["g_avg"].settle()
    assert (item["status"], item["reason"]) == ("unjudged", "no judge is configured")
    assert task.process_results(docs["mc_dev"][0], ["(B)"])["m_avg"]["score"] == 100
