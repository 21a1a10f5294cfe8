"""The authors' release of SCVBench -> canonical rows, one for each final question.

One file of JSON lines (or one JSON list), a line for each final question, or for each film with a list of its final
questions. `_SPELLINGS` says what the fields may be called; what a line has for its film holds for all its questions.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.media.sources import check_name
from lmms_eval_tasks.releases import Release, read_json, read_json_lines, release_file

if TYPE_CHECKING:
    from datasets import Features
    from pydantic_core import ErrorDetails

TITLE = "SCVBench"

# As published (paper, section 3.3).
FINAL_QUESTIONS = 1253
OPTIONS = 5

# What fields are called, the documented name first; letter case, `_`, `-` and spaces do not count. Where a line has
# several of a field's names, the first that is listed here counts.
_SPELLINGS = {
    "video_id": ("video_id", "video", "video_name", "video_file", "vid", "youtube_id"),
    "questions": ("questions", "final_questions", "fqa", "fqas", "qa", "qas", "qa_pairs"),
    "question": ("question", "final_question", "fqa_question", "query"),
    "options": ("options", "choices", "candidates", "final_options"),
    "answer": (
        *("answer", "final_answer", "correct_answer", "correct_option", "correct", "ground_truth", "gt", "label"),
        *("answer_index", "answer_idx", "correct_index", "correct_idx"),
    ),
    "sub_questions": ("sub_questions", "sub_question", "sub_qa", "sub_qas", "sub_qa_pairs", "pqa", "pqas"),
    "sub_answers": ("sub_answers", "sub_answer", "sub_question_answers"),
    "title": ("title",),
    "logline": ("logline",),
    "synopsis": ("synopsis",),
    "genre": ("genre", "genres"),
    "duration": ("duration", "video_duration"),
}
_SPELLINGS_OF_SUB_QUESTIONS = {
    "question": ("question", "sub_question", "q", "query"),
    "answer": ("answer", "sub_answer", "a", "gt", "ground_truth"),
}
_METADATA = ("title", "logline", "synopsis", "genre")

_LETTER = re.compile(r"\(?([A-Za-z])[).:]{0,2}")
_OWN_LETTER = re.compile(r"\s*\(?([A-Za-z])(?:\)[.:]?|[.:])\s*")
_CLOCK = re.compile(r"(?:(\d{1,2}):)?(\d{1,2}):(\d{2}(?:\.\d+)?)")


def _options(value: Any) -> Any:
    """The options' texts, from a list, an object by letter, or a text of lines; their own letters are taken off.

    Raises:
        ValueError: An object's keys are not A, B, … without a gap.
    """
    if isinstance(value, str):
        value = [line for line in value.splitlines() if line.strip()]
    if isinstance(value, Mapping):
        by_letter = {match[1].upper(): text for key, text in value.items() if (match := _LETTER.fullmatch(key.strip()))}
        if len(by_letter) < len(value) or sorted(by_letter) != list(ascii_uppercase[: len(by_letter)]):
            raise ValueError(f"its keys are {', '.join(value)}, not A, B, … without a gap")
        value = [by_letter[letter] for letter in sorted(by_letter)]
    if not isinstance(value, list):
        return value
    texts = [str(text) if isinstance(text, int | float) and not isinstance(text, bool) else text for text in value]
    own = [_OWN_LETTER.match(text) if isinstance(text, str) else None for text in texts]
    if [match and match[1].upper() for match in own] == list(ascii_uppercase[: len(own)]):
        return [text[match.end() :] for text, match in zip(texts, own, strict=True) if match]
    return texts


def _answer(value: Any) -> str:
    """The answer as text.

    Raises:
        ValueError: It is neither a text nor a whole number.
    """
    if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
        return str(value).strip()
    raise ValueError(f"{value!r} is no letter, text or number of an option")


def _text(value: Any) -> Any:
    """Metadata as text: a list becomes one, and another value than text is dropped."""
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        value = ", ".join(value)
    return _readable(value.strip()) or None if isinstance(value, str) else None


def _seconds(value: Any) -> float | None:
    """Seconds from a number or from ``[h:]mm:ss``; None from all else."""
    clock = _CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if clock:
        return int(clock[1] or 0) * 3600 + int(clock[2]) * 60 + float(clock[3])
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < math.inf and not isinstance(value, bool) else None


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Option = Annotated[str, StringConstraints(strip_whitespace=True)]
_Told = Annotated[str | None, BeforeValidator(_text)]


class SubQuestion(BaseModel):
    """An open question that leads up to a final question, and its reference answer."""

    model_config = ConfigDict(extra="forbid")
    question: _Text
    answer: _Text


class _Film(BaseModel):
    """What the release may tell of a film; ``duration`` in seconds."""

    title: _Told = None
    logline: _Told = None
    synopsis: _Told = None
    genre: _Told = None
    duration: Annotated[float | None, BeforeValidator(_seconds)] = None


class Question(_Film):
    """A final question as the authors write it, its fields under their documented names."""

    question: _Text
    options: Annotated[list[_Option], Field(min_length=2, max_length=len(ascii_uppercase)), BeforeValidator(_options)]
    answer: Annotated[str, BeforeValidator(_answer)]
    sub_questions: Annotated[list[SubQuestion], Field(min_length=1)]


class Row(_Film):
    """One row of the canonical dataset.

    Attributes:
        id: The film's ``video_id`` and the question's place among its final questions, from 1.
        video: Name of the film's video: its ``video_id``.
        question: The final question.
        options: The options' texts, without letters.
        letters: The letters of the right options: all that carry the right text.
        answer: The right option's text.
        sub_questions: In the order of the data.
        seconds: The video's duration.
        excluded: Why the row cannot be scored; then only what could be read of it is there.
    """

    model_config = ConfigDict(extra="forbid")
    id: str
    video: str = Field(min_length=1)
    question: str = ""
    options: list[str] = []
    letters: list[str] = []
    answer: str = ""
    sub_questions: list[SubQuestion] = []
    seconds: float | None = None
    excluded: str | None = None


class _Entry(NamedTuple):
    """A final question as it was found.

    Attributes:
        video: Its film's ``video_id``.
        fields: What it and its film hold under any spelling, by documented name.
        keys: What it and its film hold, as it is called there.
    """

    video: str
    fields: dict[str, Any]
    keys: list[str]


def read(source: Path) -> Release:
    """Reads and validates a release.

    Args:
        source: The authors' file, or a folder with one ``.jsonl`` (else one ``.json``) file below it.

    Returns:
        Canonical rows; what cannot be scored is marked ``excluded`` in them and listed with its reason.

    Raises:
        PackError: The file cannot be read, or lines are no objects or do not tell their video; all of these are named.
    """
    path = release_file(source, (".jsonl", ".json"))
    entries = _entries(path)
    found = list(map(_question, entries))
    valid = [question for question in found if isinstance(question, Question)]
    base = _base(valid)
    places = Counter[str]()
    rows = []
    for entry, question in zip(entries, found, strict=True):
        places[entry.video] += 1
        rows.append(_row(f"{entry.video}/{places[entry.video]}", entry, question, base))
    return Release(
        rows={"final_questions": [row.model_dump() for row in rows]},
        excluded=[{"id": row.id, "reason": row.excluded} for row in rows if row.excluded is not None],
        notes=list(_notes(rows, valid, base)),
    )


def questions(row: Mapping[str, Any]) -> int:
    """How many questions of a row are asked: one, unless it is excluded."""
    return int(row["excluded"] is None)


def features() -> "Features":
    """The columns of the rows."""
    from datasets import Features, Value

    text = Value("string")
    return Features(
        {
            **dict.fromkeys(("id", "video", "question", "answer", "excluded", *_METADATA), text),
            **{key: [text] for key in ("options", "letters")},
            "sub_questions": [{"question": text, "answer": text}],
            **dict.fromkeys(("duration", "seconds"), Value("float64")),
        }
    )


def _entries(path: Path) -> list[_Entry]:
    """Every final question.

    Raises:
        PackError: Lines have another shape; all of them are named.
    """
    found, problems = [], []
    for where, line in _lines(path):
        try:
            found += _of_line(line)
        except PackError as error:
            problems.append(f"{where}: {error}")
    if problems:
        raise PackError(listing(f"{TITLE} in {path} cannot be read", problems))
    if not found:
        raise PackError(f"{path} holds no {TITLE} release: there is no line in it")
    return found


def _lines(path: Path) -> list[tuple[str, Any]]:
    if path.suffix.lower() != ".json":
        return [(f"line {number}", line) for number, line in read_json_lines(path)]
    value = read_json(path)
    if not isinstance(value, list):
        raise PackError(f"{path}: a list of final questions or films is needed, not {type(value).__name__}")
    return [(f"entry {number}", line) for number, line in enumerate(value, start=1)]


def _of_line(line: Any) -> list[_Entry]:
    """The final questions of a line.

    Raises:
        PackError: The line has another shape, or does not tell its video.
    """
    if not isinstance(line, dict):
        raise PackError(f"an object is needed, not {type(line).__name__}")
    film = _fields(line, _SPELLINGS)
    nested = film.pop("questions", None)
    if isinstance(film.get("question"), dict | list):
        nested = film.pop("question")
    if "options" in film and nested is not None:
        # The line is a final question itself: they lead up to it.
        film.setdefault("sub_questions", nested)
        nested = None
    if nested is None:
        return [_entry(film, _keys(line))]
    several = nested if isinstance(nested, list) else [nested]
    odd = [question for question in several if not isinstance(question, dict)]
    if odd:
        raise PackError(f"a final question is {odd[0]!r}; an object is needed")
    return [_entry({**film, **_fields(of, _SPELLINGS)}, [*_keys(of), *_keys(line)]) for of in several]


def _entry(fields: dict[str, Any], keys: list[str]) -> _Entry:
    video = fields.get("video_id")
    if video is None:
        raise PackError(_absent("video_id", keys))
    if isinstance(video, bool) or not isinstance(video, str | int):
        raise PackError(f"video_id is {video!r}; a text is needed")
    check_name(str(video))
    return _Entry(_readable(str(video)), fields, keys)


def _fields(entry: Mapping[str, Any], spellings: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What an entry holds under any spelling, by documented name; a null is as good as absent."""
    by_name = {_folded(key): value for key, value in entry.items() if value is not None}
    found = {
        field: [by_name[_folded(name)] for name in names if _folded(name) in by_name]
        for field, names in spellings.items()
    }
    return {field: values[0] for field, values in found.items() if values}


