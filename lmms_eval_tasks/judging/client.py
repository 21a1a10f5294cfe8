"""One call to a judge model through an OpenAI-compatible endpoint."""

import base64
import json
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.log import logger
from lmms_eval_tasks.settings import PREFIX, Settings, without_credentials

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

# The one layer of retries: the SDK's own, with exponential waiting and Retry-After.
RETRIES = 5
MAX_TOKENS = 8192
CONNECT_SECONDS = 10
_BAD_REQUEST = (400, 422)
_NEVER = (401, 402, 403, 404)
_QUOTA = "insufficient_quota"
_FILTER = re.compile("content.?(filter|management|policy)|moderation", re.IGNORECASE)
# How an endpoint names the parameter that it rejects; vLLM speaks of the completion's length.
_OPTIONAL = {"temperature": "temperature", "max_tokens": r"max_(completion_)?tokens|in the completion"}
# Parameters that models reject, by endpoint and model: found out once in a process, not by each judge.
_rejected: dict[tuple[str, str], set[str]] = defaultdict(set)


class CallFailed(Exception):
    """A call that got no usable reply, after the SDK's retries; another call may go better."""


class NoReply(CallFailed):
    """A call that got no reply at all: no connection, or none in time."""


class Refused(Exception):
    """The endpoint will not judge this content; asking again is no use."""


class Unusable(Exception):
    """No call to this judge can succeed: key, endpoint, model or quota."""


