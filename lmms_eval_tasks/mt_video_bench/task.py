"""MT-Video-Bench in lmms-eval: the hooks that the YAML files name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import canonical, settings
from lmms_eval_tasks.judging.items import judge as judge_item
from lmms_eval_tasks.judging.items import settle
from lmms_eval_tasks.judging.pool import pool
from lmms_eval_tasks.judging.replies import read_checklist
from lmms_eval_tasks.log import logger
from lmms_eval_tasks.mt_video_bench import metrics, prompts
from lmms_eval_tasks.results import items, records
from lmms_eval_tasks.results.card import card
from lmms_eval_tasks.results.items import Item

if TYPE_CHECKING:
    from datasets import Dataset, Features

BENCHMARK = "mt_video_bench"
VERSION = "1-A"

Specific = Mapping[str, Any] | None

__getattr__ = canonical.attributes(BENCHMARK)

# The model's kwargs of the YAML, by task: `process_results` is not told them, and the card must say what was sampled.
_specific: dict[str, Specific] = {}

# What cards say of the dataset, by task: read when the task is loaded, since nothing may fail after generation.
_dataset: dict[str, dict[str, Any]] = {}

_KEYS = ("id", "task", "video", "dialogue", "ability", "turn", "turns", "seconds", "scenes", "checklist", "skipped")
_SKIPPED_KEYS = ("id", "ability", "status", "reason")


def process_docs(dataset: "Dataset") -> "Dataset":
    """Expands dialogues into one doc for each evaluated turn, with its golden history.

    Args:
        dataset: Canonical rows; a configuration other than the default one is an ability.

    Returns:
        Docs in the order of dialogues and turns. Turns that are excluded, or whose video is missing where
        ``ON_MISSING_VIDEO=skip``, stand in ``skipped`` of the doc before them (the first doc for those at the start).

    Raises:
        PackError: No turn can be asked.
    """
    return _docs(dataset, BENCHMARK)


def process_docs_no_context(dataset: "Dataset") -> "Dataset":
    """As `process_docs`, with an empty history."""
    return _docs(dataset, f"{BENCHMARK}_no_context", history=False)


def process_docs_chat(dataset: "Dataset") -> "Dataset":
    """As `process_docs`, for the task that gives the history as chat turns."""
    return _docs(dataset, f"{BENCHMARK}_chat")


def _docs(dataset: "Dataset", task: str, history: bool = True) -> "Dataset":
    from datasets import Dataset

    config = dataset.info.config_name or canonical.DEFAULT
    task = task if config == canonical.DEFAULT else f"{task}_{config}"
    prepared = canonical.opened(BENCHMARK)
    _dataset[task] = {"dataset": prepared.fingerprint, "questions": prepared.questions(config)}
    missing = set()
    if settings.load().on_missing_video == "skip":
        missing = set(prepared.missing_videos())
    docs = items.with_neighbours(
        turn for row in dataset for turn in _turns(row, task, history, row["video"] in missing)
    )
    for doc in docs:
        doc["skipped"] = [{key: turn[key] for key in _SKIPPED_KEYS} for turn in doc["skipped"]]
    records.begin(task)
    return Dataset.from_list(docs, features=_features())


def _turns(row: Mapping[str, Any], task: str, history: bool, missing: bool) -> Iterable[dict[str, Any]]:
    turns = row["turns"]
    for number, turn in enumerate(turns, start=1):
        if not turn["checklist"] and turn["excluded"] is None:
            continue
        earlier = [{"question": old["question"], "answer": old["answer"]} for old in turns[: number - 1]]
        doc = {
            "id": f"{row['id']}/{number}",
            "task": task,
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
        elif missing:
            doc.update(status=items.NO_ANSWER, reason=f"video {row['video']} is missing")
        yield doc


def _features() -> "Features":
    from datasets import Features, Value

    text, number = Value("string"), Value("int64")
    return Features(
        {
            **dict.fromkeys(("id", "task", "video", "dialogue", "ability"), text),
            "turn": number,
            "turns": number,
            "history": [{"question": text, "answer": text}],
            "question": text,
            "reference": text,
            "checklist": [{"question": text, "expected": text}],
            "seconds": Value("float64"),
            "scenes": number,
            "skipped": [dict.fromkeys(_SKIPPED_KEYS, text)],
        }
    )


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> str:
    """The prompt of a turn (paper, Figure 15)."""
    _asked(doc, lmms_eval_specific_kwargs)
    return prompts.inference(doc["history"], doc["question"])


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[str]:
    """The turn's video, as one path: a clip of exactly the sampled frames."""
    return [canonical.clip(BENCHMARK, doc["video"], lmms_eval_specific_kwargs)]


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[dict[str, Any]]:
    """One user message with prompt and video; the text first unless the model's ``text_first`` is false."""
    content = [_text(doc_to_text(doc)), _video(doc, lmms_eval_specific_kwargs)]
    text_first = (lmms_eval_specific_kwargs or {}).get("text_first", True)
    return [{"role": "user", "content": content if text_first else content[::-1]}]


def doc_to_text_chat(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> str:
    """The texts of `doc_to_messages_chat` in one, for logs and caches."""
    _asked(doc, lmms_eval_specific_kwargs)
    return "\n".join(f"{role}: {text}" for role, text in _chat(doc))


def doc_to_messages_chat(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[dict[str, Any]]:
    """The history as chat turns, after a system turn; the video stands before the first question."""
    messages = [{"role": role, "content": [_text(text)]} for role, text in _chat(doc)]
    messages[1]["content"] = [_video(doc, lmms_eval_specific_kwargs), *messages[1]["content"]]
    return messages


def _asked(doc: Mapping[str, Any], specific: Specific) -> None:
    _specific[doc["task"]] = specific
    canonical.coming(BENCHMARK, doc["video"], specific)


def _chat(doc: Mapping[str, Any]) -> list[tuple[str, str]]:
    turns = [pair for turn in doc["history"] for pair in (("user", turn["question"]), ("assistant", turn["answer"]))]
    return [("system", prompts.SYSTEM), *turns, ("user", doc["question"])]


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _video(doc: Mapping[str, Any], specific: Specific) -> dict[str, str]:
    return {"type": "video", "url": doc_to_visual(doc, specific)[0]}


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


def item(doc: Mapping[str, Any], answers: Sequence[str]) -> Item:
    """A turn's item before its judging: all that scoring needs, without the dataset.

    Args:
        doc: A doc of `process_docs`.
        answers: The model's answers, one for each repeat.
    """
    known = {key: doc[key] for key in _KEYS}
    return Item(
        known,
        version=VERSION,
        answers=list(answers),
        status=items.UNJUDGED,
        card=_card(doc["task"]),
    )


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


def _card(task: str) -> dict[str, Any]:
    texts = {"inference": prompts.INFERENCE, "system": prompts.SYSTEM, "judge": prompts.JUDGE}
    return card(task, VERSION, texts, canonical.sampling(_specific.get(task)), _dataset[task])


def score(part: Sequence[Item]) -> float:
    """Aggregates a metric: the unweighted mean of the abilities that its items belong to, in percent."""
    settle(part)
    if part and "card" in part[0]:
        for note in metrics.notes(part):
            logger.warning(f"{part[0]['task']}: {note}")
    return items.mean(metrics.by_ability(part).values())


def coverage(part: Sequence[Item]) -> float:
    """Aggregates the coverage, in percent, and says what is missing."""
    settle(part)
    for remark in items.remarks(part):
        logger.warning(remark)
    return items.coverage(part)
