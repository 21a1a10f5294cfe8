"""Verdicts on disk, for who reads finished runs and asks no judge."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from lmms_eval_tasks.benchmarks import room, tasks
from lmms_eval_tasks.judging.pool import pool
from lmms_eval_tasks.results.items import UNJUDGED, Item
from lmms_eval_tasks.settings import PREFIX

NOT_JUDGED = "not judged yet"

_IDENTITY = {"MODEL": "model", "BASE_URL": "endpoint", "TEMPERATURE": "temperature"}


def look_up(items: Iterable[Item]) -> None:
    """Scores what is not scored yet: by rules, and by the verdicts on disk of the judge that each run named.

    Args:
        items: Items of any runs; those without all of their verdicts stay ``unjudged``.
    """
    waiting = sorted((item for item in items if item["status"] == UNJUDGED), key=lambda item: str(_identity(item)))
    for _, group in groupby(waiting, key=_identity):
        of = list(group)
        judge = of[0]["card"]["judge"] or {}
        with _settings_of(judge):
            judges = pool()
            judges.stop(NOT_JUDGED)
            for item in of:
                room(tasks()[item["task"]].benchmark, "task").judge(item, judge.get("repeats", 1))
                item.settle()
            # Whoever judges next in this process asks again.
            judges.wait()


def _identity(item: Mapping[str, Any]) -> tuple[Any, ...]:
    judge = item["card"]["judge"] or {}
    return tuple(judge.get(key) for key in (*_IDENTITY.values(), "repeats"))


@contextmanager
def _settings_of(judge: Mapping[str, Any]) -> Iterator[None]:
    """For as long as the block runs, the settings name a card's judge."""
    values = {f"{PREFIX}JUDGE_{name}": judge[key] for name, key in _IDENTITY.items() if key in judge}
    before = {name: os.environ.get(name) for name in values}
    # What is empty counts as unset.
    os.environ.update({name: "" if value is None else str(value) for name, value in values.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value
