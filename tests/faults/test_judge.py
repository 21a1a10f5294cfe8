"""A judge that hangs, is gone, floods, or answers with any status; and a clock that goes back."""

import itertools
import time
import tracemalloc
from collections import Counter

import pytest

from lmms_eval_tasks.judging import pool as pool_module
from lmms_eval_tasks.judging.client import Reply
from lmms_eval_tasks.judging.pool import SILENCE, pool
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import Fault

pytestmark = pytest.mark.usefixtures("quick_retries")

IN_FLIGHT = 4
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def quick_judge(judge_server, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}JUDGE_TIMEOUT", "0.1")
    monkeypatch.setenv(f"{PREFIX}JUDGE_CONCURRENCY", str(IN_FLIGHT))


def read(text):
    return [text] if text.startswith("Y") else None


def verdicts(prompts, reader=read):
    return [future.result(60) for future in [pool().submit(prompt, reader, 0, "mt_video_bench") for prompt in prompts]]


def numbered(count):
    return [f"prompt {k}" for k in range(count)]


@pytest.mark.parametrize("url", [None, NOWHERE], ids=["hangs", "is gone"])
def test_a_silent_judge_ends_judging_with_one_message(judge_server, monkeypatch, logged, url):
    if url:
        monkeypatch.setenv(f"{PREFIX}JUDGE_BASE_URL", url)
    monkeypatch.setattr(pool_module, "OUTAGE", 0)
    judge_server.reply = lambda *_: Fault("hang", seconds=60)
    results = verdicts(numbered(200))
    called = [verdict for verdict in results if verdict.reason.startswith("CallFailed: API")]
    ended = {verdict.reason for verdict in results if verdict not in called}
    assert SILENCE <= len(called) < SILENCE + IN_FLIGHT and not any(verdict.value for verdict in results)
    assert len(ended) == 1 and f"no reply to {SILENCE} calls in a row" in ended.pop()
    assert sum("Judging ends" in line and "judges them later" in line for line in logged) == 1
    # Once all has been waited for, a new attempt is one.
    pool().wait()
    monkeypatch.setenv(f"{PREFIX}JUDGE_BASE_URL", judge_server.url)
    judge_server.reply = lambda *_: "Y"
    assert all(verdict.value for verdict in verdicts(numbered(200)))


def test_a_short_outage_ends_nothing(judge_server, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}JUDGE_BASE_URL", NOWHERE)
    results = verdicts(numbered(2 * SILENCE))
    assert all(verdict.reason.startswith("CallFailed: API") for verdict in results)


SIGNS = {"a verdict": "Y", "an unreadable reply": "n", "an error": Fault("status", status=400, message="too long")}


@pytest.mark.parametrize("name", SIGNS)
def test_any_reply_between_silences_is_a_sign_of_life(judge_server, monkeypatch, name):
    monkeypatch.setenv(f"{PREFIX}JUDGE_CONCURRENCY", "1")
    monkeypatch.setenv(f"{PREFIX}JUDGE_TIMEOUT", "0.05")
    monkeypatch.setattr(pool_module, "OUTAGE", 0)
    monkeypatch.setattr(pool_module, "SILENCE", 3)
    monkeypatch.setattr(pool_module, "REASKS", 0)
    lively = {"prompt 0", "prompt 3"}
    hangs = Fault("hang", seconds=60)
    judge_server.reply = lambda body, n: SIGNS[name] if body["messages"][0]["content"] in lively else hangs
    results = verdicts(numbered(6))
    assert not any("in a row" in verdict.reason for verdict in results)
    # The third one in a row, and the one behind it.
    third, fourth = verdicts(["silent", "still silent"])
    assert third.reason.startswith("CallFailed: API") and "no reply to 3 calls in a row" in fourth.reason


# All that is not in tests/judging/test_client.py: whole classes that no judge should send.
STRANGE = [204, 205, 300, 301, 302, 304, 307, 308, 405, 406, 409, 410, 411, 413, 415, 418, 421, 426, 431, 451, 501, 504,
           505, 507, 511, 520, 524, 529, 599]  # fmt: skip


def test_no_status_is_a_verdict(judge_server, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}JUDGE_TIMEOUT", "20")
    judge_server.reply = lambda body, n: (
        Fault("status", status=int(code), message="Y")
        if (code := body["messages"][0]["content"]).isdecimal()
        else "Y"
    )  # fmt: skip
    results = verdicts([*map(str, STRANGE), "good"])
    assert results.pop().value == ["Y"]
    for code, verdict in zip(STRANGE, results, strict=True):
        assert verdict.value is None and verdict.reason, code
    assert not any("unusable" in verdict.reason for verdict in results)


def test_ten_thousand_unreadable_replies_end_and_leave_nothing_behind(monkeypatch):
    replies = itertools.count()

    def ask(_self, prompt):
        # Each is a text of its own of 10 kB: all of them would be 100 MB.
        return Reply(f"{next(replies)}" + "I cannot say. " * 700, "judge", 1, 1)

    monkeypatch.setattr("lmms_eval_tasks.judging.client.Judge.ask", ask)
    tracemalloc.start()
    try:
        results = verdicts(numbered(2500))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert next(replies) == 10_000
    assert {verdict.reason for verdict in results} == {"unreadable after 4 replies"}
    assert {verdict.output_tokens for verdict in results} == {4}
    assert not pool()._pending and peak < 20_000_000


def test_a_clock_that_goes_back_changes_no_verdict(judge_server, monkeypatch):
    hours = itertools.count(1)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600 * next(hours))
    faults = [Fault("status", status=429, message="slow down", retry_after=0.01), Fault("hang", seconds=60)]
    asked = Counter()

    def reply(body, _):
        prompt = body["messages"][0]["content"]
        asked[prompt] += 1
        return faults[asked[prompt] - 1] if asked[prompt] <= len(faults) else f"Y{prompt}"

    judge_server.reply = reply
    for prompt in numbered(9):
        pool().submit(prompt, read, 0, "mt_video_bench")
    pool().wait()
    assert [verdict.value for verdict in verdicts(numbered(9))] == [[f"Yprompt {k}"] for k in range(9)]
    assert set(asked.values()) == {3} and next(hours) > 1
