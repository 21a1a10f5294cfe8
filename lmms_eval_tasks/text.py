"""Filling prompt texts, and naming texts and values by their hash."""

import hashlib
import json
import re
from typing import Any


def fill(template: str, **fields: object) -> str:
    """Fills ``{name}`` fields in one pass: braces in a value are text, never a field.

    Args:
        template: A text with fields; every field must be given.
        **fields: Their values.

    Raises:
        KeyError: The template has a field that is not given.
    """
    return re.sub(r"\{(\w+)\}", lambda match: str(fields[match[1]]), template)


def text_hash(text: str) -> str:
    """Twelve hex digits that identify a text, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def digest(value: Any) -> str:
    """Sixteen hex digits that identify a JSON-able value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
