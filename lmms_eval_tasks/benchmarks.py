"""The table of benchmark rooms and their tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

FOLDER = Path(__file__).parent
BENCHMARKS = ("mt_video_bench", "mvpbench", "mlvu", "scvbench")


@dataclass(frozen=True)
class Task:
    """A task as its YAML file describes it, without loading it.

    Attributes:
        name: What ``--tasks`` takes.
        benchmark: Name of the room.
        config: Configuration of the canonical dataset that it evaluates.
        process_docs: Name of the hook that expands the rows.
        doc_to_text: Name of the hook that makes the prompt.
        judged: Which answers a judge model reads: ``"all"``, those that the rules cannot read (``"unread"``), or none
            (empty).
        chat_only: Whether it needs a backend that takes chat messages.
        one_by_one: Whether it shows the videos of a question one at a time.
        by_model: The YAML's ``lmms_eval_specific_kwargs``.
    """

    name: str
    benchmark: str
    config: str
    process_docs: str
    doc_to_text: str
    judged: str
    chat_only: bool
    one_by_one: bool
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
    return {config["task"]: _task(path.parent.name, config) for path, config in _configs() if "group" not in config}


@lru_cache(maxsize=1)
def groups() -> dict[str, list[str]]:
    """The names of the tasks of each group."""
    return {config["group"]: config["task"] for _, config in _configs() if "group" in config}


@lru_cache(maxsize=1)
def files() -> dict[str, Path]:
    """The YAML file of each task and group."""
    return {config.get("group") or config["task"]: path for path, config in _configs()}


def members(names: Iterable[str]) -> list[str]:
    """Names of tasks, with those of a group in its place; each once."""
    return list(dict.fromkeys(member for name in names for member in groups().get(name, [name])))


def _task(benchmark: str, config: Mapping[str, Any]) -> Task:
    metadata = config["metadata"]
    return Task(
        name=config["task"],
        benchmark=benchmark,
        config=config.get("dataset_name") or "default",
        process_docs=config["process_docs"].rpartition(".")[2],
        doc_to_text=config["doc_to_text"].rpartition(".")[2],
        judged=metadata.get("judged", ""),
        chat_only=bool(metadata.get("chat_only")),
        one_by_one=bool(metadata.get("one_by_one")),
        by_model=config.get("lmms_eval_specific_kwargs") or {},
    )


@lru_cache(maxsize=1)
def _configs() -> list[tuple[Path, dict[str, Any]]]:
    """Every YAML file, in the order of the rooms, with its content."""
    return [(path, _read(path)) for benchmark in BENCHMARKS for path in sorted((FOLDER / benchmark).glob("*.yaml"))]


# The parser in C takes a sixth of the time, of every start of lmms-eval.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads ``!function`` as the function's name."""


_Loader.add_constructor("!function", lambda _, node: node.value)


@lru_cache
def _read(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.load(path.read_text("utf-8"), _Loader)
    included = config.get("include")
    return {**_read(path.parent / included), **config} if included else config
