"""Running our tasks through lmms-eval, in process and from the command line."""

import copy
import os
import subprocess
import sys
from pathlib import Path

from lmms_eval_tasks.benchmarks import FOLDER

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def evaluate(tasks, server, model="openai", model_args="", **options):
    """lmms-eval's results of our tasks; the model is played by the server unless another is named."""
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    if model == "openai" and not model_args:
        model_args = f"model_version=model,base_url={server.url},api_key=none,num_concurrent=4,max_frames_num=4"
    manager = TaskManager(include_path=str(FOLDER), include_defaults=False, model_name=model)
    return simple_evaluate(
        model=model, model_args=model_args, tasks=tasks, task_manager=manager, bootstrap_iters=0, **options
    )


def metrics(results, task):
    """``{metric: value}`` of a task in lmms-eval's results, without error estimates."""
    return {
        key.removesuffix(",none"): value
        for key, value in results["results"][task].items()
        if key.endswith(",none") and "_stderr" not in key
    }


def save(folder, results, task):
    """Writes a sample log with lmms-eval's own writer, and returns the file."""
    from lmms_eval.loggers.evaluation_tracker import EvaluationTracker

    tracker = EvaluationTracker(output_path=str(folder))
    tracker.date_id, tracker.general_config_tracker.model_name_sanitized = "20260101", "model"
    tracker.save_results_samples(task, copy.deepcopy(results["samples"][task]))
    [log] = folder.rglob(f"*_samples_{task}.jsonl")
    return log


def command(*arguments, cwd, status=0, **environment):
    """Runs a command of the environment's bin folder; returns what it printed."""
    done = subprocess.run(
        [str(BIN / arguments[0]), *map(str, arguments[1:])],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **{key: str(value) for key, value in environment.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def texts(request):
    """``[(role, text)]`` of a chat request, without its frames."""
    return [
        (message["role"], "".join(part["text"] for part in message["content"] if part["type"] == "text"))
        for message in request["messages"]
    ]


def text_and_videos(request):
    """The text of a request's last message, and the addresses of its videos (``pass_video_url=True``)."""
    content = request["messages"][-1]["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    return text, [part["video_url"]["url"] for part in parts if part["type"] == "video_url"]
