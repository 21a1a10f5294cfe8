"""Judging an item: its prompts are submitted at once, its verdicts filled in when it settles."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.judging.pool import Read, pool
from lmms_eval_tasks.judging.verdicts import Verdict
from lmms_eval_tasks.results.items import SCORED, UNJUDGED, Item

Score = Callable[[Sequence[Sequence[Any]]], float]
Fields = Mapping[str, Any]


def judge(item: Item, prompts: Sequence[str], read: Read, score: Score, repeats: int) -> None:
    """Submits an item's judge calls; `Item.settle` fills in verdicts, score and status.

    Args:
        item: An item with a ``task``.
        prompts: The judge's prompts, one for each answer.
        read: Turns a reply into a JSON-able value, None when it cannot be read.
        score: From the values (per answer, per repeat) to percent.
        repeats: How often each answer is judged; the item is scored only when all of them exist.
    """
    judges = pool()
    futures = [[judges.submit(prompt, read, repeat, item["task"]) for repeat in range(repeats)] for prompt in prompts]
    item.finish = lambda: _outcome([[future.result() for future in of] for of in futures], score)


def judge_unread(
    item: Item,
    choices: Sequence[Any],
    prompts: Sequence[str],
    read: Read,
    kind: str,
    score: Callable[[Sequence[Any]], Fields],
) -> None:
    """Scores an item whose answers are choices; a judge is asked, once each, for those that rules could not read.

    Where the item's card names no judge, those answers count as they are: without a choice.

    Args:
        item: An item with a ``task`` and a ``card``. It gets ``choices`` and, where answers hold none, ``unread``.
        choices: What rules read, one JSON-able value for each answer; None where they found no single choice.
        prompts: The judge's prompts, one for each answer.
        read: Turns a reply into a choice, an empty value when it says that there is none, None when it cannot be read.
        kind: What a choice is, in words: equal answers to questions of other kinds share no verdict.
        score: From the choices, None or empty where there is none, to the ``score`` in percent and further fields.
    """
    judges = pool() if item["card"]["judge"] else None
    futures = [
        judges.submit(prompt, read, 0, item["task"], kind) if judges and choice is None else None
        for choice, prompt in zip(choices, prompts, strict=True)
    ]
    item.finish = lambda: _chosen(choices, [future.result() if future else None for future in futures], score)


def _chosen(
    choices: Sequence[Any], verdicts: Sequence[Verdict | None], score: Callable[[Sequence[Any]], Fields]
) -> Fields:
    asked = [verdict for verdict in verdicts if verdict is not None]
    values = [verdict.value if verdict else choice for choice, verdict in zip(choices, verdicts, strict=True)]
    unread = sum(not value for value in values)
    flag = {"unread": unread} if unread else {}
    fields = {"choices": values, **({"judge": _usage(asked)} if asked else {})}
    return _scored(fields, asked, lambda: {**score(values), **flag})


def _outcome(verdicts: Sequence[Sequence[Verdict]], score: Score) -> Fields:
    flat = [verdict for of in verdicts for verdict in of]
    values = [[verdict.value for verdict in of] for of in verdicts]
    return _scored({"verdicts": values, "judge": _usage(flat)}, flat, lambda: {"score": score(values)})


def _usage(verdicts: Sequence[Verdict]) -> Fields:
    return {
        "models": sorted({verdict.model for verdict in verdicts if verdict.model}),
        "judgements": sum(verdict.value is not None for verdict in verdicts),
        "input_tokens": sum(verdict.input_tokens for verdict in verdicts),
        "output_tokens": sum(verdict.output_tokens for verdict in verdicts),
    }


def _scored(fields: Fields, verdicts: Sequence[Verdict], score: Callable[[], Fields]) -> Fields:
    """The fields with a score, or with the reason why there is none."""
    reasons = sorted({verdict.reason for verdict in verdicts if verdict.value is None})
    if reasons:
        return {**fields, "status": UNJUDGED, "reason": "; ".join(reasons)}
    try:
        return {**fields, "status": SCORED, **score()}
    except Exception as error:
        # Verdicts of another shape, from a damaged file, cost this item, never the run.
        return {**fields, "status": UNJUDGED, "reason": f"its verdicts have another shape ({error})"}


def settle(items: Sequence[Item]) -> None:
    """Waits for all verdicts, with a progress bar, and fills them in."""
    pool().wait()
    for item in items:
        item.settle()
