import json
import re
from pathlib import Path

import av
import pytest
from datasets import Dataset

from lmms_eval_tasks import canonical
from lmms_eval_tasks.answers.failures import EveryAnswer
from lmms_eval_tasks.benchmarks import tasks
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.hooks import coverage
from lmms_eval_tasks.mvpbench import metrics, prompts, release, task
from lmms_eval_tasks.mvpbench.metrics import SUBTASKS
from lmms_eval_tasks.results.items import counts
from lmms_eval_tasks.settings import PREFIX
from utils.sample_release.mvpbench import gold_answers, rows

SHARED = Path(__file__).parents[3] / "shared" / "cases" / "mvpbench_answers.jsonl"


@pytest.fixture
def docs(mvp_prepared):
    return task.process_docs(canonical.opened("mvpbench").rows())


def of(docs, subtask):
    return next(doc for doc in docs if doc["subtask"] == subtask)


def settled(doc, *answers):
    return task.process_results(doc, list(answers))["overall"].settle()


def test_one_doc_for_each_question(docs):
    assert len(docs) == len(set(docs["id"])) == 32
    for doc, row in zip(docs, rows(), strict=True):
        assert (doc["query"], doc["subtask"], doc["task"]) == (row.query, row.subtask, "mvpbench")
        assert doc["video"] == doc["videos"][0] and doc["skipped"] == []
        assert doc["target"] == ", ".join(map(str, doc["gold"]))
        assert doc["chance"] == metrics.chance_level(doc["subtask"], doc["candidates"])


@pytest.mark.parametrize("subtask", SUBTASKS)
def test_every_subtask_is_a_task_of_its_own(mvp_prepared, subtask):
    asked = tasks()[f"mvpbench_{subtask}"]
    assert (asked.benchmark, asked.config, asked.judged) == ("mvpbench", subtask, "unread")
    docs = task.process_docs(canonical.opened("mvpbench").rows(subtask))
    assert set(docs["task"]) == {f"mvpbench_{subtask}"} and set(docs["subtask"]) == {subtask}


def test_excluded_questions_stand_beside_the_doc_before_them(mvp_prepared):
    good = canonical.opened("mvpbench").rows("gait")[0]
    bad = release.Question(id="gait/8", subtask="gait", excluded="odd").model_dump()
    [doc] = task.process_docs(Dataset.from_list([good, bad], features=release.features()))
    assert doc["skipped"] == [{"id": "gait/8", "subtask": "gait", "status": "excluded", "reason": "odd"}]
    assert counts([settled(doc, "2")])["excluded"] == 1
    with pytest.raises(PackError, match="gait/8: odd"):
        task.process_docs(Dataset.from_list([bad], features=release.features()))


@pytest.fixture
def no_clips(monkeypatch):
    """The source files themselves, which need not be made."""
    monkeypatch.setenv(f"{PREFIX}CLIPS", "0")


@pytest.mark.usefixtures("no_clips")
def test_messages_hold_text_and_videos_in_turn_where_the_placeholders_stand(docs):
    for doc in docs:
        [message] = task.doc_to_messages(doc)
        assert message["role"] == "user"
        assert "".join(part.get("text", "<video>") for part in message["content"]) == doc["query"]
        clips = [part["url"] for part in message["content"] if part["type"] == "video"]
        assert clips == task.doc_to_visual(doc) and len(clips) == len(doc["videos"])
        assert [part["type"] for part in message["content"]][: 2 * len(clips)] == ["text", "video"] * len(clips)


@pytest.mark.usefixtures("no_clips")
def test_the_reference_comes_first(docs):
    doc = of(docs, "multiview_pairing")
    [message] = task.doc_to_messages(doc)
    texts = [part.get("text", "VIDEO") for part in message["content"]]
    assert texts[0].endswith("Ref Video: ") and texts[2].endswith("Video 1: ") and texts[4] == "Video 2: "
    assert doc["reference"] and doc["videos"][0] == "multiview_pairing/00000.mp4"


@pytest.mark.usefixtures("no_clips")
def test_placeholders_side_by_side_and_at_the_ends(docs):
    doc = {**of(docs, "daily_action"), "query": "<video><video>"}
    assert [part["type"] for part in task.doc_to_messages(doc)[0]["content"]] == ["video", "video"]
    assert task.doc_to_text(doc) == "<video 1 of 2><video 2 of 2>"


def test_the_text_for_simple_backends_is_the_query_with_numbered_placeholders(docs):
    for doc in docs:
        text, number = task.doc_to_text(doc), len(doc["videos"])
        assert re.findall(r"<video[^>]*>", text) == [f"<video {n} of {number}>" for n in range(1, number + 1)]
        assert re.sub(r"<video \d of \d>", "<video>", text) == doc["query"]


def frames(clip):
    with av.open(clip) as container:
        return sum(1 for _ in container.decode(video=0))


