"""Qwen2.5-VL and Qwen3-VL checkpoints with random weights, about 1 MB each, for the real backends on a CPU.

`python -m utils.tiny_vlm FOLDER [qwen2_5_vl | qwen3_vl]` writes one. Its answers are noise, and always the same noise.
"""

import argparse
from pathlib import Path
from typing import Any, Literal, get_args

from utils.files import finished_folder

Architecture = Literal["qwen2_5_vl", "qwen3_vl"]

SEED = 0
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
CHAT_TEMPLATE = """\
{%- if messages[0].role != "system" -%}
{{ "<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n" }}
{%- endif -%}
{%- for message in messages -%}
{{ "<|im_start|>" + message.role + "\\n" }}
{%- if message.content is string -%}
{{ message.content }}
{%- else -%}
{%- for part in message.content -%}
{%- if part.type == "text" -%}
{{ part.text }}
{%- else -%}
{{ "<|vision_start|><|" + part.type + "_pad|><|vision_end|>" }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{ "<|im_end|>\\n" }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ "<|im_start|>assistant\\n" }}
{%- endif -%}
"""


SIZES = {"hidden_size": 64, "intermediate_size": 128}
TEXT = {
    **SIZES,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
}
VISION = {**SIZES, "depth": 2, "num_heads": 4, "out_hidden_size": 64}


def make_tiny_vlm(folder: Path, architecture: Architecture = "qwen2_5_vl") -> Path:
    """Write the checkpoint: weights, configurations, byte-level tokenizer, processor and chat template.

    Args:
        folder: Where to write it. An existing folder is left alone.
        architecture: Of which model; also the name of lmms-eval's backend for it.

    Returns:
        The same folder, to be passed to lmms-eval as `pretrained=FOLDER`.
    """
    with finished_folder(folder) as draft:
        if draft is not None:
            _write_checkpoint(draft, architecture)
    return folder


def _write_checkpoint(folder: Path, architecture: Architecture) -> None:
    # Imported here because torch takes seconds, which an existing checkpoint need not pay.
    import torch
    from transformers import GenerationConfig

    tokenizer = _tokenizer()
    ids = tokenizer.get_vocab()
    special = {
        "bos_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
    }
    make_processor, make_model = {
        "qwen2_5_vl": (_qwen2_5_vl_processor, _qwen2_5_vl_model),
        "qwen3_vl": (_qwen3_vl_processor, _qwen3_vl_model),
    }[architecture]
    make_processor(tokenizer).save_pretrained(folder)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = make_model(
            {**TEXT, **special, "vocab_size": len(tokenizer)},
            image_token_id=ids["<|image_pad|>"],
            video_token_id=ids["<|video_pad|>"],
            vision_start_token_id=ids["<|vision_start|>"],
            vision_end_token_id=ids["<|vision_end|>"],
            tie_word_embeddings=False,
        ).bfloat16()
    readable = {ids[letter] for letter in map(chr, range(ord("!"), ord("~") + 1))} | {ids["Ġ"]}
    model.generation_config = GenerationConfig(
        **special,
        # Random weights would else answer with broken UTF-8, or one letter for ever, or nothing.
        suppress_tokens=sorted(set(ids.values()) - readable - {ids["<|im_end|>"]}),
        repetition_penalty=1.5,
        min_new_tokens=4,
    )
    model.save_pretrained(folder)


def _tokenizer() -> Any:
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import Qwen2Tokenizer

    tokenizer = Qwen2Tokenizer(
        vocab={token: number for number, token in enumerate(sorted(ByteLevel.alphabet()))},
        merges=[],
        eos_token="<|im_end|>",
        extra_special_tokens=[*SPECIAL_TOKENS],
        model_max_length=32768,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _qwen2_5_vl_processor(tokenizer: Any) -> Any:
    from transformers import Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    patches: dict[str, Any] = {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}
    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(**patches),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(**patches, cap_pixels_per_frame=True),
        chat_template=CHAT_TEMPLATE,
    )


def _qwen2_5_vl_model(text: dict[str, Any], **common: Any) -> Any:
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}
    config = Qwen2_5_VLConfig(
        text_config={**text, "rope_parameters": rope},
        vision_config={**VISION, "fullatt_block_indexes": [1], "tokens_per_second": 2},
        **common,
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def _qwen3_vl_processor(tokenizer: Any) -> Any:
    from transformers import Qwen2VLImageProcessor, Qwen3VLProcessor, Qwen3VLVideoProcessor

    patches: dict[str, Any] = {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2}
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(**patches, image_mean=[0.5] * 3, image_std=[0.5] * 3),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(**patches, cap_pixels_per_frame=True),
        chat_template=CHAT_TEMPLATE,
    )


def _qwen3_vl_model(text: dict[str, Any], **common: Any) -> Any:
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    config = Qwen3VLConfig(
        text_config={**text, "head_dim": 16, "rope_parameters": rope},
        vision_config={**VISION, "num_position_embeddings": 256, "deepstack_visual_indexes": [0]},
        **common,
    )
    return Qwen3VLForConditionalGeneration(config)


def main() -> None:
    """Write the checkpoint to the folder named on the command line, and print that folder."""
    parser = argparse.ArgumentParser(prog="python -m utils.tiny_vlm", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("architecture", nargs="?", choices=get_args(Architecture), default="qwen2_5_vl")
    arguments = parser.parse_args()
    print(make_tiny_vlm(arguments.folder, arguments.architecture))


if __name__ == "__main__":
    main()
