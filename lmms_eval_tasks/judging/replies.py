"""A judge's reply to a checklist of yes/no questions, read or refused.

Whatever shape the reply has (JSON and what resembles it, numbered lines, a table, a bare list), it is turned into
*claims*: this question, that verdict. The claims are then settled: each question answered exactly once in meaning, by a
verdict that can be read, and none beside them. In doubt nothing is read: asking again is cheap, a wrong verdict is not.
"""

import re
import unicodedata
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from lmms_eval_tasks.answers.reasoning import strip_reasoning

# ---------------------------------------------------------------------------------------------------- words, as data

_YES = "yes true 是 是的 对 对的 ja oui sí si sì sim はい 예 네 да так نعم हाँ हां có".split()
_NO = "no false 否 不是 不 不是的 不对 nein non não nao nee nej いいえ 아니오 아니요 нет ні لا नहीं không".split()
_SPOKEN = dict.fromkeys(_YES, "yes") | dict.fromkeys(_NO, "no")
# Too short or too vague to be looked for in a text: read only where they are a whole value of a structure.
_SIGNS = dict.fromkeys(["y", "1", "✅", "✔", "✓"], "yes") | dict.fromkeys(["n", "0", "❌", "✗", "✘", "✖"], "no")

_ANSWER_LABELS = (
    "answers? ans a verdict judge?ment decision response antwort réponse respuesta risposta"
    " 答案 回答 判断 答え 답변 답 ответ"
)
_QUESTION_LABELS = "questions? q item check point criterion frage pregunta domanda 问题 質問 第 질문 вопрос"
_VERDICT_FIELDS = set("answer ans a verdict judgement judgment decision value label result 答案 回答 判断 结果".split())
_NUMBER_FIELDS = set("question questionid questionnumber questionindex id index number no q item key name".split())
# What stands under these is an explanation, never a verdict.
_COMMENTARY = set(
    "reason reasons reasoning explanation explanations rationale rationales thought thoughts thinking evidence"
    " justification justifications comment comments note notes analysis question questions example format".split()
)

# Words that take a verdict back, or half of it: in its own paragraph, and anywhere after it.
_HEDGES = (
    r"maybe|perhaps|possibly|probably|partial(?:ly)?|partly|somewhat|unclear|unsure|uncertain"
    r"|but|however|although|though"
    r"|not (?:sure|certain|clear|exactly|really|quite|entirely)|depends|n/a|not applicable"
    r"|(?:can ?not|can't|could not|couldn't|unable to) (?:be )?"
    r"(?:determined?|tell|judged?|assess|verify|answer|say|evaluate)"
    r"|vielleicht|peut-être|tal vez|quizás|возможно|たぶん|아마"
)
_HEDGES_ANYWHERE = r"\?|可能|也许|或许|不确定|不清楚|但是|部分"
_CORRECTIONS = (
    r"actually|wait|correction|rather|scratch that|on second thought|i mean|sorry|apolog(?:y|ies|ize)|i was wrong"
    r"|should be"
)
_CORRECTIONS_ANYWHERE = "其实|更正|等等"
# A "no" that belongs to a sentence.
_HARMLESS = re.compile(r"\bthere(?:'s| is| are| was| were) no (?=\w)|\bno (?:doubt|question)\b", re.IGNORECASE)

# ------------------------------------------------------------------------------------------------------------ patterns


def _any(words: list[str]) -> str:
    """Match any of the words, composed or decomposed, the longest first."""
    forms = {unicodedata.normalize(form, word) for word in words for form in ("NFC", "NFD")}
    return "|".join(sorted(forms, key=len, reverse=True))


_WORD = rf"(?:{_any(list(_SPOKEN))})(?![^\W_]|/)"
_OPEN = r"[\s_~\"'“”«»「(\[<>•\-]{0,12}"
_CLOSE = r"[_~\"'”»」)\]>]{0,12}"
_STOP = r"[.!,;。、…]{0,4}"
_DASH = r"\-\u2013\u2014"
_A = "(?:" + _ANSWER_LABELS.replace(" ", "|") + ")"
_Q = "(?:" + _QUESTION_LABELS.replace(" ", "|") + ")"
_SAYS = rf"(?:(?:the|my|final)\s)*{_A}\s?(?:is\s?)?[:=\-]{{1,2}}"

