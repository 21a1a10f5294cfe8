from pathlib import Path
from typing import get_args

import av
import numpy as np
import pytest

from utils.tiny_vlm import Architecture, make_tiny_vlm

FRAMES, SIDE = 8, 56


@pytest.fixture(scope="module", params=get_args(Architecture))
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_vlm(tmp_path_factory.mktemp("checkpoints") / request.param, request.param)


def write_video(path: Path, shade: int) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=4)
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuv420p"
        for number in range(FRAMES):
            pixels = np.full((SIDE, SIDE, 3), (shade + 20 * number) % 256, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return path


def interleaved(doc: dict[str, str]) -> list[dict]:
    return [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "First video:"},
                {"type": "video", "url": doc["first"]},
                {"type": "text", "text": "Second video:"},
                {"type": "video", "url": doc["second"]},
                {"type": "text", "text": doc["question"]},
            ],
        }
    ]


def test_about_one_megabyte_and_left_alone_when_it_exists(checkpoint: Path) -> None:
    files = {path.name: path.stat() for path in checkpoint.iterdir()}
    assert {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"} <= set(files)
    assert sum(stat.st_size for stat in files.values()) < 2_000_000
    make_tiny_vlm(checkpoint, checkpoint.name)
    assert {path.name: path.stat().st_mtime_ns for path in checkpoint.iterdir()} == {
        name: stat.st_mtime_ns for name, stat in files.items()
    }
    assert [path.name for path in checkpoint.parent.iterdir()] == [checkpoint.name]


def test_chat_template_has_qwens_layout(checkpoint: Path) -> None:
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(checkpoint)
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "video"}, {"type": "image"}]},
        {"role": "assistant", "content": [{"type": "text", "text": " A cat.\n"}]},
        {"role": "user", "content": "And <b>now</b>?"},
    ]
    assert processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\nLook: <|vision_start|><|video_pad|><|vision_end|>"
        "<|vision_start|><|image_pad|><|vision_end|><|im_end|>\n"
        "<|im_start|>assistant\n A cat.\n<|im_end|>\n"
        "<|im_start|>user\nAnd <b>now</b>?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_tokenizer_keeps_every_byte_and_special_token(checkpoint: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    text = "Größe 3 µm — 视频 🙂\n\tend"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert len(tokenizer("<|im_start|><|video_pad|><|im_end|>").input_ids) == 3
    assert tokenizer.pad_token == "<|endoftext|>"
    assert tokenizer.eos_token == "<|im_end|>"


def test_lmms_eval_generates_for_two_interleaved_videos(checkpoint: Path, tmp_path: Path) -> None:
    from lmms_eval.api.instance import Instance, unwrap_generation_output
    from lmms_eval.models import get_model

    doc = {
        "first": str(write_video(tmp_path / "first.mp4", 0)),
        "second": str(write_video(tmp_path / "second.mp4", 90)),
        "question": "What differs?",
    }
    model = get_model(checkpoint.name).create_from_arg_string(
        f"pretrained={checkpoint},device_map=cpu,attn_implementation=eager,max_num_frames=4,min_pixels=784",
        {"batch_size": 1, "device": "cpu"},
    )
    model.task_dict["task"] = {"test": [doc]}
    arguments = ("What differs?", interleaved, {"max_new_tokens": 12, "until": []}, 0, "task", "test")
    metadata = {"task": "task", "doc_id": 0, "repeats": 1}
    answers = [
        unwrap_generation_output(
            model.generate_until(
                [Instance(request_type="generate_until", arguments=arguments, idx=0, metadata=metadata)]
            )[0]
        )[0]
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert answers[0].strip()
    assert answers[0].isascii()
