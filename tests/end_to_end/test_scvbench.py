"""SCVBench through lmms-eval's own evaluator, with real videos and a model played by a local server."""

import json
from collections import Counter

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.results.score import score
from lmms_eval_tasks.scvbench import prompts
from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import evaluate, metrics, save, texts
from utils.openai_server import Fault
from utils.sample_release.scvbench import (
    make_scvbench,
    scvbench_gold_answers,
    scvbench_reply,
    scvbench_sample_answers,
)
from utils.tiny_vlm import make_tiny_vlm

PQA = ["scvbench_pqa", "scvbench_pqa_gold", "scvbench_storycot"]
TASKS = ["scvbench_fqa", *PQA]
FAULT = Fault("status", status=400, message="too long")


@pytest.fixture(scope="module")
def scvbench_release(tmp_path_factory):
    return make_scvbench(tmp_path_factory.mktemp("release") / "scvbench")


@pytest.fixture(autouse=True)
def scvbench_prepared(scvbench_release, home, monkeypatch):
    """The sample release, prepared, and frames that travel fast."""
    monkeypatch.setenv(f"{PREFIX}FRAMES", "4")
    monkeypatch.setenv(f"{PREFIX}LONG_SIDE", "64")
    return prepare("scvbench", scvbench_release).folder


def prompt(request):
    [(_, text)] = texts(request)
    return text


def entries(results, task):
    main = "fqa" if task == "scvbench_fqa" else "pqa"
    return {sample[main]["id"]: sample[main] for sample in results["samples"][task]}


def test_gold_answers_score_full_marks_and_all_tasks_ask_the_same_final_question(judge_server):
    judge_server.reply = scvbench_reply(scvbench_gold_answers())
    results = evaluate(["scvbench"], judge_server, limit=1)
    assert set(results["samples"]) == set(TASKS)
    assert metrics(results, "scvbench_fqa") == {"fqa": 100, "coverage": 100}
    for task in PQA:
        assert metrics(results, task) == {"pqa": 100, "fqa": 100, "hdu": 0, "coverage": 100}

    row = canonical.opened("scvbench").rows()[0]
    asked = Counter(json.dumps(request["messages"]) for request in judge_server.requests)
    said = {message: json.loads(message)[0]["content"] for message in asked}
    final = {number: content for message, content in said.items() if (number := asked[message]) == len(TASKS)}
    assert final[len(TASKS)][-1]["text"] == prompts.fqa(row["question"], row["options"])
    # The model says what the reference says, so PQA and StoryCoT share sub-questions, and PQA its history with the gold
    # task. Videos stand before the text; event extraction and story see none.
    subs = len(row["sub_questions"])
    shown = Counter((asked[message], tuple(part["type"] for part in content)) for message, content in said.items())
    seen, unseen = (*["image_url"] * 4, "text"), ("text",)
    assert shown == {(4, seen): 1, (2, seen): subs + 1, (1, seen): 1, (1, unseen): subs + 1}


# The sample's middling model, by hand: without history it is right in 3 of 6 questions; two of the other three it gets
# right once its own sub-answers are there, and one of the 3 it then loses. The reference sub-answers tell it all.
MIDDLING = {
    "scvbench_fqa": {"fqa": 50},
    "scvbench_pqa": {"pqa": 400 / 6, "fqa": 50, "hdu": 100 / 6},
    "scvbench_pqa_gold": {"pqa": 100, "fqa": 50, "hdu": 50},
    "scvbench_storycot": {"pqa": 400 / 6, "fqa": 50, "hdu": 100 / 6},
}


def test_a_middling_model_scores_the_same_in_every_way_to_score_it(judge_server, tmp_path, home):
    judge_server.reply = scvbench_reply(scvbench_sample_answers())
    results = evaluate(TASKS, judge_server)
    records = sorted((home / "runs").glob("*.jsonl"))
    predicted = evaluate(TASKS[:2], judge_server, predict_only=True)
    found = {task: metrics(results, task) for task in TASKS}
    for task in TASKS:
        assert found[task] == pytest.approx({**MIDDLING[task], "coverage": 100})

    logs = {
        kind: [save(tmp_path / kind / task, run, task) for task in run["samples"]]
        for kind, run in (("scored", results), ("predicted", predicted))
    }
    for files in (*logs.values(), records):
        offline = score(files)
        assert len(offline) == len(files)
        for task, of in offline.items():
            assert {**of["metrics"], "coverage": of["coverage"]} == found[task]
        pqa = offline["scvbench_pqa"]
        assert pqa["counts"] == {**dict.fromkeys(pqa["counts"], 0), "scored": 6, "unread": 1}
        assert pqa["breakdowns"]["pqa_by_sub_questions"] == {"2": pytest.approx(100 / 3), "3": 100, "4": 100}
        assert pqa["breakdowns"]["fqa_by_duration"] == {"under 10 min": 50}


