"""MLVU in lmms-eval: the hooks that the YAML files name."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.answers.choices import read_choice
from lmms_eval_tasks.hooks import Hooks, Specific, note
from lmms_eval_tasks.judging.items import judge as judge_item
from lmms_eval_tasks.judging.items import settle
from lmms_eval_tasks.judging.marks import ANSWER
from lmms_eval_tasks.judging.pool import pool
from lmms_eval_tasks.judging.scores import read_scores
from lmms_eval_tasks.mlvu import metrics, prompts
from lmms_eval_tasks.mlvu.release import has_reference
from lmms_eval_tasks.results import items, records
from lmms_eval_tasks.results.items import Item

if TYPE_CHECKING:
    from datasets import Dataset

VERSION = "1-A"

_PROMPTS = {
    "multiple_choice": prompts.MULTIPLE_CHOICE,
    "answer": ANSWER,
    "sub_scene_captioning": prompts.SUB_SCENE_CAPTIONING,
    "video_summarization": prompts.VIDEO_SUMMARIZATION,
}
_KEYS = (
    "category",
    "question_type",
    "question",
    "candidates",
    "letters",
    "answer",
    "scoring_points",
    "seconds",
)
# What the judge grades: whole numbers, but for the accuracy, which is a mean over scoring points.
_SCALES: dict[str, dict[str, type[int] | type[float]]] = {
    "sub_scene_captioning": {"accuracy": float, "relevance": int},
    "video_summarization": {"completeness": int, "reliability": int},
}

_hooks = Hooks("mlvu", VERSION, _PROMPTS, kind="category")

__getattr__ = _hooks.attribute


def process_docs(dataset: "Dataset") -> "Dataset":
    """The questions that can be asked, one doc each, in their order.

    Args:
        dataset: Canonical rows of one configuration.

    Raises:
        PackError: No question can be asked.
    """
    return _hooks.docs(dataset, _questions, _features())


def _questions(row: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    doc = {key: row[key] for key in ("id", "video", *_KEYS)}
    if row["duration"] is not None:
        doc["seconds"] = row["duration"]
    if row["excluded"] is not None:
        doc.update(status=items.EXCLUDED, reason=row["excluded"])
    yield doc


def _features() -> dict[str, Any]:
    from datasets import Value

    text = Value("string")
    lists = {key: [text] for key in ("candidates", "letters", "scoring_points")}
    return {"video": text, **dict.fromkeys(_KEYS, text), **lists, "seconds": Value("float64")}


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> str:
    """The prompt of a question: with its options, or for generation the question alone."""
    _hooks.asked(doc, lmms_eval_specific_kwargs)
    return _prompt(doc)


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[str]:
    """The question's video, as one path: a clip of exactly the sampled frames."""
    return _hooks.clips(doc, lmms_eval_specific_kwargs)


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[dict[str, Any]]:
    """One user message with video and prompt; the video first, as the YAML says."""
    clips = _hooks.clips(doc, lmms_eval_specific_kwargs)
    return _hooks.messages(_prompt(doc), clips, lmms_eval_specific_kwargs)


def _prompt(doc: Mapping[str, Any]) -> str:
    if doc["category"] in metrics.GENERATION:
        return str(doc["question"])
    return prompts.multiple_choice(doc["question"], doc["candidates"])


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Item]:
    """Writes a question's item to the run record, scores it or submits its judging, and spreads it over its metrics.

    Args:
        doc: A doc of `process_docs`.
        results: The model's answers, one for each repeat.
    """
    question = item(doc, results)
    records.append(question)
    judge(question, pool().repeats)
    category = doc["category"]
    part = question.project("video", "category", "score")
    status = question.project("status", "reason", "skipped", *items.FLAGS)
    if category in metrics.GENERATION:
        grades = {name: _graded(question, name) for name, (of, _) in metrics.GRADES.items() if of == category}
        return {"g_avg": question, category: part, **grades, "coverage": status}
    means = dict.fromkeys(("micro_avg", category), part)
    if doc["task"].endswith("_test"):
        means["m_avg_all"] = part
    official = question.project("video", "category", "score", "status", "reason", "skipped")
    return {"m_avg": question, "m_avg_official": official, **means, "coverage": status}


def _graded(question: Item, name: str) -> Item:
    """A small item whose ``score`` is one of the two grades."""
    part = Item()

    def finish() -> dict[str, Any]:
        question.settle()
        scored = {"score": metrics.grade(question, name)} if "score" in question else {}
        return {"video": question["video"], **scored}

    part.finish = finish
    return part


def item(doc: Mapping[str, Any], answers: Sequence[str]) -> Item:
    """A question's item before it is scored: all that scoring needs, without the dataset.

    Args:
        doc: A doc of `process_docs`.
        answers: The model's answers, one for each repeat.
    """
    return _hooks.item(doc, answers, _KEYS)


def judge(question: Item, repeats: int) -> None:
    """Scores an item: multiple choice at once, generation by a judge, whose scores settling it fills in.

    Args:
        question: An item; one whose request failed becomes ``no_answer``, one without a reference answer ``excluded``.
        repeats: How often each answer is judged.
    """
    answers = items.answers_read(question)
    if answers is None:
        return
    choices = question["category"] not in metrics.GENERATION
    if choices:
        _choose(question, answers)
    if not has_reference(question):
        question.update(status=items.EXCLUDED, reason=metrics.NO_REFERENCE)
    elif choices:
        question.update(status=items.SCORED, score=items.accuracy(question["choices"], question["letters"]))
    else:
        judge_item(
            question,
            [_judge_prompt(question, answer) for answer in answers],
            read=lambda reply: read_scores(reply, _SCALES[question["category"]]),
            score=metrics.total,
            repeats=repeats,
        )


def _choose(question: Item, answers: Sequence[str]) -> None:
    """Reads the letter of each answer into ``choices``; where there is none, the answer counts as ``unread``."""
    question["choices"] = [read_choice(answer, question["candidates"]) for answer in answers]
    unread = question["choices"].count(None)
    if unread:
        question["unread"] = unread


def _judge_prompt(question: Item, answer: str) -> str:
    if question["category"] == "video_summarization":
        return prompts.video_summarization(question["answer"], answer)
    return prompts.sub_scene_captioning(question["question"], question["scoring_points"], answer)


def score(part: Sequence[Item]) -> float:
    """Aggregates a category, a grade, or the average over questions: the mean of the items' scores."""
    settle(part)
    return items.mean(question["score"] for question in part if "score" in question)


def m_avg(part: Sequence[Item]) -> float:
    """Aggregates M-Avg, in percent: the unweighted mean of the paper's seven categories."""
    return _over_categories(part, "m_avg")


def m_avg_all(part: Sequence[Item]) -> float:
    """Aggregates the mean over all multiple-choice categories, in percent; NaN without sports and tutorials."""
    return _over_categories(part, "m_avg_all")


def g_avg(part: Sequence[Item]) -> float:
    """Aggregates G-Avg, 2 to 10: the mean of the two generation categories."""
    return _over_categories(part, "g_avg")


def m_avg_official(part: Sequence[Item]) -> float:
    """Aggregates M-Avg as the authors' script computes it, in percent."""
    settle(part)
    return metrics.official(part).get("m_avg_official", math.nan)


def _over_categories(part: Sequence[Item], name: str) -> float:
    settle(part)
    note(part, metrics.notes)
    return metrics.over_categories(metrics.by_category(part)).get(name, math.nan)
