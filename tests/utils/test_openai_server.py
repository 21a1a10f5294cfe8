import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import openai
import pytest

from utils.openai_server import VAGUE_ANSWER, Fault, OpenAIServer, rule_based, scripted_fault

JUDGE_PROMPT = """\
Judge the answer by the checklist. Reply in JSON.
Model Answer:
{answer}

Checklist:
{questions}
"""


def ask(server: OpenAIServer, content: object = "Hello?", timeout: float = 2.0, **options: object) -> object:
    with openai.OpenAI(base_url=server.url, api_key="secret", max_retries=0, timeout=timeout) as client:
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]
        return client.chat.completions.create(model="some-model", messages=messages, **options)


def answer_to(server: OpenAIServer, content: object) -> str:
    return ask(server, content).choices[0].message.content


def test_answers_and_keeps_a_record() -> None:
    with OpenAIServer(lambda body, n: f"answer {n}") as server:
        first = ask(server, "x" * 400, temperature=0)
        assert first.choices[0].message.content == "answer 0"
        assert first.choices[0].finish_reason == "stop"
        assert first.model == "some-model"
        assert (first.usage.prompt_tokens, first.usage.completion_tokens) == ((400 + 9) // 4, 2)
        assert answer_to(server, "Hello?") == "answer 1"
        assert [body["messages"][1]["content"] for body in server.requests] == ["x" * 400, "Hello?"]
        assert server.requests[0]["temperature"] == 0
        assert server.authorizations == ["Bearer secret"] * 2
        server.reset()
        assert server.requests == server.authorizations == []
        assert answer_to(server, "Hello?") == "answer 0"


def test_routes() -> None:
    with OpenAIServer(answered_as="snapshot-1") as server:
        with openai.OpenAI(base_url=server.url, api_key="any", max_retries=0) as client:
            assert [model.id for model in client.models.list()] == ["snapshot-1"]
            with pytest.raises(openai.NotFoundError, match="/v1/embeddings"):
                client.embeddings.create(model="m", input="text")
        assert ask(server).model == "snapshot-1"
        assert httpx.get(f"{server.url}/chat/completions").status_code == httpx.codes.NOT_FOUND
        assert httpx.post(f"{server.url}/chat/completions", content=b"{").status_code == httpx.codes.BAD_REQUEST


def test_null_content_and_whole_choices() -> None:
    choices = [None, {"content": "", "finish_reason": "content_filter"}, {"content": "half", "finish_reason": "length"}]
    with OpenAIServer(lambda body, n: choices[n]) as server:
        received = [ask(server).choices[0] for _ in choices]
    assert [choice.message.content for choice in received] == [None, "", "half"]
    assert [choice.finish_reason for choice in received] == ["stop", "content_filter", "length"]


def test_http_errors() -> None:
    fault = Fault("status", status=429, message="Slow down.", code="rate_limit", retry_after=1.5)
    with OpenAIServer(lambda body, n: fault) as server, pytest.raises(openai.RateLimitError, match="Slow down") as info:
        ask(server)
    assert info.value.code == "rate_limit"
    assert info.value.response.headers["retry-after"] == "1.5"
    with OpenAIServer(lambda body, n: Fault("status", status=503)) as server:
        with pytest.raises(openai.InternalServerError) as info:
            ask(server)
    assert info.value.response.content == b""


def test_silence() -> None:
    with OpenAIServer(lambda body, n: Fault("hang", seconds=30)) as server, pytest.raises(openai.APITimeoutError):
        ask(server, timeout=0.2)
    with OpenAIServer(lambda body, n: Fault("hang", seconds=0.05)) as server:
        with pytest.raises(openai.APIConnectionError, match="Connection error"):
            ask(server)


def test_cut_body() -> None:
    with (
        OpenAIServer(lambda body, n: Fault("cut")) as server,
        pytest.raises(openai.APIConnectionError),
    ):
        ask(server)


def test_dripping_body_outlives_the_read_timeout() -> None:
    start = time.monotonic()
    with OpenAIServer(lambda body, n: Fault("drip", seconds=0.6)) as server:
        assert ask(server, timeout=0.3).choices[0].message.content == VAGUE_ANSWER
    assert time.monotonic() - start > 0.5


def test_nonsense_and_empty() -> None:
    with OpenAIServer(faults=["nonsense", "empty", None]) as server:
        with pytest.raises(ValueError, match="Expecting value"):
            ask(server)
        assert answer_to(server, "Hello?") == ""
        assert answer_to(server, "Hello?") == VAGUE_ANSWER


def test_rejected_parameter() -> None:
    with OpenAIServer(reject={"temperature"}) as server:
        with pytest.raises(openai.BadRequestError, match="Unsupported parameter: 'temperature'") as info:
            ask(server, temperature=0)
        assert (info.value.code, info.value.param) == ("unsupported_parameter", "temperature")
        assert ask(server).choices[0].message.content == VAGUE_ANSWER


def test_failing_reply_is_a_server_error() -> None:
    with OpenAIServer(lambda body, n: body["missing"]) as server:
        with pytest.raises(openai.InternalServerError, match="missing"):
            ask(server)


def test_scripted_faults() -> None:
    assert [scripted_fault(["cut", None, {"kind": "status", "status": 429}], n) for n in range(4)] == [
        Fault("cut"),
        None,
        Fault("status", status=429),
        None,
    ]
    script = {"rate": 0.3, "kinds": ["cut", {"kind": "hang", "seconds": 2}], "seed": 7}
    drawn = [scripted_fault(script, n) for n in range(1000)]
    assert drawn == [scripted_fault(script, n) for n in range(1000)]
    assert set(drawn) == {None, Fault("cut"), Fault("hang", seconds=2)}
    assert 0.25 < sum(fault is not None for fault in drawn) / len(drawn) < 0.35
    assert scripted_fault(None, 0) is None
    with pytest.raises(ValueError, match="Unknown kind of fault: 'tired'"):
        scripted_fault(["tired"], 0)


def test_many_connections_at_once() -> None:
    with OpenAIServer(lambda body, n: "ok", latency=0.3) as server:
        url = f"{server.url}/chat/completions"
        limits = httpx.Limits(max_connections=64)
        with httpx.Client(limits=limits, timeout=10) as client, ThreadPoolExecutor(64) as pool:
            codes = list(pool.map(lambda n: client.post(url, json={"messages": []}).status_code, range(64)))
        assert codes == [httpx.codes.OK] * 64
        assert server.peak > 32
        assert len(server.requests) == len(server.authorizations) == 64


def test_a_stopped_server_hangs_up() -> None:
    with OpenAIServer() as server, httpx.Client() as client:
        url = f"{server.url}/models"
        assert client.get(url).status_code == httpx.codes.OK
        server.__exit__(None, None, None)
        with pytest.raises(httpx.TransportError):
            client.get(url)


def test_rule_based_model() -> None:
    with OpenAIServer(rule_based({"Who is it? ": "A rabbit."})) as server:
        assert answer_to(server, "Who is it?") == "A rabbit."
        assert answer_to(server, "History: ['User: Who is it?']\nCurrent question:\nWho is it?") == "A rabbit."
        assert answer_to(server, "Conversation history:\n['User: Who is it?']\nCurrent question:\nWhy?") == VAGUE_ANSWER
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        times = [{"type": "text", "text": f"<{second}.5 seconds>"} for second in range(2)]
        text = {"type": "text", "text": "Current question:\nWho is it?"}
        assert answer_to(server, [text, times[0], image, times[1], image]) == "A rabbit."
        assert answer_to(server, [image, image]) == VAGUE_ANSWER


@pytest.mark.parametrize(
    ("answer", "verdicts"),
    [
        ("A grey Rabbit yawns at a RED car.", "Yes Yes No Yes"),
        ("", "No No No Yes"),
        ('The rabbit says: "Checklist:\nQ1: all are "tall"". A red car.', "Yes Yes Yes Yes"),
        ("The rabbit drives a {blue} car.", "Yes No No Yes"),
    ],
)
def test_rule_based_judge(answer: str, verdicts: str) -> None:
    questions = [
        'Q1: Does the answer name the "rabbit"?',
        'Q2: Does it name a "red" "car"?',
        'Q3: Is someone "tall"?',
        "Q4: Is this asked?",
    ]
    with OpenAIServer() as server:
        reply = answer_to(server, JUDGE_PROMPT.format(answer=answer, questions="\n".join(questions)))
    assert json.loads(reply) == {f"A{number}": verdict for number, verdict in enumerate(verdicts.split(), start=1)}


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text(json.dumps({"Who?": "A rabbit."}))
    (tmp_path / "faults.json").write_text(json.dumps([{"kind": "status", "status": 500, "message": "Oh."}]))
    ready = tmp_path / "url.txt"
    command = [sys.executable, "-m", "utils.openai_server", "--answers", tmp_path / "answers.json"]
    command += ["--faults", tmp_path / "faults.json", "--ready-file", ready]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=Path(__file__).parents[2]) as process:
        deadline = time.monotonic() + 10
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        with openai.OpenAI(base_url=ready.read_text(), api_key="any", max_retries=0, timeout=5) as client:
            messages = [{"role": "user", "content": "Who?"}]
            with pytest.raises(openai.InternalServerError, match="Oh"):
                client.chat.completions.create(model="m", messages=messages)
            answer = client.chat.completions.create(model="m", messages=messages)
        assert answer.choices[0].message.content == "A rabbit."
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0
