"""The authors' releases of MLVU -> canonical rows, one for each question.

Three forms, found by name anywhere below the source, also together: the dev set's nine JSON lists (``1_plotQA.json`` …
``9_summary.json``); the test set's ``test_multi_choice_tasks.json`` and ``test_generation_tasks.json``, with the
answers in them, in ``test_mcq_gt.json``, ``test_ssc_gt.json`` and ``test_vs_gt.json``, or nowhere; the copy reorganised
for lmms-eval, as JSON, JSONL or parquet under any name, with the fields ``video_name`` and ``task_type``.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.media.sources import check_name
from lmms_eval_tasks.mlvu.metrics import GENERATION
from lmms_eval_tasks.releases import IGNORED, Release, find_file, read_json, read_json_lines, source_folder

if TYPE_CHECKING:
    from datasets import Features
    from pydantic_core import ErrorDetails

TITLE = "MLVU"

# Questions by configuration as published: paper, appendix Table 1; the test release adds 79 on sports and tutorials.
PUBLISHED = {"mc_dev": (2175,), "gen_dev": (418,), "mc_test": (502, 423), "gen_test": (86,)}

# Each file of the dev set is a category, and names the folder that its videos may lie in.
_DEV = {
    "1_plotQA": "plot_qa",
    "2_needle": "needle_qa",
    "3_ego": "ego_reasoning",
    "4_count": "action_count",
    "5_order": "action_order",
    "6_anomaly_reco": "anomaly_recognition",
    "7_topic_reasoning": "topic_reasoning",
    "8_sub_scene": "sub_scene_captioning",
    "9_summary": "video_summarization",
}
_FOLDERS = {category: folder for folder, category in _DEV.items()}
# The test set's questions, multiple choice and generation; behind each file those that add to it, such as the answers.
_TEST = (
    ("test_multi_choice_tasks.json", "test_question.json", "test_mcq_gt.json"),
    ("test_generation_tasks.json", "test_ssc_gt.json", "test_vs_gt.json"),
)

_KNOWN = {f"{stem}.json" for stem in _DEV} | {name for names in _TEST for name in names}

# The authors' words for the categories: one may have several.
_CATEGORIES = {
    "plotqa": "plot_qa",
    "needle": "needle_qa",
    "needleqa": "needle_qa",
    "findneedle": "needle_qa",
    "ego": "ego_reasoning",
    "count": "action_count",
    "order": "action_order",
    "anomaly_reco": "anomaly_recognition",
    "topic_reasoning": "topic_reasoning",
    "sportsqa": "sports_qa",
    "tutorialqa": "tutorial_qa",
    "subplot": "sub_scene_captioning",
    "subsummary": "sub_scene_captioning",
    "sub_scene": "sub_scene_captioning",
    "summary": "video_summarization",
}
_DEV_CANDIDATES = 4
_LETTER = re.compile(r"\(?([A-Za-z])[).]?")
_OWN_LETTER = re.compile(r"\s*(?:\(([A-Z])\)|([A-Z])[).:])\s*")


class Question(BaseModel):
    """A question as the authors write it; `Row` says more of the fields."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)
    video: str = Field(min_length=1, validation_alias=AliasChoices("video", "video_name"))
    question: str
    question_type: str = Field(min_length=1, validation_alias=AliasChoices("question_type", "task_type"))
    candidates: list[str] | None = None
    answer: str | None = None
    scoring_points: list[str] | None = None
    duration: float | None = Field(None, gt=0)
    question_id: str | None = None

    @model_validator(mode="after")
    def _holds_no_half_characters(self) -> "Question":
        # A lone surrogate, which JSON can hold and parquet cannot; encoding it is the ValueError that names it.
        given = (self.question, self.answer, self.question_id, *(self.candidates or ()), *(self.scoring_points or ()))
        "".join(text or "" for text in given).encode()
        return self


