"""MT-Video-Bench in lmms-eval: the hooks that the YAML files name."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.dialogue.adapter import Conversations, transcripts
from lmms_eval_tasks.dialogue.program import Program, Turn
from lmms_eval_tasks.hooks import Hooks, Specific, note, text_part, video_part
from lmms_eval_tasks.judging.items import judge as judge_item
from lmms_eval_tasks.judging.items import settle
from lmms_eval_tasks.judging.marks import ANSWER
from lmms_eval_tasks.judging.pool import pool
from lmms_eval_tasks.judging.replies import read_checklist
from lmms_eval_tasks.mt_video_bench import metrics, prompts
from lmms_eval_tasks.results import items, records
from lmms_eval_tasks.results.items import Item

if TYPE_CHECKING:
    from datasets import Dataset

VERSION = "2-A"

_PROMPTS = {"inference": prompts.INFERENCE, "system": prompts.SYSTEM, "judge": prompts.JUDGE, "answer": ANSWER}
_KEYS = ("dialogue", "ability", "turn", "turns", "seconds", "scenes", "checklist")

_hooks = Hooks("mt_video_bench", VERSION, _PROMPTS, kind="ability")

__getattr__ = _hooks.attribute


def process_docs(dataset: "Dataset") -> "Dataset":
    """Expands dialogues into one doc for each evaluated turn, with its golden history, in their order.

    Args:
        dataset: Canonical rows; a configuration other than the default one is an ability.

    Raises:
        PackError: No turn can be asked.
    """
    return _hooks.docs(dataset, _turns, _features())


def process_docs_no_context(dataset: "Dataset") -> "Dataset":
    """As `process_docs`, with an empty history."""
    return _hooks.docs(dataset, partial(_turns, history=False), _features(), variant="no_context")


def process_docs_chat(dataset: "Dataset") -> "Dataset":
    """As `process_docs`, for the task that gives the history as chat turns."""
    return _hooks.docs(dataset, _turns, _features(), variant="chat")


def process_docs_self(dataset: "Dataset") -> "Dataset":
    """One doc for each dialogue, whose ``parts`` are its evaluated turns; the history is what the model answers."""
    from datasets import Value

    part = {"id": Value("string"), **_features(), "status": Value("string"), "reason": Value("string")}
    of_dialogue = ("video", "dialogue", "ability")
    features = {key: part[key] for key in of_dialogue} | {"questions": [Value("string")], "parts": [part]}
    return _hooks.docs(dataset, _dialogue, features, variant="self")


def _dialogue(row: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    parts = list(_turns(row, history=False))
    if not parts:
        return
    asked = [part["turn"] for part in parts if "status" not in part]
    doc = {key: parts[0][key] for key in ("video", "dialogue", "ability")}
    doc |= {
        "id": row["id"],
        "parts": parts,
        "questions": [turn["question"] for turn in row["turns"][: max(asked, default=0)]],
    }
    if not asked:
        doc.update(status=items.EXCLUDED, reason=parts[0]["reason"])
    yield doc


def _turns(row: Mapping[str, Any], history: bool = True) -> Iterable[dict[str, Any]]:
    turns = row["turns"]
    for number, turn in enumerate(turns, start=1):
        if not turn["checklist"] and turn["excluded"] is None:
            continue
        earlier = [{"question": old["question"], "answer": old["answer"]} for old in turns[: number - 1]]
        doc = {
            "id": f"{row['id']}/{number}",
            "video": row["video"],
            "dialogue": row["id"],
            "ability": row["ability"],
            "turn": number,
            "turns": len(turns),
            "history": earlier if history else [],
            "question": turn["question"],
            "reference": turn["answer"],
            "checklist": turn["checklist"],
            "seconds": row["seconds"],
            "scenes": row["scenes"],
        }
        if turn["excluded"] is not None:
            doc.update(status=items.EXCLUDED, reason=turn["excluded"])
        yield doc


def _features() -> dict[str, Any]:
    from datasets import Value

    text, number = Value("string"), Value("int64")
    return {
        **dict.fromkeys(("video", "dialogue", "ability"), text),
        "turn": number,
        "turns": number,
        "history": [{"question": text, "answer": text}],
        "question": text,
        "reference": text,
        "checklist": [{"question": text, "expected": text}],
        "seconds": Value("float64"),
        "scenes": number,
    }


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> str:
    """The prompt of a turn (paper, Figure 15)."""
    _hooks.asked(doc, lmms_eval_specific_kwargs)
    return prompts.inference(doc["history"], doc["question"])


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[str]:
    """The turn's video, as one path: a clip of exactly the sampled frames."""
    return _hooks.clips(doc, lmms_eval_specific_kwargs)


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[dict[str, Any]]:
    """One user message with prompt and video; the text first unless the model's ``text_first`` is false."""
    text, clips = prompts.inference(doc["history"], doc["question"]), _hooks.clips(doc, lmms_eval_specific_kwargs)
    return _hooks.messages(text, clips, lmms_eval_specific_kwargs)


