"""The letter that an answer to a multiple-choice question picks.

Letters are read first, then the options' texts, both by the rules of `phrases.settle`. Where letter and text contradict
each other, the letter counts, as in all published scripts.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase

from lmms_eval_tasks.answers.phrases import (
    CJK,
    NOT_AFTER_CHAR,
    NOT_BEFORE_CHAR,
    NUMBERS,
    Mark,
    Read,
    clean,
    groups,
    settle,
)

_NOUN = r"(?:(?i:options?|choices?|alternative|statement|opcion|opcao|opzione|вариант)\b|选项|選項|選択肢|选择)\s?:?"
# Not the letter of `A's`, `T-shirt`, `U.S.`, `C++`, `J. B. Smith`.
_INITIAL = r"\.\ [A-Z]\.\ [A-Z][a-z]|(?<=\b[A-Z]\.\ [A-Z])\.\ [A-Z][a-z]"
_END = rf"{NOT_BEFORE_CHAR}(?!['-]\w|\.[A-Za-z](?!\w)|[+\#&@°]|{_INITIAL})"
_START = rf"{NOT_AFTER_CHAR}(?<!['@\#&])(?<!\w-)(?<![A-Za-z]\.)(?<!M[rs]\.\ )(?<!Dr\.\ )"
_ARROW = re.compile(r"(?:(?<!\s)\s+)?(?:[-=\u2013\u2014]{0,4}>{1,3}|→|➜|➔|⇒|⟶|➡)\s*")
_ARTICLE = re.compile(r"(?:the|an?)\s+(?=\w)")
_DELIMITER = r"[\s.:,)\-\u2013\u2014(]{0,6}"
_SENTENCE_END = re.compile(r"[.!?;。]\s*(?=\S)|\n")


def read_choice(answer: str, options: Sequence[str]) -> str | None:
    """Read which option an answer picks.

    An option's text counts where it is the whole answer or no letter is read. If options share their text, the first of
    their letters is returned: callers accept every letter that carries the right text.

    Args:
        answer: What the model wrote, without its reasoning.
        options: The texts of the options in order, up to 26; an empty one where it is not known.

    Returns:
        An offered letter, or None where the answer picks none, or more than one.
    """
    text = clean(answer)
    folded = [_fold(option) for option in options]
    whole = _fold(text)
    if whole in folded and len(whole) > 1 - whole.isdigit():
        return ascii_uppercase[folded.index(whole)]
    letters = groups(text, _letters(len(options)), _letter_reader(options))
    picked = settle(letters)
    if not picked.values and any(folded):
        text = _ARROW.sub("->", text)
        named = settle(groups(text, *_texts(options)))
        short = not letters and not _SENTENCE_END.search(text)
        if named.rule == "stated" or (not letters and named.rule == "placed") or short:
            picked = named
    if len(picked.values) != 1:
        return None
    (value,) = picked.values
    return ascii_uppercase[value - 1] if value <= len(options) else None


def _fold(text: str) -> str:
    """A text's form for comparison."""
    text = _ARROW.sub("->", " ".join(clean(text).casefold().split())).strip(" .,!?;:。\"'()[]")
    text = _ARTICLE.sub("", text, count=1)
    return str(NUMBERS.get(text, text))


# ------------------------------------------------------------------------------------------------------------- letters


@lru_cache(maxsize=32)
def _letters(count: int) -> re.Pattern[str]:
    """Letters as they are written; a capital beyond the options too, for it is read and picks nothing."""
    upper = ascii_uppercase if count > ascii_uppercase.index("I") else ascii_uppercase.replace("I", "")
    lower = ascii_lowercase[:count]
    any_case = f"[{upper}{lower}]"
    return re.compile(
        rf"""{NOT_AFTER_CHAR}{_NOUN}\s?[(\[]?\s?(?P<named>{any_case})\s?[)\]]?{_END}
        | {NOT_AFTER_CHAR}[(\[{{<]\s?(?P<bracketed>{any_case})\s?[)\]}}>]
        | {_START}(?P<upper>[{upper}]){_END}
        | {_START}(?P<lower>[{lower or upper}]){_END}""",
        re.VERBOSE,
    )


def _letter_reader(options: Sequence[str]) -> Read:
    """Reads a letter, along with the text of its option if that follows."""

    def read(match: re.Match[str]) -> Mark:
        kind = match.lastgroup or ""
        letter = match[kind]
        value = ascii_uppercase.index(letter.upper()) + 1
        own = _own_text(options[value - 1]) if value <= len(options) and kind != "lower" else _NOTHING
        text = own.match(match.string, match.end())
        end = text.end() if text else 0
        if kind in ("named", "bracketed"):
            return Mark((value,), "sure", end, bracketed=True)
        if kind == "lower":
            return Mark((value,), "weak")
        if letter == "I" and not _CLOSED.match(match.string, match.end()):
            return Mark((value,), "weak")
        article = letter in "AI" and not CJK.match(match.string, match.end())
        return Mark((value,), "article" if article else "plain", end)

    return read


# Behind a letter `I` that is no pronoun.
_CLOSED = re.compile(r"\s*(?:[).:,;!?\n]|\Z)")
_NOTHING = re.compile(r"(?!)")


@lru_cache(maxsize=4096)
def _own_text(option: str) -> re.Pattern[str]:
    words = clean(option).split()
    if not words:
        return _NOTHING
    return re.compile(rf"{_DELIMITER}{_spaced(words)}{NOT_BEFORE_CHAR}")


def _spaced(words: Sequence[str]) -> str:
    # Case is ignored for the words alone: with the character classes around them, compiling takes ten times as long.
    return "(?i:" + r"\s+".join(map(re.escape, words)) + ")"


# --------------------------------------------------------------------------------------------------------------- texts


def _texts(options: Sequence[str]) -> tuple[re.Pattern[str], Read]:
    """The options' texts as marks, the longest first. A number or a sign among them may mean something else."""
    spelled = [_ARROW.sub("->", " ".join(clean(option).split())).rstrip(" .") for option in options]
    first = {text.casefold(): value for value, text in reversed([*enumerate(spelled, 1)]) if text}
    patterns = "|".join(_spaced(text.split()) for text in sorted(first, key=len, reverse=True))
    pattern = re.compile(rf"{NOT_AFTER_CHAR}(?<!\d\.)(?:{patterns or '(?!)'}){NOT_BEFORE_CHAR}(?!%|[.:]\d)")

    def read(match: re.Match[str]) -> Mark:
        text = " ".join(match[0].casefold().split())
        weak = len(text) == 1 or not any(map(str.isalpha, text))
        return Mark((first[text],), "weak" if weak else "sure")

    return pattern, read