def test_each_turn_holds_what_the_model_said_before(judge_server, home):
    judge_server.reply = lambda body, n: f"<think>hm</think>I say {len(prompt(body))}"
    results = evaluate(["scvbench_pqa", "scvbench_storycot"], judge_server, limit=2)
    rows = {row["id"]: row for row in canonical.opened("scvbench").rows()}
    for task in ("scvbench_pqa", "scvbench_storycot"):
        found = entries(results, task)
        assert list(found) == ["street_bikes/1", "street_bikes/2"]
        for name, entry in found.items():
            row, [turns] = rows[name], entry["transcripts"]
            said = [turn["reply"].removeprefix("<think>hm</think>") for turn in turns]
            assert said == [f"I say {len(turn['prompt'])}" for turn in turns]
            number, history, expected = len(row["sub_questions"]), [], []
            for turn, reply in zip(row["sub_questions"], said, strict=False):
                expected.append(prompts.sub_question(turn["question"], history))
                history = [*history, {"question": turn["question"], "answer": reply}]
            story = None
            if task == "scvbench_storycot":
                expected += map(prompts.events, history)
                expected.append(prompts.story(history, said[number : 2 * number]))
                story = said[2 * number]
            expected.append(prompts.pqa(row["question"], row["options"], history, story))
            expected.append(prompts.fqa(row["question"], row["options"]))
            assert [turn["prompt"] for turn in turns] == expected
            assert entry["status"] == "scored" and entry["unread"] == 2
        # Only in lock step replies are kept one by one.
        [replies] = (home / "replies").glob(f"*-{task}-*.jsonl")
        steps = [json.loads(line)["step"] for line in replies.read_text().splitlines()]
        assert steps == sorted(steps) and len(steps) == sum(len(of["transcripts"][0]) for of in found.values())


def test_a_failure_costs_what_it_hits(judge_server, tmp_path):
    gold = scvbench_reply(scvbench_gold_answers())
    rows = {row["id"]: row for row in canonical.opened("scvbench").rows()}
    third = prompts.sub_question(rows["street_bikes/2"]["sub_questions"][2]["question"], []).rpartition("\n")[2]
    last = prompts.fqa(rows["three_films/2"]["question"], rows["three_films/2"]["options"])

    def reply(body, n):
        text = prompt(body)
        return FAULT if text.endswith(f"\n{third}") or text == last else gold(body, n)

    judge_server.reply = reply
    results = evaluate(["scvbench_pqa"], judge_server)
    found = entries(results, "scvbench_pqa")
    failed = {name for name, entry in found.items() if entry["status"] == "no_answer"}
    assert failed == {"street_bikes/2"} and len(found["street_bikes/2"]["transcripts"][0]) == 3
    assert found["three_films/2"]["score"] == 100 and "score" not in found["three_films/2"]["without_history"]
    assert metrics(results, "scvbench_pqa") == {"pqa": 100, "fqa": 100, "hdu": 0, "coverage": pytest.approx(500 / 6)}

    offline = score([save(tmp_path, results, "scvbench_pqa")])["scvbench_pqa"]
    assert offline["metrics"] == {"fqa": 100, "pqa": 100, "hdu": 0}
    assert offline["counts"] == {**dict.fromkeys(offline["counts"], 0), "scored": 5, "no_answer": 1}
    assert any("fqa and hdu are over 4 of the 5 questions of pqa" in note for note in offline["notes"])


@pytest.mark.parametrize("simple", [False, True], ids=["chat", "simple"])
def test_a_real_backend_runs_turns_of_text_alone(judge_server, tmp_path_factory, simple):
    tiny = make_tiny_vlm(tmp_path_factory.mktemp("checkpoint") / "tiny")
    arguments = (
        f"pretrained={tiny},device_map=cpu,attn_implementation=eager,max_num_frames=4,min_pixels=3136,max_pixels=50176"
    )
    results = evaluate(
        ["scvbench_storycot"], judge_server, model="qwen2_5_vl", model_args=arguments, device="cpu", batch_size=1,
        limit=1, gen_kwargs="max_new_tokens=4", force_simple=simple,
    )  # fmt: skip
    [entry] = entries(results, "scvbench_storycot").values()
    [turns] = entry["transcripts"]
    assert entry["status"] == "scored" and len(turns) == 9 and all(turn["reply"] for turn in turns)
    assert [bool(turn["videos"]) for turn in turns] == [*[True] * 3, *[False] * 4, *[True] * 2]