def doc_to_text_chat(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> str:
    """The texts of `doc_to_messages_chat` in one, for logs and caches."""
    _hooks.asked(doc, lmms_eval_specific_kwargs)
    return "\n".join(f"{role}: {text}" for role, text in _chat(doc))


def doc_to_messages_chat(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[dict[str, Any]]:
    """The history as chat turns, after a system turn; the video stands before the first question."""
    messages = [{"role": role, "content": [text_part(text)]} for role, text in _chat(doc)]
    [clip] = _hooks.clips(doc, lmms_eval_specific_kwargs)
    messages[1]["content"] = [video_part(clip), *messages[1]["content"]]
    return messages


def _own_answers(doc: Mapping[str, Any]) -> Program:
    history: list[dict[str, str]] = []
    for question in doc["questions"]:
        answer = yield Turn(prompts.inference(history, question), [doc["video"]])
        history.append({"question": question, "answer": answer})
    return history[-1]["answer"]


_self = Conversations(_hooks, _own_answers)
doc_to_text_self, doc_to_visual_self = _self.doc_to_text, _self.doc_to_visual


def _chat(doc: Mapping[str, Any]) -> list[tuple[str, str]]:
    turns = [pair for turn in doc["history"] for pair in (("user", turn["question"]), ("assistant", turn["answer"]))]
    return [("system", prompts.SYSTEM), *turns, ("user", doc["question"])]


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Item]:
    """Writes a turn's item to the run record, submits its judging, and spreads it over the doc's metrics.

    Args:
        doc: A doc of `process_docs`.
        results: The model's answers, one for each repeat.
    """
    turn = item(doc, results)
    records.append(turn)
    judge(turn, pool().repeats)
    group = "perceptivity" if doc["ability"] in metrics.PERCEPTIVITY else "interactivity"
    part = turn.project("video", "dialogue", "ability", "score")
    status = turn.project("status", "reason", "skipped", *items.FLAGS)
    return {"overall": turn, group: part, doc["ability"]: part, "coverage": status}


def process_results_self(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Item]:
    """As `process_results`, for a whole dialogue.

    Args:
        doc: A doc of `process_docs_self`.
        results: The transcripts, joined.
    """
    dialogue = item(doc, results)
    records.append(dialogue)
    turns = dialogue["parts"]
    for turn in turns:
        judge(turn, pool().repeats)
    group = "perceptivity" if doc["ability"] in metrics.PERCEPTIVITY else "interactivity"
    part = items.whole([turn.project("video", "dialogue", "ability", "score") for turn in turns])
    status = items.whole([turn.project("status", "reason", "skipped", *items.FLAGS) for turn in turns])
    return {"overall": dialogue, group: part, doc["ability"]: part, "coverage": status}


def item(doc: Mapping[str, Any], answers: Sequence[str]) -> Item:
    """A turn's item before its judging: all that scoring needs, without the dataset.

    Args:
        doc: A doc of `process_docs`, or of `process_docs_self`: then the items of its turns are ``parts``.
        answers: The model's answers, one for each repeat, or its transcripts, joined.
    """
    if "parts" not in doc:
        return _hooks.item(doc, answers, _KEYS)
    said = transcripts(answers)
    asked = [part for part in doc["parts"] if part["status"] is None]
    excluded = [_hooks.skipped(part) for part in doc["parts"] if part["status"] is not None]
    turns = [
        _hooks.item({**part, "task": doc["task"], "skipped": []}, [of.reply(part["turn"] - 1) for of in said], _KEYS)
        for part in asked
    ]
    turns[-1]["skipped"] = [*excluded, *doc["skipped"]]
    return items.whole(turns, id=doc["id"], task=doc["task"], transcripts=[of.turns for of in said])


def judge(turn: Item, repeats: int) -> None:
    """Submits the judging of an item's answers; settling it fills in the score.

    Args:
        turn: An item; one whose request failed becomes ``no_answer``.
        repeats: How often each answer is judged.
    """
    answers = items.answers_read(turn)
    if answers is None:
        return
    questions = [check["question"] for check in turn["checklist"]]
    expected = [check["expected"] for check in turn["checklist"]]
    judge_item(
        turn,
        [prompts.judge(answer, questions) for answer in answers],
        read=lambda reply: read_checklist(reply, len(questions)),
        score=lambda verdicts: items.mean(metrics.answer_score(expected, of) for of in verdicts),
        repeats=repeats,
    )


def score(part: Sequence[Item]) -> float:
    """Aggregates a metric: the unweighted mean of the abilities that its items belong to, in percent."""
    settle(part)
    turns = list(items.flat(part))
    note(turns, metrics.notes)
    return items.mean(metrics.by_ability(turns).values())
