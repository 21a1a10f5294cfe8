"""The protocol card: under which conditions a number came about."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lmms_eval_tasks import __version__
from lmms_eval_tasks.benchmarks import tasks
from lmms_eval_tasks.judging.pool import pool
from lmms_eval_tasks.text import text_hash


def card(
    task: str,
    task_version: str,
    prompts: Mapping[str, str],
    sampling: Mapping[str, Any],
    dataset: Mapping[str, Any],
) -> dict[str, Any]:
    """What is known before judging.

    Args:
        task: Name of the task.
        task_version: Its version, ``N-X``.
        prompts: ``{name: text}`` of the prompts; their hashes are recorded.
        sampling: How frames are sampled.
        dataset: ``{"dataset": fingerprint, "questions": number}``.
    """
    return {
        "task": task,
        "version": task_version,
        "prompts": {name: text_hash(text) for name, text in prompts.items()},
        "sampling": dict(sampling),
        **dataset,
        "judge": pool().describe() if tasks()[task].judged else None,
        "pack": __version__,
        "lmms_eval": _version("lmms-eval"),
    }


def judge_summary(items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Who judged, and what it took, summed over the items of all ranks.

    Returns:
        ``{"models": [names that the endpoint returned], "judgements", "input_tokens", "output_tokens"}``.
    """
    judged = [item["judge"] for item in items if item.get("judge")]
    return {
        "models": sorted({model for judge in judged for model in judge["models"]}),
        **{key: sum(judge[key] for judge in judged) for key in ("judgements", "input_tokens", "output_tokens")},
    }


@lru_cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
