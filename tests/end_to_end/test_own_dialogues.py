"""The page "Your own dialogues", followed from an empty folder."""

import json
import os
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import BIN, command, metrics
from utils.openai_server import OpenAIServer, rule_based, text_of

PAGE = (files("lmms_eval_tasks.mt_video_bench") / "own_dialogues.md").read_text("utf-8")
ANSWER = re.compile(r"Ground Truth Answer: (.*)")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def checklist(answer):
    """Questions that the server, as a judge, can answer: they quote words of the reference answer."""
    words = [word.strip(".,") for word in answer.split()][-4:]
    made = {f"Q{k}": f'Does the model say "{word}", in place {k}?' for k, word in enumerate(words, 1)}
    made |= dict.fromkeys(["A1", "A2", "A3", "A4"], "Yes")
    return json.dumps({**made, "Q5": 'Does the model speak of a "giraffe"?', "A5": "No"})


@pytest.fixture
def server():
    [dialogues] = blocks("json")
    turns = [turn for line in dialogues.splitlines() for turn in json.loads(line)["turns"]]
    known = {turn["question"]: turn["answer"] for turn in turns}
    # One of the three is answered as a weak model does.
    known["What does she do with them?"] = "Nothing."
    play = rule_based(known)

    def reply(body, n):
        text = text_of(body["messages"][-1])
        found = ANSWER.search(text)
        if found:
            # The first draft of the first one is one question short.
            short = "wooden" in found[1] and "was refused" not in text
            return checklist(found[1]).replace('"Q5"', '"Z5"' if short else '"Q5"')
        if body["model"] == "gemini-2.5-pro" and "Checklist:" in text:
            return play(body, n).replace('"A4": "No"', '"A4": "Yes"')
        return play(body, n)

    with OpenAIServer(reply=reply) as server:
        yield server


@pytest.mark.slow
def test_its_commands_make_a_scored_run(server, home, mt_release, tmp_path):
    replaced = {
        "https://generativelanguage.googleapis.com/v1beta/openai": server.url,
        "--model qwen3_vl --model_args pretrained=Qwen/Qwen3-VL-8B-Instruct,max_num_frames=128": "--model openai "
        f"--model_args model_version=model,base_url={server.url},api_key=none,num_concurrent=4,max_frames_num=4",
    }
    script = "".join(blocks("sh"))
    for text, other in replaced.items():
        assert script.count(text) == 1
        script = script.replace(text, other)
    for name, language in {"dialogues.jsonl": "json", "people.csv": "csv"}.items():
        [block] = blocks(language)
        (tmp_path / name).write_text(block, "utf-8")
    (tmp_path / "videos").mkdir()
    for name, of in {"kitchen": "car_talk", "street": "street_bikes"}.items():
        shutil.copy(mt_release / "videos" / f"{of}.mp4", tmp_path / "videos" / f"{name}.mp4")
    environment = {
        f"{PREFIX}HOME": str(home),
        f"{PREFIX}FRAMES": "8",
        f"{PREFIX}LONG_SIDE": "64",
        "HF_HOME": str(home / "hf"),
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    # The official dataset is there before.
    command("lmms-eval-tasks", "prepare", "mt_video_bench", "--source", mt_release, cwd=tmp_path, **environment)
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=tmp_path,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "3 checklists for 2 dialogues in release" in done.stdout
    [results] = (tmp_path / "logs").rglob("*_results.json")
    # The weak answer is right in the reversed fact alone: a dialogue of 20 and 100, and one of 100.
    assert metrics(json.loads(results.read_text()), "mt_video_bench") == {
        "overall": 80, "perceptivity": 60, "memory_recall": 60, "interactivity": 100, "answer_refusal": 100,
        "coverage": 100,
    }  # fmt: skip
    scores = [
        {item["id"]: item["score"] for item in map(json.loads, (tmp_path / name).read_text().splitlines())}
        for name in ("first.jsonl", "second.jsonl")
    ]
    weak = "memory_recall/kitchen/breakfast/2"
    assert scores[0][weak] == 20 and scores[1] == {**scores[0], weak: 40}
    for text in ("first.jsonl: gemini-2.5-flash", "second.jsonl: gemini-2.5-pro", "people.csv: people"):
        assert text in done.stdout
    assert re.search(r"15 checks \(2 videos\)\n    agreement\s+93\.333", done.stdout)
    assert re.search(r"3 items \(2 videos\)\n    spearman\s+1\.000", done.stdout)

    listed = [
        json.loads(command("lmms-eval-tasks", "list", "--json", cwd=tmp_path, **environment, **more))["mt_video_bench"]
        for more in ({}, {f"{PREFIX}DATA_MT_VIDEO_BENCH": tmp_path / "own" / "datasets" / "mt_video_bench"})
    ]
    assert listed == ["24 questions", "3 questions"]
