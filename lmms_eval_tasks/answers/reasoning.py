"""Reasoning blocks, taken out of what a model wrote.

One scan over the tags, with a stack of the open ones: linear in the text, whatever its nesting.
"""

import re
from typing import NamedTuple

_NAMES = "think|thinking|thought|analysis|reasoning|reflection"

# Every spelling captures `close` (a slash, where it closes) and a name; the name tells which tags pair up.
_TAG = rf"""
    <\s?(?P<close>/?)\s?(?P<name>{_NAMES})(?:\s[^<>]*)?(?<!/)>
  | ◁(?P<close_kimi>/?)(?P<kimi>think)▷
  | \[(?P<close_square>/?)(?P<square>think)\]
"""
# Harmony (gpt-oss): a header names the channel; `final` is the answer, every other channel and a cut header are not.
_HARMONY = r"""
    (?P<header><\|start\|>[^<]*(?:<\|channel\|>)? | <\|channel\|>)\s*(?P<channel>\w*)[^<]*
    (?:<\|constrain\|>[^<]*)?(?:<\|message\|>)?
  | (?P<stop><\|(?:end|return|call)\|>)
"""
# A tag that stands in its own quotes is spoken of, not used; in `"Foo"</think>"Foo"` the quotes are the words'.
_MARK = re.compile(
    rf"(?P<mention>(?<!\w)(?P<quote>[\"'`])(?:{re.sub('[?]P<[a-z_]+>', '', _TAG)})(?P=quote)(?!\w))"
    rf"| {_TAG} | {_HARMONY}",
    re.IGNORECASE | re.VERBOSE,
)
_ANSWER = re.compile(r"<answer(?:\s[^<>]*)?>(.*)</answer\s?>", re.IGNORECASE | re.DOTALL)
_ANSWER_TAG = re.compile(r"</?answer\b", re.IGNORECASE)


class Stripped(NamedTuple):
    """A text without its reasoning.

    Attributes:
        text: What is left, without surrounding white space.
        truncated: Whether the text ended inside a reasoning block, so that the answer may be missing.
    """

    text: str
    truncated: bool


class _Scan:
    """What the scan has kept so far, and which blocks are open at `position`."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.position = 0
        self.final = False

    def begin(self, name: str, text: str, start: int) -> None:
        if not self.open:
            self.kept.append(text[self.position : start])
        self.open.append(name)
        self.count[name] = self.count.get(name, 0) + 1

    def end(self, name: str, end: int) -> None:
        if not self.count.get(name):
            self.restart(end)
            return
        while True:  # an inner block of another name, never closed, ends with the outer one
            last = self.open.pop()
            self.count[last] -= 1
            if last == name:
                break
        self.position = end

    def restart(self, end: int) -> None:
        """Drop all that came before: the template, not the model, wrote the opening tag."""
        self.kept, self.open, self.count, self.position = [], [], {}, end


def strip_reasoning(text: str) -> Stripped:
    """Remove the reasoning blocks from a model's or a judge's output.

    A closing tag without an opening one (the chat template wrote it) leaves what follows it. An opening tag that is
    never closed leaves what stands before it, and the text counts as truncated. If exactly one `<answer>` block is
    left and nothing else, it is unwrapped. A tag in its own quotes or backticks is text.

    Args:
        text: What the model wrote.

    Returns:
        The text that is left, and whether it was cut off inside its reasoning.
    """
    scan = _Scan()
    for mark in _MARK.finditer(text):
        if mark["mention"]:
            continue
        name = (mark["name"] or mark["kimi"] or mark["square"] or "").lower()
        if name and (mark["close"] or mark["close_kimi"] or mark["close_square"]):
            scan.end(name, mark.end())
        elif name:
            scan.begin(name, text, mark.start())
        elif mark["header"] and mark["channel"].lower() == "final":
            scan.restart(mark.end())
            scan.final = True
        elif mark["header"]:
            scan.begin("|channel|", text, mark.start())
        elif scan.count.get("|channel|"):
            scan.end("|channel|", mark.end())
        elif scan.final:  # the answer's own end mark
            scan.begin("", text, mark.start())
            scan.end("", mark.end())
    if not scan.open:
        scan.kept.append(text[scan.position :])
    left = "\n".join(filter(None, map(str.strip, scan.kept)))
    return Stripped(_unwrap(left), bool(scan.open))


def _unwrap(text: str) -> str:
    answer = _ANSWER.fullmatch(text)
    if answer and not _ANSWER_TAG.search(answer[1]):
        return answer[1].strip()
    return text
