"""MVPBench in lmms-eval: the hooks that the YAML files name."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.answers.numbers import read_number, read_ranking
from lmms_eval_tasks.answers.reasoning import strip_reasoning
from lmms_eval_tasks.dialogue.adapter import Conversations, transcripts
from lmms_eval_tasks.hooks import Hooks, Specific, note, text_part, video_part
from lmms_eval_tasks.judging.items import judge_unread, settle
from lmms_eval_tasks.mvpbench import metrics, prompts, single
from lmms_eval_tasks.results import items, records
from lmms_eval_tasks.results.items import Item

if TYPE_CHECKING:
    from datasets import Dataset

VERSION = "1-A"

_PROMPTS = {
    **prompts.INFERENCE,
    "extraction": prompts.EXTRACTION,
    "caption": prompts.CAPTION,
    "score": prompts.SCORE + "".join(prompts.QUALITIES.values()),
}
_KEYS = ("subtask", "candidates", "gold", "chance", "seconds")

_hooks = Hooks("mvpbench", VERSION, _PROMPTS, kind="subtask")

__getattr__ = _hooks.attribute


def process_docs(dataset: "Dataset") -> "Dataset":
    """The docs of a task: one for each question that is not excluded, in their order.

    Args:
        dataset: Canonical rows; a configuration other than the default one is a subtask.

    Raises:
        PackError: No question can be asked.
    """
    return _hooks.docs(dataset, _questions, _features())


def process_docs_captions(dataset: "Dataset") -> "Dataset":
    """As `process_docs`, for the task that has each video described alone."""
    return _hooks.docs(dataset, _questions, _features(), variant="captions")


def process_docs_single_scores(dataset: "Dataset") -> "Dataset":
    """As `process_docs`, for the task that has each video scored alone."""
    return _hooks.docs(dataset, _questions, _features(), variant="single_scores")


def _questions(row: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    doc = {key: value for key, value in row.items() if key != "excluded"}
    if row["excluded"] is not None:
        yield {**doc, "status": items.EXCLUDED, "reason": row["excluded"]}
    else:
        chance = metrics.chance_level(row["subtask"], row["candidates"])
        yield {**doc, "video": row["videos"][0], "chance": chance, "target": ", ".join(map(str, row["gold"]))}


def _features() -> dict[str, Any]:
    from datasets import Value

    text, number, real = Value("string"), Value("int64"), Value("float64")
    return {
        **dict.fromkeys(("subtask", "video", "query", "target"), text),
        "videos": [text],
        "reference": Value("bool"),
        "candidates": number,
        "gold": [number],
        "chance": real,
        "seconds": real,
    }


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> str:
    """The query with its placeholders numbered, for backends that take text and videos apart."""
    _hooks.asked(doc, lmms_eval_specific_kwargs)
    return prompts.numbered(doc["query"])


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[str]:
    """The clips, in the order of the placeholders."""
    return _hooks.clips(doc, lmms_eval_specific_kwargs)


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[dict[str, Any]]:
    """The query in one user message, with a clip where each placeholder stands."""
    first, *others = doc["query"].split(prompts.PLACEHOLDER)
    content = [text_part(first)]
    for clip, text in zip(_hooks.clips(doc, lmms_eval_specific_kwargs), others, strict=True):
        content += [video_part(clip), text_part(text)]
    return [{"role": "user", "content": [part for part in content if part.get("text") != ""]}]


_captions, _single_scores = Conversations(_hooks, single.captions), Conversations(_hooks, single.scores)
doc_to_text_captions, doc_to_visual_captions = _captions.doc_to_text, _captions.doc_to_visual
doc_to_text_single_scores, doc_to_visual_single_scores = _single_scores.doc_to_text, _single_scores.doc_to_visual
_ONE_BY_ONE = ("mvpbench_captions", "mvpbench_single_scores")


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Item]:
    """Writes a question's item to the run record, scores it, and spreads it over the doc's metrics.

    Args:
        doc: A doc of any task of the room.
        results: The model's answers, one for each repeat, or its transcripts, joined.
    """
    question = item(doc, results)
    records.append(question)
    judge(question)
    subtask = doc["subtask"]
    scored = question.project("video", "subtask", "status", "chance", "score")
    # Without a score, of which lmms-eval would take the standard error.
    rest = question.project("subtask", "status", "chance", "first")
    return {
        "overall": question,
        metrics.DOMAIN_OF[subtask]: scored,
        subtask: scored,
        f"{subtask}_accuracy": scored,
        f"{subtask}_chance": rest,
        f"{subtask}_first_option": rest,
        "coverage": question.project("status", "reason", "skipped", *items.FLAGS),
    }


def item(doc: Mapping[str, Any], answers: Sequence[str]) -> Item:
    """A question's item before its scoring: all that scoring needs, without the dataset.

    Args:
        doc: A doc of any task of the room.
        answers: The model's answers, one for each repeat, or its transcripts, joined.
    """
    if doc["task"] not in _ONE_BY_ONE:
        return _hooks.item(doc, answers, _KEYS)
    said = transcripts(answers)
    question = _hooks.item(doc, [of.answer for of in said], _KEYS)
    question["transcripts"] = [of.turns for of in said]
    return question


def judge(question: Item, repeats: int = 1) -> None:
    """Scores an item's answers; a judge reads those that rules cannot read, and settling the item waits for it.

    A choice is a list of numbers: of one, or in a ranking of all videos in order.

    Args:
        question: An item; one whose request failed becomes ``no_answer``.
        repeats: Not used: an answer is read once.
    """
    answers = items.answers_read(question)
    if answers is None:
        return
    subtask, candidates, gold = question["subtask"], question["candidates"], question["gold"]
    judge_unread(
        question,
        [read_choice(answer, subtask, candidates) for answer in answers],
        list(map(prompts.extraction, answers)),
        read=lambda reply: read_reply(reply, subtask, candidates),
        kind=f"order of {candidates}" if subtask in metrics.RANKINGS else "number",
        score=lambda choices: {
            "score": items.mean(100.0 * (choice == gold) for choice in choices),
            "first": items.mean(float(choice == metrics.first_option(gold)) for choice in choices),
        },
    )


def read_choice(answer: str, subtask: str, candidates: int) -> list[int] | None:
    """The numbers that an answer gives: one, or in a ranking all; None where rules find none, or more than one answer.

    An empty answer gives none for certain: a judge might take one from the examples of its prompt.

    Args:
        answer: The answer, without its reasoning.
        subtask: Name of the subtask.
        candidates: Number of videos to choose from, or to put in order.
    """
    if not answer:
        return []
    if subtask in metrics.RANKINGS:
        return read_ranking(answer, candidates)
    number = read_number(answer, candidates)
    return None if number is None else [number]


# What a judge writes when a passage gives no answer, or several where one is asked for.
_NO_CHOICE = re.compile(
    r"\b(?:none|no|not|nothing|neither|nor|cannot|can't|unable|unclear|ambiguous|undetermined|empty|both|several|multiple|n/?a)\b",
    re.IGNORECASE,
)
_LIST = re.compile(r"[\s\[(]*(?:video\s*)?\d+(?:(?:[\s,;&]|and)+(?:video\s*)?\d+)*[\s\]).]*", re.IGNORECASE)


def read_reply(reply: str, subtask: str, candidates: int) -> list[int] | None:
    """A judge's reply: the choice it found, empty where it says that there is no single one, None if it is unreadable.

    Args:
        reply: The judge's text.
        subtask: Name of the subtask.
        candidates: Number of videos to choose from, or to put in order.
    """
    text = strip_reasoning(reply).text
    choice = read_choice(text, subtask, candidates) if text else None
    if choice is None and (_LIST.fullmatch(text) or (_NO_CHOICE.search(text) and not re.search(r"\d", text))):
        return []
    return choice


def score(part: Sequence[Item]) -> float:
    """Aggregates proficiency over the subtasks that the items belong to, in percent."""
    settle(part)
    note(part, metrics.notes)
    return metrics.overall(metrics.accuracies(part), metrics.chances(part))


def accuracy(part: Sequence[Item]) -> float:
    """Aggregates the accuracy of one subtask's items, in percent."""
    settle(part)
    return 100 * items.mean(metrics.accuracies(part).values())


def chance(part: Sequence[Item]) -> float:
    """Aggregates the chance level of one subtask's items, in percent."""
    settle(part)
    return 100 * items.mean(metrics.chances(part).values())


def first_option(part: Sequence[Item]) -> float:
    """Aggregates the share of answers that are the first option, over one subtask's items, in percent."""
    settle(part)
    return items.mean(metrics.first_options(part).values())
