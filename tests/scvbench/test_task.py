import json
import shutil

import pytest
from datasets import Dataset

from lmms_eval_tasks import canonical
from lmms_eval_tasks.answers.failures import NO_CONTENT, EveryAnswer
from lmms_eval_tasks.benchmarks import groups, tasks
from lmms_eval_tasks.dialogue.adapter import EveryTranscript
from lmms_eval_tasks.dialogue.program import Running, Turn
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.hooks import coverage
from lmms_eval_tasks.scvbench import metrics, prompts, release, task
from lmms_eval_tasks.settings import PREFIX
from utils.sample_release.scvbench import scvbench_gold_answers, scvbench_reply, scvbench_sample_answers

SUBS = [{"question": "Who?", "answer": "Ann"}, {"question": "Where?", "answer": "At home"}]
OPTIONS = ["one", "two", "three", "four", "two"]
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] boom"

PROGRAMS = {
    "scvbench_pqa": (task.process_docs_pqa, task._own),
    "scvbench_pqa_gold": (task.process_docs_pqa_gold, task._gold),
    "scvbench_storycot": (task.process_docs_storycot, task._story),
}
QUESTION = ("What came first?", OPTIONS)
FQA = prompts.fqa(*QUESTION)

pytestmark = pytest.mark.usefixtures("scvbench_prepared")


def row(name="v/1", **changes):
    film = dict.fromkeys(("title", "logline", "synopsis", "genre", "duration", "seconds", "excluded"))
    content = {"question": QUESTION[0], "options": OPTIONS, "letters": ["B", "E"], "answer": "two"}
    return {**film, **content, "id": name, "video": name.split("/")[0], "sub_questions": SUBS, **changes}


def expand(*rows, process_docs=task.process_docs):
    return process_docs(Dataset.from_list(list(rows), features=release.features()))


def play(name, *replies, doc=None):
    """The conversation of a doc as lmms-eval hands it on: one transcript."""
    process_docs, conversations = PROGRAMS[name]
    [doc] = [doc] if doc else expand(row(), process_docs=process_docs)
    running = conversations.start(doc)
    for reply in replies:
        running.reply(reply)
    return doc, running.transcript()


def results(name, *repeats):
    """What `process_results` makes of a doc and its conversations, by the replies of each."""
    played = [play(name, *replies) for replies in repeats]
    joined = EveryTranscript().apply([[said.dump() for _, said in played]], None)
    return task.process_results(played[0][0], joined)


def test_one_doc_for_each_final_question_in_every_task():
    dataset = canonical.opened("scvbench").rows()
    for name, process_docs in {"scvbench_fqa": task.process_docs, **{k: v[0] for k, v in PROGRAMS.items()}}.items():
        docs = process_docs(dataset)
        assert docs["id"] == dataset["id"] and set(docs["task"]) == {name}
        assert all(doc["skipped"] == [] and doc["seconds"] > 4 for doc in docs)


def test_the_four_tasks_and_their_group():
    names = [name for name, of in tasks().items() if of.benchmark == "scvbench"]
    assert sorted(names) == sorted(groups()["scvbench"]) == ["scvbench_fqa", *PROGRAMS]
    assert not any(tasks()[name].judged for name in names)


def test_the_films_duration_is_measured_else_as_annotated():
    docs = expand(row("a/1", seconds=5.0, duration=7.0), row("b/1", duration=7.0), row("c/1"))
    assert docs["seconds"] == [5.0, 7.0, None]


def test_excluded_questions_stand_beside_the_doc_before_them():
    docs = expand(row("a/1"), row("a/2", excluded="bad", options=[], letters=[], sub_questions=[]), row("b/1"))
    assert docs["id"] == ["a/1", "b/1"]
    assert docs[0]["skipped"] == [{"id": "a/2", "video": "a", "status": "excluded", "reason": "bad"}]
    with pytest.raises(PackError, match="No question can be asked"):
        expand(row(excluded="bad"))


