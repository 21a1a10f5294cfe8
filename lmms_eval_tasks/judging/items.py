"""Judging an item: its prompts are submitted at once, its verdicts filled in when it settles."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.judging.pool import Read, pool
from lmms_eval_tasks.judging.verdicts import Verdict
from lmms_eval_tasks.results.items import SCORED, UNJUDGED, Item

Score = Callable[[Sequence[Sequence[Any]]], float]


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


def _outcome(verdicts: Sequence[Sequence[Verdict]], score: Score) -> Mapping[str, Any]:
    flat = [verdict for of in verdicts for verdict in of]
    values = [[verdict.value for verdict in of] for of in verdicts]
    fields: dict[str, Any] = {
        "verdicts": values,
        "judge": {
            "models": sorted({verdict.model for verdict in flat if verdict.model}),
            "judgements": sum(verdict.value is not None for verdict in flat),
            "input_tokens": sum(verdict.input_tokens for verdict in flat),
            "output_tokens": sum(verdict.output_tokens for verdict in flat),
        },
    }
    reasons = sorted({verdict.reason for verdict in flat if verdict.value is None})
    if reasons:
        return {**fields, "status": UNJUDGED, "reason": "; ".join(reasons)}
    try:
        return {**fields, "status": SCORED, "score": score(values)}
    except Exception as error:
        # Verdicts of another shape, from a damaged file, cost this item, never the run.
        return {**fields, "status": UNJUDGED, "reason": f"its verdicts have another shape ({error})"}


def settle(items: Sequence[Item]) -> None:
    """Waits for all verdicts, with a progress bar, and fills them in."""
    pool().wait()
    for item in items:
        item.settle()
