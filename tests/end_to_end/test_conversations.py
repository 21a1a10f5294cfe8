"""Conversations through lmms-eval's own evaluator: in lock step, one by one, on chat and simple backends."""

import inspect
import json
import re
from collections import Counter

import pytest
from lmms_eval import evaluator

from lmms_eval_tasks import canonical
from lmms_eval_tasks.mt_video_bench import prompts
from lmms_eval_tasks.results.score import score
from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import evaluate, metrics, save, texts
from utils.openai_server import Fault, rule_based
from utils.sample_release import gold_answers, sample_answers
from utils.tiny_vlm import make_tiny_vlm

SELF = "mt_video_bench_self"

pytestmark = pytest.mark.usefixtures("mt_prepared", "small_frames")


@pytest.fixture
def small_frames(monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "4")
    monkeypatch.setenv(f"{PREFIX}LONG_SIDE", "64")


def run(tasks, server, **options):
    """Runs tasks; the model is sent the clips' addresses alone, which takes a tenth of the time of their frames."""
    arguments = f"model_version=model,base_url={server.url},api_key=none,num_concurrent=4,pass_video_url=True"
    return evaluate(tasks, server, model_args=arguments, **options)


@pytest.fixture
def one_by_one(monkeypatch):
    """lmms-eval's own loop in the place of lock step."""
    monkeypatch.setattr("lmms_eval_tasks.plugin.run_in_lock_step", lambda: None)
    monkeypatch.setattr(evaluator, "_run_generate_until_agentic", inspect.unwrap(evaluator._run_generate_until_agentic))


def asked(server):
    return [request for request in server.requests if request["model"] == "model"]


def transcripts(results):
    return {entry["id"]: entry["transcripts"] for entry in entries(results)}


def entries(results):
    return [sample["overall"] for sample in results["samples"][SELF]]


def turns(results):
    return [turn for entry in entries(results) for turn in entry["parts"]]


def test_gold_answers_score_full_marks_with_the_golden_tasks_prompts(judge_server, mt_release):
    judge_server.reply = rule_based(gold_answers(mt_release))
    found = metrics(evaluate([SELF], judge_server), SELF)
    assert set(found.values()) == {100.0}
    own = Counter(json.dumps(request["messages"]) for request in asked(judge_server))
    judge_server.requests.clear()
    assert found == metrics(evaluate(["mt_video_bench"], judge_server), "mt_video_bench")
    golden = Counter(json.dumps(request["messages"]) for request in asked(judge_server))
    # Where the model says what the reference says, its requests are the golden task's, frames included.
    assert golden <= own


def test_the_history_is_what_the_model_said(judge_server):
    judge_server.reply = lambda body, n: (
        f"<think>hm</think>I say {len(str(texts(body)))}" if body["model"] == "model" else rule_based()(body, n)
    )
    said = transcripts(run([SELF], judge_server))
    rows = {row["id"]: row["turns"] for row in canonical.opened("mt_video_bench").rows()}
    assert said.keys() == {name for name, of in rows.items() if any(turn["checklist"] for turn in of)}
    for name, [dialogue] in said.items():
        last = max(k for k, turn in enumerate(rows[name]) if turn["checklist"])
        assert len(dialogue) == last + 1
        history = []
        for turn, row in zip(dialogue, rows[name], strict=False):
            assert turn["prompt"] == prompts.inference(history, row["question"])
            answer = turn["reply"].removeprefix("<think>hm</think>")
            assert re.fullmatch(r"I say \d+", answer)
            history.append({"question": row["question"], "answer": answer})


def test_lock_step_says_what_one_by_one_says(judge_server, mt_release, request):
    judge_server.reply = rule_based(sample_answers(mt_release))
    together = run([SELF], judge_server)
    request.getfixturevalue("one_by_one")
    alone = run([SELF], judge_server)
    assert transcripts(together) == transcripts(alone)
    assert metrics(together, SELF) == metrics(alone, SELF)


@pytest.mark.parametrize("options", [{}, {"force_simple": True}], ids=["chat", "simple"])
def test_turns_run_together_text_first(judge_server, options):
    arguments = f"model_version=model,base_url={judge_server.url},api_key=none,num_concurrent=1,max_frames_num=4"
    evaluate([SELF], judge_server, model="openai", model_args=arguments, **options)
    requests = asked(judge_server)
    rounds = [texts(request)[0][1].count("User: ") for request in requests]
    assert rounds == sorted(rounds) and rounds[0] == 0
    kinds = [[part["type"] for part in request["messages"][-1]["content"]] for request in requests]
    if not options:
        assert all(of == ["text", *["image_url"] * 4] for of in kinds)


