"""The one place that reaches into lmms-eval: registration, checks, frames, conversations in lock step, usage.

Everything here is guarded: an lmms-eval of another shape gives a warning and the plain path, never a wrong score.
"""

import functools
import inspect
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType, ModuleType
from typing import Any

from lmms_eval_tasks.benchmarks import FOLDER, files, groups
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
    if not _autoload():
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


def _autoload() -> bool:
    # Importing the settings takes longer than all else that a start of lmms-eval pays for us.
    if not any(name.upper() == "LMMS_EVAL_TASKS_AUTOLOAD" for name in os.environ):
        return True
    from lmms_eval_tasks import settings

    try:
        return settings.load().autoload
    except PackError:
        # The check before the run names the bad value, where there is one to stop.
        return True


def _wrap(owner: type | ModuleType, name: str, wrapper: Callable[..., Any]) -> None:
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
    ours = _index()
    if not set(map(frozenset, ours.values())) <= set(map(frozenset, index.values())):
        # This lmms-eval keeps something else of each task.
        ours = manager._get_task_and_group(str(FOLDER))
    for name in sorted(ours.keys() & index.keys()):
        if index[name].get("yaml_path") != ours[name].get("yaml_path"):
            logger.warning(f"Task {name!r} is {index[name].get('yaml_path')}, not the one of lmms-eval-tasks")
    return {**ours, **index}


def _index() -> dict[str, dict[str, Any]]:
    """What `TaskManager._get_task_and_group` finds in our folder; it would parse a room's template for each task."""
    group = {"type": "group", "task": -1}
    return {
        name: {**(group if name in groups() else {"type": "task"}), "yaml_path": str(path)}
        for name, path in files().items()
    }


def _checked_on_the_command_line(original: Callable[..., Any], manager: Any, task_list: Any) -> Any:
    """The command line calls `match_tasks` before it builds the model.

    A failed check ends the process with status 1: as an exception it would be printed with a traceback, and lmms-eval
    would exit 0.
    """
    names = original(manager, task_list)
    arguments = _locals_of("cli_evaluate_single").get("args")
    if isinstance(arguments, Namespace):
        try:
            _check(names, vars(arguments), None)
        except PackError as error:
            raise _exit(error) from None
    return names


def ending(error: PackError) -> BaseException:
    """What to raise for an error that ends the run while it generates.

    lmms-eval's command line catches every `Exception` and exits with 0. A launcher of several ranks would not see that
    one of them is gone, and the others would wait for it for hours.
    """
    several = os.environ.get("WORLD_SIZE", "1") not in ("", "1")
    return _exit(error) if several or _locals_of("cli_evaluate_single") else error


def _exit(error: PackError) -> SystemExit:
    return SystemExit(f"\nlmms-eval-tasks: {error}\n")


def _checked_in_process(
    original: Callable[..., Any], manager: Any, task_list: Any = None, task_type: str = "simple"
) -> Any:
    """In process tasks are loaded after the model; here the check is an exception like any other."""
    if not _locals_of("cli_evaluate_single"):
        names = [task_list] if isinstance(task_list, str) else task_list or []
        _check(names, _locals_of("simple_evaluate"), task_type)
    return original(manager, task_list, task_type)


def _check(names: Iterable[Any], arguments: Mapping[str, Any], task_type: str | None) -> None:
    from lmms_eval_tasks import checks

    model = arguments.get("model")
    if task_type is None and isinstance(model, str):
        task_type = _task_type(model, bool(arguments.get("force_simple")))
    conditions = checks.Conditions(
        model=model if isinstance(model, str) else None,
        model_args=arguments.get("model_args") or "",
        simple=task_type == "simple",
        predict_only=bool(arguments.get("predict_only")),
        limit=arguments.get("limit"),
    )
    checks.before_run([name for name in names if isinstance(name, str)], conditions)