_VERDICT = re.compile(
    rf"""{_OPEN}(?:{_SAYS}{_OPEN})?(?P<word>{_WORD}){_CLOSE}
    (?: {_STOP}\s*$ | \s*[,;:!|。、…(] | \s*\.(?!\s?\d) | \s*\n | \s+[{_DASH}]+\s | \s*(?:--|\u2014)
      | \s+(?:because|since|as|it|the)\b )""",
    re.IGNORECASE | re.VERBOSE,
)
_BARE = re.compile(rf"{_OPEN}({_WORD}){_CLOSE}{_STOP}{_CLOSE}\s*", re.IGNORECASE)
_SAID = re.compile(rf"(?<!\w)(?:{_WORD})", re.IGNORECASE)
_DOUBT = re.compile(rf"(?<!\w)(?:{_HEDGES})(?!\w)|{_HEDGES_ANYWHERE}|^\W*(?:or|and)\b", re.IGNORECASE)
_CORRECTION = re.compile(rf"(?<!\w)(?:{_CORRECTIONS})(?!\w)|{_CORRECTIONS_ANYWHERE}", re.IGNORECASE)
_TITLE = re.compile(r"(?:answer|verdict|result|evaluation|judge?ment)s?\W*|答案|回答", re.IGNORECASE)
_NEGATION = re.compile(r"n't\b|\b(?:not|never|wrong|incorrect|expected|reference|example|format)\b", re.IGNORECASE)
_SEPARATOR = re.compile(r"\s*[,;、]\s*(?:and\s+)?|\s+")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")

