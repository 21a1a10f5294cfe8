"""A judge's reply with scores, read or refused.

The reply gives its reasons, which are full of numbers, and ends with a JSON object. In doubt nothing is read: asking
again is cheap, a wrong score is not.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks.answers.reasoning import strip_reasoning

LOWEST, HIGHEST = 1, 5

# A reply that goes on for longer, without its reasoning, is a judge in a loop.
_LONGEST = 20_000
_NUMBER = re.compile(rf"(\d+(?:\.\d+)?)(?:\s?/\s?{HIGHEST})?")
_TRAILING_COMMA = re.compile(r",(?=\s*\})")
# Behind the object: another number or object, or a word that takes the scores back.
_DOUBT = re.compile(
    r"[\d{]|\b(?:one|two|three|four|five|actually|wait|correct(?:ion|ed)|rather|instead|should|sorry|mistake|but|however"
    r"|not|unsure|higher|lower)\b",
    re.IGNORECASE,
)


def read_scores(reply: str, scales: Mapping[str, type[int] | type[float]]) -> dict[str, float] | None:
    """Reads a judge's scores from `LOWEST` to `HIGHEST`.

    Args:
        reply: What the judge wrote; any string.
        scales: The names of the scores, with ``int`` for one that must be whole.

    Returns:
        ``{name: score}`` in the order of ``scales``, or None where the reply must not be read as anything.
    """
    text, truncated = strip_reasoning(reply)
    if truncated or len(text) > _LONGEST:
        return None
    pairs, rest = _pairs(_TRAILING_COMMA.sub("", text))
    if _DOUBT.search(rest):
        return None
    scores: dict[str, float] = {}
    for name, scale in scales.items():
        values = {_number(value) for key, value in pairs if _plain(key) == name}
        score = values.pop() if len(values) == 1 else None
        if score is None or (scale is int and score % 1):
            return None
        scores[name] = score
    return scores


def _pairs(text: str) -> tuple[list[tuple[str, Any]], str]:
    """The fields of all JSON objects in a text, nested ones too, and the text behind the last object."""
    pairs: list[tuple[str, Any]] = []
    end = 0
    start = text.find("{")
    while start >= 0:
        found: list[tuple[str, Any]] = []
        try:
            _, end = json.JSONDecoder(strict=False, object_pairs_hook=found.extend).raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
        else:
            pairs += found
            start = text.find("{", end)
    return pairs, text[end:]


def _plain(name: str) -> str:
    """A field's name without case, punctuation and the word ``score``."""
    return re.sub(r"[\W_]|score", "", name.lower())


def _number(value: object) -> float | None:
    """A score, also from ``"4"`` and ``"4/5"``, None where it is none."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        value = float(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not LOWEST <= value <= HIGHEST:
        return None
    return float(value)
