"""Texts as models and judges write them, mixed with what only an enemy writes."""

import unicodedata

from hypothesis import strategies as st

# What every parser must live with, wherever it stands.
NOISE = [
    *"{}[]()<>|/\\%$#&*_`'\"!?;:,.-~^=+@",
    *("\n", "\n\n", "\r\n", "\t", " ", "\x00", "\x0b", "\x1b", "\x85", "\u2028"),
    *("\u200b", "\u200f", "\u202e", "\u2066", "\ufeff", "\u00ad", "\ud800", "\udfff", "\u0301", "\U0001f600"),
    *("%s", "%(answer)s", "{answer}", "{0}", "{{", "}}", "${HOME}", "\\u0041", "\\n", "&nbsp;", "<br>"),
    *("\uff21", "\uff1a", "٣", "²", "½", "①", "Ⅳ", "ß", "İ", "ǅ", "ﬁ", "。", "「", "」", "→"),
]
REASONING = [
    *("<think>", "</think>", "<thinking>", "</thinking>", "< think >", "<think/>", "</ think>", "<think", "`<think>`"),
    *("◁think▷", "◁/think▷", "[THINK]", "[/THINK]", "<answer>", "</answer>", "<answer >", "</answer"),
    *("<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|start|>assistant", "<|end|>", "<|return|>"),
]
SAID = [
    *("The answer is ", "Answer: ", "Final answer:", "So ", "Therefore, ", "I think ", "I would say ", "because "),
    *("not ", "isn't ", "never ", "neither ", "nor ", "is wrong", "is correct", "wait, ", "actually, ", "correction: "),
    *("or ", "and ", "both ", "either ", "then ", "but ", "rather than ", "if ", "such as ", "\\boxed{", "**", "- "),
    *("答案是", "不是", "应该选", "因为", "また", "정답은", "Antwort: ", "la respuesta es ", "Ответ: "),
]
LETTERS = [f"{shape}" for letter in "ABCDEFGH" for shape in (letter, f"({letter})", f"{letter}.", f"Option {letter}")]
LETTERS += [*"abcdI", "A man ", "A's ", "vitamin C", "A-B", "A/B", "A and B", "(A) Yellow (B) Red", "A\nB\nC\nD\n"]
NUMBERS = [*"0123456789", "10", "12", "99999999999", "1.5", "-1", "3rd", "first ", "second ", "one ", "two ", "third"]
NUMBERS += [
    "Video 1",
    "video two",
    "clip 3",
    "candidate #2",
    "1, 2, 3",
    "2 > 1 > 3",
    "3->1->2",
    "312",
    "第一个",
    "视频2",
]
NUMBERS += ["1. Video 3\n", "2. Video 1\n", "0:15", "50%", "1,000", "No. 2", "order: "]
VERDICTS = [*("A1", "A2", "Q1", "Q2", "1", "2", "3", "0", "-1", '"A1"', '"A2": ', "Answer 1", "Question 1?", "第1题")]
VERDICTS += [*("Yes", "No", "yes", "no", "YES", "true", "false", "null", "是", "不是", "да", "N/A", "Maybe", "Yes/No")]
VERDICTS += [
    '{"A1": "Yes", "A2": "No"}',
    "A1: Yes\nA2: No\n",
    "| 1 | Yes |\n",
    '["Yes", "No"]',
    "1. Yes 2. No",
    "//",
    "/*",
]
SCORES = [
    '"accuracy": ',
    '"relevance": ',
    "accuracy: 4",
    '{"accuracy": 4.5, "relevance": 3}',
    "NaN",
    "1e999",
    "4/5",
    "5",
]
SCORES += ["-1", "0", "6", '"4"', "true", "null", "1" * 400, '{"accuracy": {"accuracy": 2}}', ",}", "Infinity"]
RATINGS = [
    "Score: ",
    "rating ",
    "7",
    "7.5",
    "10",
    "11",
    "/10",
    " out of 10",
    "-3",
    "1e3",
    "7:30",
    "1,5",
    "9" * 400,
    "٧",
]


def texts(*vocabularies: list[str]) -> st.SearchStrategy[str]:
    """Texts of a vocabulary with noise between its words; now and then any text at all."""
    words = st.sampled_from([word for of in vocabularies for word in of])
    pieces = st.one_of(words, words, words, st.sampled_from(NOISE), st.sampled_from(REASONING))
    return st.one_of(st.lists(pieces, max_size=24).map("".join), st.lists(pieces, max_size=12).map(" ".join), _any_text)


_any_text = st.text(st.characters(), max_size=60)

# What stands around an answer and cannot matter.
AROUND = st.sampled_from(
    ["{} ", "{}\n", "\n{}", "{}\r\n", "{}\t \n\n", "\u200b{}", "{}\u200b", "\ufeff{}", "{}\u200f\n", "\n\u2060{}"]
)


def around(frame: str, text: str) -> str:
    """A text in a frame of `AROUND`."""
    before, after = frame.split("{}")
    return f"{before}{text}{after}"


def plain(text: str) -> str:
    """A text in lower case, without accents, invisible characters and backslashes; full width becomes ASCII."""
    folded = unicodedata.normalize("NFKD", text).casefold().replace("\\", "")
    return "".join(
        of for of in folded if unicodedata.category(of) not in ("Mn", "Me", "Cf", "Cc", "Cs") or of in "\n\t"
    )
