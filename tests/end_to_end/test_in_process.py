"""MT-Video-Bench through lmms-eval's own evaluator, with real videos, a local model and a local judge."""

import json
from collections import Counter

import pytest

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.mt_video_bench import prompts
from lmms_eval_tasks.mt_video_bench.metrics import ABILITIES
from lmms_eval_tasks.results.score import score
from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import evaluate, metrics, save, texts
from utils.openai_server import Fault, rule_based
from utils.sample_release import gold_answers, sample_answers
from utils.tiny_vlm import make_tiny_vlm

pytestmark = pytest.mark.usefixtures("mt_prepared", "small_frames")


@pytest.fixture
def small_frames(monkeypatch):
    """Frames that travel fast; their number and size are the media tests' affair."""
    monkeypatch.setenv(f"{PREFIX}FRAMES", "8")
    monkeypatch.setenv(f"{PREFIX}LONG_SIDE", "64")


def model_requests(server):
    return [request for request in server.requests if request["model"] == "model"]


def test_gold_answers_score_full_marks(judge_server, mt_release):
    judge_server.reply = rule_based(gold_answers(mt_release))
    found = metrics(evaluate(["mt_video_bench"], judge_server), "mt_video_bench")
    assert set(found) == {"overall", "perceptivity", "interactivity", *ABILITIES, "coverage"}
    assert set(found.values()) == {100.0}


def test_a_middling_model_scores_the_same_in_every_way_to_run_it(judge_server, mt_release, tmp_path):
    judge_server.reply = rule_based(sample_answers(mt_release))
    results = evaluate(["mt_video_bench"], judge_server)
    expected = metrics(results, "mt_video_bench")
    assert 0 < expected["overall"] < 100 and expected["coverage"] == 100
    assert expected["overall"] == pytest.approx(sum(expected[ability] for ability in ABILITIES) / 6, abs=1e-9)

    simple = evaluate(["mt_video_bench"], judge_server, force_simple=True)
    assert metrics(simple, "mt_video_bench") == expected

    requests = len(judge_server.requests)
    log = save(tmp_path / "scored", results, "mt_video_bench")
    offline = score([log])["mt_video_bench"]
    assert {**offline["metrics"], "coverage": offline["coverage"]} == expected

    predicted = evaluate(["mt_video_bench"], judge_server, predict_only=True)
    log = save(tmp_path / "predicted", predicted, "mt_video_bench")
    offline = score([log])["mt_video_bench"]
    assert {**offline["metrics"], "coverage": offline["coverage"]} == expected
    judged = [request for request in judge_server.requests[requests:] if request["model"] == "test-judge"]
    # The check before a run asks once; the verdicts themselves were on disk.
    assert all("checklist" not in str(request["messages"]) for request in judged)


def test_the_model_gets_the_protocols_prompts(judge_server):
    evaluate(["mt_video_bench", "mt_video_bench_no_context", "mt_video_bench_chat"], judge_server)
    asked = Counter(json.dumps(texts(request)) for request in model_requests(judge_server))
    from lmms_eval_tasks import canonical

    rows = canonical.opened("mt_video_bench").rows()
    expected = Counter()
    for row in rows:
        turns = [(turn["question"], turn["answer"], turn["checklist"]) for turn in row["turns"]]
        for number, (question, _, checklist) in enumerate(turns):
            if not checklist:
                continue
            history = [text for q, a, _ in turns[:number] for text in (f"User: {q}", f"Assistant: {a}")]
            for lines in (history, []):
                text = (
                    "You're an AI assistant helping to answer questions about a video. Use the conversation history "
                    f"if helpful.\nConversation history:\n{lines}\nCurrent question:\n{question}"
                )
                expected[json.dumps([("user", text)])] += 1
            chat = [(role, text) for q, a, _ in turns[:number] for role, text in (("user", q), ("assistant", a))]
            expected[json.dumps([("system", prompts.SYSTEM), *chat, ("user", question)])] += 1
    assert asked == expected


def test_every_request_holds_the_frames_after_the_text(judge_server):
    evaluate(["mt_video_bench"], judge_server, limit=2)
    for request in model_requests(judge_server):
        [message] = request["messages"]
        assert [part["type"] for part in message["content"]] == ["text", *["image_url"] * 4]


def test_limit_and_offset_leave_abilities_absent(judge_server):
    results = evaluate(["mt_video_bench"], judge_server, limit=2, offset=1)
    assert set(metrics(results, "mt_video_bench")) == {"overall", "perceptivity", "object_reference", "coverage"}
    assert len(model_requests(judge_server)) == 2


def test_an_ability_is_a_task_of_its_own(judge_server):
    results = evaluate(["mt_video_bench_answer_refusal"], judge_server)
    found = metrics(results, "mt_video_bench_answer_refusal")
    assert found["overall"] == found["interactivity"] == found["answer_refusal"]
    assert {sample["overall"]["task"] for sample in results["samples"]["mt_video_bench_answer_refusal"]} == {
        "mt_video_bench_answer_refusal"
    }


