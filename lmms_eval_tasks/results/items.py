"""Items: what is known of one evaluated question, from its answer to its score.

An item is a plain dictionary in every log. Keys that all benchmarks share:

- ``id``, ``task``, ``version``; ``video`` (the cluster); ``answers`` (one text per repeat of the generation);
- ``status`` (see `STATUSES`), ``unjudged`` to begin with, and the ``reason`` why it ended as another than ``scored``;
- ``score`` in percent, absent until it exists;
- ``unread``, ``truncated`` (numbers of answers), absent when 0;
- ``skipped``: items of questions that stand next to this one in the dataset and were not asked (``no_answer`` for a
  missing video, ``excluded`` for the data), so that a log alone tells the coverage.

Where a doc is a whole conversation of several evaluated questions, its log entry holds their items as ``parts``.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.answers.failures import is_failure
from lmms_eval_tasks.answers.reasoning import strip_reasoning
from lmms_eval_tasks.errors import PackError, listing

SCORED = "scored"
UNJUDGED = "unjudged"
NO_ANSWER = "no_answer"
EXCLUDED = "excluded"
STATUSES = (SCORED, UNJUDGED, NO_ANSWER, EXCLUDED)
FLAGS = ("unread", "truncated")


class Item(dict[str, Any]):
    """An item whose last fields may still be on their way.

    `settle` fills them in; pickling settles first, so that what other processes receive is complete.
    """

    finish: Callable[[], Mapping[str, Any]] | None = None

    def settle(self) -> "Item":
        """Waits for what is missing and fills it in."""
        if self.finish is not None:
            self.update(self.finish())
            self.finish = None
        return self

    def project(self, *keys: str) -> "Item":
        """A small item with some of the keys, which settles with this one."""
        part = Item()

        def finish() -> dict[str, Any]:
            self.settle()
            return {key: self[key] for key in keys if key in self}

        part.finish = finish
        return part

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return Item, (dict(self.settle()),)


def whole(parts: Sequence[Item], **fields: Any) -> Item:
    """The log entry of a conversation: its items as ``parts``, and their mean ``score`` once they are settled."""
    entry = Item(fields, parts=list(parts))

    def finish() -> dict[str, Any]:
        settled = [part.settle() for part in parts]
        scores = [part["score"] for part in settled if "score" in part]
        return {"score": mean(scores)} if scores else {}

    entry.finish = finish
    return entry


def flat(entries: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The items, those of a conversation in the place of its log entry."""
    for entry in entries:
        yield from entry.get("parts", (entry,))


def answers_read(item: Item) -> list[str] | None:
    """The item's answers without their reasoning; None, and ``no_answer``, when a request failed.

    An answer that was cut inside its reasoning is what stands before it, and counts as ``truncated``.
    """
    failed = next((answer for answer in item["answers"] if is_failure(answer)), None)
    if failed is not None:
        item.update(status=NO_ANSWER, reason=failed[:200])
        return None
    read = [strip_reasoning(answer) for answer in item["answers"]]
    truncated = sum(answer.truncated for answer in read)
    if truncated:
        item["truncated"] = truncated
    return [answer.text for answer in read]


def with_neighbours(docs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drops the docs that cannot be asked and notes them in ``skipped`` of the doc before them.

    So a run over the first n docs, or any range, knows what it could not ask within that range.

    Args:
        docs: Docs; one that has a ``status`` cannot be asked.

    Returns:
        The docs that can be asked; those that precede all of them are noted in the first.

    Raises:
        PackError: There is none.
    """
    asked: list[dict[str, Any]] = []
    before: list[dict[str, Any]] = []
    for doc in docs:
        if "status" in doc:
            (asked[-1]["skipped"] if asked else before).append(doc)
        else:
            asked.append({**doc, "skipped": before})
            before = []
    if not asked:
        raise PackError(listing("No question can be asked", [f"{doc['id']}: {doc['reason']}" for doc in before]))
    return asked


def with_skipped(items: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The items, each followed by its skipped neighbours."""
    for item in flat(items):
        yield item
        yield from item.get("skipped") or ()


def counts(items: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts items by status, skipped ones included, and answers by flag.

    Returns:
        ``{"scored", "unjudged", "no_answer", "excluded", "unread", "truncated"}``, whole numbers.
    """
    result = dict.fromkeys((*STATUSES, *FLAGS), 0)
    for item in with_skipped(items):
        result[item["status"]] += 1
        for flag in FLAGS:
            result[flag] += item.get(flag, 0)
    return result


def remarks(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of the scores must know, one line for each status and reason other than ``scored``."""
    every = list(with_skipped(items))
    reasons = Counter(
        (item["status"], item.get("reason", "not judged yet")) for item in every if item["status"] != SCORED
    )
    lines = [f"{number} of {len(every)} {status}: {reason}" for (status, reason), number in reasons.most_common(10)]
    flags = {flag: number for flag, number in counts(items).items() if flag in FLAGS and number}
    return lines + [f"{number} answers {flag}, which count as they are" for flag, number in flags.items()]


def coverage(items: Iterable[Mapping[str, Any]]) -> float:
    """Share of the questions that have a score, in percent; excluded ones do not count.

    Returns:
        100 * scored / (scored + unjudged + no_answer), NaN without any such item.
    """
    number = counts(items)
    asked = number[SCORED] + number[UNJUDGED] + number[NO_ANSWER]
    return 100 * number[SCORED] / asked if asked else math.nan


def accuracy(choices: Sequence[str | None], right: Collection[str]) -> float:
    """Share of a question's answers (one for each repeat) that are right, in percent.

    Args:
        choices: The letters that were read; None is wrong.
        right: The letters that carry the right answer's text.
    """
    return mean(100 * (choice in right) for choice in choices)


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean, exactly rounded whatever the order; NaN of nothing."""
    values = list(values)
    return math.fsum(values) / len(values) if values else math.nan
