import subprocess
import sys
from argparse import Namespace
from types import ModuleType, SimpleNamespace

import lmms_eval.models  # noqa: F401  (what loads plugins)
import pytest
from lmms_eval.tasks import TaskManager

from lmms_eval_tasks import checks, plugin
from lmms_eval_tasks.benchmarks import FOLDER, groups, tasks
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.settings import PREFIX


@pytest.mark.slow
def test_our_tasks_stand_beside_lmms_evals_own():
    manager = TaskManager()
    assert set(tasks()) <= set(manager.all_tasks)
    assert {"videomme", "mmmu_val", "mvbench"} <= set(manager.all_tasks)
    assert manager.match_tasks(["videomme"]) == ["videomme"]


def test_without_defaults_our_tasks_are_not_added():
    assert TaskManager(include_defaults=False).all_tasks == []


def test_an_included_folder_gives_the_same_tasks():
    assert set(TaskManager(include_path=str(FOLDER), include_defaults=False).all_tasks) == set(tasks()) | set(groups())


def test_our_index_is_the_one_that_lmms_eval_would_make():
    assert plugin._index() == TaskManager(include_defaults=False)._get_task_and_group(str(FOLDER))


def test_a_name_that_is_taken_is_not_shadowed(logged):
    class Manager:
        def _get_task_and_group(self, folder):
            return {"mt_video_bench": {"yaml_path": "ours"}, "other": {"yaml_path": "ours"}}

    def original(manager, include_path, include_defaults):
        return {"mt_video_bench": {"yaml_path": "theirs"}}

    index = plugin._with_our_tasks(original, Manager())
    assert {name: entry["yaml_path"] for name, entry in index.items()} == {"mt_video_bench": "theirs", "other": "ours"}
    assert any("'mt_video_bench' is theirs" in line for line in logged)


def test_registering_twice_changes_nothing():
    before = TaskManager.initialize_tasks
    assert plugin.register() == []
    assert TaskManager.initialize_tasks is before


def test_another_lmms_eval_gives_one_warning_and_no_error(monkeypatch, logged):
    monkeypatch.setattr(TaskManager, "_has_lmms_eval_tasks", False)
    monkeypatch.setattr(TaskManager, "match_tasks", lambda self, tasks, other: None)
    assert plugin.register() == []
    [line] = logged
    assert "WARNING" in line and '--include_path "$(lmms-eval-tasks path)"' in line


def test_a_bad_setting_is_named_by_the_check_and_stops_nobody_else(monkeypatch):
    monkeypatch.setattr(TaskManager, "_has_lmms_eval_tasks", False)
    wrapped = []
    monkeypatch.setattr(plugin, "_wrap", lambda owner, name, wrapper: wrapped.append(name))
    monkeypatch.setenv(f"{PREFIX}FRAMES", "none")
    assert plugin.register() == [] and "match_tasks" in wrapped
    with pytest.raises(SystemExit, match="LMMS_EVAL_TASKS_FRAMES='none'"):
        cli_evaluate_single(Namespace(tasks="mt_video_bench", model="openai", model_args=""))


def test_autoload_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(TaskManager, "_has_lmms_eval_tasks", False)
    monkeypatch.setattr(plugin, "_wrap", lambda *_: pytest.fail("it registers"))
    monkeypatch.setenv(f"{PREFIX}AUTOLOAD", "0")
    assert plugin.register() == []


def cli_evaluate_single(args):
    """Stands for lmms-eval's function of this name, whose `args` hold the command line."""
    return TaskManager(include_path=str(FOLDER), include_defaults=False).match_tasks(args.tasks.split(","))


def test_a_failed_check_on_the_command_line_ends_with_status_1():
    with pytest.raises(SystemExit, match="mt_video_bench is not prepared"):
        cli_evaluate_single(Namespace(tasks="mt_video_bench", model="openai", model_args=""))


def test_the_check_sees_the_command_line(monkeypatch):
    seen = []
    monkeypatch.setattr(checks, "before_run", lambda names, conditions: seen.append((names, conditions)))
    cli_evaluate_single(
        Namespace(
            tasks="mt_video_bench", model="openai", model_args="a=1", force_simple=True, predict_only=True, limit=8
        )
    )
    expected = checks.Conditions(model="openai", model_args="a=1", simple=True, predict_only=True, limit=8)
    assert seen == [(["mt_video_bench"], expected)]