class Row(BaseModel):
    """One row of the canonical dataset.

    Attributes:
        id: The test's ``question_id``, else the file's name and the row's index from 0.
        category: One of the paper's, or of `metrics.EXTRA`.
        question_type: The authors' word for it, which the leaderboard wants.
        video: Its file's name, behind the folder that it may lie in.
        question: The question, without options.
        candidates: The options' texts in their order; empty for generation.
        letters: The letters of the right options, all that carry the right text; empty where no answer is known.
        answer: The right option's text, or the reference answer; empty where none is known.
        scoring_points: What the judge of a sub-scene caption looks for.
        duration: The video's duration in seconds, as annotated.
        seconds: The same, of the file at hand.
        excluded: Why the row cannot be scored.
    """

    model_config = ConfigDict(extra="forbid")
    id: str = Field(min_length=1)
    category: str
    question_type: str
    video: str = Field(min_length=1)
    question: str
    candidates: list[str] = []
    letters: list[str] = []
    answer: str = ""
    scoring_points: list[str] = []
    duration: float | None = None
    seconds: float | None = None
    excluded: str | None = None


class _Part(NamedTuple):
    """Questions of one split, by id.

    Attributes:
        split: ``"dev"`` or ``"test"``.
        category: What the file's name says; else each question does.
        reorganised: Whether options stand in the questions, and answers are letters.
        questions: The questions.
    """

    split: str
    category: str | None
    reorganised: bool
    questions: Mapping[str, Question]


def read(source: Path) -> Release:
    """Reads and validates a release, in any of its forms.

    Args:
        source: A folder that holds the authors' files, or the copy for lmms-eval.

    Returns:
        Canonical rows by configuration: ``mc_dev``, ``gen_dev``, ``mc_test``, ``gen_test``, those that are there. Rows
        that cannot be scored are marked ``excluded`` and listed with their reason.

    Raises:
        PackError: Files are missing, unreadable or of another shape; all of it is named at once.
    """
    source = source_folder(source)
    release, problems = Release(rows={config: [] for config in PUBLISHED}), []
    claims: _Claims = {}
    for path, parse in _files(source):
        try:
            part = parse()
            found = _rows(path, part)
            _claim(claims, path, part, found)
            for row in found:
                release.rows[_config(row, part)].append(row.model_dump())
        except PackError as error:
            problems.append(str(error))
    if problems:
        raise PackError(listing(f"{TITLE} in {source} cannot be read", problems))
    release.rows = {config: rows for config, rows in release.rows.items() if rows}
    if not release.rows:
        raise PackError(f"{source} holds no {TITLE} release: below it is none of {', '.join(sorted(_KNOWN))}, and no "
                        "JSON, JSONL or parquet with the fields video_name and task_type")  # fmt: skip
    for config, rows in release.rows.items():
        release.excluded += [{"id": row["id"], "reason": row["excluded"]} for row in rows if row["excluded"]]
        release.notes += _notes(config, rows)
    return release


def questions(row: Mapping[str, Any]) -> int:
    """How many questions of a row are asked: one, unless it is excluded."""
    return int(row["excluded"] is None)


def features() -> "Features":
    """The columns of the rows."""
    from datasets import Features, Value

    text = Value("string")
    texts = dict.fromkeys(("id", "category", "question_type", "video", "question", "answer", "excluded"), text)
    lists = {key: [text] for key in ("candidates", "letters", "scoring_points")}
    return Features({**texts, **lists, **dict.fromkeys(("duration", "seconds"), Value("float64"))})


def has_reference(row: Mapping[str, Any]) -> bool:
    """Whether an answer to a row or doc can be scored: older test releases have no reference answers."""
    needed = {"sub_scene_captioning": "scoring_points", "video_summarization": "answer"}
    return bool(row[needed.get(row["category"], "letters")])


