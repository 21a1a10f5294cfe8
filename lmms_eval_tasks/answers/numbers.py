"""The number, or the order of numbers, by which an answer picks among candidate videos.

A number outside the candidates is read: the answer is wrong then, not unread.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from lmms_eval_tasks.answers.phrases import (
    CJK_NUMBERS,
    NOT_AFTER_CHAR,
    NOT_BEFORE_CHAR,
    NUMBERS,
    ORDINALS,
    Group,
    Mark,
    clean,
    groups,
    settle,
)

_NOUN = r"""(?i:videos?|vid|clips?|candidates?|options?|choices?|number|segments?|видео|вариант|opcion|option)
    |视频|影片|片段|选项|動画|ビデオ|비디오|영상"""
_SHORT = r"No\.\s?|No(?=\d)|\#\s?|V(?=\d)"
_DIGITS_END = rf"{NOT_BEFORE_CHAR}(?!%|[.:]\d|,\d{{3}}|\s?[%°])"
# `one` is too often a pronoun: alone it is read only where nothing, or a copula, stands before it.
_WORDS = "|".join(word for word in NUMBERS if NUMBERS[word] != 1)
_RANKS = "|".join(ORDINALS)
_CJK_DIGIT = f"[{''.join(CJK_NUMBERS)}]"
_CJK_NUMBER = rf"(?:\d{{1,3}}|{_CJK_DIGIT})"
_CJK_NOUN = "(?:视频|影片|片段|选项|動画|ビデオ|비디오|영상)"


def read_number(answer: str, candidates: int) -> int | None:
    """Read which video an answer picks.

    Args:
        answer: What the model wrote, without its reasoning.
        candidates: How many videos there are to pick from.

    Returns:
        The video's number, which may lie outside the candidates, or None where the answer picks none, or several.
    """
    values = settle(groups(clean(answer), _MARKS, _read)).values
    return next(iter(values)) if candidates > 0 and len(values) == 1 else None


def read_ranking(answer: str, candidates: int) -> list[int] | None:
    """Read an order of all videos.

    Args:
        answer: What the model wrote, without its reasoning.
        candidates: How many videos there are to order.

    Returns:
        The numbers in the order given, which may lie outside the candidates; None where the answer has no order of this
        length, one with repeats, or several.
    """

    def valid(group: Group) -> bool:
        return len(group.values) == len(set(group.values)) == candidates

    def read(match: re.Match[str]) -> Mark:
        return _read_ranked(match, candidates)

    if candidates < 1:
        return None
    found = groups(_unlisted(clean(answer), candidates), _MARKS, read)
    live = [group for group in found if not (group.dropped or group.reason)]
    stated = [group for group in live if group.label in ("label", "then") and len(group.values) >= min(2, candidates)]
    if stated:
        return stated[-1].values if valid(stated[-1]) else None
    placed = [group for group in live if group.head or group.alone]
    orders = [group.values for group in placed or live if valid(group) and not group.subject and not group.loose]
    return orders[0] if orders and all(order == orders[0] for order in orders) else None


# --------------------------------------------------------------------------------------------------------------- marks


_NTH = r"\d{1,3}(?:st|nd|rd|th)"
_BEHIND_NOUN = r"(?:\s(?:clip|number|no\.?))?[\s\#(\[<-]{0,3}"
# Not the end of `0:15`, `1.5`, `-1`, `1,000`.
_DIGITS_START = r"(?<!\d[.:])(?<![^\d\s]-)(?<!\s-)(?<!^-)(?!(?<=\d,)\d{3}(?!\d))"
_MARKS = re.compile(
    rf"""{NOT_AFTER_CHAR}(?:(?:{_NOUN}){_BEHIND_NOUN}|{_SHORT})
        (?:(?P<named>\d{{1,9}})(?:st|nd|rd|th)?{_DIGITS_END}
          |(?P<spoken>(?i:{_WORDS}|one|eins|uno)|{_CJK_DIGIT}){NOT_BEFORE_CHAR})
    | {NOT_AFTER_CHAR}(?P<nth>{_NTH}|(?i:{_RANKS}))\s(?:candidate\s|video\s|given\s|listed\s)?
        (?i:videos?|clip|candidate|option|choice|one|segment){NOT_BEFORE_CHAR}(?!\s?\#?\d)
    | 第\s?(?P<cjk_named>{_CJK_NUMBER})\s?(?:个|個|段|部|条|号|番目?の?)?\s?{_CJK_NOUN}
    | (?P<cjk_labelled>{_CJK_NUMBER})(?:号|番|번)(?:째\s?)?(?:の?{_CJK_NOUN})?
    | 第\s?(?P<cjk_nth>{_CJK_NUMBER})(?:个|個|段|部|号)(?![人步帧秒分镜场次])
    | {NOT_AFTER_CHAR}(?P<rank>{_NTH}|(?i:{_RANKS})){NOT_BEFORE_CHAR}(?!\s(?:{_NOUN}))
    | {NOT_AFTER_CHAR}{_DIGITS_START}(?P<digits>\d{{1,9}}){_DIGITS_END}
    | {NOT_AFTER_CHAR}(?P<word>(?i:{_WORDS}|(?:^|(?<=\bis\ )|(?<=:\ )|(?<=,\ ))one|one(?=,))){NOT_BEFORE_CHAR}
    | (?P<cjk>{_CJK_DIGIT})(?!{_CJK_DIGIT})""",
    re.VERBOSE,
)


def _value(text: str) -> int:
    text = text.lower()
    for words in (NUMBERS, ORDINALS, CJK_NUMBERS):
        if text in words:
            return words[text]
    return int(re.sub(r"\D", "", text))


_LISTED_NEXT = re.compile(rf"\s?[,>→、-]+\s?(?:and\s)?(?:{_NTH}|{_RANKS}|{_WORDS}|one|{_CJK_DIGIT})", re.IGNORECASE)
_LISTED_BEFORE = re.compile(r"[,>→、-]\s?(?:and\s)?\Z")
_FORCE = {"digits": "article", "rank": "weak", "word": "weak", "cjk": "weak"}


def _read(match: re.Match[str]) -> Mark:
    kind = match.lastgroup or ""
    return Mark((_value(match[kind]),), _FORCE.get(kind, "sure"))


def _read_ranked(match: re.Match[str], candidates: int) -> Mark:
    """Also `312` for three videos; and `3rd, 1st, 2nd`, but not the first of `comes first`."""
    kind = match.lastgroup or ""
    text = match[kind]
    if kind == "digits" and len(text) == candidates > 1:
        return Mark(tuple(map(int, text)), "weak")
    listed = _LISTED_NEXT.match(match.string, match.end()) or _LISTED_BEFORE.search(
        match.string, max(0, match.start() - 8), match.start()
    )
    force = _FORCE.get(kind, "sure")
    return Mark((_value(text),), "article" if force == "weak" and listed else force)


# ------------------------------------------------------------------------------------------------------ lists of places

_PLACE_WORDS = [*ORDINALS, *(f"{number}{end}" for number in range(1, 31) for end in ("st", "nd", "rd", "th"))]
_PLACE = rf"(?:\d{{1,2}}|{'|'.join(_PLACE_WORDS)})"
_LISTED = rf"(?:videos?|clip|candidate|option|视频|片段)?\s?\#?\d{{1,2}}{_DIGITS_END}"
_ITEM = re.compile(
    rf"""^[ \t\-•>\#]{{0,8}}(?:(?:rank|place|position|step|no)\s?[.\#]?\s?)?(?P<place>{_PLACE})(?:\splace)?
    [ \t]?[.:)\-–—][ \t]{{0,4}}(?P<video>{_LISTED})(?P<rest>[^\n]*)(?:\n\s*|\Z)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_INLINE = re.compile(
    rf"""(?<!\w)(?P<place>{"|".join(_PLACE_WORDS)})(?:\splace)?\s?[:=]\s?(?P<video>{_LISTED})
    (?P<rest>)[,;.]?\s?(?:and\s)?""",
    re.IGNORECASE | re.VERBOSE,
)
# What may follow a video in a list that orders; `Video 1 shows rain` only describes.
_REMARK = re.compile(r"\s*(?:[(,:–—-].*|\.?)\s*")


def _unlisted(text: str, candidates: int) -> str:
    """Write a list of places, one after the other with its video, as the order that it means."""
    for pattern in (_ITEM, _INLINE):
        items = [*pattern.finditer(text)]
        for first in range(len(items) - candidates, -1, -1):
            run = items[first : first + candidates]
            touching = all(a.end() == b.start() for a, b in pairwise(run))
            if touching and _orders(run):
                order = ", ".join(item["video"] for item in run)
                return f"{text[: run[0].start()]}\n{order}\n{text[run[-1].end() :]}"
    return text


def _orders(run: Sequence[re.Match[str]]) -> bool:
    """Whether a list gives the places in their order to videos; described in the order of the prompt, it may not."""
    if [_value(item["place"]) for item in run] != [*range(1, len(run) + 1)]:
        return False
    plain = not any(item["rest"].strip(" .") for item in run)
    given = [_value(item["video"]) for item in run] == [*range(1, len(run) + 1)]
    return plain or (not given and all(_REMARK.fullmatch(item["rest"]) for item in run))