def test_in_process_a_failed_check_is_an_exception():
    manager = TaskManager(include_path=str(FOLDER), include_defaults=False)
    with pytest.raises(PackError, match="mt_video_bench is not prepared"):
        manager.load_task_or_group(["mt_video_bench"], "chat")


def test_importing_every_module_reads_and_opens_nothing():
    script = """
import builtins, io, os, pkgutil, socket, sys, importlib
import lmms_eval_tasks
found = pkgutil.walk_packages(lmms_eval_tasks.__path__, "lmms_eval_tasks.")
names = [module.name for module in found if "__main__" not in module.name]
import pydantic_settings, loguru, tqdm, yaml, openai, concurrent.futures.thread, importlib.metadata
home = os.environ["LMMS_EVAL_TASKS_HOME"]
touched = []
def watch(event, args):
    if event == "open" and isinstance(args[0], str) and ("lmms_eval_tasks" in args[0] or home in args[0]):
        if not args[0].endswith((".py", ".pyc")) and "__pycache__" not in args[0]:
            touched.append(args[0])
    elif event.startswith("socket.connect"):
        touched.append(event)
sys.addaudithook(watch)
for name in names:
    importlib.import_module(name)
heavy = {"torch", "lmms_eval", "datasets", "decord", "transformers"} & set(sys.modules)
print(sorted(touched), sorted(heavy), len(names), os.path.exists(os.path.join(home, "runs")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    touched, heavy, number, _ = done.stdout.strip().rsplit(" ", 3)
    assert f"{touched} {heavy}" == "[] []"
    assert int(number) > 20


def test_no_frame_is_sent_in_the_place_of_another(monkeypatch):
    class ChatMessages:
        def encode_image(self, image, cache=None, image_format="PNG"):
            return cache

    protocol = ModuleType("lmms_eval.protocol")
    protocol.ChatMessages = ChatMessages
    monkeypatch.setitem(sys.modules, "lmms_eval.protocol", protocol)
    plugin.encode_every_picture()
    plugin.encode_every_picture()
    assert ChatMessages().encode_image(object(), {"remembered": 1}) is None
    assert ChatMessages().encode_image("a.png", {"remembered": 1}, image_format="JPEG") == {"remembered": 1}


def test_another_way_to_encode_frames_is_warned_of_and_left_alone(monkeypatch, logged):
    def encode_image(self, picture):
        return picture

    protocol = ModuleType("lmms_eval.protocol")
    protocol.ChatMessages = SimpleNamespace(encode_image=encode_image)
    monkeypatch.setitem(sys.modules, "lmms_eval.protocol", protocol)
    plugin.encode_every_picture()
    assert protocol.ChatMessages.encode_image is encode_image
    assert "may be wrong ones" in logged[0]


def test_conversations_of_an_lmms_eval_of_another_shape_take_its_own_path(monkeypatch, logged):
    def run(lm, requests, trace=None):
        return []

    evaluator = ModuleType("lmms_eval.evaluator")
    evaluator._run_generate_until_agentic = run
    monkeypatch.setitem(sys.modules, "lmms_eval.evaluator", evaluator)
    plugin.run_in_lock_step()
    plugin.run_in_lock_step()
    assert evaluator._run_generate_until_agentic is run
    [warning] = logged
    assert "one request at a time" in warning and "not comparable" in warning


def test_conversations_of_other_tasks_take_lmms_evals_own_path(monkeypatch):
    def run(lm, requests, agentic_trace_mode="basic", response_cache=None):
        return [(request, agentic_trace_mode, response_cache) for request in requests]

    evaluator = ModuleType("lmms_eval.evaluator")
    evaluator._run_generate_until_agentic = run
    monkeypatch.setitem(sys.modules, "lmms_eval.evaluator", evaluator)
    plugin.run_in_lock_step()
    others = [SimpleNamespace(args=("", {}, None, lambda doc: "", 0, "vending_bench2", "test")) for _ in range(2)]
    replies = evaluator._run_generate_until_agentic(None, others, agentic_trace_mode="full", response_cache="cache")
    assert replies == [(request, "full", "cache") for request in others]


def test_usage_reaches_lmms_evals_summary():
    from lmms_eval.models.model_utils import usage_metrics

    usage_metrics.reset_usage_metrics()
    plugin.log_usage("judge", "mt_video_bench", 10, 2)
    assert usage_metrics.summarize_usage_metrics()["by_source"]["judge"]["total_tokens"] == 12
    usage_metrics.reset_usage_metrics()
