"""A local server that speaks OpenAI's chat completions, as the model, the judge, or a bad day of either.

In a test:

    with OpenAIServer(reply=lambda body, n: "Yes") as server:
        client = openai.OpenAI(base_url=server.url, api_key="any")

By itself, until it is interrupted: `python -m utils.openai_server --port 8000 --answers answers.json`.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, get_args

Kind = Literal["status", "hang", "cut", "drip", "nonsense", "empty"]
Body = dict[str, Any]

VAGUE_ANSWER = "I see a scene with some movement, but I cannot tell more."
CHARACTERS_PER_TOKEN = 4
DRIPS = 20
JUDGE_REQUEST = re.compile(
    r"Model Answer:(?P<answer>.*)Checklist:(?P<questions>.*?^Q1:.*)", re.IGNORECASE | re.DOTALL | re.MULTILINE
)
MARKED = re.compile(r"<answer (?P<mark>\w+)>\n(?P<answer>.*)\n</answer (?P=mark)>", re.DOTALL)
CHECKLIST_QUESTION = re.compile(r"^Q(?P<number>\d+):(?P<text>.*)$", re.MULTILINE)
QUOTED = re.compile(r'"([^"]+)"')
# Some lmms-eval backends put the second of each frame between the images.
FRAME_TIME = re.compile(r"<[\d.]+ seconds>")


@dataclass(frozen=True)
class Fault:
    """One way in which a request goes wrong.

    Attributes:
        kind: "status" (an HTTP error), "hang" (silence, then the connection closes), "cut" (the connection closes in
            the middle of the body), "drip" (a good answer that arrives in small pieces), "nonsense" (status 200, but
            no JSON) or "empty" (a good answer without text).
        status: HTTP status of kind "status".
        message: Text of its JSON error body; None sends no body.
        type: Field of the error body.
        code: Field of the error body.
        param: Field of the error body.
        retry_after: Its `Retry-After` header in seconds; None sends no header.
        seconds: How long "hang" and "drip" take.
    """

    kind: Kind
    status: int = 500
    message: str | None = None
    type: str | None = None
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None
    seconds: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a kind that does not exist.

        Raises:
            ValueError: The kind is unknown.
        """
        if self.kind not in get_args(Kind):
            raise ValueError(f"Unknown kind of fault: {self.kind!r}. There are {', '.join(get_args(Kind))}.")


Reply = str | None | Fault | Body
ReplyFunction = Callable[[Body, int], Reply]
FaultScript = Sequence[Any] | Mapping[str, Any]


def text_of(message: Mapping[str, Any]) -> str:
    """Return what a message says, without its images and without the frame times between them.

    Args:
        message: A chat message; its content is a string, a list of parts, or missing.

    Returns:
        The text parts, joined by line breaks and stripped.
    """
    content = message.get("content") or ""
    if isinstance(content, str):
        return content.strip()
    texts = [part["text"] for part in content if part.get("type") == "text"]
    return "\n".join(text for text in texts if not FRAME_TIME.fullmatch(text.strip())).strip()


def rule_based(answers: Mapping[str, str] | None = None) -> ReplyFunction:
    """Return a reply that plays both the model and the judge, by rules.

    As a judge it answers "Yes" to a checklist question when each phrase in double quotes in it occurs in the model's
    answer (in any case), else "No". As a model it answers the questions it knows, and stays vague about others.

    Args:
        answers: Question -> the model's answer.

    Returns:
        The function to pass as `reply`.
    """
    known = {question.strip(): answer for question, answer in (answers or {}).items()}

    def reply(body: Body, _n: int) -> str:
        text = next((text_of(each) for each in reversed(body.get("messages", [])) if each.get("role") == "user"), "")
        judging = JUDGE_REQUEST.search(text)
        if judging:
            marked = MARKED.search(judging["answer"])
            return judge_by_phrases(marked["answer"] if marked else judging["answer"], judging["questions"])
        question = text.rpartition("Current question:\n")[2].strip()
        return known.get(question, VAGUE_ANSWER)

    return reply


def judge_by_phrases(answer: str, questions: str) -> str:
    """Answer a checklist by looking for its quoted phrases.

    Args:
        answer: The model's answer.
        questions: Text with lines `Q1: …`, `Q2: …`.

    Returns:
        A JSON object `{"A1": "Yes" | "No", …}`.
    """
    answer = answer.lower()
    verdicts = {
        f"A{question['number']}": all(phrase.lower() in answer for phrase in QUOTED.findall(question["text"]))
        for question in CHECKLIST_QUESTION.finditer(questions)
    }
    return json.dumps({key: "Yes" if found else "No" for key, found in verdicts.items()})


