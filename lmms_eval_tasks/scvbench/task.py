"""SCVBench in lmms-eval: the hooks that the YAML files name, and the programs that ask progressively."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.answers.choices import read_choice
from lmms_eval_tasks.dialogue.adapter import Conversations, transcripts
from lmms_eval_tasks.dialogue.program import Program, Turn
from lmms_eval_tasks.hooks import Hooks, Specific, note
from lmms_eval_tasks.judging.items import settle
from lmms_eval_tasks.results import items, records
from lmms_eval_tasks.results.items import Item
from lmms_eval_tasks.scvbench import metrics, prompts

if TYPE_CHECKING:
    from datasets import Dataset

VERSION = "1-A"

_PROMPTS = {
    "fqa": prompts.FQA,
    "pqa": prompts.PQA,
    "pqa_with_story": prompts.PQA_WITH_STORY,
    "sub_question": prompts.SUB_QUESTION,
    "events": prompts.EVENTS,
    "story": prompts.STORY,
}
_KEYS = ("question", "options", "letters", "sub_questions", "seconds")

_hooks = Hooks("scvbench", VERSION, _PROMPTS, kind="video")

__getattr__ = _hooks.attribute


def process_docs(dataset: "Dataset") -> "Dataset":
    """The final questions that can be asked, one doc each, in their order.

    Args:
        dataset: Canonical rows.

    Raises:
        PackError: No question can be asked.
    """
    return _docs(dataset, "fqa")


def process_docs_pqa(dataset: "Dataset") -> "Dataset":
    """As `process_docs`, for the task whose history is what the model answers."""
    return _docs(dataset, "pqa")


def process_docs_pqa_gold(dataset: "Dataset") -> "Dataset":
    """As `process_docs`, for the task whose history is the reference answers."""
    return _docs(dataset, "pqa_gold")


def process_docs_storycot(dataset: "Dataset") -> "Dataset":
    """As `process_docs`, for StoryCoT."""
    return _docs(dataset, "storycot")


def _docs(dataset: "Dataset", variant: str) -> "Dataset":
    return _hooks.docs(dataset, _questions, _features(), variant)


def _questions(row: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    doc = {key: row[key] for key in ("id", "video", "answer", *_KEYS)}
    if row["seconds"] is None:
        doc["seconds"] = row["duration"]
    if row["excluded"] is not None:
        doc.update(status=items.EXCLUDED, reason=row["excluded"])
    yield doc


def _features() -> dict[str, Any]:
    from datasets import Value

    text = Value("string")
    return {
        **dict.fromkeys(("video", "answer", "question"), text),
        **{key: [text] for key in ("options", "letters")},
        "sub_questions": [{"question": text, "answer": text}],
        "seconds": Value("float64"),
    }


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> str:
    """The prompt of a final question without history (paper, section 5.1)."""
    _hooks.asked(doc, lmms_eval_specific_kwargs)
    return prompts.fqa(doc["question"], doc["options"])


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[str]:
    """The question's video, as one path: a clip of exactly the sampled frames."""
    return _hooks.clips(doc, lmms_eval_specific_kwargs)


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[dict[str, Any]]:
    """One user message with video and prompt; the video first, as the YAML says."""
    text, clips = prompts.fqa(doc["question"], doc["options"]), _hooks.clips(doc, lmms_eval_specific_kwargs)
    return _hooks.messages(text, clips, lmms_eval_specific_kwargs)


def _pqa(doc: Mapping[str, Any]) -> Program:
    history = yield from _sub_answers(doc)
    return (yield from _final_question(doc, history))


def _pqa_gold(doc: Mapping[str, Any]) -> Program:
    return (yield from _final_question(doc, doc["sub_questions"]))


def _storycot(doc: Mapping[str, Any]) -> Program:
    history = yield from _sub_answers(doc)
    events = []
    for turn in history:
        events.append((yield Turn(prompts.events(turn))))
    story = yield Turn(prompts.story(history, events))
    return (yield from _final_question(doc, history, story))


