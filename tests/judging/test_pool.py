import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lmms_eval_tasks.judging import pool as pool_module
from lmms_eval_tasks.judging.pool import pool
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import Fault

pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture
def set_judge(judge_server, monkeypatch):
    def set_to(**options):
        for name, value in options.items():
            monkeypatch.setenv(f"{PREFIX}JUDGE_{name.upper()}", str(value))

    set_to(timeout=5, concurrency=4)
    return set_to


def read(text):
    return [text] if text.startswith("Y") else None


def submit(prompts, repeat=0):
    return [pool().submit(prompt, read, repeat, "mt_video_bench") for prompt in prompts]


def verdicts(prompts, repeat=0):
    return [future.result(20) for future in submit(prompts, repeat)]


def prompts(number):
    return [f"prompt {k}" for k in range(number)]


def new_process():
    """What a second process would find: no pool, but the files."""
    pool_module._pool.cache_clear()


def asked(server):
    return [body["messages"][0]["content"] for body in server.requests]


def status(number, **more):
    return Fault("status", status=number, message="boom", **more)


@pytest.mark.parametrize(
    ("concurrency", "ranks", "peak"),
    [(1, "1", 1), (5, "1", 5), (8, "2", 4), (8, "3", 2), (3, "8", 1), (3, "", 3), (3, "many", 3), (3, "0", 3)],
)
def test_calls_in_flight_are_bounded_over_all_ranks(set_judge, judge_server, monkeypatch, concurrency, ranks, peak):
    set_judge(concurrency=concurrency)
    monkeypatch.setenv("WORLD_SIZE", ranks)
    judge_server.reply = lambda *_: "Y"
    judge_server.latency = 0.1
    assert all(verdict.value for verdict in verdicts(prompts(2 * peak + 1)))
    assert judge_server.peak == peak


def test_equal_prompts_are_asked_once_whoever_asks(set_judge, judge_server):
    judge_server.reply, judge_server.latency = lambda *_: "Y", 0.05
    barrier = threading.Barrier(16)

    def ask(thread):
        barrier.wait()
        return verdicts(prompts(20)[:: 1 if thread % 2 else -1])

    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(ask, range(16)))
    assert sorted(asked(judge_server)) == sorted(prompts(20))
    assert all(verdict.value == ["Y"] for result in results for verdict in result)
    assert judge_server.peak == 4


def test_a_second_run_asks_nothing(set_judge, judge_server):
    judge_server.reply = lambda body, n: "Y" + body["messages"][0]["content"]
    first = verdicts(prompts(5))
    new_process()
    assert verdicts(prompts(5)) == first
    assert len(judge_server.requests) == 5


@pytest.mark.parametrize("change", ["model", "base_url", "temperature"])
def test_other_judges_and_parameters_are_asked_anew(set_judge, judge_server, change):
    judge_server.reply = lambda *_: "Y"
    set_judge(temperature=0)
    verdicts(["p"])
    changed = {"model": "other", "base_url": judge_server.url.replace("127.0.0.1", "localhost"), "temperature": 1}
    set_judge(**{change: changed[change]})
    verdicts(["p"])
    assert len(judge_server.requests) == 2


def test_each_repeat_is_asked_and_kept(set_judge, judge_server):
    judge_server.reply = lambda body, n: f"Y{n}"
    first = [verdicts(["p"], repeat) for repeat in range(3)]
    assert len(judge_server.requests) == 3
    new_process()
    assert [verdicts(["p"], repeat) for repeat in range(3)] == first
    assert len(judge_server.requests) == 3


def test_neither_repeats_nor_timeout_nor_concurrency_are_part_of_a_verdict(set_judge, judge_server):
    judge_server.reply = lambda *_: "Y"
    verdicts(["p"])
    set_judge(repeats=5, timeout=9, concurrency=2)
    verdicts(["p"])
    assert len(judge_server.requests) == 1


def test_a_verdict_is_on_disk_when_its_future_is_done(set_judge, judge_server, home):
    later = threading.Event()

    def reply(body, n):
        if body["messages"][0]["content"] == "later":
            later.wait(20)
        return "Y"

    judge_server.reply, judge_server.answered_as = reply, "snapshot-1"
    now, then = submit(["now", "later"])
    assert now.result(20).value == ["Y"]
    [file] = (home / "judgements").rglob("*.jsonl")
    [line] = file.read_text().splitlines()
    assert not then.done()
    later.set()
    then.result(20)
    known = json.loads(line)
    assert (known["value"], known["model"], known["input_tokens"]) == (["Y"], "snapshot-1", 0)
    assert "reason" not in known and len(known["prompt"]) == 12
    assert len(file.read_text().splitlines()) == 2