def test_a_model_that_fails_in_the_middle_loses_the_rest_of_that_dialogue_alone(judge_server, mt_release):
    gold = rule_based(gold_answers(mt_release))
    rows = canonical.opened("mt_video_bench").rows()
    row = next(row for row in rows if sum(bool(turn["checklist"]) for turn in row["turns"]) > 1)
    broken = row["turns"][2]["question"]

    def reply(body, n):
        failing = body["model"] == "model" and texts(body)[-1][1].endswith(broken)
        return Fault("status", status=400, message="too long") if failing else gold(body, n)

    judge_server.reply = reply
    results = run([SELF], judge_server)
    for turn in turns(results):
        lost = turn["dialogue"] == row["id"] and turn["turn"] >= 3
        assert turn["status"] == ("no_answer" if lost else "scored")
    statuses = Counter(turn["status"] for turn in turns(results))
    assert statuses["no_answer"] > 0
    assert metrics(results, SELF)["coverage"] == pytest.approx(100 * statuses["scored"] / statuses.total())


def test_scoring_offline_gives_the_runs_numbers(judge_server, mt_release, tmp_path, home):
    judge_server.reply = rule_based(sample_answers(mt_release))
    results = run([SELF], judge_server)
    expected = metrics(results, SELF)
    predicted = run([SELF], judge_server, predict_only=True)
    files = [save(tmp_path / "scored", results, SELF), save(tmp_path / "predicted", predicted, SELF)]
    files += sorted((home / "runs").glob(f"*-{SELF}-*.jsonl"))[:1]
    for file in files:
        offline = score([file])[SELF]
        assert {**offline["metrics"], "coverage": offline["coverage"]} == expected
        assert offline["counts"]["scored"] == 24


def test_every_reply_is_on_disk_when_it_arrives(judge_server, home):
    seen = []

    def reply(body, n):
        if body["model"] == "model" and "Assistant: " in texts(body)[-1][1]:
            seen.append(sum(len(file.read_text().splitlines()) for file in (home / "replies").glob("*.jsonl")))
        return rule_based()(body, n)

    judge_server.reply = reply
    said = transcripts(run([SELF], judge_server))
    assert min(seen) == len(said)
    [file] = (home / "replies").glob("*.jsonl")
    lines = list(map(json.loads, file.read_text().splitlines()))
    assert len(lines) == sum(len(dialogue) for [dialogue] in said.values())


def test_a_cached_run_asks_the_model_nothing(judge_server, tmp_path):
    first = run([SELF], judge_server, use_cache=str(tmp_path / "cache"))
    before = len(asked(judge_server))
    second = run([SELF], judge_server, use_cache=str(tmp_path / "cache"))
    assert transcripts(first) == transcripts(second) and len(asked(judge_server)) == before


def test_repeats_are_dialogues_of_their_own(judge_server):
    numbers = iter(range(10_000))

    def reply(body, n):
        return f"answer {next(numbers)}" if body["model"] == "model" else rule_based()(body, n)

    judge_server.reply = reply
    results = run([SELF], judge_server, limit=2, repeats=2)
    for entry in entries(results):
        one, other = entry["transcripts"]
        assert len(one) == len(other) and all(a["reply"] != b["reply"] for a, b in zip(one, other, strict=True))
        for turn in entry["parts"]:
            assert turn["answers"] == [of[turn["turn"] - 1]["reply"] for of in (one, other)]


def test_missing_videos_are_counted_by_turn(judge_server, mt_prepared, monkeypatch):
    (mt_prepared / "videos" / "street_bikes.mp4").unlink()
    monkeypatch.setenv(f"{PREFIX}ON_MISSING_VIDEO", "skip")
    own, golden = (run([name], judge_server) for name in (SELF, "mt_video_bench"))
    assert metrics(own, SELF)["coverage"] == metrics(golden, "mt_video_bench")["coverage"] < 100


def test_other_tasks_beside_it_run_as_ever(judge_server, mt_release):
    judge_server.reply = rule_based(gold_answers(mt_release))
    results = run([SELF, "mt_video_bench_memory_recall"], judge_server)
    assert metrics(results, SELF)["overall"] == metrics(results, "mt_video_bench_memory_recall")["overall"] == 100


@pytest.mark.parametrize("simple", [False, True], ids=["chat", "simple"])
def test_a_real_backend_runs_it(judge_server, tmp_path_factory, simple):
    tiny = make_tiny_vlm(tmp_path_factory.mktemp("checkpoint") / "tiny")
    arguments = (
        f"pretrained={tiny},device_map=cpu,attn_implementation=eager,max_num_frames=4,min_pixels=3136,max_pixels=50176"
    )
    results = evaluate(
        [SELF], judge_server, model="qwen2_5_vl", model_args=arguments, device="cpu", batch_size=1, limit=2,
        gen_kwargs="max_new_tokens=8", force_simple=simple,
    )  # fmt: skip
    assert {turn["status"] for turn in turns(results)} == {"scored"}
    assert all(turn["reply"] for entry in entries(results) for of in entry["transcripts"] for turn in of)
