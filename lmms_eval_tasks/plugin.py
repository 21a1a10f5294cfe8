"""The one place that reaches into lmms-eval: registration, the check before the run, usage of the judge.

Everything here is guarded: an lmms-eval of another shape gives a warning and the plain path, never a wrong score.
"""

import functools
import inspect
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import Any

from lmms_eval_tasks.benchmarks import FOLDER
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.log import logger

_PLAIN_PATH = 'add --include_path "$(lmms-eval-tasks path)" to your command'


def register() -> list[object]:
    """Adds our tasks to lmms-eval; the entry point of the group ``lmms_eval.models``.

    It is called when lmms-eval imports its models, once or more often, and never raises: that would take the models of
    other plugins with it.

    Returns:
        No models.
    """
    try:
        _register()
    except Exception as error:
        logger.warning(f"lmms-eval-tasks did not register its tasks ({error}); {_PLAIN_PATH}")
    return []


def _register() -> None:
    from lmms_eval_tasks import settings

    if not settings.load().autoload:
        return
    from lmms_eval.tasks import TaskManager

    if getattr(TaskManager, "_has_lmms_eval_tasks", False):
        return
    expected = {
        "initialize_tasks": ["self", "include_path", "include_defaults"],
        "_get_task_and_group": ["self", "task_dir"],
        "match_tasks": ["self", "task_list"],
        "load_task_or_group": ["self", "task_list", "task_type"],
    }
    for name, parameters in expected.items():
        if list(inspect.signature(getattr(TaskManager, name)).parameters) != parameters:
            raise PackError(f"this lmms-eval has another TaskManager.{name}")
    _wrap(TaskManager, "initialize_tasks", _with_our_tasks)
    _wrap(TaskManager, "match_tasks", _checked_on_the_command_line)
    _wrap(TaskManager, "load_task_or_group", _checked_in_process)
    TaskManager._has_lmms_eval_tasks = True


def _wrap(owner: type, name: str, wrapper: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    setattr(owner, name, wrapped)


def _with_our_tasks(
    original: Callable[..., Any], manager: Any, include_path: Any = None, include_defaults: bool = True
) -> Any:
    index = original(manager, include_path=include_path, include_defaults=include_defaults)
    if not include_defaults:
        return index
    ours = manager._get_task_and_group(str(FOLDER))
    for name in sorted(ours.keys() & index.keys()):
        if index[name].get("yaml_path") != ours[name].get("yaml_path"):
            logger.warning(f"Task {name!r} is {index[name].get('yaml_path')}, not the one of lmms-eval-tasks")
    return {**ours, **index}


def _checked_on_the_command_line(original: Callable[..., Any], manager: Any, task_list: Any) -> Any:
    """`match_tasks` is called by the command line alone, before the model is built.

    A failed check ends the process with status 1: as an exception it would be printed with a traceback, and lmms-eval
    would exit 0.
    """
    names = original(manager, task_list)
    arguments = _command_line()
    try:
        _check(names, arguments)
    except PackError as error:
        raise SystemExit(f"\nlmms-eval-tasks: {error}\n") from None
    return names


def _checked_in_process(
    original: Callable[..., Any], manager: Any, task_list: Any = None, task_type: str = "simple"
) -> Any:
    if _command_line() is None:
        _check([task_list] if isinstance(task_list, str) else task_list or [], Namespace(task_type=task_type))
    return original(manager, task_list, task_type)


def _check(names: Iterable[Any], arguments: Namespace | None) -> None:
    from lmms_eval_tasks import checks

    checks.before_run([name for name in names if isinstance(name, str)], _conditions(arguments))


def _command_line() -> Namespace | None:
    """The arguments of the running `lmms-eval` command, config file included; None in process."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "cli_evaluate_single":
            arguments = frame.f_locals.get("args")
            return arguments if isinstance(arguments, Namespace) else None
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _conditions(arguments: Namespace | None) -> Any:
    from lmms_eval_tasks.checks import Conditions

    model = getattr(arguments, "model", None)
    task_type = getattr(arguments, "task_type", None)
    if task_type is None and isinstance(model, str):
        task_type = _task_type(model, bool(getattr(arguments, "force_simple", False)))
    return Conditions(
        model=model if isinstance(model, str) else None,
        model_args=getattr(arguments, "model_args", None) or "",
        simple=task_type == "simple",
        predict_only=bool(getattr(arguments, "predict_only", False)),
        limit=getattr(arguments, "limit", None),
    )


def _task_type(model: str, force_simple: bool) -> str | None:
    try:
        from lmms_eval.models import MODEL_REGISTRY_V2

        return str(MODEL_REGISTRY_V2.resolve(model, force_simple=force_simple).model_type)
    except Exception:
        # An unknown model is lmms-eval's to report.
        return None


def log_usage(model: str, task: str, input_tokens: int, output_tokens: int) -> None:
    """Counts a judge call in lmms-eval's usage summary, if this process runs lmms-eval."""
    module = sys.modules.get("lmms_eval.models.model_utils.usage_metrics")
    if module is None:
        return
    try:
        module.log_usage(model, task, input_tokens=input_tokens, output_tokens=output_tokens, source="judge")
    except Exception as error:
        logger.debug(f"Judge usage is missing in lmms-eval's summary: {error}")
