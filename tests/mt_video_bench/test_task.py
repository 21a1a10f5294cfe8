import json
import shutil
import time

import pytest
from datasets import Dataset

from lmms_eval_tasks import canonical
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.hooks import coverage
from lmms_eval_tasks.mt_video_bench import prompts, release, task
from lmms_eval_tasks.settings import PREFIX
from utils.sample_release import gold_answers


@pytest.fixture
def docs(mt_prepared):
    return task.process_docs(canonical.opened("mt_video_bench").rows())


def row(dialogue, turns, video="v", **more):
    return {
        "id": dialogue,
        "ability": "memory_recall",
        "video": video,
        "event": "1",
        "turns": turns,
        "seconds": None,
        "scenes": None,
        **more,
    }


def turn(number, checks=0, excluded=None):
    checklist = [{"question": f"c{k}", "expected": "yes"} for k in range(checks)]
    return {"question": f"q{number}", "answer": f"a{number}", "checklist": checklist, "excluded": excluded}


def expand(rows, monkeypatch=None):
    return task.process_docs(Dataset.from_list(rows, features=release.features()))


def test_one_doc_for_each_evaluated_turn_with_its_golden_history(docs):
    assert len(docs) == 24
    assert len(set(docs["id"])) == 24
    for doc in docs:
        assert len(doc["history"]) == doc["turn"] - 1
        assert doc["checklist"] and doc["skipped"] == []
        assert doc["id"] == f"{doc['dialogue']}/{doc['turn']}"


def test_history_is_the_reference_of_all_earlier_rounds(mt_prepared):
    docs = expand([row("d", [turn(1), turn(2, 5), turn(3), turn(4, 5)])])
    assert [doc["turn"] for doc in docs] == [2, 4]
    assert docs[1]["history"] == [{"question": f"q{n}", "answer": f"a{n}"} for n in (1, 2, 3)]
    assert docs[1]["question"] == "q4" and docs[1]["reference"] == "a4" and docs[1]["turns"] == 4


def test_excluded_turns_stand_beside_the_doc_before_them(mt_prepared):
    rows = [
        row("a", [turn(1, 5, "bad"), turn(2, 5), turn(3, 0, "worse")]),
        row("b", [turn(1, 5, "worst")]),
        row("c", [turn(1, 5)]),
    ]
    docs = expand(rows)
    assert [doc["id"] for doc in docs] == ["a/2", "c/1"]
    assert [[(s["id"], s["status"], s["reason"]) for s in doc["skipped"]] for doc in docs] == [
        [("a/1", "excluded", "bad"), ("a/3", "excluded", "worse"), ("b/1", "excluded", "worst")],
        [],
    ]


def test_nothing_to_ask_is_an_error(mt_prepared):
    with pytest.raises(PackError, match="No question can be asked"):
        expand([row("a", [turn(1, 5, "bad")])])


def test_turns_about_missing_videos_are_skipped_if_so_set(mt_prepared, monkeypatch):
    (mt_prepared / "videos" / "street_bikes.mp4").unlink()
    monkeypatch.setenv(f"{PREFIX}ON_MISSING_VIDEO", "skip")
    docs = task.process_docs(canonical.opened("mt_video_bench").rows())
    skipped = [turn for doc in docs for turn in doc["skipped"]]
    assert len(docs) + len(skipped) == 24
    assert skipped and all(turn["status"] == "no_answer" and "street_bikes" in turn["reason"] for turn in skipped)
    assert "street_bikes" not in docs["video"]


def test_messages_hold_the_prompt_and_the_video_in_the_order_that_the_model_wants(docs):
    doc = docs[0]
    text = {"type": "text", "text": prompts.inference(doc["history"], doc["question"])}
    [message] = task.doc_to_messages(doc, {"text_first": True})
    assert message["role"] == "user" and message["content"][0] == text
    video = message["content"][1]
    assert video["type"] == "video" and video["url"].endswith(".mp4")
    assert task.doc_to_messages(doc) == [message]
    assert task.doc_to_messages(doc, {"text_first": False})[0]["content"] == [video, text]
    assert task.doc_to_visual(doc) == [video["url"]]


def test_the_first_clip_that_is_asked_for_starts_those_of_coming_docs(docs, home, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "8")
    for doc in docs:
        task.doc_to_text(doc, {"text_first": True})
    assert not (home / "clips").exists()
    task.doc_to_visual(docs[0])
    deadline = time.monotonic() + 60
    while len(list((home / "clips").glob("*.mp4"))) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_without_context_the_history_is_empty(mt_prepared):
    docs = task.process_docs_no_context(canonical.opened("mt_video_bench").rows())
    assert len(docs) == 24 and set(docs["task"]) == {"mt_video_bench_no_context"}
    assert all("Conversation history:\n[]\nCurrent question:\n" in task.doc_to_text(doc) for doc in docs)