def test_the_videos_of_a_question_share_its_frames(docs):
    for subtask, share in (("weather", 42), ("multiview_pairing", 32)):
        assert [frames(clip) for clip in task.doc_to_visual(of(docs, subtask))] == [share] * (128 // share)


def test_frames_can_be_given_for_a_question_or_for_each_video(docs, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "6")
    assert [frames(clip) for clip in task.doc_to_visual(of(docs, "weather"))] == [6] * 3
    monkeypatch.setenv(f"{PREFIX}FRAMES_PER_QUESTION", "12")
    assert [frames(clip) for clip in task.doc_to_visual(of(docs, "multiview_pairing"))] == [3] * 4
    monkeypatch.setenv(f"{PREFIX}FRAMES_PER_QUESTION", "3")
    with pytest.raises(PackError, match="3 frames per question are too few for 4 videos"):
        task.doc_to_visual(of(docs, "multiview_pairing"))


def test_gold_answers_score_full_marks(docs):
    answers = gold_answers()
    results = [task.process_results(doc, [answers[doc["query"]]]) for doc in docs]
    assert task.score([result["overall"] for result in results]) == pytest.approx(100)
    assert coverage([result["coverage"] for result in results]) == 100
    for name in (*metrics.DOMAINS, *SUBTASKS):
        assert task.score([result[name] for result in results if name in result]) == pytest.approx(100)
    for subtask in SUBTASKS:
        part = [result[f"{subtask}_accuracy"] for result in results if f"{subtask}_accuracy" in result]
        assert task.accuracy(part) == 100


def test_a_doc_returns_the_keys_that_it_belongs_to_and_small_parts(docs):
    doc = of(docs, "weather")
    result = task.process_results(doc, ["2"])
    assert list(result) == ["overall", "content_assessment", "weather", "weather_accuracy", "weather_chance",
                            "weather_first_option", "coverage"]  # fmt: skip
    parts = {name: dict(part.settle()) for name, part in result.items()}
    assert parts["weather"] == {
        "video": doc["video"], "subtask": "weather", "status": "scored", "chance": 1 / 3, "score": 100.0,
    }  # fmt: skip
    assert parts["weather_chance"] == {"subtask": "weather", "status": "scored", "chance": 1 / 3, "first": 0.0}
    assert "score" not in parts["coverage"]


@pytest.mark.parametrize(
    "subtask, answer, choice",
    [
        ("weather", "2", [2]),
        ("weather", "Video 2", [2]),
        ("weather", "<think>1? 3?</think>\nVideo 2", [2]),
        ("weather", "9", [9]),
        ("clarity", "3, 2, 1", [3, 2, 1]),
        ("clarity", "[3,2,1]", [3, 2, 1]),
        ("clarity", "3, 2, 4", [3, 2, 4]),
        ("clarity", "1, 2, 3", [1, 2, 3]),
    ],
)
def test_what_rules_read_is_scored_without_a_judge(docs, subtask, answer, choice):
    doc = of(docs, subtask)
    item = settled(doc, answer)
    assert item["choices"] == [choice] and item["status"] == "scored"
    assert item["score"] == (100 if choice == doc["gold"] else 0)
    assert item["first"] == (choice == list(range(1, len(choice) + 1)))
    assert "unread" not in item and "judge" not in item


UNREADABLE = "Both clips are splendid, and I would not want to choose between them."


def test_without_a_judge_what_cannot_be_read_is_wrong_and_counted(docs):
    item = settled(of(docs, "weather"), UNREADABLE)
    assert (item["status"], item["score"], item["first"], item["unread"]) == ("scored", 0, 0, 1)
    assert item["choices"] == [None]


def test_an_empty_or_cut_answer_is_unread_and_never_asked_about(docs, judge_server):
    results = [settled(of(docs, "weather"), text) for text in ("", "  \n", "<think>hm, it may be 2")]
    assert [(item["score"], item["unread"]) for item in results] == [(0, 1)] * 3
    assert [item.get("truncated", 0) for item in results] == [0, 0, 1]
    assert judge_server.requests == []


def test_the_judge_reads_what_rules_cannot_once_per_answer(docs, judge_server, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}JUDGE_REPEATS", "3")
    judge_server.reply = lambda body, n: "2"
    item = settled(of(docs, "weather"), UNREADABLE, "2", f"<think>3</think>{UNREADABLE} Really.")
    assert item["choices"] == [[2]] * 3 and item["score"] == 100 and "unread" not in item
    asked = [request["messages"] for request in judge_server.requests]
    expected = [UNREADABLE, f"{UNREADABLE} Really."]
    assert sorted(map(str, asked)) == sorted(
        str([{"role": "user", "content": prompts.extraction(passage)}]) for passage in expected
    )
    assert item["judge"]["judgements"] == 2 and item["card"]["judge"]["model"] == "test-judge"
    settled(of(docs, "weather"), UNREADABLE)
    assert len(judge_server.requests) == 2


REPLIES = {
    "weather": [
        ("2", [2]), ("Video 2", [2]), ("2.", [2]), ("<think>1</think>2", [2]), ("Extracted Information:\n\n2", [2]),
        ("7", [7]), ("None", []), ("none.", []), ("No answer is given.", []), ("N/A", []), ("1, 2", []),
        ("Video 1, Video 3", []), ("[1, 2]", []), ("1 and 2", []), ("The passage does not choose any video.", []),
        ("Both", []), ("", None), ("<think>2", None), ("Hello!", None), ("I am a judge", None),
    ],
    "clarity": [
        ("3, 2, 1", [3, 2, 1]), ("3,2,1", [3, 2, 1]), ("Video 3, Video 2, Video 1", [3, 2, 1]), ("1, 2, 7", [1, 2, 7]),
        ("2", []), ("1, 2", []), ("1, 1, 2", []), ("None", []), ("Hello!", None), ("", None),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "subtask, reply, choice", [(name, *case) for name, cases in REPLIES.items() for case in cases], ids=repr
)
def test_judges_replies(subtask, reply, choice):
    assert task.read_reply(reply, subtask, 3) == choice


def test_a_judge_that_finds_no_choice_settles_it(docs, judge_server):
    judge_server.reply = lambda body, n: "None"
    item = settled(of(docs, "weather"), UNREADABLE)
    assert (item["status"], item["score"], item["unread"], item["choices"]) == ("scored", 0, 1, [[]])
    settled(of(docs, "weather"), UNREADABLE)
    assert len(judge_server.requests) == 1


@pytest.mark.parametrize("order", [("weather", "clarity"), ("clarity", "weather")])
def test_equal_answers_share_a_verdict_only_where_it_is_read_alike(docs, judge_server, order):
    judge_server.reply = lambda body, n: "2"
    read = {subtask: settled(of(docs, subtask), UNREADABLE)["choices"] for subtask in order}
    assert read == {"weather": [[2]], "clarity": [[]]}
    assert settled(of(docs, "brightness"), UNREADABLE)["choices"] == [[2]]
    assert len(judge_server.requests) == 2


def test_an_unreadable_reply_is_asked_for_again(docs, judge_server):
    judge_server.reply = lambda body, n: "Well …" if n < 2 else "3"
    assert settled(of(docs, "weather"), UNREADABLE)["choices"] == [[3]]
    assert len(judge_server.requests) == 3


def test_a_judge_that_fails_leaves_the_answer_unjudged(docs, judge_server):
    judge_server.reply = lambda body, n: "Well …"
    result = task.process_results(of(docs, "weather"), [UNREADABLE, "2"])
    item = result["overall"].settle()
    assert item["status"] == "unjudged" and "unreadable after 4 replies" in item["reason"]
    assert "score" not in item and "unread" not in item and item["choices"] == [None, [2]]
    assert str(task.score([result["overall"]])) == str(task.chance([result["weather_chance"]])) == "nan"
    assert coverage([result["coverage"]]) == 0


def test_repeats_are_averaged(docs):
    item = settled(of(docs, "weather"), "2", "1", "1", UNREADABLE)
    assert (item["score"], item["first"], item["unread"]) == (25, 0.5, 1)


@pytest.mark.parametrize(
    "answer", ["[LMMS_EVAL_REQUEST_FAILED after 5 retries] 2", "[LMMS_EVAL_BUDGET_EXCEEDED]", None]
)
def test_a_failed_request_is_no_answer(docs, judge_server, answer):
    [texts] = EveryAnswer().apply([[answer]], None)
    item = settled(of(docs, "weather"), *texts)
    assert item["status"] == "no_answer" and "score" not in item
    assert judge_server.requests == []


def test_the_item_is_on_disk_before_it_is_scored(docs, home, judge_server):
    judge_server.latency = 5
    task.process_results(of(docs, "weather"), [UNREADABLE])
    [record] = (home / "runs").glob("*.jsonl")
    item = json.loads(record.read_text())
    assert (item["answers"], item["status"]) == ([UNREADABLE], "unjudged")
    judge_server.latency = 0


def test_an_item_of_another_shape_costs_itself_alone(docs):
    item = task.item(of(docs, "weather"), ["2"])
    item["gold"] = None
    task.judge(item)
    assert item.settle()["status"] == "unjudged"


@pytest.mark.parametrize("line", SHARED.read_text("utf-8").splitlines() if SHARED.exists() else [])
def test_shared_cases(line):
    case = json.loads(line)
    subtask = "clarity" if case["kind"] == "ranking" else "weather"
    assert task.read_choice(case["answer"], subtask, case["n_videos"]) == case["expected"]


CASES = [
    ("weather", "The video with the most severe weather conditions is Video 3.", 3, [3]),
    ("weather", "3", 2, [3]),
    ("weather", "1 or 2", 3, None),
    ("clarity", "The correct order of the video clips is: 1, 2, 3.", 3, [1, 2, 3]),
    ("clarity", "3, 3, 1", 3, None),
    ("clarity", "2", 3, None),
    ("caption_free_splicing", "4, 2, 1, 3", 4, [4, 2, 1, 3]),
]


@pytest.mark.parametrize("subtask, answer, candidates, expected", CASES)
def test_rankings_and_single_numbers_are_read_by_their_own_rules(subtask, answer, candidates, expected):
    assert task.read_choice(answer, subtask, candidates) == expected
