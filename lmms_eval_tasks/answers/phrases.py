"""What models say around their pick: one vocabulary and one way to weigh it, for letters and numbers alike.

A text is cut into tokens: the *marks* of a reader (`(B)`, `Video 2`) and the phrases of the vocabulary below. Marks
that stand together (`A and B`) form a *group*, and each group is judged by the phrases around it: whether it is stated
to be the answer, denied, asked about or merely spoken of. `settle` then picks by three rules. All of it is one scan.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

# ---------------------------------------------------------------------------------------------------- words, as data

# By kind; phrases are separated by `|`, without accents (`clean` takes them off). Earlier kinds win.
_SPOKEN = {
    # The mark behind these is not proposed, only used to speak about form or cases.
    "example": r"such as|e\.g\.|i\.e\.|for example|for instance|example|in the form(?:at)?|formats?|formatted as|if"
    r"|whether|between|among|amongst|from|unlike|(?:similar|compared|relative) to|than|versus|vs\.?",
    # What was said before is withdrawn.
    "oops": r"(?:no,? )?wait(?=\s*[,.!:\u2026-]|\s+(?:no|actually|a|let)\b)|scratch that|correction|on second thoughts?"
    r"|(?:let me|i need to) (?:re-?\w+|correct)|i (?:was|am) wrong|no,? sorry|sorry,? no"
    r"|i (?:made|have made) a mistake|my mistake|hold on"
    r"|hmm+",
    # Denials that carry their own verb may follow a mark; bare ones only lead to the next.
    "isnt": r"(?:is|are|was|were|am|does|do|did|can|could|would|should|will|might|must|has|have|had)"
    r"(?: (?:also|clearly|definitely|certainly|really|simply|probably|likely|therefore))?(?:n't| not|nt)"
    r"|cannot|cant|wont|(?:can|is|are|does|will) never|fails?|lacks?|ist nicht|n'est pas|no es|nao e|non e",
    "not": r"not|never|neither|nor|none of|no longer"
    r"|(?<!a )(?<!no )(?<!any )doubt(?:s|ful)?|rather than|instead of|except(?: for)?|excluding|exclude"
    r"|(?:rul|eliminat|discard|reject|dismiss|exclud)(?:e|es|ed|ing)(?: out)?|nicht|kein|pas",
    "bad": r"wrong|incorrect(?:ly)?|inaccurate|false|invalid|implausible|impossible|unlikely|irrelevant"
    r"|out of the question|worst|(?<!at )(?<!not )least \w+|contradict(?:s|ed)?|mismatch(?:es|ed)?|distractors?"
    r"|falsch|incorrecto|faux",
    # Conclusions. `then` is the weaker: it counts where its clause ends with the mark.
    "explain": r"explanations?|reasons?|reasoning|rationale|justification|analysis|here(?:'s| is) why|details|evidence"
    r"|begrundung|explication|explicacion",
    "right": r"(?:is|are|was|as|be|being) (?:right|true)"
    r"|correct(?:ly)?|accurate|korrekt|richtig|correcta?|correto|esatta",
    "label": r"answers?|(?<!second )best(?= (?:option|choice)\b)|ans|conclusions?|verdict|solution|boxed"
    r"|my (?:pick|guess|choice|selection|vote)|guess"
    r"|(?:i|we)(?:'d|'ll|'ve| would| will| have)? (?:say|take|pick|choose|select|chose|picked)"
    r"|choos(?:e|ing)|chosen|pick(?:ing)?|select(?:ed|ing|ion)?"
    r"|opt(?:ing|ed)? for|lean(?:ing)? towards?|go(?:ing)? (?:with|for)|went with"
    r"|settle (?:on|for)|vote for"
    r"|i meant?|je choisis|ich wahle|elijo|escolho|scelgo"
    r"|antwort|losung|reponse|respuesta|resposta|risposta|otvet|ответ|antwoord|odpowiedz|cevap|jawaban",
    "then": r"so|therefore|thus|hence|consequently|accordingly|in conclusion|in summary|overall|ultimately|finally"
    r"|leaving(?: only)?|leaves (?:only|us with)|(?:that|this|which) leaves|but|actually|rather|instead"
    r"|daher|donc|entonces|por lo tanto|logo(?=,)|quindi|dunque|значит|sondern|mais|sino",
    # So do these, and they may themselves be denied.
    "claim": r"i(?: strongly| would)? (?:think|believe)|it'?s|it is|that'?s|that is|c'est"
    r"|it (?:was|would be|should be|must be|has to be)|(?:should|must|has to|would) be",
    "reason": r"because|since|as(?! follows)|given(?: that)?|due to|for|where|who|when"
    r"|which(?! (?:best |most closely )?(?:match|fit|correspond|align))"
    r"|while|whereas|although|though|even"
    r"|considering|based on|weil|denn|da(?= (?:der|die|das|er|sie|es|ein)\b)"
    r"|car(?= (?:c'|l'|il|elle|on|le|la|les|un|une|(?-i:[A-Z]))\b)"
    r"|parce que|porque|perche|потому",
    "next": r"(?:is |are |and )?(?:then )?followed by|and then|then|next(?: is| comes)?"
    r"|and finally|and lastly|lastly|after that",
    "good": r"(?:best )?(?:match(?:es|ing)?|fits?|corresponds?(?: to)?|best|better"
    r"|supports?|favou?rs?|points? to|aligns?(?: with)?)",
    "either": r"either|both|and/or|und|oder|et|ou|или|and|or|as well as",
    "noun": r"options?|choices?|letter|number(?! of)|alternative|candidate|video|clip|one"
    r"|order|ordering|sequence|ranking|rank"
    r"|arrangement|(?:re)?ordered|arranged|ranked|sorted|result|opcion|opcao|opzione|видео|вариант|buchstabe"
    r"|prediction|output|response|match"
    r"|position|statement",
    "is": r"is|are|was|be|as follows|would|will|to be|seems?|appears?"
    r"|ist|est|es|sono|sera|ware|remains?|lautet|ergibt|e",
    "verb": r"were|has|have|had|does|do|did|can|could|might|may|shows?|showing|depicts?|displays?|features?|contains?"
    r"|describes?|mentions?|refers?|says?|states?|suggests?|presents?|includes?|involves?|represents?|looks?|captures?"
    r"|demonstrates?|illustrates?|makes?|begins?|starts?|ends?|happens?|comes?",
    "det": r"the|an|(?-i:a)|der|die|das|la|le|el|lo|il|los|les",
    "adverb": r"(?:most |very )?likely|(?:most )?(?:probably|definitely|clearly|certainly|obviously)"
    r"|perhaps|maybe|possibly|only",
    "filler": r"final(?:ly)?|my|most|just|to"
    r"|of|in|that|this|all|simply|indeed|overall|most closely|closest|correct|right|single|final|accurate|logical"
    r"|chronological|too|still|here|both of these|it|therefore|each|\\w+text",
}
# Scripts written without spaces.
_UNSPACED = {
    "example": "例如|比如|如果|たとえば|例えば",
    "isnt": "不是|并非|不选|不能|不会|没有|不符|不符合|无法|并不|ではない|じゃない|ではなく|아니",
    "bad": "不正确|不对|错误|错的|有误|排除|間違い|誤り|틀",
    "explain": "解释|解析|理由|分析|说明|解説|説明|설명|이유",
    "oops": "更正|等等|重新考虑",
    "label": "答案|回答|故选|应选|选择|选|選択|選|正解|答え|정답|답|结论|結論",
    "reason": "因为|由于|因為|なぜなら|ので|왜냐하면|根据|视频中",
    "then": "因此|所以|综上|故|于是|而是|(?<=,)是|应该是|其实|したがって|よって|따라서",
    "claim": "认为是|觉得是|就是",
    "right": "正确|符合|対|正しい|맞",
    "either": "和|与|或者|或|及|还是|以及|と|または|와|과|또는",
    "next": "然后|接着|之后|再到|最后",
    "noun": "选项|選項|選択肢|视频|影片|片段|动画|動画|비디오|영상|顺序|順序|排序|순서|項|项|번",
    "is": "是|为|應為|应为|です|は|が|은|는|이|가",
    "filler": "的|了|吧|都|才|也|更|显然|明显|应该|应|我|最|可能|终|最终|就|个|正|입니다|り",
}
_SIGNS = {
    "right": "[✅✔✓☑]",
    "bad": "[❌✗✘✖]",
    "arrow": r"[-=\u2013\u2014]{0,4}>{1,3}|→|➜|➔|⇒|⟶|➡|<",
    "gap": r"\n[^\S\n]*\n\s*",
    "dash": r"[-\u2013\u2014~]+|\|(?=\s?[❌✗✘✖✅✔✓☑])",
    "line": r"\n|\|",
    "stop": r"[.!;。…]+",
    "question": r"\?+",
    "comma": "[,、]",
    "is": "[:=]",
    "open": r"[(\[{<«「【]",
    "close": r"[)\]}»」】]",
    "either": "[/&+]",
    "space": r"[^\S\n]+|[#•·\u2b50\U0001f000-\U0001faff]",
}
CJK_CHARS = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
# A letter or digit of a script that is written with spaces.
CJK = re.compile(f"[{CJK_CHARS}]")
CHAR = rf"(?:(?![{CJK_CHARS}])\w)"
NOT_AFTER_CHAR = rf"(?:(?<=[{CJK_CHARS}])|(?<!\w))"
NOT_BEFORE_CHAR = rf"(?!{CHAR})"

# ------------------------------------------------------------------------------------------------------------ cleaning

_LATEX = re.compile(r"\\(?:text|math|operatorname|displaystyle)[a-z]*|[\\$]")
_BOX = re.compile(r"<answer>|<\|begin_of_box\|>|\[answer\](?!\()", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z]{2,20}\s?/?>|<\|[^|<>\n]{0,40}\|>|\[/answer\]", re.IGNORECASE)
_DROPPED = dict.fromkeys(map(ord, '*`"“”„‟『』\u2018\u201b'), None) | {
    ord("_"): " ",
    0x2019: "'",
    0xB4: "'",
    0x2212: "-",
    0x2010: "-",
    0x2011: "-",
}
_REPLACED = {"№": "#"} | dict.fromkeys(map(chr, [0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029]), "\n")
_SINGLE_QUOTED = re.compile(r"(?<!\w)'([^'\n]{1,80})'(?!\w)")


def clean(text: str) -> str:
    """Make one spelling of many: no markup, quotes, accents or invisible characters; full width becomes ASCII.

    Args:
        text: Any string.

    Returns:
        The text to look for marks and phrases in; as long as the original, or shorter but for a few labels.
    """
    text = text.replace("\r\n", "\n")
    if not text.isascii() or not text.isprintable():
        text = "".join(map(_plain, text))
    text = _LATEX.sub("", _TAG.sub("\n", _BOX.sub("\nanswer: ", text))).translate(_DROPPED)
    return _SINGLE_QUOTED.sub(r"\1", text).strip()


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    """One character's plain form. Character by character, for the whole text's normal form takes quadratic time."""
    if char in _REPLACED or char in "\n\t":
        return _REPLACED.get(char, char)
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Mn", "Me"):
        return ""
    char = unicodedata.normalize("NFKC", char)
    bare = unicodedata.normalize("NFKD", char)
    return "".join(c for c in bare if unicodedata.category(c) != "Mn") if bare[0].isascii() else char


# -------------------------------------------------------------------------------------------------------------- tokens


class Mark(NamedTuple):
    """What a reader makes of its pattern's match.

    Attributes:
        values: The candidates it names, from 1; more than one only for digits written together.
        force: How much context it needs: "sure" none; "plain" a clause's start or a phrase before it; "article" too,
            and no word behind it, for it may be one itself (`A man`, `2 men`); "weak" is the whole answer or labelled.
        end: Where it ends, if later than the match (an option's own text belongs to its letter).
        bracketed: Whether it is written as an item of a list, `(B)`.
    """

    values: tuple[int, ...]
    force: str
    end: int = 0
    bracketed: bool = False


Read = Callable[[re.Match[str]], Mark]


class _Token(NamedTuple):
    kind: str
    text: str
    mark: Mark | None = None


_EDGE = _Token("", "")


def _vocabulary() -> re.Pattern[str]:
    """One pattern for all tokens; a kind that occurs in several tables is told apart by a digit."""
    spoken = "|".join(f"(?P<{kind}0>(?i:{words}){NOT_BEFORE_CHAR})" for kind, words in _SPOKEN.items())
    unspaced = "|".join(f"(?P<{kind}1>{words})" for kind, words in _UNSPACED.items())
    signs = "|".join(f"(?P<{kind}2>{words})" for kind, words in _SIGNS.items())
    word = rf"(?P<word0>{CHAR}+(?:['-]{CHAR}+)*|[{CJK_CHARS}])"
    return re.compile(
        rf"{NOT_AFTER_CHAR}(?={CHAR})(?:{spoken})|(?=[{CJK_CHARS}])(?:{unspaced})|{word}|{signs}|(?P<word1>[\s\S])"
    )


_VOCABULARY = _vocabulary()


def _tokens(text: str, marks: re.Pattern[str], read: Read) -> Iterator[_Token]:
    position = 0
    while found := marks.match(text, position) or _VOCABULARY.match(text, position):
        position = found.end()
        if found.re is marks:
            mark = read(found)
            position = max(position, mark.end)
            yield _Token("mark", found[0], mark)
        elif found.lastgroup != "space2":
            yield _Token((found.lastgroup or "")[:-1], found[0])


# -------------------------------------------------------------------------------------------------------------- groups

_LINE = frozenset({"line", "gap"})
_BREAK = _LINE | {"", "stop", "question"}
# Where a mark that may be a word is still a mark: behind these, and before those.
_STARTS = _BREAK | set(
    "comma dash open oops reason not isnt bad then claim next verb good right example explain arrow".split()
)
_FOLLOW = _BREAK | set(
    "adverb comma dash open close is verb claim isnt not bad reason either then next arrow mark good".split()
)
_CLOSED = _BREAK | set("comma dash open close reason not then explain".split())
_ALONE_BEHIND = _BREAK | {"comma", "dash", "open", "oops"}
_PREDICATES = {"is", "verb", "isnt"}
_OR = re.compile(r"or|oder|ou|или|或者?|还是|または|또는|/", re.IGNORECASE)
_PLURAL = re.compile(r"(?:are|were|do|have)(?:n't| not|nt)?", re.IGNORECASE)
# Phrases that may stand between a label and its mark, between a mark and what is said of it, and between two marks.
_KEEP_LABEL = _LINE | set("adverb label filler det is open close dash noun comma either right good then claim".split())
_KEEP_SUBJECT = set("adverb filler det is verb claim close dash noun right good".split())
_KEEP_GROUP = _LINE | set("either comma noun det close arrow dash next".split())
_WRAPPING = _LINE | set("adverb open close dash stop det filler noun".split())


@dataclass(eq=False)
class Group:
    """Marks that stand together, and what is said of them.

    Attributes:
        values: The candidates in the order of writing.
        label: "label" if stated to be the answer, "then" or "good" if said in passing, else "".
        dropped: Denied, asked about, an example, withdrawn later, or an item of an echoed list.
        reason: It stands in a reason, not in a claim.
        sentence: The number of its sentence.
        place: How many explanations were announced, and how many blank lines stand, before it.
        head: It begins the text, and is followed as a pick is.
        alone: A sentence, a line or a clause's end has nothing but it.
        item: It is written like an item of a list.
        listed: It is an item of an echoed list.
        subject: A verb follows.
        loose: Nothing but `and`, `or` and the like stand between its marks.
    """

    values: list[int]
    label: str
    dropped: bool
    reason: bool
    sentence: int
    place: tuple[int, int]
    head: bool = False
    alone: bool = False
    item: bool = False
    listed: bool = False
    subject: bool = False
    loose: bool = False


class _Scan:
    """The state of the one scan over the tokens."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self.tokens = tokens
        self.groups: list[Group] = []
        self.label = ""  # what leads to the next mark
        self.seen = 0  # the sentence has a label (2), or a noun that a copula makes one (1)
        self.denied = self.reason = self.example = False
        self.shunned = False  # the last mark was none, and the next is listed with it
        self.subject: Group | None = None  # what praise or denial is about
        self.linked = False  # a verb follows the subject
        self.group: Group | None = None  # the next mark may join it
        self.alternative = False  # the last group was stated, and an `or` follows it
        self.before_group = _EDGE
        self.withdrawn = 0  # so many groups were taken back
        self.sentence = self.paragraph = self.part = 0
        content = [at for at, token in enumerate(tokens) if token.kind not in _WRAPPING]
        self.first = content[0] if content else -1
        self.only = len(content) == 1
        lines = [at for at, token in enumerate(tokens) if token.kind in _LINE]
        self.last_gap = lines[-1] if lines and tokens[lines[-1]].kind == "gap" else -2

    def run(self) -> list[Group]:
        for at, token in enumerate(self.tokens):
            if token.mark:
                self.mark(at, token.mark)
            else:
                self.phrase(at, token)
        return self.groups

    def near(self, at: int) -> _Token:
        return self.tokens[at] if 0 <= at < len(self.tokens) else _EDGE

    # ---- phrases

    def phrase(self, at: int, token: _Token) -> None:
        kind = token.kind
        if kind == "stop" and self.judges_item(at):
            self.linked = True
            return
        if token.text == ";" and not self.denied and self.near(at + 1).mark and self.near(at + 2).kind in _BREAK:
            kind = "comma"  # `3; 1; 2`
        if kind in ("bad", "isnt", "not"):
            self.deny(at, kind)
        elif kind in ("right", "good", "label"):
            self.praise(at, token)
        elif kind in _BREAK:
            self.end_sentence(at, kind)
        else:
            self.turn(at, token._replace(kind=kind))
        self.forget(kind, token.text)

    def turn(self, at: int, token: _Token) -> None:
        """Take in a phrase that is about what comes behind it."""
        kind = token.kind
        if kind == "comma":
            listed = self.near(at - 1).mark is not None and self.near(at + 1).kind in ("mark", "either", "noun")
            listed = listed and not self.begins_clause(at + 1)
            self.denied, self.example, self.reason = self.denied and listed, self.example and listed, False
            self.seen = 0 if self.seen == 1 else self.seen
        elif kind in ("then", "reason"):
            self.denied = self.example = False
            self.reason = kind == "reason"
            self.label = "then" if kind == "then" else ""
        elif kind == "claim":
            self.label = self.label or "then"
        elif kind == "oops" and self.near(at - 1).kind in _STARTS:
            for group in self.groups[self.withdrawn :]:
                group.dropped = True
            self.withdrawn = len(self.groups)
            self.label = "then"
        elif kind == "example":
            self.example = True
        elif kind == "noun":
            self.seen = max(self.seen, 1)
        elif kind == "is":
            self.label = "label" if self.seen else self.label
            self.example = self.example and (token.text != ":" or self.near(at - 1).kind == "example")
        elif kind == "explain":
            self.part += 1

    def forget(self, kind: str, text: str) -> None:
        """End what reaches no further than this phrase."""
        self.label = self.label if kind in _KEEP_LABEL or kind == "oops" else ""
        self.group = self.group if kind in _KEEP_GROUP else None
        if kind == "next" and self.groups and self.groups[-1].sentence == self.sentence:
            self.group = self.groups[-1]
        self.subject = self.subject if kind in _KEEP_SUBJECT else None
        self.linked = self.linked or kind in ("is", "verb", "claim")
        if kind == "either" and self.groups and self.groups[-1].label == "label" and _OR.fullmatch(text):
            self.alternative = True
        self.shunned = self.shunned and kind in ("comma", "either")

    def judges_item(self, at: int) -> bool:
        """Whether a full stop stands within a verdict on an item, as in `A. Incorrect`."""
        item = self.near(at - 1).mark is not None and self.subject is not None and not self.subject.label
        return item and self.near(at + 1).kind in ("bad", "right") and self.near(at + 2).kind in _BREAK | {"comma"}

    def deny(self, at: int, kind: str) -> None:
        """Denial is about the mark before it, or else about the one to come."""
        if self.subject and self.near(at + 1).kind not in ("mark", "open") and (kind != "not" or self.linked):
            self.subject.dropped = True
        else:
            self.denied = True

    def praise(self, at: int, token: _Token) -> None:
        """So is praise."""
        kind = token.kind
        said = (
            self.linked
            or kind == "good"
            or CJK.match(token.text)
            or self.near(at - 1).kind in ("close", "dash", "mark")
        )
        if self.subject and said and not self.denied:
            self.subject.label = "good" if kind == "good" and self.subject.label != "label" else "label"
        elif kind == "good":
            self.label = self.label or "good"
        else:
            self.seen = 2
            if kind == "label":
                self.label, self.reason, self.example = "label", False, False

    def end_sentence(self, at: int, kind: str) -> None:
        if kind == "question" and not (at + 1 == len(self.tokens) and self.groups and self.groups[-1].head):
            for group in reversed(self.groups):
                if group.sentence != self.sentence:
                    break
                group.dropped = True
        self.sentence += 1
        self.paragraph += kind == "gap"
        self.denied = self.reason = self.example = False
        self.seen = self.seen if kind in _LINE and self.label else 0
        self.label = self.label if kind in _LINE else ""

    # ---- marks

    def mark(self, at: int, mark: Mark) -> None:
        left, right = self.near(at - 1), self.near(at + 1)
        goes_on = self.goes_on(at, mark)
        group = self.group if self.joins(at, mark, left, right) and not goes_on else None
        if group is None and self.alternative and not self.denied and self.groups[-1].sentence == self.sentence:
            group = self.groups[-1]
        if not (goes_on or self.licensed(mark, at, group is not None)):
            self.label, self.group, self.subject = "", None, None
            self.shunned = mark.force != "weak"
            return
        if group is None:
            place = self.part, self.paragraph
            group = Group([], self.label, self.denied or self.example, self.reason, self.sentence, place)
            group.head = self.first == at
            self.groups.append(group)
            self.before_group = left
        else:
            group.loose = left.kind in ("either", "det") and (group.loose or len(group.values) == 1)
        group.values += mark.values
        past = self.near(at + 2) if right.kind == "close" else right
        colon = ":" in self.near(at).text or self.before_group.text == ":"
        apart = goes_on or colon or self.before_group.kind in _ALONE_BEHIND
        ends = past.kind in _BREAK and (past.kind != "stop" or self.near(at + 2 + (past != right)).kind in _LINE | {""})
        group.head = group.head and _leads(mark, right)
        group.alone = apart and (ends or at - 1 == self.last_gap)
        told = past.kind in _PREDICATES and past.text not in (":", "=")
        listed = mark.bracketed or mark.end > 0 or right.kind == "dash" or right.text in (".", ":", ")")
        group.item = apart and not told and listed
        group.subject = right.kind in _PREDICATES and right.text not in (":", "=")
        if group.label == "then" and right.kind not in _CLOSED:
            group.label = ""
        self.subject, self.group, self.linked, self.shunned = group, group, False, False
        self.label, self.seen, self.alternative = "", 0, False

    def goes_on(self, at: int, mark: Mark) -> bool:
        """Whether a mark is the next item of a list in one line: `A. Yellow B. Red`, `B. Red and D. Blue`."""
        right = self.near(at + 1)
        if right.text not in (".", ")", ":") or self.near(at + 2).kind in _BREAK:
            return False
        if mark.force == "weak" and right.text != ")" and self.near(at - 1).kind not in _LINE:
            return False
        last = self.groups[-1] if self.groups and self.groups[-1].item else None
        return last is not None and (
            self.near(at - 1).kind == "either" or [v + 1 for v in last.values] == [*mark.values]
        )

    def joins(self, at: int, mark: Mark, left: _Token, right: _Token) -> bool:
        """Whether a mark goes on with the group before it: not where it begins a clause, or an item, of its own."""
        if left.kind in _LINE:
            before = self.near(at - 2).mark
            last = right.kind == "stop" and self.near(at + 2).kind in _LINE | {""}
            bare = before is not None and not (before.end or mark.end)
            return bare and (last or right.kind in _LINE | {"", "close"})
        return not (left.kind == "comma" and self.begins_clause(at))

    def begins_clause(self, at: int) -> bool:
        """Whether a mark has a predicate of its own: `…, B is red`."""
        right = self.near(at + 1)
        return self.near(at).mark is not None and right.kind in _PREDICATES and not _PLURAL.fullmatch(right.text)

    def licensed(self, mark: Mark, at: int, joins: bool) -> bool:
        """Whether its context makes a mark of what may be a word."""
        left, right = self.near(at - 1), self.near(at + 1)
        if mark.force == "sure":
            return True
        if mark.force == "weak":
            item = self.first == at and right.text in (".", ")", ":")
            behind = self.near(at + 3 if self.near(at + 2).kind == "det" else at + 2)
            if right.kind == "either" and behind.mark:  # `the first and the third video`
                return True
            if joins and left.kind == "either" and right.kind in _CLOSED:  # `a or b`
                return True
            return (self.only and self.first == at) or item or (self.label == "label" and right.kind in _CLOSED)
        free = self.label or joins or left.kind in _STARTS or left.text.lower() in (":", "both", "either")
        free = free or (left.kind in ("either", "adverb") and self.near(at - 2).kind in _STARTS)
        listed = joins and left.kind == "either" and mark.force == "plain"
        followed = right.kind in _FOLLOW and not (right.mark and right.mark.force == "weak")
        followed = followed or (right.kind == "right" and " " in right.text)  # `is right`
        if self.shunned or not free or followed or mark.end or listed:
            return bool(free) and not self.shunned
        return mark.force == "plain" and (
            right.kind == "det"
            or self.label == "label"
            or _leads(mark, right)
            or (right.kind != "word" and CJK.match(right.text) is not None)
        )


def _leads(mark: Mark, right: _Token) -> bool:
    """Whether a mark that begins a text is followed as a pick is."""
    if right.kind in _CLOSED or right.text in (":", "=") or mark.end:
        return True
    capital = right.kind == "word" and right.text[:1].isupper()
    return mark.force == "plain" and (right.kind == "det" or capital)


def groups(text: str, marks: re.Pattern[str], read: Read) -> list[Group]:
    """Find all marks of a text and judge what is said of them.

    Args:
        text: A text that went through `clean`.
        marks: Matches a mark where one begins.
        read: Reads its match.

    Returns:
        The groups in the order of the text.
    """
    found = _Scan([*_tokens(text, marks, read)]).run()
    _drop_lists(found)
    return found


def _drop_lists(found: Sequence[Group]) -> None:
    """Drop the items of a list that was only echoed: the first candidate's, the second's and so on."""
    run: list[Group] = []
    for group in found:
        if not group.item or group.dropped:
            continue
        if run and group.values == [len(run) + 1] and not group.label and group.place[0] == run[-1].place[0]:
            run.append(group)
        else:
            run = [group] if group.values == [1] else []
        if len(run) > 1:
            for item in run[-2:]:
                item.dropped = item.listed = True


# ------------------------------------------------------------------------------------------------------------ settling


class Settled(NamedTuple):
    """The candidates that a text picks, and by which rule.

    Attributes:
        values: The candidates; none where it picks none, several where it does not decide.
        rule: "stated", "placed" or "mentioned".
    """

    values: frozenset[int]
    rule: str


def settle(found: Sequence[Group]) -> Settled:
    """Weigh the groups of a text: the first of these rules that finds a group decides.

    1. Stated: the last group that is said to be the answer.
    2. Placed: what begins the text, and what has a sentence, a line or the end of a clause for itself. They must agree.
    3. Mentioned: what is not denied. It must be one.

    Args:
        found: What `groups` found.

    Returns:
        What is picked.
    """
    live = [group for group in found if not group.dropped]
    claims = [group for group in live if not group.reason]
    stated = [group for group in claims if group.label in ("label", "then")]
    if stated:
        last = stated[-1]
        behind = claims[claims.index(last) + 1 :] if last.item else []
        more = [group for group in behind if group.item and group.place == last.place]
        return Settled(frozenset(value for group in [last, *more] for value in group.values), "stated")
    placed = [group for group in claims if group.head or group.alone or group.label == "good"]
    if placed:
        beside = [group for group in claims if group.item and group.place == placed[0].place]
        return Settled(frozenset(value for group in placed + beside for value in group.values), "placed")
    unclear = not claims or any(group.listed for group in found)
    return Settled(frozenset(value for group in live if not unclear for value in group.values), "mentioned")


# -------------------------------------------------------------------------------------------------------- number words


def _counted(words: str, start: int) -> dict[str, int]:
    return {word: number for number, names in enumerate(words.split("|"), start) for word in names.split()}


NUMBERS = _counted(
    "zero|one eins uno|two zwei dos deux|three drei tres trois|four vier|five|six|seven|eight|nine|ten", 0
)
ORDINALS = _counted("first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth", 1)
CJK_NUMBERS = _counted("一|二|三|四|五|六|七|八|九|十", 1)
