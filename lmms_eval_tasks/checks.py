"""The checks before a run: everything that is wrong is said at once, before a model is built."""

import os
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval_tasks import canonical, hub, settings
from lmms_eval_tasks.benchmarks import Task, members, tasks
from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.judging.client import CallFailed, Judge, Refused, Unusable
from lmms_eval_tasks.judging.pool import REPLY_TOKENS
from lmms_eval_tasks.log import logger
from lmms_eval_tasks.media.backends import frame_warning, several_videos
from lmms_eval_tasks.media.sampling import Sampling
from lmms_eval_tasks.settings import PREFIX, Settings

# A judge's prompt without the answer, and an answer: about 200 and 150 words.
PROMPT_TOKENS = 500
# Bytes that must fit into HOME: about one clip.
_ROOM = 1 << 20


@dataclass(frozen=True)
class Conditions:
    """What is known of the run, from lmms-eval's command line.

    Attributes:
        model: Name of the backend.
        model_args: Its arguments, as given.
        simple: Whether the backend takes text and visuals instead of chat messages.
        predict_only: Whether nothing is scored in this run.
        limit: ``--limit``.
    """

    model: str | None = None
    model_args: str | dict[str, Any] = ""
    simple: bool = False
    predict_only: bool = False
    limit: float | None = None


def before_run(names: Sequence[str], conditions: Conditions) -> None:
    """Checks datasets, videos and judge of our tasks among those that are asked for.

    Args:
        names: Names of tasks; those of others are passed over.
        conditions: How the run was called.

    Raises:
        PackError: The run cannot give right numbers; all reasons are named.
    """
    ours = [tasks()[name] for name in members(names) if name in tasks()]
    if not ours:
        return
    config = settings.load()
    warn_of_unknown_settings()
    problems = home_problems(config)
    problems += [problem for task in ours for problem in _task_problems(task, conditions)]
    problems += _data_problems(ours, config, conditions)
    judged = [task for task in ours if task.judged]
    if judged and not conditions.predict_only and not problems:
        problems += _judge_problems(judged, config, conditions)
    if problems:
        raise PackError(listing(f"{', '.join(task.name for task in ours)} cannot run", problems))
    if conditions.model and config.clips:
        _warn_of_frames(ours, config, conditions)


def warn_of_unknown_settings() -> None:
    """Names variables that look like settings of ours and have no effect."""
    for name in settings.unknown():
        logger.warning(f"{name} is no setting of ours: a misspelt one? The README has the table of settings")


def home_problems(config: Settings) -> list[str]:
    """What keeps ``HOME`` from being written to; empty when nothing does."""
    try:
        config.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=config.root) as file:
            file.write(bytes(_ROOM))
            file.flush()
    except OSError as error:
        return [f"{PREFIX}HOME={config.root} cannot be written to ({error.strerror}). Set it to another folder"]
    return []


def _warn_of_frames(ours: Sequence[Task], config: Settings, conditions: Conditions) -> None:
    assert conditions.model
    frames = [
        frozenset(
            Sampling.of(task.specific(conditions.model), config, videos).frames
            for videos in canonical.opened(task.benchmark).videos_of_a_question(task.config)
        )
        for task in ours
    ]
    for numbers in dict.fromkeys(frames):
        warning = frame_warning(conditions.model, conditions.model_args, numbers)
        if warning:
            logger.warning(warning)


def _task_problems(task: Task, conditions: Conditions) -> list[str]:
    if task.chat_only and conditions.simple:
        return [f"{task.name} needs a backend that takes chat messages. With this one, run {task.benchmark} instead"]
    return []