def _locals_of(function: str) -> Mapping[str, Any]:
    """What a calling function of lmms-eval knows of the run, config file included; empty if it does not call."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame.f_locals if frame else {}


def _task_type(model: str, force_simple: bool) -> str | None:
    try:
        from lmms_eval.models import MODEL_REGISTRY_V2

        return str(MODEL_REGISTRY_V2.resolve(model, force_simple=force_simple).model_type)
    except Exception:
        # An unknown model is lmms-eval's to report.
        return None


def encode_every_picture() -> None:
    """Keeps lmms-eval from sending one frame of a video in the place of another.

    Its chat messages for openai, async_openai and vllm remember encoded pictures by address, which a frame that is
    done with hands on to a later one: a third of 128 frames were others' (lmms-eval 0.7.3). Paths stay remembered.
    """
    protocol = sys.modules.get("lmms_eval.protocol")
    if protocol is not None:
        _encode_every_picture(protocol)


@functools.cache
def _encode_every_picture(protocol: ModuleType) -> None:
    try:
        messages = protocol.ChatMessages
        if list(inspect.signature(messages.encode_image).parameters)[:3] != ["self", "image", "cache"]:
            raise PackError("this lmms-eval has another ChatMessages.encode_image")
        _wrap(messages, "encode_image", _encoded)
    except Exception as error:
        logger.warning(f"The frames that openai, async_openai and vllm send may be wrong ones: {error}")


def _encoded(
    original: Callable[..., Any], messages: Any, image: Any, cache: Any = None, *args: Any, **kwargs: Any
) -> Any:
    return original(messages, image, cache if isinstance(image, str) else None, *args, **kwargs)


def run_in_lock_step() -> None:
    """Lets the conversations of our tasks run together: turn k of all of them in one batch.

    lmms-eval runs conversations one request at a time, and shows chat backends the videos before the text, whatever
    the task's other prompts do.
    """
    evaluator = sys.modules.get("lmms_eval.evaluator")
    if evaluator is not None:
        _run_in_lock_step(evaluator)


@functools.cache
def _run_in_lock_step(evaluator: ModuleType) -> None:
    try:
        expected = ["lm", "requests", "agentic_trace_mode", "response_cache"]
        if list(inspect.signature(evaluator._run_generate_until_agentic).parameters) != expected:
            raise PackError("this lmms-eval has another _run_generate_until_agentic")
        _wrap(evaluator, "_run_generate_until_agentic", _in_lock_step)
    except Exception as error:
        logger.warning(f"Conversations run one request at a time, and their prompts are not comparable with those of "
                       f"other tasks, since lmms-eval shows videos before the text: {error}")  # fmt: skip


def _in_lock_step(
    original: Callable[..., Any],
    lm: Any,
    requests: Sequence[Any],
    agentic_trace_mode: str = "basic",
    response_cache: Any = None,
) -> list[Any]:
    by_task: dict[str | None, list[int]] = {}
    for place, request in enumerate(requests):
        by_task.setdefault(request.args[5] if _is_ours(request) else None, []).append(place)
    replies: dict[int, Any] = {}
    for task, places in by_task.items():
        theirs = [requests[place] for place in places]
        if task is None:
            outputs = original(lm, theirs, agentic_trace_mode, response_cache)
        else:
            outputs = _conversations(lm, theirs, response_cache)
        replies.update(zip(places, outputs, strict=True))
    return [replies[place] for place in range(len(requests))]


def _is_ours(request: Any) -> bool:
    from lmms_eval_tasks.dialogue.adapter import Conversations

    # A request's arguments: text, generation kwargs, doc_to_visual, doc_to_text with its kwargs, doc, task, split.
    doc_to_text = request.args[3]
    return isinstance(getattr(getattr(doc_to_text, "func", None), "__self__", None), Conversations)


def _conversations(lm: Any, requests: Sequence[Any], response_cache: Any) -> list[str]:
    """Runs the conversations of one task; returns their transcripts."""
    from lmms_eval.api.instance import Instance, unwrap_generation_output

    from lmms_eval_tasks.dialogue import lockstep
    from lmms_eval_tasks.results import records

    _, kwargs, _, doc_to_text, _, task, split = requests[0].args
    conversations, specific = doc_to_text.func.__self__, doc_to_text.keywords["lmms_eval_specific_kwargs"]
    # Without the key, lmms-eval's own loop ends at 12 too.
    kwargs, most = {**kwargs}, int(kwargs.get("max_agentic_steps", 12))
    kwargs.pop("max_agentic_steps", None)
    docs = [lm.task_dict[task][split][request.args[4]] for request in requests]
    running = [conversations.start(doc, specific) for doc in docs]

    def instance(place: int, step: int, turn: Any) -> Any:
        # Clips are asked for when the backend builds its request: the next ones are made while the model works.
        where = (requests[place].args[4], task, split)
        if lm.is_simple:
            shown: Any = ({**kwargs}, lambda doc: conversations.clips(doc, turn, specific))
        else:
            shown = (lambda doc: conversations.messages(doc, turn, specific), {**kwargs})
        # The key of lmms-eval's response cache holds the doc and this number, not the text.
        return Instance("generate_until", (turn.text, *shown, *where), idx=step, metadata=requests[place].metadata)

    def ask(step: int, asked: Sequence[tuple[int, Any]]) -> list[str | None]:
        instances = [instance(place, step, turn) for place, turn in asked]
        if response_cache is not None:
            outputs = response_cache.execute(lm, "generate_until", instances)
        else:
            outputs = lm.generate_until(instances)
        replies = [None if output is None else unwrap_generation_output(output)[0] for output in outputs]
        for (place, turn), reply in zip(asked, replies, strict=True):
            records.reply(task, docs[place]["id"], step, turn.text, reply)
        return replies

    lockstep.run(running, ask, most)
    return [of.transcript().dump() for of in running]


def log_usage(model: str, task: str, input_tokens: int, output_tokens: int) -> None:
    """Counts a judge call in lmms-eval's usage summary, if this process runs lmms-eval."""
    module = sys.modules.get("lmms_eval.models.model_utils.usage_metrics")
    if module is None:
        return
    try:
        module.log_usage(model, task, input_tokens=input_tokens, output_tokens=output_tokens, source="judge")
    except Exception as error:
        logger.debug(f"Judge usage is missing in lmms-eval's summary: {error}")
