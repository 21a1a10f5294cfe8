"""The table of benchmark rooms and their tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

FOLDER = Path(__file__).parent
BENCHMARKS = ("mt_video_bench",)


@dataclass(frozen=True)
class Task:
    """A task as its YAML file describes it, without loading it.

    Attributes:
        name: What ``--tasks`` takes.
        benchmark: Name of the room.
        config: Configuration of the canonical dataset that it evaluates.
        process_docs: Name of the hook that expands the rows.
        doc_to_text: Name of the hook that makes the prompt.
        judged: Whether a judge model scores it.
        chat_only: Whether it needs a backend that takes chat messages.
        by_model: The YAML's ``lmms_eval_specific_kwargs``.
    """

    name: str
    benchmark: str
    config: str
    process_docs: str
    doc_to_text: str
    judged: bool
    chat_only: bool
    by_model: Mapping[str, Mapping[str, Any]]

    def specific(self, model: str | None) -> Mapping[str, Any]:
        """What lmms-eval gives the hooks as ``lmms_eval_specific_kwargs`` for a backend."""
        return self.by_model.get(model or "default", self.by_model.get("default", {}))


def room(benchmark: str, module: str) -> ModuleType:
    """Imports a module of a benchmark's room, such as ``room("mlvu", "release")``."""
    return import_module(f"lmms_eval_tasks.{benchmark}.{module}")


@lru_cache(maxsize=1)
def tasks() -> dict[str, Task]:
    """All tasks by name, read from the YAML files."""
    found = {}
    for benchmark in BENCHMARKS:
        for path in sorted((FOLDER / benchmark).glob("*.yaml")):
            config = _read(path)
            metadata = config["metadata"]
            found[config["task"]] = Task(
                name=config["task"],
                benchmark=benchmark,
                config=config.get("dataset_name") or "default",
                process_docs=config["process_docs"].rpartition(".")[2],
                doc_to_text=config["doc_to_text"].rpartition(".")[2],
                judged=bool(metadata.get("judged")),
                chat_only=bool(metadata.get("chat_only")),
                by_model=config.get("lmms_eval_specific_kwargs") or {},
            )
    return found


class _Loader(yaml.SafeLoader):
    """Reads ``!function`` as the function's name."""


_Loader.add_constructor("!function", lambda _, node: node.value)


def _read(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.load(path.read_text("utf-8"), _Loader)
    included = config.pop("include", None)
    return {**_read(path.parent / included), **config} if included else config