@dataclass(frozen=True)
class Reply:
    """What a judge said: its text, the model name that the endpoint returned, tokens in and out."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int


class Judge:
    """A judge model behind an endpoint; `ask` may be called from many threads.

    Attributes:
        model: Name of the model that is asked for.
        endpoint: The base URL as it may be printed.
        temperature: What is sent, None for nothing.
    """

    def __init__(self, config: Settings, retries: int = RETRIES) -> None:
        """Prepares the client; nothing is sent yet.

        Args:
            config: Settings with ``judge_model`` set.
            retries: How often the SDK repeats a call that failed.

        Raises:
            PackError: The endpoint is no URL, or the key no key.
        """
        assert config.judge_model
        self.model = config.judge_model
        self.temperature = config.judge_temperature
        url, user = _endpoint(config)
        # Local servers need no key, but the SDK insists on one.
        key = (config.judge_key or "").strip() or "no-key-was-set"
        if not (key.isascii() and key.isprintable()):
            raise PackError(f"{PREFIX}JUDGE_API_KEY holds characters that no HTTP header can carry")
        self._secrets = _pattern([key, *user[-1:], _basic(user)])
        self._client = _client(url, key, user, config.judge_timeout, retries)
        self.endpoint = without_credentials(str(self._client.base_url)).rstrip("/")
        self._optional: dict[str, Any] = {"max_tokens": MAX_TOKENS}
        if self.temperature is not None:
            self._optional["temperature"] = self.temperature
        self._lock = threading.Lock()

    def ask(self, prompt: str) -> Reply:
        """Asks once (not counting the SDK's retries).

        Raises:
            CallFailed: No usable reply came; `NoReply` where none came at all.
            Refused: The content was filtered.
            Unusable: Key, endpoint, model or quota do not allow any call.
        """
        import openai

        while True:
            rejected = _rejected[self.endpoint, self.model]
            optional = {name: value for name, value in self._optional.items() if name not in rejected}
            try:
                completion = self._client.chat.completions.create(
                    model=self.model, messages=[{"role": "user", "content": prompt}], **optional
                )
                return self._reply(completion)
            except Refused:
                raise
            except openai.APIStatusError as error:
                meaning = self._meaning(error)
                if isinstance(meaning, CallFailed) and self._drop(optional, error):
                    continue
                raise meaning from None
            except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
                # A body that is no JSON is a reply that cannot be read, not a failed call.
                return Reply("", self.model, 0, 0)
            except Exception as error:
                kind = NoReply if isinstance(error, openai.APIConnectionError) else CallFailed
                raise kind(self._clean(f"{type(error).__name__}: {error.__cause__ or error}")) from None

    def _drop(self, sent: dict[str, Any], error: "APIStatusError") -> bool:
        """Forgets a parameter that the model rejects; whether the call is worth repeating without it."""
        if error.status_code not in _BAD_REQUEST:
            return False
        text = error.param or error.message
        blamed = {name for name in sent if re.search(_OPTIONAL[name], text)}
        with self._lock:
            rejected = _rejected[self.endpoint, self.model]
            for name in sorted(blamed - rejected):
                logger.warning(f"Judge {self.model} rejects {name!r}: asked without it from now on")
            rejected |= blamed
        return bool(blamed)

    def _meaning(self, error: "APIStatusError") -> Exception:
        text = self._clean(f"HTTP {error.status_code}: {_said(error)}")
        if error.status_code in (*_BAD_REQUEST, 403) and _FILTER.search(f"{error.code} {text}"):
            return Refused(text)
        if error.status_code in _NEVER or _QUOTA in (error.code, error.type):
            return Unusable(text)
        return CallFailed(text)

    def _reply(self, completion: Any) -> Reply:
        """Reads a completion as servers really send it: any part of it may be absent, or something else."""
        choices = getattr(completion, "choices", None)
        choice = choices[0] if choices and isinstance(choices, list) else None
        message, usage = getattr(choice, "message", None), getattr(completion, "usage", None)
        if getattr(choice, "finish_reason", None) == "content_filter" or getattr(message, "refusal", None):
            raise Refused("the endpoint's content filter")
        model = getattr(completion, "model", None)
        return Reply(
            text=_text(getattr(message, "content", None)),
            model=self._clean(model) if model and isinstance(model, str) else self.model,
            input_tokens=_number(getattr(usage, "prompt_tokens", None)),
            output_tokens=_number(getattr(usage, "completion_tokens", None)),
        )

    def _clean(self, text: str) -> str:
        """A text as it may be printed and recorded: without secrets, in one line, not long."""
        text = self._secrets.sub("[key]", text.encode("utf-8", "replace").decode())
        return " ".join(text.split())[:300]


def _endpoint(config: Settings) -> tuple[str | None, tuple[str, ...]]:
    """The endpoint without ``user:password@``, and what stood there: the SDK's logs would show it in the URL."""
    try:
        url = config.judge_endpoint
        parts = urlsplit(url or "https://")
    except ValueError as error:
        raise PackError(f"{PREFIX}JUDGE_BASE_URL is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or (url and not parts.hostname):
        raise PackError(f"{PREFIX}JUDGE_BASE_URL is not like https://host/v1")
    user, at, place = parts.netloc.rpartition("@")
    return url and urlunsplit(parts._replace(netloc=place)), tuple(map(unquote, user.split(":", 1))) if at else ()


def _client(url: str | None, key: str, user: tuple[str, ...], timeout: float, retries: int) -> "OpenAI":
    """The SDK's client, with two things that it lacks: the timeout holds for a whole call, and no quota is no retry."""
    from openai import DefaultHttpxClient, OpenAI, Timeout

    # The SDK is built on httpx, from version 3 on httpx2.
    httpx = sys.modules[DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]]

    class Timed(httpx.SyncByteStream):  # type: ignore[name-defined,misc]
        """A body that must have arrived in time: each piece of it sets httpx's own timeout back."""

        def __init__(self, response: Any) -> None:
            self.stream, self.request = response.stream, response.request

        def __iter__(self) -> Iterator[bytes]:
            for piece in self.stream:
                if time.monotonic() > self.request.extensions["deadline"]:
                    raise httpx.ReadTimeout(f"no whole reply in {timeout:g} s", request=self.request)
                yield piece

        def close(self) -> None:
            self.stream.close()

    def begin(request: Any) -> None:
        request.extensions["deadline"] = time.monotonic() + timeout

    def arrive(response: Any) -> None:
        response.stream = Timed(response)
        if response.status_code == 429 and _QUOTA in response.read().decode("utf-8", "replace"):  # noqa: PLR2004
            response.headers["x-should-retry"] = "false"

    return OpenAI(
        api_key=key,
        base_url=url,
        timeout=Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        max_retries=retries,
        default_headers={"Authorization": f"Basic {_basic(user)}"} if user else None,
        http_client=DefaultHttpxClient(event_hooks={"request": [begin], "response": [arrive]}),
    )


def _basic(user: tuple[str, ...]) -> str:
    return base64.b64encode(":".join((*user, "")[:2]).encode()).decode() if user else ""


def _pattern(secrets: Iterable[str]) -> re.Pattern[str]:
    """Finds secrets in a text, also as JSON, a repr or a URL shows them."""
    ways = (str, lambda text: repr(text)[1:-1], lambda text: json.dumps(text)[1:-1], lambda text: quote(text, ""))
    forms = {way(secret) for secret in filter(None, secrets) for way in ways}
    return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))


def _said(error: "APIStatusError") -> str:
    """The endpoint's own words, where there are any; the SDK's otherwise."""
    said = error.body.get("message") if isinstance(error.body, dict) else None
    return said if said and isinstance(said, str) else error.message


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else getattr(part, "text", None) for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