def _files(source: Path) -> Iterator[tuple[Path, Callable[[], _Part]]]:
    """What there is below a folder, each with a function that reads it."""
    for stem, category in _DEV.items():
        path = find_file(source, f"{stem}.json")
        if path is not None:
            yield path, partial(_dev, path, stem, category)
    for names in _TEST:
        paths = [path for name in names if (path := find_file(source, name)) is not None]
        if paths:
            yield paths[0], partial(_test, paths)
    for path in _reorganised_files(source):
        yield path, partial(_reorganised, path)


def _dev(path: Path, stem: str, category: str) -> _Part:
    read = _questions(path)
    return _Part("dev", category, False, {f"{stem}/{index}": question for index, question in enumerate(read)})


def _test(paths: Sequence[Path]) -> _Part:
    """Questions of the test set, with what the files behind the first of `_TEST` add to them.

    Raises:
        PackError: Files contradict each other on options or answers; all such questions are named.
    """
    merged: list[tuple[str, Question]] = []
    problems: list[str] = []
    for path in paths:
        more = all(path.name.lower() != names[0] for names in _TEST)
        for name, question in _named(path, _questions(path)).items():
            same = [place for place, (_, other) in enumerate(merged) if more and _is_same(question, other)]
            for place in same:
                known, other = merged[place]
                problems += [f"{known}: {path.name} has other {what}" for what in _contradictions(question, other)]
                given = {key: value for key, value in other.model_dump().items() if value}
                merged[place] = known, question.model_copy(update=given)
            if not same:
                merged.append((name, question))
    if problems:
        raise PackError(listing(f"{paths[0]}: files beside it contradict it. Keep one of each two", problems))
    return _Part("test", None, False, dict(merged))


def _is_same(one: Question, other: Question) -> bool:
    """Whether two files speak of one question: by its id, or by all of its text where one of them gives no id."""
    if one.question_id is not None and other.question_id is not None:
        return one.question_id == other.question_id
    return (one.video, one.question, one.candidates) == (other.video, other.question, other.candidates)


def _contradictions(one: Question, other: Question) -> list[str]:
    """What two files say differently of one multiple-choice question."""
    if not (one.candidates and other.candidates):
        return []
    if one.candidates != other.candidates:
        return ["candidates"]
    right = {tuple(_letters(of.answer, one.candidates, False)) for of in (one, other) if of.answer}
    return ["answer"] if len(right) > 1 else []


def _reorganised(path: Path) -> _Part:
    read = _questions(path)
    most = max((len(question.candidates or ()) for question in read), default=0)
    if not most:
        raise PackError(f"{path}: no row has candidates, whose number tells the dev set ({_DEV_CANDIDATES}) from the "
                        "test set. Give the authors' own files for generation")  # fmt: skip
    split = "test" if most > _DEV_CANDIDATES else "dev"
    return _Part(split, None, True, _named(path, [_without_options(question) for question in read]))


def _reorganised_files(source: Path) -> Iterator[Path]:
    known = {name.lower() for name in _KNOWN}
    for path in sorted(source.rglob("*")):
        hidden = path.name.lower() in known or IGNORED & set(path.relative_to(source).parts)
        if path.suffix.lower() in _LOADERS and not hidden and path.is_file() and _looks_reorganised(path):
            yield path


def _looks_reorganised(path: Path) -> bool:
    from pyarrow import parquet

    try:
        if path.suffix.lower() == ".parquet":
            return {"video_name", "task_type"} <= set(parquet.read_schema(path).names)
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except (OSError, ValueError):
        return False
    return b'"video_name"' in head and b'"task_type"' in head


