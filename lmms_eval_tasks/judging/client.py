"""One call to a judge model through an OpenAI-compatible endpoint."""

import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.log import logger
from lmms_eval_tasks.settings import Settings, without_credentials

if TYPE_CHECKING:
    from openai import APIStatusError

# The one layer of retries: the SDK's own, with exponential waiting and Retry-After.
RETRIES = 5
MAX_TOKENS = 8192
_BAD_REQUEST = (400, 422)
_NEVER = (401, 403, 404)
OPTIONAL_PARAMETERS = ("temperature", "max_tokens")


class CallFailed(Exception):
    """A call that got no usable reply, after the SDK's retries; another call may go better."""


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
        """
        from openai import OpenAI

        assert config.judge_model
        self.model = config.judge_model
        self.temperature = config.judge_temperature
        # Local servers need no key, but the SDK insists on one.
        self._key = config.judge_key or "no-key-was-set"
        self._client = OpenAI(
            api_key=self._key, base_url=config.judge_endpoint, timeout=config.judge_timeout, max_retries=retries
        )
        self.endpoint = without_credentials(str(self._client.base_url)).rstrip("/")
        self._optional: dict[str, Any] = {"max_tokens": MAX_TOKENS}
        if self.temperature is not None:
            self._optional["temperature"] = self.temperature
        self._lock = threading.Lock()

    def ask(self, prompt: str) -> Reply:
        """Asks once (not counting the SDK's retries).

        Raises:
            CallFailed: No usable reply came.
            Refused: The content was filtered.
            Unusable: Key, endpoint, model or quota do not allow any call.
        """
        import openai

        while True:
            optional = dict(self._optional)
            try:
                completion = self._client.chat.completions.create(
                    model=self.model, messages=[{"role": "user", "content": prompt}], **optional
                )
                return _reply(completion, self.model)
            except openai.APIStatusError as error:
                if not self._drop(optional, error):
                    raise self._meaning(error) from None
            except openai.OpenAIError as error:
                raise CallFailed(self._clean(f"{type(error).__name__}: {error.__cause__ or error}")) from None
            except ValueError:
                # A body that is no JSON is a reply that cannot be read, not a failed call.
                return Reply("", self.model, 0, 0)

    def _drop(self, sent: dict[str, Any], error: "APIStatusError") -> bool:
        """Forgets a parameter that the model rejects; whether the call is worth repeating without it."""
        if error.status_code not in _BAD_REQUEST:
            return False
        blamed = [name for name in OPTIONAL_PARAMETERS if name in sent and name in str(error)]
        with self._lock:
            for name in blamed:
                if self._optional.pop(name, None) is not None:
                    logger.warning(f"Judge {self.model} rejects {name!r}: asked without it from now on")
        return bool(blamed)

    def _meaning(self, error: "APIStatusError") -> Exception:
        text = self._clean(f"HTTP {error.status_code}: {error.message}")
        code = str(error.code or "")
        if _is_unusable(error):
            return Unusable(text)
        if error.status_code in _BAD_REQUEST and re.search("content.?(filter|management)", code + text):
            return Refused(text)
        return CallFailed(text)

    def _clean(self, text: str) -> str:
        return " ".join(text.replace(self._key, "[key]").split())[:300]


def _is_unusable(error: "APIStatusError") -> bool:
    return error.status_code in _NEVER or error.code == "insufficient_quota"


def _reply(completion: Any, asked: str) -> Reply:
    """Reads a completion as servers really send it: any part of it may be absent."""
    choices = getattr(completion, "choices", None)
    choice = choices[0] if choices else None
    message, usage = getattr(choice, "message", None), getattr(completion, "usage", None)
    if getattr(choice, "finish_reason", None) == "content_filter" or getattr(message, "refusal", None):
        raise Refused("the endpoint's content filter")
    return Reply(
        text=getattr(message, "content", None) or "",
        model=str(getattr(completion, "model", None) or asked),
        input_tokens=getattr(usage, "prompt_tokens", None) or 0,
        output_tokens=getattr(usage, "completion_tokens", None) or 0,
    )
