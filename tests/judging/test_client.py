import base64
import logging
import time

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.judging.client import CallFailed, Judge, Refused, Unusable
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import Fault, OpenAIServer

KEY = "sk-secret-of-the-test-judge"
RETRIES = 2
TIMEOUT = 0.3


@pytest.fixture
def judge(judge_server, quick_retries, monkeypatch):
    """Makes a judge from the settings: `judge()`, `judge(temperature=0, key=…)`."""

    def make(retries=RETRIES, **options):
        for name, value in {"timeout": TIMEOUT, **options}.items():
            monkeypatch.setenv(f"{PREFIX}JUDGE_{name.upper()}", str(value))
        return Judge(settings.load(), retries)

    return make


def status(number, message="boom", **more):
    return Fault("status", status=number, message=message, **more)


def answering(*replies):
    """Reply k to request k, the last one ever after."""
    return lambda body, n: replies[min(n, len(replies) - 1)]


def test_a_reply_holds_text_model_and_tokens(judge, judge_server):
    judge_server.reply, judge_server.answered_as = answering("Yes" * 20), "snapshot-1"
    reply = judge(temperature=0.5).ask("p" * 40)
    assert (reply.text, reply.model, reply.input_tokens, reply.output_tokens) == ("Yes" * 20, "snapshot-1", 10, 15)
    [body] = judge_server.requests
    assert body == {
        "model": "test-judge",
        "messages": [{"role": "user", "content": "p" * 40}],
        "max_tokens": 8192,
        "temperature": 0.5,
    }
    assert judge_server.authorizations == [f"Bearer {KEY}"]


def test_no_temperature_is_sent_unless_it_is_set(judge, judge_server):
    judge().ask("p")
    assert "temperature" not in judge_server.requests[0]


PASSING = {
    "429": status(429),
    "429 Retry-After": status(429, retry_after=0.01),
    "408": status(408),
    "500": status(500),
    "502": status(502, None),
    "503": status(503),
    "hang": Fault("hang", seconds=5),
    "cut": Fault("cut"),
    "drip": Fault("drip", seconds=6),
}


@pytest.mark.parametrize("name", PASSING)
def test_what_passes_is_tried_again_in_one_layer(judge, judge_server, name):
    judge_server.reply = answering(PASSING[name], "Yes")
    assert judge().ask("p").text == "Yes"
    assert len(judge_server.requests) == 2

    judge_server.reset()
    judge_server.reply = answering(PASSING[name])
    start = time.monotonic()
    with pytest.raises(CallFailed):
        judge().ask("p")
    assert len(judge_server.requests) == 1 + RETRIES
    # A piece of a drip comes every 0.3 s: none of them may set the clock back.
    assert time.monotonic() - start < (1 + RETRIES) * 2.5 * TIMEOUT


def test_retry_after_is_waited_for(judge, judge_server):
    judge_server.reply = answering(status(429, retry_after=0.4), "Yes")
    start = time.monotonic()
    judge().ask("p")
    assert time.monotonic() - start >= 0.4


def test_a_slow_reply_within_the_time_is_read(judge, judge_server):
    judge_server.reply = answering(Fault("drip", seconds=0.15))
    assert judge(retries=0).ask("p").text


def test_no_server_is_a_failed_call(judge):
    with pytest.raises(CallFailed, match="APIConnectionError"):
        judge(base_url="http://127.0.0.1:9/v1").ask("p")


FINAL = {
    "401": (status(401), Unusable),
    "402": (status(402), Unusable),
    "403": (status(403), Unusable),
    "404": (status(404), Unusable),
    "quota code": (status(429, "You exceeded your current quota", code="insufficient_quota"), Unusable),
    "quota type": (status(429, type="insufficient_quota", retry_after=5), Unusable),
    "400": (status(400, "context too long"), CallFailed),
    "422": (status(422), CallFailed),
    "content filter code": (status(400, code="content_filter"), Refused),
    "content filter text": (status(400, "triggering Azure OpenAI's content management policy"), Refused),
    "content policy": (status(400, code="content_policy_violation"), Refused),
    "moderation": (status(403, "requires moderation and your input was flagged"), Refused),
    "filtered reply": ({"content": "Y", "finish_reason": "content_filter"}, Refused),
    "refusal": ({"content": None, "refusal": "I will not"}, Refused),
}


@pytest.mark.parametrize("name", FINAL)
def test_what_does_not_pass_is_asked_once(judge, judge_server, name):
    reply, meaning = FINAL[name]
    judge_server.reply = answering(reply)
    with pytest.raises(meaning):
        judge().ask("p")
    assert len(judge_server.requests) == 1


BODIES = {
    "null content": (b'{"choices":[{"message":{"content":null}}]}', ""),
    "empty": (b'{"choices":[{"message":{"content":""}}]}', ""),
    "parts": (b'{"choices":[{"message":{"content":[{"type":"text","text":"Ye"},{"text":"s"},7]}}]}', "Yes"),
    "number": (b'{"choices":[{"message":{"content":7}}]}', ""),
    "error with status 200": (b'{"error":{"message":"overloaded"}}', ""),
    "no choices": (b'{"choices":[]}', ""),
    "null choices": (b'{"choices":null}', ""),
    "choices no list": (b'{"choices":{"a":1}}', ""),
    "choice no object": (b'{"choices":["Yes"]}', ""),
    "message no object": (b'{"choices":[{"message":"Yes"}]}', ""),
    "list": (b'["Yes"]', ""),
    "null": (b"null", ""),
    "string": (b'"Yes"', ""),
    "html": (b"<html>Bad gateway</html>", ""),
    "nothing": (b"", ""),
    "no UTF-8": (b'{"choices": "\xff\xfe"}', ""),
    "deep": (b"[" * 200_000, ""),
    "odd usage": (b'{"choices":[{"message":{"content":"Yes"}}],"model":7,"usage":{"prompt_tokens":"7"}}', "Yes"),
    "null usage": (b'{"choices":[{"message":{"content":"Yes"}}],"usage":{"prompt_tokens":null}}', "Yes"),
    "1 MB": (b'{"choices":[{"message":{"content":"' + b"x" * 1_000_000 + b'"}}]}', "x" * 1_000_000),
}