FAULTS = {
    "429": status(429),
    "429 Retry-After": status(429, retry_after=0.01),
    "500": status(500),
    "502": status(502),
    "503": status(503),
    "hang": Fault("hang", seconds=5),
    "cut": Fault("cut"),
    "drip": Fault("drip", seconds=8),
    "nonsense": Fault("nonsense"),
    "empty": Fault("empty"),
    "null": None,
    "unreadable": "perhaps",
    "no choices": status(200),
    "1 MB": "x" * 1_000_000,
}
UNREADABLE = {"nonsense", "empty", "null", "unreadable", "no choices", "1 MB"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_costs_one_verdict_or_none(set_judge, judge_server, name):
    """Twice it passes, then it stays: the judgement is unjudged with a reason, and asked again in the next run."""
    set_judge(timeout=0.4, concurrency=2)
    stays = {"bad": False}

    def reply(body, n):
        faulty = body["messages"][0]["content"] == "bad" and (stays["bad"] or asked(judge_server).count("bad") < 3)
        return FAULTS[name] if faulty else "Y"

    judge_server.reply = reply
    assert [verdict.value for verdict in verdicts(["good", "bad"])] == [["Y"], ["Y"]]
    assert asked(judge_server).count("bad") == 3

    stays["bad"] = True
    judge_server.reset()
    good, bad = verdicts(["good", "bad"], repeat=1)
    assert good.value == ["Y"] and bad.value is None
    assert bad.reason.startswith("unreadable after 4 replies" if name in UNREADABLE else "CallFailed: ")
    # One layer of retries: 5 more requests of a failed call, or 3 more askings, never their product.
    assert asked(judge_server).count("bad") == (4 if name in UNREADABLE else 6)

    stays["bad"] = False
    new_process()
    judge_server.reset()
    judge_server.reply = lambda *_: "Y"
    assert verdicts(["good", "bad"], repeat=1)[1].value == ["Y"]
    assert asked(judge_server) == ["bad"]


def test_unreadable_replies_add_up_in_the_usage(set_judge, judge_server, monkeypatch):
    logged = []
    monkeypatch.setattr("lmms_eval_tasks.plugin.log_usage", lambda *usage: logged.append(usage))
    judge_server.reply = lambda body, n: "Y" * 8 if n == 2 else "n" * 40
    [verdict] = verdicts(["p" * 400])
    assert (verdict.input_tokens, verdict.output_tokens) == (300, 22)
    assert logged == [("test-judge", "mt_video_bench", 100, tokens) for tokens in (10, 10, 2)]


ENDS = {
    "401": status(401),
    "403": status(403),
    "404": status(404),
    "quota": status(429, code="insufficient_quota"),
}


@pytest.mark.parametrize("name", ENDS)
def test_an_unusable_judge_ends_judging_with_one_message(set_judge, judge_server, logged, name):
    judge_server.latency = 0.05
    judge_server.reply = lambda body, n: "Y" if n < 6 else ENDS[name]
    results = verdicts(prompts(60))
    assert sum(verdict.value == ["Y"] for verdict in results) == 6
    assert 7 <= len(judge_server.requests) <= 6 + 4 + 3
    assert {verdict.reason for verdict in results if verdict.value is None} == {
        next(verdict.reason for verdict in results if verdict.value is None)
    }
    # What comes later in the run is not asked either.
    requests = len(judge_server.requests)
    assert "unusable" in verdicts(["later"])[0].reason
    assert len(judge_server.requests) == requests
    assert sum("Judging ends" in line for line in logged) == 1
    # A new attempt, after all has been waited for, is one.
    pool().wait()
    judge_server.reply = lambda *_: "Y"
    assert verdicts(["later"])[0].value == ["Y"]


def test_a_content_filter_is_final_for_its_item_alone(set_judge, judge_server):
    bad = status(400, code="content_filter")
    judge_server.reply = lambda body, n: bad if body["messages"][0]["content"] == "prompt 3" else "Y"
    results = verdicts(prompts(8))
    assert [k for k, verdict in enumerate(results) if verdict.value is None] == [3]
    assert results[3].reason.startswith("Refused: ")
    assert asked(judge_server).count("prompt 3") == 1


def test_parameters_that_are_rejected_cost_no_more_requests_than_are_in_flight(set_judge, judge_server):
    set_judge(temperature=0)
    judge_server.reply, judge_server.reject = lambda *_: "Y", ["temperature"]
    assert all(verdict.value for verdict in verdicts(prompts(40)))
    assert 41 <= len(judge_server.requests) <= 44


def test_a_reader_that_fails_costs_its_verdict_alone(set_judge, judge_server):
    def broken(text):
        raise RuntimeError("no reader")

    judge_server.reply = lambda *_: "Y"
    verdict = pool().submit("p", broken, 0, "mt_video_bench").result(20)
    assert (verdict.value, verdict.reason) == (None, "RuntimeError: no reader")
    assert verdicts(["q"])[0].value == ["Y"]


def test_without_a_judge_nothing_is_asked(monkeypatch):
    verdict = pool().submit("p", read, 0, "mt_video_bench").result(1)
    assert (verdict.value, verdict.reason) == (None, "no judge is configured")
    assert pool().describe() is None
    pool().wait()


def test_the_judge_is_described_without_its_secrets(set_judge, judge_server):
    set_judge(base_url=judge_server.url.replace("//", "//user:pass@"), repeats=2, temperature=0.5)
    assert pool().describe() == {
        "model": "test-judge",
        "endpoint": judge_server.url,
        "repeats": 2,
        "temperature": 0.5,
    }


def test_threads_that_come_at_once_share_one_pool(set_judge):
    barrier = threading.Barrier(16)

    def come(_):
        barrier.wait()
        return pool()

    for concurrency in range(10, 20):
        set_judge(concurrency=concurrency)
        with ThreadPoolExecutor(16) as threads:
            assert len({id(found) for found in threads.map(come, range(16))}) == 1


def test_waiting_says_what_is_coming(set_judge, judge_server, logged, capsys):
    judge_server.reply = lambda *_: "Y"
    verdicts(prompts(2))
    pool().wait()
    new_process()
    judge_server.latency = 0.05
    submit([*prompts(2), "x" * 4000])
    pool().wait()
    [line] = [line for line in logged if "Judging: 1 calls" in line]
    assert "about 1k tokens" in line and "2 verdicts were on disk" in line
    assert "Judging: 100%" in capsys.readouterr().err
    assert len(judge_server.requests) == 3


def test_an_interrupt_ends_judging_and_the_next_attempt_is_a_new_one(set_judge, judge_server, monkeypatch):
    judge_server.reply, judge_server.latency = lambda *_: "Y", 0.05

    def interrupted(*_):
        raise KeyboardInterrupt

    futures = submit(prompts(100))
    with monkeypatch.context() as patched:
        patched.setattr(pool_module, "as_completed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool().wait()
    reasons = [future.result(5).reason for future in futures]
    assert reasons.count("interrupted") >= 80
    assert len(judge_server.requests) <= 20
    assert all(verdict.value for verdict in verdicts(prompts(100)))
    assert len(judge_server.requests) == 100


# A process that judges against a server that never answers, and one that stops in the middle.
EXITS = {
    "stopped": "pool().stop('enough')",
    "interrupted": "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start(); pool().wait()",
    "crashed": "raise SystemExit(3)",
}


@pytest.mark.parametrize("name", EXITS)
def test_a_process_ends_at_once_with_calls_in_flight_and_in_the_queue(set_judge, judge_server, name):
    set_judge(timeout=60)
    judge_server.reply = lambda *_: Fault("hang", seconds=60)
    code = (
        "import os, signal, threading\n"
        # A suite that runs in the background ignores SIGINT, and so would this process.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from lmms_eval_tasks.judging.pool import pool\n"
        "for k in range(100): pool().submit(f'p{k}', str, 0, 'mt_video_bench')\n"
        "threading.Event().wait(0.3)\n"
        "print('judging', flush=True)\n" + EXITS[name]
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout.readline() == b"judging\n"
        try:
            run.communicate(timeout=30)
        finally:
            run.kill()
    assert len(judge_server.requests) == 4