def test_repeats_are_scored_and_averaged(judge_server, mt_release):
    gold = gold_answers(mt_release)

    def sometimes(body, n, answer=rule_based(gold), vague=rule_based()):
        return vague(body, n) if body["model"] == "model" and n % 2 else answer(body, n)

    judge_server.reply = sometimes
    results = evaluate(["mt_video_bench_answer_refusal"], judge_server, repeats=2)
    items = [sample["overall"] for sample in results["samples"]["mt_video_bench_answer_refusal"]]
    assert all(len(item["answers"]) == 2 for item in items)
    assert len(model_requests(judge_server)) == 8
    scores = {tuple(sorted(map(len, item["answers"]))): item["score"] for item in items}
    assert any(score not in (100.0, 20.0, 0.0) for score in scores.values())


def test_a_cached_run_asks_the_model_nothing(judge_server, tmp_path):
    first = evaluate(["mt_video_bench"], judge_server, use_cache=str(tmp_path / "cache"), limit=4)
    requests = len(judge_server.requests)
    second = evaluate(["mt_video_bench"], judge_server, use_cache=str(tmp_path / "cache"), limit=4)
    assert metrics(first, "mt_video_bench") == metrics(second, "mt_video_bench")
    assert [request["messages"] for request in judge_server.requests[requests:]] == [
        [{"role": "user", "content": "Reply with the word Yes."}]
    ]


def test_a_cached_run_with_other_frames_asks_the_model_again(judge_server, tmp_path, monkeypatch):
    evaluate(["mt_video_bench"], judge_server, use_cache=str(tmp_path / "cache"), limit=4)
    asked = len(model_requests(judge_server))
    monkeypatch.setenv(f"{PREFIX}FRAMES", "6")
    evaluate(["mt_video_bench"], judge_server, use_cache=str(tmp_path / "cache"), limit=4)
    assert len(model_requests(judge_server)) == 2 * asked


def test_generation_settings_reach_the_model(judge_server):
    evaluate(["mt_video_bench"], judge_server, limit=1)
    evaluate(["mt_video_bench"], judge_server, limit=1, gen_kwargs="max_new_tokens=8192,temperature=0.6")
    asked = [(request["max_tokens"], request["temperature"]) for request in model_requests(judge_server)]
    assert asked == [(1024, 0), (8192, 0.6)]


def test_failed_requests_are_no_answer(judge_server, monkeypatch):
    def reply(body, n, fine=rule_based()):
        broken = body["model"] == "model" and "helmet" in str(body["messages"])
        return Fault("status", status=400, message="too long") if broken else fine(body, n)

    judge_server.reply = reply
    results = evaluate(["mt_video_bench"], judge_server, model_args="")
    statuses = Counter(sample["overall"]["status"] for sample in results["samples"]["mt_video_bench"])
    assert statuses["no_answer"] > 0 and statuses["scored"] > 0
    expected = 100 * statuses["scored"] / statuses.total()
    assert metrics(results, "mt_video_bench")["coverage"] == pytest.approx(expected)


def test_without_a_judge_the_run_ends_with_every_answer(judge_server, monkeypatch):
    monkeypatch.delenv(f"{PREFIX}JUDGE_MODEL")
    results = evaluate(["mt_video_bench"], judge_server)
    found = metrics(results, "mt_video_bench")
    assert found["coverage"] == 0 and str(found["overall"]) == "nan"
    assert {sample["overall"]["status"] for sample in results["samples"]["mt_video_bench"]} == {"unjudged"}


def test_predictions_need_no_judge_that_answers(judge_server, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}JUDGE_BASE_URL", "http://127.0.0.1:9/v1")
    assert evaluate(["mt_video_bench"], judge_server, limit=1, predict_only=True)
    with pytest.raises(PackError, match="cannot be reached"):
        evaluate(["mt_video_bench"], judge_server, limit=1)


def test_missing_videos_stop_the_run_or_are_skipped(judge_server, mt_prepared, monkeypatch):
    (mt_prepared / "videos" / "street_bikes.mp4").unlink()
    with pytest.raises(PackError, match="1 of 4 videos are missing: street_bikes"):
        evaluate(["mt_video_bench"], judge_server)
    assert model_requests(judge_server) == []
    monkeypatch.setenv(f"{PREFIX}ON_MISSING_VIDEO", "skip")
    results = evaluate(["mt_video_bench"], judge_server)
    asked = len(model_requests(judge_server))
    assert 0 < asked < 24
    assert metrics(results, "mt_video_bench")["coverage"] == pytest.approx(100 * asked / 24)


def test_chat_needs_a_backend_that_takes_messages(judge_server):
    with pytest.raises(PackError, match="mt_video_bench_chat needs a backend that takes chat messages"):
        evaluate(["mt_video_bench_chat"], judge_server, force_simple=True)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny_vlm(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.mark.parametrize("task", ["mt_video_bench", "mt_video_bench_chat"])
def test_a_real_backend_runs_it(judge_server, tiny, task):
    arguments = (
        f"pretrained={tiny},device_map=cpu,attn_implementation=eager,max_num_frames=4,min_pixels=3136,max_pixels=50176"
    )
    results = evaluate(
        [task], judge_server, model="qwen2_5_vl", model_args=arguments, device="cpu", batch_size=1, limit=2,
        gen_kwargs="max_new_tokens=16",
    )  # fmt: skip
    items = [sample["overall"] for sample in results["samples"][task]]
    assert [item["status"] for item in items] == ["scored", "scored"]
    assert all(item["answers"][0] for item in items)