def _questions(path: Path) -> list[Question]:
    """The rows of a file.

    Raises:
        PackError: It cannot be read, or rows have another shape; all such rows are named.
    """
    rows = _LOADERS[path.suffix.lower()](path)
    if not isinstance(rows, list):
        raise PackError(f"{path}: a list of questions is needed, not {type(rows).__name__}")
    found, problems = [], []
    for index, row in enumerate(rows):
        try:
            question = Question.model_validate(row)
            check_name(question.video)
            found.append(question)
        except ValidationError as error:
            problems += [f"row {index}: {_explain(entry)}" for entry in error.errors()]
        except PackError as error:
            problems.append(f"row {index}: {error}")
    if problems:
        raise PackError(listing(f"{path}, rows counted from 0", problems))
    return found


def _explain(error: "ErrorDetails") -> str:
    place = ".".join(map(str, error["loc"]))
    return f"{place}: {error['msg']}" if place else error["msg"]


def _jsonl(path: Path) -> list[Any]:
    return [row for _, row in read_json_lines(path)]


def _parquet(path: Path) -> list[Any]:
    from pyarrow import parquet

    known = {str(choice) for field in Question.model_fields.values() if isinstance(field.validation_alias, AliasChoices)
             for choice in field.validation_alias.choices} | set(Question.model_fields)  # fmt: skip
    try:
        names = [name for name in parquet.read_schema(path).names if name in known]
        rows: list[Any] = parquet.read_table(path, columns=names).to_pylist()
    except (OSError, ValueError) as error:
        raise PackError(f"{path}: cannot be read as parquet ({error})") from None
    return rows


_LOADERS: dict[str, Callable[[Path], Any]] = {".json": read_json, ".jsonl": _jsonl, ".parquet": _parquet}


def _named(path: Path, questions: Sequence[Question]) -> dict[str, Question]:
    """Questions by their ids: ``question_id``, else the file's name and the row's index.

    Raises:
        PackError: Several rows share an id; all such are named.
    """
    rows = defaultdict(list)
    names = [question.question_id or f"{path.stem}/{index}" for index, question in enumerate(questions)]
    for index, name in enumerate(names):
        rows[name].append(index)
    twice = [f"{name}: rows {', '.join(map(str, of))}" for name, of in rows.items() if len(of) > 1]
    if twice:
        raise PackError(listing(f"{path}: a question_id must be one row's alone (rows counted from 0)", twice))
    return dict(zip(names, questions, strict=True))


def _without_options(question: Question) -> Question:
    """A question of the copy for lmms-eval without the options that are written into it."""
    candidates = question.candidates or []
    marks = [_OWN_LETTER.match(text) for text in candidates]
    if candidates and [mark and (mark[1] or mark[2]) for mark in marks] == list(ascii_uppercase[: len(marks)]):
        candidates = [text[mark.end() :] for text, mark in zip(candidates, marks, strict=True) if mark]
    text = question.question
    if candidates:
        first = rf"(?:^|\s)\s*(?:(?:Options?|Choices)\s*:?\s*)?\(?[Aa]\s*[).:]\s*{re.escape(candidates[0].strip())}"
        text = re.split(first, text, maxsplit=1)[0]
    text = re.sub(r"\A\s*Question\s*:\s*", "", text)
    return question.model_copy(update={"question": text, "candidates": candidates or None})


def _rows(path: Path, part: _Part) -> list[Row]:
    """The rows of a part.

    Raises:
        PackError: Questions are of an unknown category; all such are named.
    """
    categories = {
        name: part.category or _CATEGORIES.get(question.question_type.lower(), "")
        for name, question in part.questions.items()
    }
    unknown = [name for name, category in categories.items() if not category]
    if unknown:
        lines = [f"{name}: {part.questions[name].question_type!r}" for name in unknown]
        raise PackError(listing(f"{path}: question_type is none of {', '.join(_CATEGORIES)}", lines))
    return [_row(name, question, part, categories[name]) for name, question in part.questions.items()]


def _config(row: Row, part: _Part) -> str:
    return f"{'gen' if row.category in GENERATION else 'mc'}_{part.split}"


# Who gives a question, or the questions of a category: what must be equal for all that give it, and the first file.
_Claims: TypeAlias = "dict[str, tuple[object, Path]]"


