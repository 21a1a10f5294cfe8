"""Checklists for a lab's own dialogues: what is refused, what is asked again, what a second call asks."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lmms_eval_tasks.cli import main
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.judging import pool as pool_module
from lmms_eval_tasks.mt_video_bench import prompts, release
from lmms_eval_tasks.mt_video_bench.checklist import faults, read, read_draft
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import Fault, text_of

pytestmark = pytest.mark.usefixtures("quick_retries")

FORM = ", ".join(f'"Q{k}": "…", "A{k}": "Yes" or "No"' for k in range(1, 6))
# The paper's Figure 16, and the form of the reply.
PROMPT = """\
You are an expert QA evaluator. Your goal is to create a verification checklist to evaluate if a model's answer \
matches the Ground Truth.

Input Data
1. User Question: What is {it}?
2. Ground Truth Answer: A "dog" {question}.

Task Instructions (Atomic Decomposition & Fact Reversal)
1. Decompose GT: Break down the Ground Truth into atomic facts (e.g., specific entities, actions, counts, colors, \
spatial relations).
2. Select & Mix Strategy: Select 5 critical facts. You must generate a mix of "Yes" and "No" verification questions:
- Positive Questions (Expected Answer: Yes): verify facts exactly as they appear in the GT.
- Negative/Reversal Questions (Expected Answer: No): Take a fact from the GT and intentionally reverse or alter it \
(e.g., change "5 apples" to "3 apples", or "red car" to "blue car").
3. Formulate Questions:
- Questions must be specific and check for the presence of the specific detail stated in the question.

Constraints
- Generate exactly 5 questions (Q1-Q5).
- Try to include only one "No" question (based on reversed facts) and four "Yes" questions.
- Do NOT use the phrase "ground truth" in the questions.
- Questions must be self-contained and concrete.

