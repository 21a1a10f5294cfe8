"""The frames and the seconds that reach a model, through lmms-eval's own backends and videos of numbered frames."""

import base64
import io
import json
import re

import numpy as np
import pytest
import transformers
from PIL import Image

from lmms_eval_tasks.media.backends import BACKENDS
from lmms_eval_tasks.prepare import prepare
from tests.end_to_end.running import evaluate
from tests.media import films
from utils.openai_server import rule_based
from utils.tiny_vlm import make_tiny_vlm

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prepared")]

FRAMES = 128
FPS = 25
SOURCES = (3, 40, 128, 4000)
PROCESSORS = {"qwen2_5_vl": "Qwen2_5_VLProcessor", "qwen3_vl": "Qwen3VLProcessor"}
# The backends would else enlarge the films many times.
PIXELS = "min_pixels=3136,max_pixels=50176"


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """One dialogue with one evaluated round about each film, in the authors' layout."""
    folder = tmp_path_factory.mktemp("films")
    checks = {f"Q{n}": f"Check {n}?" for n in range(1, 6)} | {f"A{n}": "Yes" for n in range(1, 6)}
    mtqa, checklists = {}, {}
    for total in SOURCES:
        turn = {"User": f"What is in film {total}?", "Assistant": "Cells.", "Ability": "Content Summary"}
        mtqa[f"film_{total}"] = [{"event_index": 1, "mtqa": {"Round 1": turn}}]
        checklists[f"film_{total}"] = {"1": [{"round index": 1, **checks}]}
    for place in ("mtqa", "checklist", "videos"):
        (folder / place).mkdir()
    (folder / "mtqa" / "summary.json").write_text(json.dumps(mtqa))
    (folder / "checklist" / "summary_CheckList.json").write_text(json.dumps(checklists))
    for total in SOURCES:
        films.write(folder / "videos" / f"film_{total}.mp4", total, fps=FPS)
    return folder


@pytest.fixture
def prepared(release, home):
    prepare("mt_video_bench", release)


@pytest.fixture(scope="module", params=PROCESSORS)
def tiny(request, tmp_path_factory):
    return make_tiny_vlm(tmp_path_factory.mktemp("checkpoint") / request.param, request.param)


def indices(total):
    """The sampling rule in numpy's words; of a source with fewer frames it takes each, evenly often."""
    return np.linspace(0, total - 1, FRAMES).astype(int)


def arguments(model):
    """The frame arguments that the README's table names."""
    backend = BACKENDS[model]
    return ",".join(f"{key}={value}" for key, value in {backend.argument: FRAMES, **backend.also}.items())


def film(text):
    return int(re.search(r"What is in film (\d+)\?", text).group(1))


def decoded(part):
    data = part["image_url"]["url"].partition("base64,")[2]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))


def unpatched(inputs, processor):
    """The pictures in a processor's output, black and white."""
    [(t, h, w)], merge = inputs["video_grid_thw"].tolist(), processor.merge_size
    patch, pair = processor.patch_size, processor.temporal_patch_size
    cells = inputs["pixel_values_videos"].reshape(t, h // merge, w // merge, merge, merge, 3, pair, patch, patch)
    pictures = cells.permute(0, 6, 1, 3, 7, 2, 4, 8, 5).reshape(t * pair, h * patch, w * patch, 3)
    return np.where(pictures.numpy() > 0, 255, 0)


def test_openai_is_sent_128_pictures_of_the_right_frames(judge_server):
    judge_server.reply = rule_based()
    assert arguments("openai") == "max_frames_num=128"
    evaluate(
        ["mt_video_bench"], judge_server, model="openai",
        model_args=f"model_version=model,base_url={judge_server.url},api_key=none,{arguments('openai')}",
    )  # fmt: skip
    seen = {}
    for request in judge_server.requests:
        if request["model"] == "model":
            [message] = request["messages"]
            pictures = [decoded(part) for part in message["content"] if part["type"] == "image_url"]
            seen[film(str(message["content"][0]))] = [films.number(picture) for picture in pictures]
    assert seen == {total: indices(total).tolist() for total in SOURCES}


def test_qwen_processes_128_frames_and_is_told_their_seconds(judge_server, tiny, monkeypatch):
    calls = {}

    def spy(self, *args, **kwargs):
        inputs = process(self, *args, **kwargs)
        prompt = self.tokenizer.decode(inputs["input_ids"][0])
        calls[film(prompt)] = (prompt, kwargs["video_metadata"], unpatched(inputs, self.video_processor), inputs)
        return inputs

    processor = getattr(transformers, PROCESSORS[tiny.name])
    process = processor.__call__
    monkeypatch.setattr(processor, "__call__", spy)
    assert arguments(tiny.name) == "max_num_frames=128"
    evaluate(
        ["mt_video_bench"], judge_server, model=tiny.name, device="cpu", batch_size=1, gen_kwargs="max_new_tokens=4",
        model_args=f"pretrained={tiny},device_map=cpu,attn_implementation=sdpa,{PIXELS},{arguments(tiny.name)}",
    )  # fmt: skip
    assert set(calls) == set(SOURCES)
    for total, (prompt, [metadata], pictures, inputs) in calls.items():
        assert [films.number(picture) for picture in pictures] == indices(total).tolist()
        seconds = indices(total) / FPS
        told = np.array(metadata["frames_indices"]) / metadata["fps"]
        assert told == pytest.approx(seconds, abs=1 / FPS)
        # The model sees pairs of frames.
        if tiny.name == "qwen3_vl":
            told = [float(second) for second in re.findall(r"<([\d.]+) seconds>", prompt)]
            assert told == pytest.approx(seconds.reshape(-1, 2).mean(axis=1), abs=1 / FPS + 0.05)  # printed as 0.1
        else:
            told = np.arange(FRAMES // 2) * float(inputs["second_per_grid_ts"][0])
            assert told == pytest.approx(seconds[::2], abs=1 / FPS)