def scripted_fault(script: FaultScript | None, n: int) -> Fault | None:
    """Look up what goes wrong with a request.

    Args:
        script: A list (request k gets the k-th fault, or none where it says null), or
            `{"rate": 0.3, "kinds": [...], "seed": 7}` for a share of all requests, the same ones in every run. A fault
            is a `Fault`, the name of its kind, or a JSON object with its attributes.
        n: Number of the request, from 0.

    Returns:
        The fault, or None.

    Raises:
        ValueError: A kind of fault is unknown.
        TypeError: A fault has an unknown attribute.
    """
    if not script:
        return None
    if isinstance(script, Mapping):
        dice = random.Random(f"{script.get('seed', 0)}/{n}")
        return _fault(dice.choice(script["kinds"])) if dice.random() < script["rate"] else None
    return _fault(script[n]) if n < len(script) else None


def _fault(spec: Any) -> Fault | None:
    if spec is None or isinstance(spec, Fault):
        return spec
    return Fault(**({"kind": spec} if isinstance(spec, str) else spec))


class OpenAIServer:
    """The server; it listens while its `with` block runs.

    Attributes:
        requests: Bodies of the chat requests so far, in the order of their numbers.
        authorizations: Their Authorization headers, None where a request had none.
        peak: The largest number of chat requests in work at the same time.
    """

    def __init__(
        self,
        reply: ReplyFunction | None = None,
        *,
        latency: float = 0.0,
        reject: Collection[str] = (),
        answered_as: str | None = None,
        faults: FaultScript | None = None,
        port: int = 0,
    ) -> None:
        """Prepare the server; nothing listens yet.

        Args:
            reply: Called with each request's body and number (from 0), from several threads. It returns the answer's
                text, None for an answer whose content is null, a dict of message fields and `finish_reason`, or a
                `Fault`. Without it, the server answers as `rule_based()` does.
            latency: Seconds before each answer.
            reject: Parameters that are refused with status 400, as newer models refuse `temperature`.
            answered_as: Model name in the answers; without it, the request's own.
            faults: See `scripted_fault`; a scripted fault goes before `reply`.
            port: 0 takes a free one.
        """
        self.reply = reply or rule_based()
        self.latency = latency
        self.reject = reject
        self.answered_as = answered_as
        self.faults = faults
        self.requests: list[Body] = []
        self.authorizations: list[str | None] = []
        self.peak = 0
        self._port = port
        self._in_work = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._http: _HTTPServer | None = None

    @property
    def url(self) -> str:
        """Base URL for a client, as in `http://127.0.0.1:8000/v1`."""
        return f"http://127.0.0.1:{self._port}/v1"

    def reset(self) -> None:
        """Forget all requests, and number the next one 0."""
        with self._lock:
            self.requests.clear()
            self.authorizations.clear()
            self.peak = 0

    def wait(self, seconds: float) -> None:
        """Sleep, but not longer than the server runs.

        Args:
            seconds: How long.
        """
        self._stopped.wait(seconds)

    def answer(self, body: Body, authorization: str | None) -> Reply:
        """Record a chat request and decide on its answer.

        Args:
            body: The request.
            authorization: Its Authorization header.

        Returns:
            What `reply` may return.
        """
        with self._lock:
            n = len(self.requests)
            self.requests.append(body)
            self.authorizations.append(authorization)
            self._in_work += 1
            self.peak = max(self.peak, self._in_work)
        try:
            self.wait(self.latency)
            refused = next((name for name in body if name in self.reject), None)
            if refused:
                return Fault(
                    "status",
                    status=400,
                    message=f"Unsupported parameter: '{refused}' is not supported with this model.",
                    type="invalid_request_error",
                    code="unsupported_parameter",
                    param=refused,
                )
            return scripted_fault(self.faults, n) or self.reply(body, n)
        except Exception as error:
            return Fault("status", message=f"The stand-in itself failed: {error!r}", type="server_error")
        finally:
            with self._lock:
                self._in_work -= 1

    def __enter__(self) -> "OpenAIServer":
        """Start to listen.

        Raises:
            OSError: The port is taken.
        """
        self._stopped.clear()
        self._http = _HTTPServer(self, self._port)
        self._port = self._http.server_port
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop to listen and close all connections."""
        self._stopped.set()
        if self._http:
            self._http.shutdown()
            self._http.server_close()
            self._http.hang_up()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, owner: OpenAIServer, port: int) -> None:
        self.owner = owner
        self.connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Close the connections that clients keep alive; their threads would go on answering otherwise."""
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that gave up is what the faults are for, and no news.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _HTTPServer
    # Headers and body leave in one packet, else each answer waits 40 ms for a delayed acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        if self.path != "/v1/models":
            return self._send_not_found()
        name = self.server.owner.answered_as or "stand-in"
        model = {"id": name, "object": "model", "created": 0, "owned_by": "utils.openai_server"}
        return self._send(200, _json({"object": "list", "data": [model]}))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/chat/completions":
            return self._send_not_found()
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return self._send_fault(Fault("status", status=400, message="The body is no JSON object."), {})
        reply = self.server.owner.answer(body, self.headers.get("Authorization"))
        if isinstance(reply, Fault):
            return self._send_fault(reply, body)
        return self._send(200, self._completion(body, reply))

    def _send_not_found(self) -> None:
        message = f"Unknown request URL: {self.command} {self.path}"
        self._send_fault(Fault("status", status=404, message=message, type="invalid_request_error"), {})

    def _completion(self, body: Body, reply: str | Body | None) -> bytes:
        choice = dict(reply) if isinstance(reply, dict) else {"content": reply}
        finish_reason = choice.pop("finish_reason", "stop")
        prompt = sum(len(text_of(message)) for message in body.get("messages", [])) // CHARACTERS_PER_TOKEN
        completion = len(choice.get("content") or "") // CHARACTERS_PER_TOKEN
        return _json(
            {
                "id": "chatcmpl-stand-in",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": self.server.owner.answered_as or body.get("model", ""),
                "choices": [
                    {"index": 0, "message": {"role": "assistant", **choice}, "finish_reason": finish_reason},
                ],
                "usage": {
                    "prompt_tokens": prompt,
                    "completion_tokens": completion,
                    "total_tokens": prompt + completion,
                },
            }
        )

    def _send_fault(self, fault: Fault, body: Body) -> None:
        match fault.kind:
            case "status":
                details = {name: getattr(fault, name) for name in ("message", "type", "code", "param")}
                headers = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
                self._send(fault.status, _json({"error": details}) if fault.message is not None else b"", headers)
            case "hang":
                self.server.owner.wait(fault.seconds)
                self.close_connection = True
            case "cut":
                content = self._completion(body, VAGUE_ANSWER)
                self._send_head(200, len(content))
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
            case "drip":
                self._drip(self._completion(body, VAGUE_ANSWER), fault.seconds)
            case "nonsense":
                self._send(200, b"<html>Bad gateway</html>")
            case "empty":
                self._send(200, self._completion(body, ""))

    def _drip(self, content: bytes, seconds: float) -> None:
        self._send_head(200, len(content))
        step = -(-len(content) // DRIPS)
        for start in range(0, len(content), step):
            self.wfile.write(content[start : start + step])
            self.wfile.flush()
            self.server.owner.wait(seconds / DRIPS)

    def _send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self._send_head(status, len(content), headers)
        self.wfile.write(content)

    def _send_head(self, status: int, length: int, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(length),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def main() -> None:
    """Answer as a rule-based model and judge until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m utils.openai_server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--answers", type=Path, help="JSON object: question -> the model's answer")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--faults", type=Path, help='JSON: a list of faults or null, or {"rate", "kinds", "seed"}')
    parser.add_argument("--reject", nargs="*", default=[], help="parameters to refuse")
    parser.add_argument("--answered-as", help="model name in the answers")
    parser.add_argument("--ready-file", type=Path, help="the URL is written here when the server listens")
    arguments = parser.parse_args()
    server = OpenAIServer(
        rule_based(json.loads(arguments.answers.read_text("utf-8")) if arguments.answers else None),
        latency=arguments.latency,
        reject=arguments.reject,
        answered_as=arguments.answered_as,
        faults=json.loads(arguments.faults.read_text("utf-8")) if arguments.faults else None,
        port=arguments.port,
    )
    interrupted = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: interrupted.set())
    with server:
        print(server.url, flush=True)
        if arguments.ready_file:
            # Renamed into place, so that whoever waits for the file never reads half a URL.
            draft = arguments.ready_file.with_name(arguments.ready_file.name + ".draft")
            draft.write_text(server.url, "utf-8")
            os.replace(draft, arguments.ready_file)
        interrupted.wait()


if __name__ == "__main__":
    main()
