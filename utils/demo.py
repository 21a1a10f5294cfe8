"""A benchmark from end to end on a laptop: sample release, preparation, two real lmms-eval runs, scores, a report.

    python -m utils.demo [BENCHMARK] [FOLDER]

A local server plays a middling model, and the judge, in the first run; the second runs lmms-eval's `qwen2_5_vl` backend
on a tiny random-weight checkpoint, whose answers are noise.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import OpenAIServer, ReplyFunction, rule_based
from utils.sample_release import MAKERS, mlvu, mvpbench, sample_answers, scvbench
from utils.tiny_vlm import make_tiny_vlm

BIN = Path(sys.executable).parent
FRAMES = "8"

PLAYED: dict[str, Callable[[Path], ReplyFunction]] = {
    "mt_video_bench": lambda release: rule_based(sample_answers(release)),
    "mvpbench": lambda _: mvpbench.played(mvpbench.sample_answers()),
    "mlvu": lambda _: mlvu.mlvu_reply(mlvu.mlvu_sample_answers()),
    "scvbench": lambda _: scvbench.scvbench_reply(scvbench.scvbench_sample_answers()),
}
"""From the sample release of a benchmark to what plays model and judge."""


def run(command: list[str], environment: dict[str, str]) -> None:
    """Runs a command of the environment's bin folder, printing it first.

    Raises:
        SystemExit: It failed.
    """
    print(f"\n$ {' '.join(command)}", flush=True)
    done = subprocess.run([str(BIN / command[0]), *command[1:]], env={**os.environ, **environment}, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed with status {done.returncode}")


def main() -> None:
    """Makes everything below one folder, ``.demo/BENCHMARK`` unless another is given."""
    parser = argparse.ArgumentParser(prog="python -m utils.demo", description=main.__doc__)
    parser.add_argument("benchmark", nargs="?", choices=MAKERS, default="mt_video_bench")
    parser.add_argument("folder", type=Path, nargs="?")
    arguments = parser.parse_args()
    benchmark = arguments.benchmark
    folder = (arguments.folder or Path(".demo") / benchmark).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    release = MAKERS[benchmark](folder / "release")
    checkpoint = make_tiny_vlm(folder / "tiny-qwen2_5_vl")
    shutil.rmtree(folder / "logs", ignore_errors=True)
    with OpenAIServer(reply=PLAYED[benchmark](release)) as server:
        environment = {
            f"{PREFIX}HOME": str(folder / "home"),
            f"{PREFIX}JUDGE_BASE_URL": server.url,
            f"{PREFIX}JUDGE_MODEL": "rule-based-judge",
            f"{PREFIX}JUDGE_API_KEY": "no-key-needed",
            # The same number for every video: backends take one for all videos of a question.
            f"{PREFIX}FRAMES": FRAMES,
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(folder / "hf"),
        }
        run(["lmms-eval-tasks", "prepare", benchmark, "--source", str(release)], environment)
        run(["lmms-eval-tasks", "doctor"], environment)
        print("\nFirst run: a local server plays a middling model and a rule-based judge")
        task = ["--tasks", benchmark, "--log_samples", "--batch_size", "1", "--verbosity", "WARNING"]
        played = f"model_version=played-model,base_url={server.url},api_key=none,num_concurrent=8"
        run(["lmms-eval", "--model", "openai", "--model_args", f"{played},max_frames_num={FRAMES}", *task,
             "--output_path", str(folder / "logs" / "openai")], environment)  # fmt: skip
        print("\nSecond run: lmms-eval's qwen2_5_vl on random weights, whose answers are noise")
        tiny = f"pretrained={checkpoint},device_map=cpu,attn_implementation=sdpa,max_num_frames={FRAMES}"
        run(["lmms-eval", "--model", "qwen2_5_vl", "--model_args", f"{tiny},min_pixels=3136,max_pixels=12544",
             "--device", "cpu", "--gen_kwargs", "max_new_tokens=32", *task,
             "--output_path", str(folder / "logs" / "qwen2_5_vl")], environment)  # fmt: skip
        for name in ("openai", "qwen2_5_vl"):
            run(["lmms-eval-tasks", "score", str(folder / "logs" / name)], environment)
        runs = [f"{name}={folder / 'logs' / name}" for name in ("openai", "qwen2_5_vl")]
        run(["lmms-eval-tasks", "report", *runs, "-o", str(folder / "report")], environment)
    print(f"\nLogs, run records, verdicts and report are in {folder}")


if __name__ == "__main__":
    main()