def test_chat_gives_the_history_as_turns(mt_prepared):
    docs = task.process_docs_chat(canonical.opened("mt_video_bench").rows())
    doc = next(doc for doc in docs if doc["turn"] == 3)
    messages = task.doc_to_messages_chat(doc)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert messages[0]["content"] == [{"type": "text", "text": prompts.SYSTEM}]
    assert [part["type"] for part in messages[1]["content"]] == ["video", "text"]
    texts = [message["content"][-1]["text"] for message in messages[1:]]
    first, second = doc["history"]
    assert texts == [first["question"], first["answer"], second["question"], second["answer"], doc["question"]]
    assert doc["question"] in task.doc_to_text_chat(doc)


def test_the_ability_tasks_are_named_after_their_configuration(mt_prepared):
    docs = task.process_docs(canonical.opened("mt_video_bench").rows("memory_recall"))
    assert set(docs["task"]) == {"mt_video_bench_memory_recall"} and set(docs["ability"]) == {"memory_recall"}


def test_gold_answers_score_full_marks(docs, mt_release, judge_server):
    answers = gold_answers(mt_release)
    results = [task.process_results(doc, [answers[doc["question"]]]) for doc in docs]
    turns = [result["overall"] for result in results]
    assert task.score(turns) == 100
    assert coverage([result["coverage"] for result in results]) == 100
    for ability in release.ABILITIES:
        assert task.score([result[ability] for result in results if ability in result]) == 100


def test_the_judge_never_sees_the_expected_answers(docs, judge_server):
    result = task.process_results(docs[0], ["An answer."])
    result["overall"].settle()
    [request] = judge_server.requests
    checklist = docs[0]["checklist"]
    assert request["messages"] == [
        {"role": "user", "content": prompts.judge("An answer.", [check["question"] for check in checklist])}
    ]


def test_a_doc_returns_the_keys_that_it_belongs_to(docs, judge_server):
    for doc in docs:
        result = task.process_results(doc, ["x"])
        group = "perceptivity" if doc["ability"] in task.metrics.PERCEPTIVITY else "interactivity"
        assert set(result) == {"overall", group, doc["ability"], "coverage"}
        assert "score" not in result["coverage"].settle()


FAILURES = ["[LMMS_EVAL_REQUEST_FAILED after 5 retries] boom", "[LMMS_EVAL_BUDGET_EXCEEDED]", None]


@pytest.mark.parametrize("answer", FAILURES)
def test_a_failed_request_is_no_answer_and_is_not_judged(docs, judge_server, answer):
    [[text]] = task_filter([[answer]])
    result = task.process_results(docs[0], [text])
    assert result["overall"].settle()["status"] == "no_answer"
    assert "score" not in result["overall"] and judge_server.requests == []
    assert coverage([result["coverage"]]) == 0


def task_filter(responses):
    from lmms_eval_tasks.answers.failures import EveryAnswer

    return EveryAnswer().apply(responses, None)


def test_reasoning_is_not_judged_and_a_cut_one_is_counted(docs, judge_server):
    results = [task.process_results(docs[0], [text]) for text in ("<think>hm</think>It is red.", "<think>hm, it is")]
    turns = [result["overall"].settle() for result in results]
    prompts_sent = [request["messages"][0]["content"] for request in judge_server.requests]
    assert any(">\nIt is red.\n</answer" in prompt for prompt in prompts_sent)
    assert any(">\n\n</answer" in prompt for prompt in prompts_sent)
    assert [turn.get("truncated", 0) for turn in turns] == [0, 1]
    assert [turn["status"] for turn in turns] == ["scored", "scored"]


def test_every_repeat_is_scored_and_averaged(docs, mt_release, judge_server):
    gold = gold_answers(mt_release)[docs[0]["question"]]
    result = task.process_results(docs[0], [gold, "nothing"])
    low = task.process_results(docs[0], ["nothing"])["overall"].settle()["score"]
    assert result["overall"].settle()["score"] == pytest.approx((100 + low) / 2)


def test_without_a_judge_items_are_unjudged(docs):
    result = task.process_results(docs[0], ["An answer."])
    turn = result["overall"].settle()
    assert (turn["status"], turn["reason"]) == ("unjudged", "no judge is configured")
    assert "score" not in turn
    assert str(task.score([result["overall"]])) == "nan"
    assert coverage([result["coverage"]]) == 0


def test_nothing_fails_after_generation(docs, mt_prepared, home, monkeypatch):
    shutil.rmtree(mt_prepared.resolve())
    monkeypatch.setenv(f"{PREFIX}JUDGE_MODEL", "judge")
    monkeypatch.setenv(f"{PREFIX}JUDGE_BASE_URL", "no url")
    turn = task.process_results(docs[0], ["An answer."])["overall"].settle()
    assert turn["status"] == "unjudged" and "JUDGE_BASE_URL" in turn["reason"]
    assert len(list((home / "runs").iterdir())) == 1


def test_the_item_is_on_disk_before_it_is_judged(docs, home, judge_server):
    judge_server.latency = 5
    task.process_results(docs[0], ["An answer."])
    [record] = (home / "runs").glob("*.jsonl")
    turn = json.loads(record.read_text())
    assert (turn["id"], turn["answers"], turn["status"]) == (docs[0]["id"], ["An answer."], "unjudged")
    judge_server.latency = 0