def _claim(claims: _Claims, path: Path, part: _Part, rows: Sequence[Row]) -> None:
    """Refuses what comes twice: a question in several files, a category in several forms.

    Raises:
        PackError: The names of both files.
    """
    for row in rows:
        for what, owner in ((row.id, path), (row.category, part.reorganised)):
            config = _config(row, part)
            known, first = claims.setdefault(f"{config}: {what}", (owner, path))
            if known != owner:
                raise PackError(f"{path}: {what} of {config} is in {first} too. Keep one of the two files")


def _row(name: str, question: Question, part: _Part, category: str) -> Row:
    candidates = question.candidates or []
    letters = _letters(question.answer, candidates, part.reorganised) if question.answer is not None else []
    folder = _FOLDERS.get(category) if part.split == "dev" and "/" not in question.video else None
    row = Row(
        id=name,
        category=category,
        question_type=question.question_type,
        video=f"{folder}/{question.video}" if folder else question.video,
        question=question.question,
        candidates=candidates,
        letters=letters,
        answer=candidates[ascii_uppercase.index(letters[0])] if letters else question.answer or "",
        scoring_points=[point for point in question.scoring_points or [] if point.strip()],
        duration=question.duration,
    )
    row.excluded = _problem(row, part.split)
    return row


def _letters(answer: str, candidates: Sequence[str], reorganised: bool) -> list[str]:
    """The letters of all options that carry the right text, which is given as text or by a letter."""
    letters = ascii_uppercase[: len(candidates)]
    stripped = [text.strip() for text in candidates]
    named = dict(zip(letters, stripped, strict=False))
    letter, own = _LETTER.fullmatch(answer.strip()), _OWN_LETTER.match(answer)
    by_letter = named.get(letter[1].upper()) if letter else None
    if own and answer[own.end() :].strip() == named.get(own[1] or own[2]):  # `(B) Red`
        by_letter = named[own[1] or own[2]]
    texts = (by_letter, answer) if reorganised else (answer, by_letter)
    right = next((text.strip() for text in texts if text is not None and text.strip() in stripped), None)
    return [letter for letter, text in zip(letters, stripped, strict=False) if text == right]


def _problem(row: Row, split: str) -> str | None:
    """Why a row cannot be scored; of the test set, only where it has an answer."""
    if not row.question.strip():
        return "the question is empty"
    if row.category not in GENERATION:
        if not 1 < len(row.candidates) <= len(ascii_uppercase):
            return f"it has {len(row.candidates)} candidates"
        if row.answer.strip() and not row.letters:
            return f"the answer {row.answer!r} is not among the candidates"
    if split == "dev" and not has_reference(row.model_dump()):
        return "it has no answer" if row.category != "sub_scene_captioning" else "it has no scoring points"
    return None


def _notes(config: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is odd in a configuration, and scored all the same."""
    notes = []
    if len(rows) not in PUBLISHED[config]:
        notes.append(f"{config}: {len(rows)} questions; the full set as published has {PUBLISHED[config][0]}")
    asked = [row for row in rows if row["excluded"] is None]
    unknown = sum(not has_reference(row) for row in asked)
    if unknown:
        notes.append(f"{config}: {unknown} questions have no reference answer: they are asked, and not scored")
    for row in asked:
        candidates = row["candidates"]
        texts = [text for text in dict.fromkeys(candidates) if text.strip() and candidates.count(text) > 1]
        blank = sum(not text.strip() for text in candidates)
        odd = [f"{text!r} stands {candidates.count(text)} times among the candidates" for text in texts]
        odd += [f"{blank} of the candidates are blank"] if blank else []
        odd += ["the right one is blank"] if row["letters"] and not row["answer"].strip() else []
        if odd:
            notes.append(f"{row['id']}: {', '.join(odd)}; scored")
    return notes