Reply with a JSON object alone, with each question and its expected answer: {""" + FORM + "}"  # fmt: skip
_PAPER = Path(__file__).parents[3] / "shared" / "seeds" / "mt_video_bench.txt"


def test_the_prompt():
    assert prompts.checklist("What is {it}?", 'A "dog" {question}.', 5) == PROMPT


@pytest.mark.skipif(not _PAPER.exists(), reason="the paper's text is not here")
def test_the_prompt_is_the_papers():
    """But for line breaks, quotation marks and the names of the fields."""
    paper = _PAPER.read_text("utf-8").translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'})
    printed = re.search(r"(You are an expert QA evaluator.*?concrete\.)", paper, re.DOTALL)[1]
    ours = prompts.checklist("{question}", "{gt}", 5).partition("\n\nReply with")[0]
    assert ours.split() == printed.replace("{MAXNUM}", "5").split()


def test_other_lengths_name_their_numbers():
    assert "(Q1-Q2)" in prompts.checklist("q", "a", 2) and 'and one "Yes"' in prompts.checklist("q", "a", 2)
    assert 'and 11 "Yes"' in prompts.checklist("q", "a", 12)


def test_the_correction_names_the_faults():
    assert prompts.correction("PROMPT {draft}", '{"Q1": "{faults}"}', ["one", "two"]) == (
        'PROMPT {draft}\n\nThis checklist was refused:\n{"Q1": "{faults}"}\n\nWhat is wrong with it:\n- one\n- two\n'
        "Write the whole checklist again, without these faults."
    )


# ------------------------------------------------------------------------------------------------------------ drafts


def draft(number=5, no=(2,), **changes):
    made = {f"Q{k}": f"Does the model state fact {k}?" for k in range(1, number + 1)}
    made |= {f"A{k}": "No" if k in no else "Yes" for k in range(1, number + 1)}
    return {key: text for key, text in {**made, **changes}.items() if text is not None}


GOOD = draft()
REPLIES = {
    "an object": (json.dumps(GOOD), GOOD),
    "in a fence, with words around": (f"Here it is:\n```json\n{json.dumps(GOOD, indent=2)}\n```\nDone.", GOOD),
    "after reasoning": (f"<think>{json.dumps(draft(4))}</think>{json.dumps(GOOD)}", GOOD),
    "the same twice": (f"{json.dumps(GOOD)}\n{json.dumps(GOOD)}", GOOD),
    "other keys beside": (json.dumps({"note": {"a": 1}, **GOOD}), GOOD),
    "keys and values of another spelling": (
        json.dumps({"q1 ": " Is it? ", "a01": True, "Q2": "Not?", "A2": False}),
        {"Q1": "Is it?", "A1": "Yes", "Q2": "Not?", "A2": "No"},
    ),
    "half a surrogate pair": ('{"Q1": "\\ud800?"}', {"Q1": "??"}),
    "another length": (json.dumps(draft(4)), draft(4)),
    "two different ones": (f"{json.dumps(GOOD)}\n{json.dumps(draft(no=(3,)))}", None),
    "prose": ("Q1: Is it red? A1: Yes", None),
    "cut off": (json.dumps(GOOD)[:-20], None),
    "cut in its reasoning": (f"<think>{json.dumps(GOOD)}", None),
    "a list": ('[{"question": "Is it?", "answer": "Yes"}]', None),
    "no questions": ('{"A1": "Yes"}', None),
    "nothing": ("", None),
    "deep": ('{"Q1":' * 5000, None),
    "a number of many digits": ('{"Q1": "a?", "Q' + "1" * 5000 + '": "b?"}', {"Q1": "a?"}),
}


@pytest.mark.parametrize("name", REPLIES)
def test_reads_a_draft_or_nothing(name):
    reply, expected = REPLIES[name]
    assert read_draft(reply) == expected


FAULTS = {
    "four": (draft(4), ["Exactly 5 questions are needed, Q1 to Q5; there are 4", "Exactly 5 expected answers"]),
    "six": (draft(6), ["Exactly 5 questions", "Exactly 5 expected answers"]),
    "a gap": (draft(Q3=None, A3=None), ["there are 4 (Q1, Q2, Q4, Q5)", "there are 4 (A1, A2, A4, A5)"]),
    "an answer too few": (draft(A5=None), ["Exactly 5 expected answers are needed, A1 to A5; there are 4"]),
    "no reversed fact": (draft(no=()), ["Exactly one question must have the expected answer No; 0 have it"]),
    "two reversed facts": (draft(no=(1, 4)), ["answer No; 2 have it (A1, A4)"]),
    "neither yes nor no": (draft(A1="Maybe"), ["A1 is 'Maybe', neither Yes nor No"]),
    "an empty answer": (draft(A1=""), ["A1 is '', neither"]),
    "the same twice": (draft(Q4="does the model state FACT 1 ?"), ["Q4 asks the same as Q1"]),
    "a statement": (draft(Q4="The model states it."), ["Q4 does not end with a question mark"]),
    "an empty question": (draft(Q4=""), ["Q4 does not end with a question mark"]),
    "the ground truth": (draft(Q4="Is it as in the Ground-Truth?"), ["Q4 speaks of 'Ground-Truth'"]),
    "the reference": (draft(Q4="Is it like the reference?"), ["Q4 speaks of 'the reference'"]),
    "a reference answer": (draft(Q4="Is it as in a standard answer?"), ["Q4 speaks of 'standard answer'"]),
    "several": (draft(4, no=(), Q1="No."), ["5 questions", "5 expected", "answer No; 0 have", "Q1 does not end"]),
    "another question": (draft(Q4="Is it that of Q1?"), ["Q4 speaks of 'Q1': it must be self-contained"]),
    "a previous question": (draft(Q4="Is it that of the previous question?"), ["Q4 speaks of 'previous question'"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told_one_by_one(name):
    wrong, expected = FAULTS[name]
    found = faults(wrong, 5, "What is it? A dog.")
    assert all(text in fault for text, fault in zip(expected, found, strict=True)), found


FAULTLESS = {
    "of the length that is asked for": (draft(3), 3),
    "with a full stop behind the word": (draft(A1="Yes.", A2="no"), 5),
    "with another question mark": (draft(Q1="它是狗吗？"), 5),
    "about the model's answer": (draft(Q1="Does the answer identify the second pilot as Quagmire?"), 5),
    "about a round": (draft(Q1="Does the answer state that it was described in Round 1?"), 5),
    "about a reference in the video": (draft(Q1="Does it mention the reference to the film?"), 5),
    "with a phrase that the reference answer has": (draft(Q1="Does the pilot read the checklist aloud?"), 5),
}


@pytest.mark.parametrize("name", FAULTLESS)
def test_a_good_checklist_has_no_faults(name):
    good, number = FAULTLESS[name]
    assert faults(good, number, "What does the pilot do? He reads a checklist.") == []


# --------------------------------------------------------------------------------------------------------- dialogues


def turn(k=1, **more):
    return {"question": f"What is {k}?", "answer": f"It is {k}.", **more}


def dialogue(**changes):
    return {
        "video": "kitchen",
        "ability": "answer_refusal",
        "turns": [turn(1, evaluated=False), turn(2), turn(3)],
        **changes,
    }


def lines(path, *dialogues):
    path.write_text("".join(f"{of if isinstance(of, str) else json.dumps(of)}\n" for of in dialogues), "utf-8")
    return path


BAD_LINES = {
    "no JSON": ("{", "line 2: Invalid JSON"),
    "not an object": ("[]", "line 2: Input should be an object"),
    "no video": ({"turns": [turn()]}, "line 2, video: Field required"),
    "a path": (dialogue(video="../a"), r"line 2, video: .*'\.\./a' is no name of a video"),
    "another ability": (dialogue(ability="summary"), "line 2, ability: .*one of object_reference, .* is needed"),
    "no turns": (dialogue(turns=[]), "line 2, turns: List should have at least 1 item"),
    "a turn without answer": (dialogue(turns=[{"question": "q"}]), r"line 2, turns\.0\.answer: Field required"),
    "an empty question": (dialogue(turns=[turn(), turn(question=" ")]), r"turns\.1\.question: .*a text is needed"),
    "a misspelt key": (dialogue(turns=[turn(evaluate=False)]), r"turns\.0\.evaluate: Extra inputs"),
    "an id twice": (dialogue(id="1"), "line 2: the id '1' is that of line 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_LINES)
def test_lines_that_are_no_dialogues_are_refused_by_number(tmp_path, name):
    line, message = BAD_LINES[name]
    with pytest.raises(PackError, match=message):
        read(lines(tmp_path / "d.jsonl", dialogue(), line))


def test_all_of_them_are_named_at_once_and_nothing_is_asked(tmp_path, judge_server, capsys):
    path = lines(tmp_path / "d.jsonl", *(line for line, _ in BAD_LINES.values()))
    assert main(["checklist", str(path), "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert all(f"line {number}" in said for number in range(1, len(BAD_LINES)))
    assert judge_server.requests == [] and not (tmp_path / "out").exists()


def test_files_that_hold_nothing_to_ask_are_refused(tmp_path):
    with pytest.raises(PackError, match="cannot be read"):
        read(tmp_path / "nowhere.jsonl")
    with pytest.raises(PackError, match="no turn is to be evaluated"):
        read(lines(tmp_path / "d.jsonl", "", dialogue(turns=[turn(evaluated=False)])))


def test_ids_are_texts_and_by_default_line_numbers(tmp_path):
    path = lines(
        tmp_path / "d.jsonl", dialogue(id=" a "), "", dialogue(), dialogue(id=7), dialogue(ability="answer_refusal")
    )
    assert [of.id for of in read(path)] == ["a", "3", "7", "5"]


# -------------------------------------------------------------------------------------------------------------- asking


def questions_in(text):
    return re.search(r"User Question: (.*)", text)[1]


def good_for(text, number=5):
    of = questions_in(text)
    made = draft(number)
    return json.dumps({key: f"{text[:-1]} ({of})?" if key[0] == "Q" else text for key, text in made.items()})


def prompt_of(body):
    return text_of(body["messages"][0])


def asked(server):
    return [prompt_of(body) for body in server.requests]


@pytest.fixture
def own(tmp_path):
    """Three dialogues of two abilities, with five turns to be evaluated."""
    return lines(
        tmp_path / "own.jsonl",
        dialogue(id="first"),
        dialogue(video="garden", turns=[turn(4), turn(5)]),
        dialogue(video="garden", ability="content_summary", turns=[turn(6)]),
    )


def make(own, status=0, *more):
    pool_module._pool.cache_clear()
    assert main(["checklist", str(own), "-o", str(own.parent / "out"), *more]) == status
    return own.parent / "out"


def test_prepare_reads_what_is_written(own, judge_server):
    judge_server.reply = lambda body, n: good_for(prompt_of(body))
    out = make(own)
    assert sorted(asked(judge_server)) == sorted(
        prompts.checklist(f"What is {k}?", f"It is {k}.", 5) for k in range(2, 7)
    )
    found = release.read(out)
    assert found.excluded == [] and list(found.rows) == ["content_summary", "answer_refusal"]
    assert [note for note in found.notes if " no " not in note] == ["3 dialogues; the full set as published has 1000"]
    first, second = found.rows["answer_refusal"]
    assert (first["id"], second["id"]) == ("answer_refusal/kitchen/first", "answer_refusal/garden/2")
    assert [len(turn["checklist"]) for turn in first["turns"]] == [0, 5, 5]
    assert [check["expected"] for check in first["turns"][1]["checklist"]] == ["yes", "no", "yes", "yes", "yes"]
    assert first["turns"][2]["checklist"][0]["question"] == "Does the model state fact 1 (What is 3?)?"
    assert [turn["answer"] for turn in second["turns"]] == ["It is 4.", "It is 5."]
    origin = json.loads((out / "origin.json").read_text())
    assert (origin["judge"]["model"], origin["questions"], origin["failures"]) == ("test-judge", 5, [])


def test_another_number_of_questions(own, judge_server, capsys):
    judge_server.reply = lambda body, n: good_for(prompt_of(body), 3)
    out = make(own, 0, "--questions", "3")
    assert {len(turn["checklist"]) for row in release.read(out).rows["answer_refusal"] for turn in row["turns"]} == {
        0,
        3,
    }
    make(own, 1, "--questions", "1")
    assert "at least 2" in capsys.readouterr().err


BAD_JUDGES = {
    "four": json.dumps(draft(4)),
    "six": json.dumps(draft(6)),
    "two reversed": json.dumps(draft(no=(1, 2))),
    "a phrase": json.dumps(draft(Q1="Does it match the ground truth?")),
}
# What the judge says of What is 3?, and what of it is on disk afterwards.
WORSE_JUDGES = {
    "nonsense": ("I would rather not.", "unreadable after 4 replies"),
    "empty": ("", "unreadable after 4 replies"),
    "a filter": (Fault("status", status=400, message="no", code="content_filter"), "Refused: HTTP 400"),
    "an error": (Fault("status", status=500, message="boom"), "CallFailed: HTTP 500: boom"),
    "a broken body": (Fault("nonsense"), "unreadable after 4 replies"),
}


def failing(bad, good_after=10**9):
    """A judge that fails with What is 3? so many times."""
    failed = []

    def reply(body, n):
        text = prompt_of(body)
        if questions_in(text) == "What is 3?" and len(failed) < good_after:
            failed.append(text)
            return bad
        return good_for(text)

    return reply


@pytest.mark.parametrize("name", BAD_JUDGES)
def test_a_checklist_with_faults_is_sent_back_with_them(own, judge_server, name):
    judge_server.reply = failing(BAD_JUDGES[name], good_after=3)
    out = make(own)
    of_three = [text for text in asked(judge_server) if questions_in(text) == "What is 3?"]
    assert len(of_three) == 4 and len(asked(judge_server)) == 8
    found = faults(json.loads(BAD_JUDGES[name]), 5, "")
    first = prompts.checklist("What is 3?", "It is 3.", 5)
    assert of_three == [first, *[prompts.correction(first, BAD_JUDGES[name], found)] * 3]
    assert [len(turn["checklist"]) for turn in release.read(out).rows["answer_refusal"][0]["turns"]] == [0, 5, 5]
    make(own)
    assert len(asked(judge_server)) == 8


@pytest.mark.parametrize("name", BAD_JUDGES)
def test_what_stays_bad_is_listed_and_alone_asked_again(own, judge_server, capsys, name):
    judge_server.reply = failing(BAD_JUDGES[name])
    out = make(own, 1)
    printed = capsys.readouterr().out
    assert "4 checklists for 3 dialogues" in printed and "1 failed" in printed
    [fault, *_] = faults(json.loads(BAD_JUDGES[name]), 5, "")
    reason = f"answer_refusal/kitchen/first, turn 3: unreadable after 4 replies; {fault}"
    assert reason in printed
    assert [len(turn["checklist"]) for turn in release.read(out).rows["answer_refusal"][0]["turns"]] == [0, 5, 0]
    assert reason in json.loads((out / "origin.json").read_text())["failures"][0]
    judge_server.reset()
    judge_server.reply = failing("", 0)
    make(own)
    assert [questions_in(text) for text in asked(judge_server)] == ["What is 3?"]
    assert [len(turn["checklist"]) for turn in release.read(out).rows["answer_refusal"][0]["turns"]] == [0, 5, 5]
    assert json.loads((out / "origin.json").read_text())["failures"] == []


@pytest.mark.parametrize("name", WORSE_JUDGES)
def test_what_cannot_be_read_or_asked_is_listed_and_alone_asked_again(own, judge_server, capsys, name):
    bad, reason = WORSE_JUDGES[name]
    judge_server.reply = failing(bad)
    make(own, 1)
    printed = capsys.readouterr().out
    assert f"answer_refusal/kitchen/first, turn 3: {reason}" in printed and "4 checklists" in printed
    judge_server.reset()
    judge_server.reply = failing("", 0)
    make(own)
    assert [questions_in(text) for text in asked(judge_server)] == ["What is 3?"]


def test_a_judge_that_cannot_be_used_writes_nothing_over_what_is_there(own, judge_server, capsys, monkeypatch, home):
    judge_server.reply = failing("", 0)
    before = {path: path.read_bytes() for path in make(own).rglob("*.json")}
    monkeypatch.setenv(f"{PREFIX}HOME", str(home / "another"))
    judge_server.reply = lambda *_: Fault("status", status=401, message="bad key")
    make(own, 1)
    assert "5 failed" in (printed := capsys.readouterr().out) and "bad key" in printed
    assert {path: path.read_bytes() for path in before} == before


def test_without_a_judge_nothing_is_made(own, capsys):
    make(own, 1)
    assert "needs a judge" in capsys.readouterr().err and not (own.parent / "out").exists()


# -------------------------------------------------------------------------------------------------------------- folder


def test_what_people_edited_or_others_wrote_is_not_overwritten(own, judge_server, capsys):
    judge_server.reply = failing("", 0)
    out = make(own)
    edited = out / "checklist" / "answer_refusal_CheckList.json"
    text = edited.read_text("utf-8").replace("fact 1", "the first fact")
    edited.write_text(text, "utf-8")
    make(own, 1)
    assert "checklist/answer_refusal_CheckList.json" in (said := capsys.readouterr().err) and "another folder" in said
    assert edited.read_text("utf-8") == text
    (out / "origin.json").unlink()
    make(own, 1)
    assert "mtqa/summary.json" in capsys.readouterr().err


def test_an_earlier_input_leaves_no_file_and_others_files_stay(own, judge_server):
    judge_server.reply = failing("", 0)
    out = make(own)
    (out / "kitchen.mp4").write_bytes(b"film")
    lines(own, dialogue())
    make(own)
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()) == [
        "checklist/answer_refusal_CheckList.json", "kitchen.mp4", "mtqa/answer_refusal.json", "origin.json"
    ]  # fmt: skip
    assert list(release.read(out).rows) == ["answer_refusal"]


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_asked(own, judge_server, capsys):
    (own.parent / "out").write_text("a file")
    make(own, 1)
    assert "--output" in capsys.readouterr().err and judge_server.requests == []


def test_a_killed_call_is_finished_by_the_next(own, judge_server, monkeypatch):
    number, in_flight = 40, 4
    lines(own, dialogue(turns=[turn(k) for k in range(number)]))
    monkeypatch.setenv(f"{PREFIX}JUDGE_CONCURRENCY", str(in_flight))
    judge_server.latency = 0.1
    judge_server.reply = lambda body, n: good_for(prompt_of(body))
    command = [sys.executable, "-m", "lmms_eval_tasks", "checklist", str(own), "-o", str(own.parent / "out")]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        end = time.monotonic() + 30
        while len(judge_server.requests) < number // 4:
            assert run.poll() is None and time.monotonic() < end
            time.sleep(0.01)
        os.kill(run.pid, signal.SIGKILL)
    before = len(judge_server.requests)
    assert before < number
    out = make(own)
    assert number <= len(judge_server.requests) <= number + in_flight
    [row] = release.read(out).rows["answer_refusal"]
    assert release.questions(row) == number