def _keys(entry: Mapping[str, Any]) -> list[str]:
    return [key for key, value in entry.items() if value is not None]


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


def _question(entry: _Entry) -> Question | str:
    """A validated final question, or all that is wrong with it."""
    try:
        return Question.model_validate({**entry.fields, **_sub_questions(entry.fields)})
    except ValidationError as error:
        return "; ".join(_explain(problem, entry.keys) for problem in error.errors())


def _sub_questions(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Sub-questions as objects: from objects, pairs, or two lists of one length."""
    value, answers = fields.get("sub_questions"), fields.get("sub_answers")
    if not isinstance(value, list):
        return {}
    if isinstance(answers, list) and len(answers) == len(value):
        value = [pair if isinstance(pair[0], str) else pair[0] for pair in zip(value, answers, strict=True)]
    return {"sub_questions": [_sub_question(of) for of in value]}


def _sub_question(value: Any) -> Any:
    if isinstance(value, dict):
        return _fields(value, _SPELLINGS_OF_SUB_QUESTIONS)
    if isinstance(value, list | tuple) and len(value) == 2:  # noqa: PLR2004
        return dict(zip(("question", "answer"), value, strict=True))
    return {"question": value}


def _explain(error: "ErrorDetails", keys: Sequence[str]) -> str:
    place = [part + 1 if isinstance(part, int) else part for part in error["loc"]]
    if error["type"] == "missing" and len(place) == 1:
        return _absent(str(place[0]), keys)
    return f"{' '.join(map(str, place))}: {error['msg'].removeprefix('Value error, ')}"


def _absent(field: str, keys: Sequence[str]) -> str:
    return f"no {field}: it has {', '.join(keys) or 'nothing'}, and none of {', '.join(_SPELLINGS[field])}"


def _row(name: str, entry: _Entry, question: Question | str, base: int) -> Row:
    video = entry.video
    if isinstance(question, str):
        asked = entry.fields.get("question")
        read = _readable(asked) if isinstance(asked, str) else ""
        return Row(id=name, video=video, question=read, excluded=_readable(question))
    place = _place(question, base)
    content = question.model_dump(exclude={"answer"})
    if place is None:
        return Row(id=name, video=video, **content, excluded=f"the answer {question.answer!r} is not among the options")
    right = _same(question.options[place])
    letters = [ascii_uppercase[index] for index, text in enumerate(question.options) if _same(text) == right]
    return Row(id=name, video=video, **content, letters=letters, answer=question.options[place])


def _readable(text: str) -> str:
    """A text that every file can hold: without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def _place(question: Question, base: int) -> int | None:
    """The index of the right option: what is a letter is one, else a text of the options, else a number from ``base``.

    Args:
        question: The question.
        base: The number of the first option.
    """
    place = _named(question)
    if place is not None:
        return place
    number = _number(question.answer)
    return number - base if number is not None and 0 <= number - base < len(question.options) else None


def _named(question: Question) -> int | None:
    """The index of the option that a letter or a text names."""
    answer = question.answer
    texts = list(map(_same, question.options))
    letter = _LETTER.fullmatch(answer)
    if letter and (place := ascii_uppercase.index(letter[1].upper())) < len(texts):
        return place
    if _same(answer) in texts:
        return texts.index(_same(answer))
    own = _OWN_LETTER.match(answer)
    if own and (place := ascii_uppercase.index(own[1].upper())) < len(texts):
        return place if texts[place] == _same(answer[own.end() :]) else None
    return None


def _number(answer: str) -> int | None:
    return int(answer) if re.fullmatch(r"\d{1,4}", answer, re.ASCII) else None


def _base(questions: Sequence[Question]) -> int:
    """The number of the first option in this release: 0, unless one of its numbers then names no option."""
    return int(any(_number(of.answer) == len(of.options) for of in questions if _named(of) is None))


def _same(text: str) -> str:
    return " ".join(text.split()).casefold()


def _notes(rows: Sequence[Row], questions: Sequence[Question], base: int) -> Iterator[str]:
    """What is odd, and scored all the same."""
    if len(rows) != FINAL_QUESTIONS:
        yield f"{len(rows)} final questions; the full set as published has {FINAL_QUESTIONS}"
    numbers = sum(_named(of) is None and _number(of.answer) is not None for of in questions)
    if numbers:
        yield f"{numbers} answers are numbers, read as indices of options counted from {base}"
    asked = [row for row in rows if row.excluded is None]
    for text, number in Counter(f"{row.video}: {row.question}" for row in asked).items():
        if number > 1:
            yield f"{text!r} is asked {number} times"
    odd: tuple[tuple[str, Callable[[Row], bool]], ...] = (
        (f"another number of options than {OPTIONS}", lambda row: len(row.options) != OPTIONS),
        ("an option that is blank", lambda row: not all(row.options)),
        ("options of the same text", lambda row: len(set(map(_same, row.options))) < len(row.options)),
    )
    for what, applies in odd:
        names = [row.id for row in asked if applies(row)]
        if names:
            yield f"{len(names)} final questions have {what}, and are scored: {', '.join(names[:10])}" + (
                ", …" if len(names) > 10 else ""  # noqa: PLR2004
            )