def test_questions_about_missing_videos_are_skipped_if_so_set(scvbench_prepared, monkeypatch):
    (scvbench_prepared / "videos" / "three_films.mp4").unlink()
    monkeypatch.setenv(f"{PREFIX}ON_MISSING_VIDEO", "skip")
    docs = task.process_docs_storycot(canonical.opened("scvbench").rows())
    skipped = [(of["status"], of["reason"]) for doc in docs for of in doc["skipped"]]
    assert len(docs) == 4 and skipped == [("no_answer", "video three_films is missing")] * 2


def test_messages_hold_the_video_before_the_prompt(monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "2")
    doc = task.process_docs(canonical.opened("scvbench").rows())[0]
    [message] = task.doc_to_messages(doc, {"text_first": False})
    assert [part["type"] for part in message["content"]] == ["video", "text"]
    assert message["content"][1]["text"] == task.doc_to_text(doc) == prompts.fqa(doc["question"], doc["options"])
    assert task.doc_to_visual(doc) == [message["content"][0]["url"]]


# What each program asks, given what the model said before: prompt, and whether it is shown the video.
HISTORY = [{"question": "Who?", "answer": "r0"}, {"question": "Where?", "answer": "r1"}]
ASKED = [(prompts.sub_question("Who?", []), True), (prompts.sub_question("Where?", HISTORY[:1]), True)]
EXPECTED = {
    "scvbench_pqa": [*ASKED, (prompts.pqa(*QUESTION, HISTORY), True), (FQA, True)],
    "scvbench_pqa_gold": [(prompts.pqa(*QUESTION, SUBS), True), (FQA, True)],
    "scvbench_storycot": [
        *ASKED,
        *((prompts.events(turn), False) for turn in HISTORY),
        (prompts.story(HISTORY, ["r2", "r3"]), False),
        (prompts.pqa(*QUESTION, HISTORY, "r4"), True),
        (FQA, True),
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("reasoning", ["", "<think>hm</think>"])
def test_programs_turn_by_turn(name, reasoning):
    number = len(EXPECTED[name])
    _, said = play(name, *(f"{reasoning}r{k}" for k in range(number)))
    shown = [(turn["prompt"], turn["videos"] == ["v"]) for turn in said.turns]
    assert shown == EXPECTED[name]
    assert [turn["reply"] for turn in said.turns] == [f"{reasoning}r{k}" for k in range(number)]


def test_a_program_ends_after_its_last_turn():
    for name, (process_docs, conversations) in PROGRAMS.items():
        [doc] = expand(row(), process_docs=process_docs)
        running = conversations.start(doc)
        for _ in EXPECTED[name]:
            assert running.turn is not None
            running.reply("x")
        assert running.turn is None


def test_a_model_that_says_what_the_reference_says_is_asked_what_the_gold_task_asks():
    doc, said = play("scvbench_pqa", "Ann", "At home", "B", "B")
    _, gold = play("scvbench_pqa_gold", "B", "B", doc=doc)
    assert said.turns[2:] == gold.turns


# By hand, for the sample's middling model: see tests/end_to_end/test_scvbench.py.
SAMPLE = {
    "scvbench_fqa": ({"fqa": 100}, {"fqa": 50}),
    "scvbench_pqa": ({"fqa": 100, "pqa": 100, "hdu": 0}, {"fqa": 50, "pqa": 400 / 6, "hdu": 100 / 6}),
    "scvbench_pqa_gold": ({"fqa": 100, "pqa": 100, "hdu": 0}, {"fqa": 50, "pqa": 100, "hdu": 50}),
    "scvbench_storycot": ({"fqa": 100, "pqa": 100, "hdu": 0}, {"fqa": 50, "pqa": 400 / 6, "hdu": 100 / 6}),
}


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.parametrize("middling", [False, True], ids=["gold", "middling"])
def test_gold_answers_score_full_marks_and_middling_ones_less(name, middling):
    model = scvbench_reply(scvbench_sample_answers() if middling else scvbench_gold_answers())
    process_docs, conversations = PROGRAMS.get(name, (task.process_docs, None))
    found = []
    for doc in process_docs(canonical.opened("scvbench").rows()):
        running = conversations.start(doc) if conversations else Running(final(doc))
        while running.turn is not None:
            running.reply(model({"messages": [{"role": "user", "content": running.turn.text}]}, 0))
        said = running.transcript()
        answers = EveryTranscript().apply([[said.dump()]], None) if conversations else [said.answer]
        found.append(task.process_results(doc, answers)["pqa" if conversations else "fqa"])
    assert metrics.scores(found) == pytest.approx(SAMPLE[name][middling])


def final(doc):
    return (yield Turn(task.doc_to_text(doc)))


def fqa(*answers):
    [doc] = expand(row())
    [texts] = EveryAnswer().apply([list(answers)], None)
    return task.process_results(doc, texts)


ANSWERS = {
    "B": (100, 0),
    "(E) two": (100, 0),
    "The answer is B.": (100, 0),
    "two": (100, 0),
    "<think>A or C</think>B": (100, 0),
    "A": (0, 0),
    "F": (0, 1),
    "A or B": (0, 1),
    "": (0, 1),
    "I cannot say.": (0, 1),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_choices_are_read_and_what_cannot_be_read_is_wrong(answer):
    score, unread = ANSWERS[answer]
    found = fqa(answer)
    question = found["fqa"]
    assert (question["status"], question["score"], question.get("unread", 0)) == ("scored", score, unread)
    assert set(found) == {"fqa", "coverage"} and coverage([found["coverage"]]) == 100
    assert task.score([question]) == score


def test_letters_are_those_of_the_rows_own_options():
    [doc] = expand(row(options=["one", "two"], letters=["B"]))
    found = [task.process_results(doc, [answer])["fqa"] for answer in ("B", "C")]
    assert [(of["score"], of.get("unread", 0)) for of in found] == [(100, 0), (0, 1)]


@pytest.mark.parametrize("answer", [FAILED, "[LMMS_EVAL_BUDGET_EXCEEDED]", None])
def test_a_failed_request_is_no_answer(answer):
    found = fqa(answer)
    assert found["fqa"]["status"] == "no_answer" and "score" not in found["fqa"]
    assert coverage([found["coverage"]]) == 0 and str(task.score([found["fqa"]])) == "nan"


def test_an_answer_cut_inside_its_reasoning_counts_as_it_is():
    question = fqa("<think>it may be B, so")["fqa"]
    assert (question["score"], question["truncated"], question["unread"]) == (0, 1, 1)


def test_every_repeat_is_scored_and_averaged():
    question = fqa("B", "A", "E", "no idea")["fqa"]
    assert (question["score"], question["unread"]) == (50, 1)
    assert question["choices"] == ["B", "A", "E", None]


PAIRS = {
    "both right": (("B", "B"), {"pqa": 100, "fqa": 100, "hdu": 0}),
    "history helps": (("E", "A"), {"pqa": 100, "fqa": 0, "hdu": 100}),
    "history misleads": (("A", "B"), {"pqa": 0, "fqa": 100, "hdu": -100}),
    "unread without": (("B", "hm"), {"pqa": 100, "fqa": 0, "hdu": 100}),
    "failed without": (("B", FAILED), {"pqa": 100}),
    "nothing without": (("B", None), {"pqa": 100}),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", PAIRS)
def test_hdu_comes_out_of_one_conversation(name, kind):
    (with_history, without), expected = PAIRS[kind]
    before = ["x"] * (len(EXPECTED[name]) - 2)
    found = results(name, [*before, with_history, without])
    assert list(found) == ["pqa", "fqa", "hdu", "coverage"]
    assert {metric: found[metric]["score"] for metric in metrics.METRICS if "score" in found[metric]} == expected
    assert all(found[metric]["video"] == "v" for metric in metrics.METRICS)
    assert coverage([found["coverage"]]) == 100 and found["pqa"]["status"] == "scored"
    assert metrics.scores([found["pqa"]]) == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_failure_on_any_turn_up_to_the_final_question_costs_the_question(name):
    for broken in range(len(EXPECTED[name]) - 1):
        found = results(name, [*["x"] * broken, FAILED])
        question = found["pqa"]
        assert (question["status"], question["reason"]) == ("no_answer", FAILED)
        assert not any("score" in found[metric] for metric in metrics.METRICS)
        assert coverage([found["coverage"]]) == 0
        assert len(question["transcripts"][0]) == broken + 1


def test_a_conversation_that_never_was_is_no_answer():
    [doc] = expand(row(), process_docs=task.process_docs_pqa)
    for response in (FAILED, NO_CONTENT, "no transcript", ""):
        question = task.process_results(doc, EveryTranscript().apply([[response]], None))["pqa"]
        assert question["status"] == "no_answer" and question["transcripts"] == [[]]


def test_flags_count_both_final_answers_of_every_repeat():
    first, second = ["x", "y", "hm", "<think>cut"], ["x", "y", "B", "B"]
    question = results("scvbench_pqa", first, second)["pqa"]
    assert (question["score"], question["without_history"]["score"]) == (50, 50)
    assert (question["unread"], question["truncated"]) == (2, 1)
    assert question["answers"] == ["hm", "B"] and question["without_history"]["answers"] == ["<think>cut", "B"]
    assert [[turn["reply"] for turn in of] for of in question["transcripts"]] == [first, second]


def test_a_repeat_that_failed_without_history_leaves_the_question_out_of_hdu():
    question = results("scvbench_pqa", ["x", "y", "B", "B"], ["x", "y", "A", None])["pqa"]
    assert metrics.values(question) == {"pqa": 50}


def test_reading_an_item_again_changes_nothing():
    for question in (results("scvbench_pqa", ["x", "y", "hm", "<think>cut"])["pqa"], fqa("hm")["fqa"]):
        again = task.Item(json.loads(json.dumps(question)))
        for key in ("score", "reason", "truncated", "unread"):
            again.pop(key, None)
        task.judge(again, 3)
        assert again == question


def test_an_item_holds_all_that_scoring_needs(home):
    found = results("scvbench_storycot", [*["x"] * 5, "B", "A"])
    question = found["pqa"]
    assert {"id", "task", "video", "question", "options", "letters", "seconds", "card", "skipped"} <= question.keys()
    assert question["sub_questions"] == 2 and question["version"] == task.VERSION
    assert set(question["card"]["prompts"]) == {"fqa", "pqa", "pqa_with_story", "sub_question", "events", "story"}
    assert question["card"]["judge"] is None and question["card"]["questions"] == 6
    assert "score" not in found["coverage"].settle()
    [record] = (home / "runs").glob("*-scvbench_storycot-*.jsonl")
    written = json.loads(record.read_text())
    assert (written["answers"], written["status"]) == (["B"], "unjudged")
    assert written["without_history"] == {"answers": ["A"]} and written["transcripts"] == question["transcripts"]


def test_nothing_fails_after_generation(scvbench_prepared):
    doc, said = play("scvbench_pqa", "x", "y", "B", "B")
    shutil.rmtree(scvbench_prepared.resolve())
    assert task.process_results(doc, [json.dumps([said.dump()])])["pqa"]["score"] == 100


def test_questions_without_an_answer_without_history_are_noted(logged):
    items = [results("scvbench_pqa", ["x", "y", "B", last])["pqa"] for last in ("B", FAILED)]
    assert task.score(items) == 100
    assert any("scvbench_pqa: fqa and hdu are over 1 of the 2 questions of pqa" in text for text in logged)


def test_a_program_can_be_started_again_and_again():
    [doc] = expand(row(), process_docs=task.process_docs_pqa)
    assert isinstance(task._own.start(doc), Running)
    assert task.doc_to_text_pqa(doc) == task.doc_to_text_pqa(doc) == ASKED[0][0]
    assert task.doc_to_text_pqa_gold(doc) == EXPECTED["scvbench_pqa_gold"][0][0]