# `A1`, `a01`, `Answer 1`, `Q1_answer`, `第1题`; with the question behind it, as a field's name may have.
_KEY = re.compile(
    rf"[\W_]*(?P<labels>(?:(?:{_A}|{_Q}|to|for)[\W_]*){{0,4}})0{{0,4}}(?P<number>\d{{1,9}})[\W_]*(?P<after>(?:{_A}|题|问|项)?)[\W_]*"
    rf"(?:\W[^\n]*\?)?",
    re.IGNORECASE,
)
_IS_ANSWER = re.compile(rf"(?:^|[\W_]){_A}(?:[\W_]|$)", re.IGNORECASE)
# The same in running text, where a bare number needs the start of a line, or a verdict right behind it.
_MARK = re.compile(
    rf"""(?P<start>^[ \t>\#+•·\-(\[_"'“]*)?
    (?<![\w.])(?P<labels>(?:(?:{_A}|{_Q}|to|for)[ \t_\#.:\-(\[]{{0,4}}){{0,4}})0{{0,4}}
    (?P<number>\d{{1,9}})(?:题|问|项)?
    (?: [ \t_"'”]{{0,4}}(?:[-=]?>|[:.)\]=|→、])+(?!\d)(?P<says>(?={_OPEN}{_WORD}))?
      | [\s,_{_DASH}]{{1,8}}(?={_OPEN}(?:{_SAYS}\s*)?{_WORD}) )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_LAST_WORD = re.compile(r"([^\W\d_]+)\s*$")
_ROW = re.compile(r"^[ \t]*\|(.*)$", re.MULTILINE)

# Invisible characters go; full-width ASCII becomes ASCII; every line end becomes "\n".
_CLEAN: dict[int, str | None] = {
    **dict.fromkeys([*range(9), *range(0x0E, 0x1C), 0x7F, 0xAD, 0x61C, 0x180E, 0xFEFF, 0xFE0E, 0xFE0F], None),
    **dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)], None),
    **{0xFF01 + offset: chr(0x21 + offset) for offset in range(94)},
    **dict.fromkeys([0xA0, 0x3000, 0x202F], " "),
    **dict.fromkeys([0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x1F, 0x85, 0x2028, 0x2029], "\n"),
    **dict.fromkeys([0x2018, 0x2019], "'"),
}
# A reply that goes on for longer, without its reasoning, is a judge in a loop.
_LONGEST = 200_000
_MARKUP: dict[int, None] = dict.fromkeys(map(ord, "*`"))

# ---------------------------------------------------------------------------------------------------------- the reader


class _Claim(NamedTuple):
    """Question `number` is answered by `verdict`, None if that cannot be read; `asked`: its label is a question's."""

    number: int
    verdict: str | None
    asked: bool = False


_UNREADABLE = _Claim(0, None)


def read_checklist(reply: str, questions: int) -> list[str] | None:
    """Read a judge's reply to a checklist.

    Args:
        reply: What the judge wrote; any string.
        questions: How many yes/no questions it was asked.

    Returns:
        "yes" or "no" for each question in order, or None where the reply must not be read as anything.
    """
    text, truncated = strip_reasoning(reply.translate(_CLEAN))
    split = None if truncated or len(text) > _LONGEST else _split(text)
    if split is None:
        return None
    structures, prose = split
    claims = [claim for node in structures for claim in _claims(node)]
    if claims:
        beside = [_numbered(piece) or ([_UNREADABLE] if _loose(piece) else []) for piece in prose]
        claims += [claim for piece in beside for claim in piece if claim.verdict or claim == _UNREADABLE]
        if _CORRECTION.search(prose[-1]):
            return None
    else:
        claims = _numbered(text) or _listed(text, questions)
    return _settle(claims, questions)


def _settle(claims: list[_Claim], questions: int) -> list[str] | None:
    """Agree on one verdict per question, or on nothing."""
    answered = {claim.number for claim in claims if not claim.asked}
    found: dict[int, str] = {}
    for number, verdict, asked in claims:
        if asked and verdict is None and number in answered:
            continue  # beside `A1: No`, `Q1: Does it say so?` is the question's own text
        if verdict is None or not 1 <= number <= questions or found.setdefault(number, verdict) != verdict:
            return None
    return [found[number] for number in sorted(found)] if found and len(found) == questions else None


def _verdict(text: str) -> str | None:
    """Read one answer: a verdict at its head, and nothing behind it that takes it back."""
    text = text.translate(_CLEAN).translate(_MARKUP).strip()
    head = _VERDICT.match(text)
    if not head:
        return None
    verdict = _spoken(head["word"])
    rest = text[head.end("word") :]
    if _DOUBT.search(_PARAGRAPH.split(rest, maxsplit=1)[0]) or _CORRECTION.search(rest):
        return None
    said = {_spoken(word) for word in _SAID.findall(_HARMLESS.sub("", rest))}
    return verdict if said <= {verdict} else None


def _bare(text: str) -> str | None:
    """Read a verdict that stands alone."""
    found = _BARE.fullmatch(text)
    return _spoken(found[1]) if found else None


def _spoken(word: str) -> str | None:
    return _SPOKEN.get(unicodedata.normalize("NFC", word.casefold()))


# ----------------------------------------------------------------------------------------------------------- structures


class _Fields(NamedTuple):
    """An object, as its pairs: a name may come twice."""

    pairs: "list[tuple[str, _Node]]"


_Node: TypeAlias = "str | list[_Node] | _Fields"


class _Malformed(Exception):
    def __init__(self, position: int) -> None:
        self.position = position


_DEEPEST = 12
_OPENING = re.compile(r"[{\[]")
# A scalar keeps its spelling, so that 1 is a verdict and 1.0 is not.
_TOKEN = re.compile(
    r"""(?: \s+ | //[^\n]* | \#[^\n]* | /\*[^*]*\*/ )*
    (?: (?P<punctuation>[{}\[\]:,])
      | "(?P<double>[^"\\]*(?:\\.[^"\\]*)*)" | “(?P<curly>[^“”]*)”
      | '(?P<single>[^'\\]*(?:(?:\\.|(?<=\w)'(?=\w))[^'\\]*)*)'
      | (?P<word>[^\s,:{}\[\]"“'/\#][^,:{}\[\]"“\n/\#]*) )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


class _Parser:
    """Reads JSON, Python literals and what judges write that resembles them, from `position` on."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position

    def token(self) -> tuple[str, str]:
        """The next token's kind and text."""
        match = _TOKEN.match(self.text, self.position)
        if not match:
            raise _Malformed(self.position)
        self.position = match.end()
        kind = match.lastgroup or ""
        if kind == "punctuation":
            return match[kind], ""
        return "scalar", _ESCAPE.sub(_unescaped, match[kind]) if kind in ("double", "single") else match[kind].strip()

    def value(self, token: tuple[str, str], depth: int = 0) -> _Node:
        kind, text = token
        if kind == "scalar":
            return text
        if kind not in ("{", "[") or depth > _DEEPEST:
            raise _Malformed(self.position)
        closing = {"{": "}", "[": "]"}[kind]
        pairs: list[tuple[str, _Node]] = []
        while (token := self.token())[0] != closing:
            name = ""
            if kind == "{":
                name = self.name(token)
                token = self.token()
            pairs.append((name, self.value(token, depth + 1)))
            if (token := self.token())[0] == closing:
                break
            if token[0] != ",":
                raise _Malformed(self.position)
        return _Fields(pairs) if kind == "{" else [node for _, node in pairs]

    def name(self, token: tuple[str, str]) -> str:
        """A field's name, its colon read."""
        if token[0] != "scalar" or self.token()[0] != ":":
            raise _Malformed(self.position)
        return token[1]


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return {"n": "\n", "t": "\t", "r": "\n"}.get(match[2], match[2])


def _split(text: str) -> tuple[list[_Node], list[str]] | None:
    """Find the structures in a text and the prose before, between and behind them.

    Returns:
        Both, or None if a structure is broken or cut off: its fields must not be read as lines.
    """
    structures: list[_Node] = []
    prose: list[str] = []
    start = position = 0
    end = len(text.rstrip())
    while opening := _OPENING.search(text, position):
        parser = _Parser(text, opening.start())
        try:
            node = parser.value(parser.token())
        except _Malformed as error:
            if error.position >= end or text.find("{", opening.start(), error.position) >= 0:
                return None
            position = max(error.position, opening.end())
            continue
        position = parser.position
        # `[1]`, `[Yes]`: brackets in prose, read with it.
        lone = isinstance(node, list) and len(node) == 1 and isinstance(node[0], str)
        if not lone and _claims(node):
            structures.append(node)
            prose.append(text[start : opening.start()])
            start = position
    prose.append(text[start:])
    return None if any("}" in piece for piece in prose) and (structures or "{" not in text) else (structures, prose)


def _claims(node: _Node) -> list[_Claim]:
    """All that a structure claims, wherever it is nested."""
    if isinstance(node, str):
        return []
    if isinstance(node, list):
        return _array_claims(node)
    claims: list[_Claim] = []
    for name, value in node.pairs:
        key = _KEY.fullmatch(name.strip()[:400])
        if key:
            asked = not _IS_ANSWER.search(key["labels"] + key["after"])
            claims.append(_Claim(int(key["number"]), _value(value), asked))
        elif _plain(name) not in _COMMENTARY:
            claims += _claims(value)
    return claims or _record_claims(node, 1)


def _array_claims(nodes: list[_Node]) -> list[_Claim]:
    """Claims of an array: answers by position, or objects that carry their number; none if it holds no verdict."""
    if all(isinstance(node, str) for node in nodes):
        verdicts = [_value(node) for node in nodes]
        return [_Claim(place, verdict) for place, verdict in enumerate(verdicts, 1)] if any(verdicts) else []
    claims: list[_Claim] = []
    numbered = set()
    for place, node in enumerate(nodes, 1):
        record = _record_claims(node, place) if isinstance(node, _Fields) else []
        numbered.add(bool(record) and _number(node) is not None)
        claims += record or _claims(node)
    if claims and (len(numbered) > 1 or any(isinstance(node, str) for node in nodes)):
        claims.append(_UNREADABLE)  # numbers and places mixed
    return claims


def _record_claims(node: _Fields, place: int) -> list[_Claim]:
    """The claim of one question's own object, `{"question": 1, "answer": "Yes"}`."""
    if not any(_plain(name) in _VERDICT_FIELDS and isinstance(value, str) for name, value in node.pairs):
        return []
    number = _number(node)
    return [_Claim(place if number is None else number, _value(node))]


def _number(node: _Node) -> int | None:
    """The number that a question's own object carries."""
    pairs = node.pairs if isinstance(node, _Fields) else []
    for name, value in pairs:
        key = _KEY.fullmatch(value[:400]) if _plain(name) in _NUMBER_FIELDS and isinstance(value, str) else None
        if key:
            return int(key["number"])
    return None


def _value(node: _Node) -> str | None:
    """Read one question's answer from a structure."""
    if isinstance(node, str):
        return _verdict(node) or _SIGNS.get(node.translate(_CLEAN).translate(_MARKUP).strip().casefold())
    if isinstance(node, list):
        return _value(node[0]) if len(node) == 1 else None
    verdicts = {_value(value) for name, value in node.pairs if _plain(name) in _VERDICT_FIELDS}
    return verdicts.pop() if len(verdicts) == 1 else None


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


# --------------------------------------------------------------------------------------------------------------- prose


def _numbered(text: str) -> list[_Claim]:
    """Claims of numbered lines and phrases and of table rows; a verdict before them all is one too many."""
    text = text.translate(_MARKUP)
    claims = _table_claims(text)
    text = _ROW.sub("", text)
    marks = [mark for mark in _MARK.finditer(text) if _counts(mark)]
    for mark, following in zip_longest(marks, marks[1:]):
        end = following.start() if following else len(text)
        asked = not _IS_ANSWER.search(mark["labels"])
        claims.append(_Claim(int(mark["number"]), _after_question(text[mark.end() : end]), asked))
    if claims and _loose(text[: marks[0].start()] if marks else text):
        claims.append(_UNREADABLE)
    return claims


def _counts(mark: re.Match[str]) -> bool:
    """Whether a number in a text is a question's: labelled, at a line's start, or between verdicts (`1. Yes 2. No`)."""
    if mark["labels"] or mark["start"] is not None:
        return True
    word = _LAST_WORD.search(mark.string[max(0, mark.start() - 30) : mark.start()])  # `Frame 2: no` is no question
    return mark["says"] is not None and (word is None or _spoken(word[1]) is not None)


def _loose(text: str) -> bool:
    """Whether a line is a verdict that belongs to no question."""
    return any(_verdict(line) for line in text.split("\n"))


def _after_question(text: str) -> str | None:
    """Read an answer that may stand behind its question."""
    question, mark, answer = text.rpartition("?")
    if not mark or _DOUBT.match(question.strip()) or _VERDICT.match(question.strip()):
        return _verdict(text)
    return _verdict(answer)


def _table_claims(text: str) -> list[_Claim]:
    """Claims of a table: the question's number in the first column, its verdict alone in another."""
    claims = []
    for row in _ROW.finditer(text):
        first, *cells = (cell.strip() for cell in row[1].strip().rstrip("|").split("|"))
        key = _KEY.fullmatch(first[:400])
        if key:
            verdicts = {verdict for cell in cells if (verdict := _bare(cell))}
            doubtful = any(_DOUBT.match(cell) for cell in cells)
            claims.append(_Claim(int(key["number"]), verdicts.pop() if len(verdicts) == 1 and not doubtful else None))
    return claims


def _listed(text: str, questions: int) -> list[_Claim]:
    """Claims of verdicts without numbers."""
    lines = [line.strip() for line in text.translate(_MARKUP).split("\n") if line.strip()]
    rows = [_tokens(line) for line in lines]
    explained = [row or [_verdict(line)] for row, line in zip(rows, lines, strict=True)]
    verdicts: list[str | None] = []
    if not any(None in row for row in explained):
        verdicts = [verdict for row in explained for verdict in row]
    elif any(rows):
        verdicts = [verdict for row in rows for verdict in row] if _framed(lines, rows) else []
    elif questions == 1:
        verdicts = [_verdict(text)]
    return [_Claim(place, verdict) for place, verdict in enumerate(verdicts, 1)]


def _framed(lines: list[str], rows: list[list[str | None]]) -> bool:
    """Whether the verdicts stand in one block, with no verdict's word, doubt or correction around it."""
    block = [place for place, row in enumerate(rows) if row]
    others = [line for line, row in zip(lines, rows, strict=True) if not row]
    return block[-1] - block[0] < len(block) and not any(
        pattern.search(line) for line in others for pattern in (_SAID, _DOUBT, _CORRECTION)
    )


def _tokens(line: str) -> list[str | None]:
    """The verdicts of a line that holds nothing else, but for a title with a colon before them."""
    title, colon, rest = line.rpartition(":")
    doubtful = any(pattern.search(title) for pattern in (_SAID, _DOUBT, _NEGATION))
    if colon and (doubtful or not _TITLE.search(title)):
        return []
    tokens = [_bare(token) for token in _SEPARATOR.split(rest.strip(" \t.,;•->")) if token]
    return [] if None in tokens else tokens
