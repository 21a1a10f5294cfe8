"""`doctor` and `list`: what is there, what is not, and what to do about it."""

import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from lmms_eval_tasks import canonical, settings
from lmms_eval_tasks.benchmarks import BENCHMARKS, groups, tasks
from lmms_eval_tasks.errors import PackError

_LMMS_EVAL = ((0, 7, 3), (0, 8))
_FILELOCK_BELOW = (4,)
_LOW_DISK_GB = 20


class Finding(NamedTuple):
    """One line of the doctor: what was looked at, whether it is fine, what is the case and the remedy."""

    subject: str
    ok: bool
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        """The finding as a line."""
        remedy = f" -> {self.remedy}" if self.remedy else ""
        state = "PROBLEM" if not self.ok else "note" if self.remedy else "ok"
        return f"{state:<8}{self.subject:<20}{self.text}{remedy}"


def examine() -> list[Finding]:
    """Looks at versions, decoders, disk, datasets, videos and the judge; nothing is changed.

    Returns:
        The findings, problems among them; settings that cannot be read are one finding and end the look.
    """
    try:
        config = settings.load()
    except PackError as error:
        return [Finding("settings", False, str(error), "correct or unset them")]
    looks: tuple[Callable[[settings.Settings], Iterator[Finding]], ...] = (
        _settings,
        _versions,
        _registration,
        _decoders,
        _disk,
        _datasets,
        _judge,
    )
    return [finding for look in looks for finding in look(config)]


def task_states() -> dict[str, str]:
    """What is prepared, for each task, and what each group holds.

    Returns:
        ``{task: "300 questions" or "not prepared", group: "group of …"}``.
    """
    # Each benchmark is opened once: one on a Hub that does not answer takes its time.
    prepared = {benchmark: _opened(benchmark) for benchmark in BENCHMARKS}
    found = {name: (prepared[task.benchmark], task.config) for name, task in tasks().items()}
    states = {
        name: f"{of.questions(config)} questions" if of else "not prepared" for name, (of, config) in found.items()
    }
    return states | {group: f"group of {', '.join(of)}" for group, of in groups().items()}


def _opened(benchmark: str) -> canonical.Prepared | None:
    try:
        return canonical.opened(benchmark)
    except PackError:
        return None


def _settings(config: settings.Settings) -> Iterator[Finding]:
    unknown = settings.unknown()
    if unknown:
        yield Finding("settings", False, f"unknown: {', '.join(unknown)}", "see the README's table of settings")
    yield Finding("home", True, str(config.root))


def _versions(config: settings.Settings) -> Iterator[Finding]:
    yield Finding("python", True, sys.version.split()[0])
    found = _version("lmms-eval")
    low, high = _LMMS_EVAL
    ok = found is not None and low <= _numbers(found) < high
    yield Finding("lmms-eval", ok, found or "not installed", "" if ok else "pip install 'lmms-eval>=0.7.3,<0.8'")
    found = _version("filelock")
    ok = found is None or _numbers(found) < _FILELOCK_BELOW
    yield Finding("filelock", ok, found or "not installed", "" if ok else "pip install 'filelock<4' (lmms-eval 0.7)")
    for package in ("datasets", "huggingface-hub", "openai", "torch", "transformers"):
        found = _version(package)
        yield Finding(package, found is not None, found or "not installed", "" if found else f"pip install {package}")


def _registration(config: settings.Settings) -> Iterator[Finding]:
    if not config.autoload:
        yield Finding("registration", True, f"off ({settings.PREFIX}AUTOLOAD=0)")
        return
    from importlib.metadata import entry_points

    ours = [point for point in entry_points(group="lmms_eval.models") if point.value.startswith("lmms_eval_tasks.")]
    yield Finding(
        "registration",
        bool(ours),
        "lmms-eval loads our tasks" if ours else "the entry point is not installed",
        "" if ours else "pip install lmms-eval-tasks, not a copy of its folder",
    )


def _decoders(config: settings.Settings) -> Iterator[Finding]:
    for name in ("decord", "av"):
        try:
            module = import_module(name)
            yield Finding(name, True, str(getattr(module, "__version__", "installed")))
        except (ImportError, OSError) as error:
            yield Finding(name, False, f"cannot be imported: {error}", f"pip install {name}")


def _disk(config: settings.Settings) -> Iterator[Finding]:
    from lmms_eval_tasks.checks import home_problems

    problems = home_problems(config)
    if problems:
        yield Finding("disk", False, problems[0])
        return
    existing = next(folder for folder in (config.root, *config.root.parents) if folder.exists())
    free = shutil.disk_usage(existing).free / 1e9
    ok = free > _LOW_DISK_GB
    remedy = "" if ok else f"free space, or set {settings.PREFIX}HOME to another disk"
    yield Finding("disk", ok, f"{free:.0f} GB free in {existing}", remedy)


def _datasets(config: settings.Settings) -> Iterator[Finding]:
    unused = [benchmark for benchmark in BENCHMARKS if not _wanted(benchmark, config)]
    for benchmark in BENCHMARKS:
        try:
            prepared = canonical.opened(benchmark)
            names, missing = prepared.video_names(), prepared.missing_videos()
        except PackError as error:
            text, _, remedy = str(error).partition(". ")
            # One benchmark is enough to work with.
            yield Finding(benchmark, benchmark in unused and len(unused) < len(BENCHMARKS), text, remedy)
            continue
        found = f"{prepared.questions()} questions, {len(names) - len(missing)} of {len(names)} videos found"
        remedy = f"set {settings.PREFIX}VIDEOS_{benchmark.upper()} to their folder" if missing else ""
        yield Finding(benchmark, not missing, f"{found}, in {prepared.folder}", remedy)


def _wanted(benchmark: str, config: settings.Settings) -> bool:
    """Whether a benchmark is prepared here, or a setting says that it should be."""
    return bool(config.data(benchmark)) or (config.root / "datasets" / benchmark).exists()


def _judge(config: settings.Settings) -> Iterator[Finding]:
    if not config.judge_model:
        needed = any(task.judged == "all" and _wanted(task.benchmark, config) for task in tasks().values())
        remedy = f"set {settings.PREFIX}JUDGE_MODEL"
        yield Finding("judge", not needed, "none is configured: answers that need one stay unjudged", remedy)
        return
    from lmms_eval_tasks.checks import judge_problems
    from lmms_eval_tasks.judging.client import Judge

    try:
        judge = Judge(config, retries=1)
        problems = judge_problems(judge)
    except PackError as error:
        yield Finding("judge", False, str(error))
        return
    yield Finding("judge", not problems, "; ".join(problems) or f"{judge.model} at {judge.endpoint} answers")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    parts = []
    for part in text.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    return tuple(parts)