def _sub_answers(doc: Mapping[str, Any]) -> Generator[Turn, str, prompts.History]:
    history: list[dict[str, str]] = []
    for turn in doc["sub_questions"]:
        answer = yield Turn(prompts.sub_question(turn["question"], history), [doc["video"]])
        history.append({"question": turn["question"], "answer": answer})
    return history


def _final_question(doc: Mapping[str, Any], history: prompts.History, story: str | None = None) -> Program:
    """Asks with history, then without: a conversation ends where a request fails, and PQA does not need the latter."""
    answer = yield Turn(prompts.pqa(doc["question"], doc["options"], history, story), [doc["video"]], name="pqa")
    yield Turn(prompts.fqa(doc["question"], doc["options"]), [doc["video"]], name="fqa")
    return answer


_own, _gold, _story = (Conversations(_hooks, program) for program in (_pqa, _pqa_gold, _storycot))
doc_to_text_pqa, doc_to_visual_pqa = _own.doc_to_text, _own.doc_to_visual
doc_to_text_pqa_gold, doc_to_visual_pqa_gold = _gold.doc_to_text, _gold.doc_to_visual
doc_to_text_storycot, doc_to_visual_storycot = _story.doc_to_text, _story.doc_to_visual


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Item]:
    """Writes a question's item to the run record, scores it, and spreads it over the doc's metrics.

    Args:
        doc: A doc of one of the `process_docs`.
        results: The model's answers, one for each repeat, or its transcripts, joined.
    """
    question = item(doc, results)
    records.append(question)
    judge(question)
    status = question.project("status", "reason", "skipped", *items.FLAGS)
    if "without_history" not in question:
        return {"fqa": question, "coverage": status}
    values = metrics.values(question)
    parts = {
        name: Item(video=doc["video"], **({"score": values[name]} if name in values else {})) for name in ("fqa", "hdu")
    }
    return {"pqa": question, **parts, "coverage": status}


def item(doc: Mapping[str, Any], answers: Sequence[str]) -> Item:
    """A question's item before its scoring: all that scoring needs, without the dataset.

    Args:
        doc: A doc of one of the `process_docs`.
        answers: The model's answers, one for each repeat, or its transcripts, joined.
    """
    counted = {**doc, "sub_questions": len(doc["sub_questions"])}
    if doc["task"] == "scvbench_fqa":
        return _hooks.item(counted, answers, _KEYS)
    said = transcripts(answers)
    question = _hooks.item(counted, [of.reply("pqa") for of in said], _KEYS)
    question["without_history"] = {"answers": [of.reply("fqa") for of in said]}
    question["transcripts"] = [of.turns for of in said]
    return question


def judge(question: Item, repeats: int = 1) -> None:
    """Scores an item's answers.

    Args:
        question: An item; one whose request failed becomes ``no_answer``.
        repeats: Not used: an answer is read once.
    """
    question.update(_scored(question["answers"], question))
    without = question.get("without_history")
    if without is None:
        return
    without.update(_scored(without["answers"], question))
    for flag in items.FLAGS:
        if flag in without:
            question[flag] = question.get(flag, 0) + without[flag]


def _scored(answers: Sequence[str], question: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of some answers to a question: status, choices, score and flags."""
    part = Item(answers=answers)
    read = items.answers_read(part)
    if read is not None:
        choices = [read_choice(answer, question["options"]) for answer in read]
        part.update(status=items.SCORED, choices=choices, score=items.accuracy(choices, question["letters"]))
        if unread := choices.count(None):
            part["unread"] = unread
    return part


def score(part: Sequence[Item]) -> float:
    """Aggregates a metric: the mean over questions, in percent."""
    settle(part)
    note(part, metrics.notes)
    return items.mean(question["score"] for question in part if "score" in question)
