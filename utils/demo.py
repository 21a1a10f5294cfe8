"""The main job from end to end on a laptop: sample release, preparation, two real lmms-eval runs, scores.

    python -m utils.demo [FOLDER]

A local server plays model and judge in the first run; the second runs lmms-eval's `qwen2_5_vl` backend on a tiny
random-weight checkpoint, whose answers are noise.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import OpenAIServer, rule_based
from utils.sample_release import make_mt_video_bench, sample_answers
from utils.tiny_vlm import make_tiny_vlm

BIN = Path(sys.executable).parent


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
    """Makes everything below one folder, ``.demo`` unless another is given."""
    parser = argparse.ArgumentParser(prog="python -m utils.demo", description=main.__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(".demo"))
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    release = make_mt_video_bench(folder / "release")
    checkpoint = make_tiny_vlm(folder / "tiny-qwen2_5_vl")
    with OpenAIServer(reply=rule_based(sample_answers(release))) as server:
        environment = {
            f"{PREFIX}HOME": str(folder / "home"),
            f"{PREFIX}JUDGE_BASE_URL": server.url,
            f"{PREFIX}JUDGE_MODEL": "rule-based-judge",
            f"{PREFIX}JUDGE_API_KEY": "no-key-needed",
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(folder / "hf"),
        }
        run(["lmms-eval-tasks", "prepare", "mt_video_bench", "--source", str(release)], environment)
        run(["lmms-eval-tasks", "doctor"], environment)
        print("\nFirst run: a local server plays a middling model and a rule-based judge")
        task = ["--tasks", "mt_video_bench", "--log_samples", "--batch_size", "1", "--verbosity", "WARNING"]
        played = f"model_version=played-model,base_url={server.url},api_key=none,num_concurrent=8,max_frames_num=8"
        run(["lmms-eval", "--model", "openai", "--model_args", played, *task,
             "--output_path", str(folder / "logs" / "openai")], environment)  # fmt: skip
        print(
            "\nSecond run: lmms-eval's qwen2_5_vl on random weights. 20.00 is the score of an answer that says nothing"
        )
        tiny = f"pretrained={checkpoint},device_map=cpu,attn_implementation=sdpa,max_num_frames=8"
        run(["lmms-eval", "--model", "qwen2_5_vl", "--model_args", f"{tiny},min_pixels=3136,max_pixels=12544",
             "--device", "cpu", "--gen_kwargs", "max_new_tokens=32", *task,
             "--output_path", str(folder / "logs" / "qwen2_5_vl")], environment)  # fmt: skip
        for name in ("openai", "qwen2_5_vl"):
            newest = max((folder / "logs" / name).rglob("*_samples_mt_video_bench.jsonl"))
            run(["lmms-eval-tasks", "score", str(newest)], environment)
    print(f"\nLogs, run records and verdicts are in {folder}")


if __name__ == "__main__":
    main()
