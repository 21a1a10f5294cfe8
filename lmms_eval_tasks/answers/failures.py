"""Telling a missing answer from a bad one: a failed request is never the model's failure."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

NO_CONTENT = "[LMMS_EVAL_TASKS_NO_CONTENT]"
FAILED = "[LMMS_EVAL_TASKS_FAILED]"

# What lmms-eval 0.7.3's backends return in place of an answer when a request failed.
_SENTINELS = (NO_CONTENT, FAILED, "[LMMS_EVAL_REQUEST_FAILED", "[LMMS_EVAL_BUDGET_EXCEEDED]", "[ERROR] ")


# What llava_vid and oryx answer about a file that they cannot decode.
_NOT_LOADED = re.compile(r"Video \S.* can not load, check the source")


def is_failure(answer: str) -> bool:
    """Whether a text stands for a failed request instead of a model's answer."""
    text = answer.strip()
    return text.startswith(_SENTINELS) or _NOT_LOADED.fullmatch(text) is not None


class EveryAnswer:
    """The filter of our tasks: keeps all repeats (lmms-eval's default keeps the first) and marks absent content.

    lmms-eval hands ``None`` on as an empty string, which would be a (bad) answer; here it becomes `NO_CONTENT`.
    """

    def apply(self, responses: Iterable[Sequence[Any]], docs: object) -> list[list[str]]:
        """Maps each request's responses to texts that `is_failure` can judge.

        Args:
            responses: Per request, one response per repeat.
            docs: Unused; part of lmms-eval's filter interface.

        Returns:
            Per request, the texts. A request that was never run has one `NO_CONTENT`.
        """
        return [[_text(response) for response in of] or [NO_CONTENT] for of in responses]


def _text(response: Any) -> str:
    """A response as text that every file and request can hold: without lone surrogates."""
    return NO_CONTENT if response is None else str(response).encode("utf-8", "replace").decode()