@pytest.mark.parametrize("name", BODIES)
def test_every_body_is_read_as_a_text_or_as_none(judge, judge_server, monkeypatch, name):
    body, text = BODIES[name]
    monkeypatch.setattr("utils.openai_server._Handler._completion", lambda *_: body)
    reply = judge(timeout=5).ask("p")
    assert (reply.text, reply.model, reply.input_tokens, reply.output_tokens) == (text, "test-judge", 0, 0)
    assert len(judge_server.requests) == 1


@pytest.mark.parametrize("rejected", [["temperature"], ["max_tokens"], ["max_tokens", "temperature"]])
def test_a_rejected_parameter_is_left_out_once_for_the_whole_process(judge, judge_server, logged, rejected):
    judge_server.reject = rejected
    for _ in range(2):
        # The check before the run and the run have a judge each.
        asked = judge(temperature=0)
        for _ in range(3):
            asked.ask("p")
    assert len(judge_server.requests) == 6 + len(rejected)
    assert sum("rejects" in line for line in logged) == len(rejected)
    kept = {"temperature", "max_tokens"} - set(rejected)
    assert {"temperature", "max_tokens"} & set(judge_server.requests[-1]) == kept


def test_a_reply_too_long_for_a_small_judge_is_asked_without_a_limit(judge, judge_server):
    message = "maximum context length is 8192 tokens. You requested 8500 (308 in the messages, 8192 in the completion)"
    judge_server.reply = lambda body, n: status(400, message) if "max_tokens" in body else "Yes"
    assert judge().ask("p").text == "Yes"


@pytest.mark.parametrize(
    "fault",
    [
        status(400, "filtered: what is the temperature?", code="content_filter"),
        status(400, "bad message: what is the temperature?", param="messages"),
        status(401, "no temperature for you"),
    ],
)
def test_an_error_about_something_else_costs_no_parameter(judge, judge_server, fault):
    judge_server.reply = answering(fault, "Yes")
    asked = judge(temperature=0)
    with pytest.raises(Exception, match="HTTP"):
        asked.ask("p")
    asked.ask("p")
    assert "temperature" in judge_server.requests[-1]


SECRETS = {
    "key": ("", [KEY]),
    "key with quotes": ("", ["sk-it's\"secret\\"]),
    "password in the URL": ("user:p%40ss-word@", [KEY, "p%40ss-word", "p@ss-word"]),
    "token in the URL": ("tok-en%3D@", [KEY, "tok-en=", "tok-en%3D"]),
}


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("name", SECRETS)
def test_no_error_and_no_log_shows_a_secret(judge, judge_server, logged, caplog, monkeypatch, name, as_json):
    user, secrets = SECRETS[name]
    caplog.set_level(logging.DEBUG)

    def echo(*_):
        return " ".join([*secrets, judge_server.authorizations[-1]])

    judge_server.reply = lambda *_: status(500, echo())
    if not as_json:
        monkeypatch.setattr("utils.openai_server._json", lambda _: echo().encode())
    asked = judge(base_url=judge_server.url.replace("//", f"//{user}"), api_key=secrets[0])
    with pytest.raises(CallFailed) as raised:
        asked.ask("p")
    if as_json:
        assert str(raised.value).count("[key]") == len(secrets) + 1
    assert asked.endpoint == judge_server.url
    shown = "\n".join([str(raised.value), repr(raised.value), *logged, caplog.text])
    for secret in [*secrets, judge_server.authorizations[-1].split()[1]]:
        assert secret not in shown


def test_user_and_password_are_sent_as_the_url_would_send_them(judge, judge_server):
    judge(base_url=judge_server.url.replace("//", "//user:p%40ss@")).ask("p")
    assert judge_server.authorizations == ["Basic " + base64.b64encode(b"user:p@ss").decode()]


def test_a_model_name_that_shows_the_key_is_cleaned(judge, judge_server):
    judge_server.answered_as = f"judge of {KEY} \ud800"
    assert judge().ask("p").model == "judge of [key] ?"


def test_white_space_around_a_key_is_none_of_it(judge, judge_server):
    judge(api_key=f" {KEY}\n").ask("p")
    assert judge_server.authorizations == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("api_key", "sk-a\nb"), ("api_key", "sk-ä"), ("base_url", "user:secret@host/v1"), ("base_url", "http://[::1")],
)
def test_a_key_or_endpoint_that_cannot_be_is_named(judge, name, value):
    with pytest.raises(PackError, match=f"JUDGE_{name.upper()}") as raised:
        judge(**{name: value})
    assert "secret" not in str(raised.value) and "sk-" not in str(raised.value)


@pytest.mark.parametrize("path", ["", "/", "/chat/completions", "/chat/completions/"])
def test_both_conventions_of_an_endpoint(judge, judge_server, path):
    assert judge(base_url=judge_server.url + path).ask("p").text
    assert judge(base_url=judge_server.url + path).endpoint == judge_server.url


def test_a_local_server_needs_no_key(judge_server, monkeypatch):
    monkeypatch.delenv(f"{PREFIX}JUDGE_API_KEY")
    with OpenAIServer(answering("Yes")) as server:
        monkeypatch.setenv(f"{PREFIX}JUDGE_BASE_URL", server.url)
        assert Judge(settings.load()).ask("p").text == "Yes"
