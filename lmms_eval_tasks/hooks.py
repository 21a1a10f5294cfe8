"""What the hooks of every benchmark share: which questions are asked, their clips, their items, their coverage.

_hooks = Hooks("mlvu", VERSION, {"inference": prompts.INFERENCE}, kind="category")
__getattr__ = _hooks.attribute
def process_docs(dataset): return _hooks.docs(dataset, _questions, _features())
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import canonical, settings
from lmms_eval_tasks.benchmarks import tasks
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.judging.items import settle
from lmms_eval_tasks.log import logger
from lmms_eval_tasks.media.sampling import frames_per_question
from lmms_eval_tasks.releases import videos_of
from lmms_eval_tasks.results import items, records
from lmms_eval_tasks.results.card import card
from lmms_eval_tasks.results.items import Item

if TYPE_CHECKING:
    from datasets import Dataset

Specific = Mapping[str, Any] | None
"""What lmms-eval gives a hook as ``lmms_eval_specific_kwargs``."""


class Hooks:
    """The common part of one benchmark's hooks."""

    def __init__(self, benchmark: str, version: str, prompts: Mapping[str, str], kind: str) -> None:
        """Reads nothing yet.

        Args:
            benchmark: Name of the room.
            version: The tasks' version, ``N-X``.
            prompts: ``{name: text}`` of the prompts that answers and scores depend on.
            kind: The docs' key that says what they test, such as ``"ability"``: known also of those not asked.
        """
        self.benchmark, self.version, self.prompts = benchmark, version, prompts
        self.attribute = canonical.attributes(benchmark)
        self._kept = ("id", kind, "status", "reason")
        # What cards say of sampling and dataset, by task: `process_results` is not told the model's kwargs, and nothing
        # may be read, and fail, after generation.
        self._specific: dict[str, Specific] = {}
        self._dataset: dict[str, dict[str, Any]] = {}

    def docs(
        self,
        dataset: "Dataset",
        questions: Callable[[Mapping[str, Any]], Iterable[dict[str, Any]]],
        features: Mapping[str, Any],
        variant: str = "",
    ) -> "Dataset":
        """A task's docs: the questions that can be asked.

        Args:
            dataset: Canonical rows; a configuration other than the default one has tasks of its own.
            questions: The docs of a row, with ``id``, its ``video`` or ``videos`` and, where it cannot be scored,
                the status ``excluded`` and a ``reason``; where a doc is a conversation, its questions are ``parts``.
            features: Their columns.
            variant: What the task's name has behind the benchmark's.

        Returns:
            The docs, with ``task``. Those that are excluded, or whose video is missing where
            ``ON_MISSING_VIDEO=skip``, stand in ``skipped`` of the doc before them (the first doc for those at the
            start).

        Raises:
            PackError: No question can be asked, or the name is that of no task.
        """
        from datasets import Dataset, Features, Value
        from pyarrow import Table

        config = dataset.info.config_name or canonical.DEFAULT
        task = "_".join(filter(None, (self.benchmark, variant, "" if config == canonical.DEFAULT else config)))
        if task not in tasks():
            raise PackError(f"These docs belong to a task {task!r}, which no YAML file in {self.benchmark}/ names")
        prepared = canonical.opened(self.benchmark)
        self._dataset[task] = {"dataset": prepared.fingerprint, "questions": prepared.questions(config)}
        self._log_frames(task, prepared.videos_of_a_question(config))
        skip = settings.load().on_missing_video == "skip"
        missing = set(prepared.missing_videos()) if skip else set()
        every = [doc for row in dataset.to_list() for doc in questions(row)]
        for doc in every:
            gone = [name for name in videos_of(doc) if name in missing]
            if gone:
                doc.setdefault("status", items.NO_ANSWER)
                doc.setdefault("reason", f"video {gone[0]} is missing")
        docs = items.with_neighbours(every)
        for doc in docs:
            parts = [{**other, **part} for other in doc["skipped"] for part in other.get("parts", ({},))]
            doc.update(task=task, skipped=list(map(self.skipped, parts)))
        records.begin(task)
        text = Value("string")
        shared = {"id": text, "task": text, "skipped": [dict.fromkeys(self._kept, text)]}
        # As `Dataset.from_list` makes it, in a fifth of the time.
        return Dataset(Table.from_pylist(docs, schema=Features({**shared, **features}).arrow_schema))

    def skipped(self, doc: Mapping[str, Any]) -> dict[str, Any]:
        """What is kept of a doc that is not asked."""
        return {key: doc[key] for key in self._kept}

    def _log_frames(self, task: str, videos: Sequence[int]) -> None:
        config = settings.load()
        budget = frames_per_question(None, config)
        if config.clips and budget is not None and videos and videos[-1] > 1:
            shares = ", ".join(f"{budget // number} for each of {number}" for number in videos)
            logger.info(f"{task}: {budget} frames per question, split over its videos: {shares}")

    def asked(self, doc: Mapping[str, Any], specific: Specific) -> None:
        """Notes that a doc's request is being built: its clips will be asked for."""
        self._specific[doc["task"]] = specific
        names = videos_of(doc)
        for name in names:
            canonical.coming(self.benchmark, name, specific, len(names))

    def clips(self, doc: Mapping[str, Any], specific: Specific, shown: Iterable[str] | None = None) -> list[str]:
        """The files that a backend is handed for a doc's videos, in their order: clips of exactly the sampled frames.

        Args:
            doc: A doc of `docs`.
            specific: The task's kwargs for the model.
            shown: Those of the doc's videos that are shown; None is all.

        Raises:
            PackError: A video is nowhere, or cannot be decoded.
        """
        names = videos_of(doc)
        return [
            canonical.clip(self.benchmark, name, specific, len(names)) for name in (names if shown is None else shown)
        ]

    def messages(self, text: str, clips: Sequence[str], specific: Specific) -> list[dict[str, Any]]:
        """One user message with a prompt and clips; the text first unless the model's ``text_first`` is false."""
        parts = [text_part(text)], [video_part(clip) for clip in clips]
        text_first = (specific or {}).get("text_first", True)
        return [{"role": "user", "content": [part for of in parts[:: 1 if text_first else -1] for part in of]}]

    def item(self, doc: Mapping[str, Any], answers: Sequence[str], keys: Iterable[str]) -> Item:
        """A doc's item before its scoring.

        Args:
            doc: A doc of `docs`.
            answers: The model's answers, one for each repeat.
            keys: What of the doc scoring needs, beside ``id``, ``task``, ``video`` and ``skipped``.
        """
        task = doc["task"]
        sampling = canonical.sampling(self._specific.get(task), several="videos" in doc)
        return Item(
            {key: doc[key] for key in ("id", "task", "video", *keys, "skipped")},
            version=self.version,
            answers=list(answers),
            status=items.UNJUDGED,
            card=card(task, self.version, self.prompts, sampling, self._dataset[task]),
        )


def text_part(text: str) -> dict[str, str]:
    """A text in a chat message."""
    return {"type": "text", "text": text}


def video_part(path: str) -> dict[str, str]:
    """A video in a chat message."""
    return {"type": "video", "url": path}


def note(part: Sequence[Mapping[str, Any]], notes: Callable[[Sequence[Mapping[str, Any]]], Iterable[str]]) -> None:
    """Logs what a reader of a task's scores must know, once: with its main metric, whose items are whole."""
    if part and "card" in part[0]:
        for text in notes(part):
            logger.warning(f"{part[0]['task']}: {text}")


def coverage(part: Sequence[Item]) -> float:
    """Aggregates the coverage, in percent, and says what is missing."""
    settle(part)
    for remark in items.remarks(part):
        logger.warning(remark)
    return items.coverage(part)