def _data_problems(ours: Sequence[Task], config: Settings, conditions: Conditions) -> list[str]:
    problems: list[str] = []
    by_benchmark: dict[str, list[Task]] = defaultdict(list)
    for task in ours:
        by_benchmark[task.benchmark].append(task)
    for benchmark, of in by_benchmark.items():
        try:
            prepared = canonical.opened(benchmark)
        except PackError as error:
            problems.append(str(error))
            continue
        empty = [task.name for task in of if not prepared.questions(task.config)]
        if empty:
            problems.append(f"{prepared.folder} has no evaluated question for {', '.join(empty)}")
        several = [
            task.name
            for task in of
            if not task.one_by_one and max(prepared.videos_of_a_question(task.config), default=1) > 1
        ]
        wrong = several_videos(conditions.model, conditions.simple) if several and conditions.model else ""
        if wrong:
            problems.append(f"{', '.join(several)}: {conditions.model} is no backend for several videos: {wrong}")
        names = dict.fromkeys(name for task in of for name in prepared.video_names(task.config))
        missing = list(dict.fromkeys(name for task in of for name in prepared.missing_videos(task.config)))
        if missing and (config.on_missing_video == "stop" or len(missing) == len(names)):
            problems.append(_missing_videos(benchmark, missing, len(names)))
        elif missing:
            logger.warning(f"{benchmark}: {len(missing)} of {len(names)} videos are missing; their questions count as "
                           "no_answer")  # fmt: skip
        if hub.is_offline():
            absent = dict.fromkeys(name for task in of for name in prepared.not_fetched(task.config))
            if absent:
                logger.warning(f"{benchmark}: HF_HUB_OFFLINE is set, and {len(absent)} of {len(names)} videos are on "
                               "the Hub alone: a question about one ends the run. Where there is a network: "
                               f"lmms-eval-tasks prepare {benchmark} --fetch-videos")  # fmt: skip
    return problems


def _missing_videos(benchmark: str, missing: Sequence[str], number: int) -> str:
    shown = ", ".join(missing[:10]) + (", …" if len(missing) > 10 else "")  # noqa: PLR2004
    return (
        f"{benchmark}: {len(missing)} of {number} videos are missing: {shown} (or cannot be opened). Set "
        f"{PREFIX}VIDEOS_{benchmark.upper()} to the folder that holds them, or {PREFIX}ON_MISSING_VIDEO=skip to run "
        "without their questions"
    )


def _judge_problems(judged: Sequence[Task], config: Settings, conditions: Conditions) -> list[str]:
    if not config.judge_model:
        if any(task.judged == "all" for task in judged):
            logger.warning(f"No judge is configured ({PREFIX}JUDGE_MODEL is not set): answers are generated and left "
                           "unjudged. `lmms-eval-tasks score` judges them later")  # fmt: skip
        if any(task.judged == "unread" for task in judged):
            logger.warning(f"No judge is configured ({PREFIX}JUDGE_MODEL is not set): answers in which the rules find "
                           "no choice count as wrong and `unread`")  # fmt: skip
        return []
    if os.environ.get("RANK", "0") != "0":
        return []
    calls = sum(
        canonical.opened(task.benchmark).questions(task.config) * (config.judge_repeats if task.judged == "all" else 1)
        for task in judged
    )
    tokens = round(calls * (PROMPT_TOKENS + REPLY_TOKENS) / 1000)
    fewer = "fewer with --limit; " if conditions.limit else ""
    judge = Judge(config, retries=1)
    logger.info(f"Judge {judge.model} at {judge.endpoint}: up to {calls} calls, about {tokens}k tokens ({fewer}"
                "verdicts on disk are not asked for again)")  # fmt: skip
    return judge_problems(judge)


def judge_problems(judge: Judge) -> list[str]:
    """Tries the judge with one tiny call.

    Returns:
        What is wrong with key, endpoint or model; empty when the judge answers. A judge that is only busy is warned of.
    """
    try:
        judge.ask("Reply with the word Yes.")
    except Unusable as error:
        return [f"judge {judge.model} at {judge.endpoint} is unusable: {error}. Check {PREFIX}JUDGE_MODEL, "
                f"{PREFIX}JUDGE_BASE_URL and {PREFIX}JUDGE_API_KEY"]  # fmt: skip
    except CallFailed as error:
        if not str(error).startswith("HTTP"):
            return [f"judge {judge.model} at {judge.endpoint} cannot be reached: {error}. Check {PREFIX}JUDGE_BASE_URL"]
        logger.warning(f"The judge did not answer the try ({error}); the run goes on")
    except Refused:
        pass
    return []
