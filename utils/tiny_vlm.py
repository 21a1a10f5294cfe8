"""A Qwen2.5-VL checkpoint with random weights, about 1 MB, for the real backend on a CPU.

`python -m utils.tiny_vlm FOLDER` writes it. Its answers are noise, and always the same noise.
"""

import argparse
from pathlib import Path
from typing import Any

from utils.files import finished_folder

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


def make_tiny_vlm(folder: Path) -> Path:
    """Write the checkpoint: weights, configurations, byte-level tokenizer, processor and chat template.

    Args:
        folder: Where to write it. An existing folder is left alone.

    Returns:
        The same folder, to be passed to lmms-eval as `pretrained=FOLDER`.
    """
    with finished_folder(folder) as draft:
        if draft is not None:
            _write_checkpoint(draft)
    return folder


def _write_checkpoint(folder: Path) -> None:
    # Imported here because torch takes seconds, which an existing checkpoint need not pay.
    import torch
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import (
        GenerationConfig,
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2Tokenizer,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    alphabet = sorted(ByteLevel.alphabet())
    ids = {token: number for number, token in enumerate([*alphabet, *SPECIAL_TOKENS])}
    tokenizer = Qwen2Tokenizer(
        vocab={token: ids[token] for token in alphabet},
        merges=[],
        eos_token="<|im_end|>",
        extra_special_tokens=[*SPECIAL_TOKENS],
        model_max_length=32768,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    ids = tokenizer.get_vocab()
    patches: dict[str, Any] = {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}
    Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(**patches),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(**patches, cap_pixels_per_frame=True),
        chat_template=CHAT_TEMPLATE,
    ).save_pretrained(folder)

    width = 64
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": width,
            "intermediate_size": 2 * width,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 32768,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]},
            "bos_token_id": ids["<|endoftext|>"],
            "eos_token_id": ids["<|im_end|>"],
            "pad_token_id": ids["<|endoftext|>"],
        },
        vision_config={
            "depth": 2,
            "hidden_size": width,
            "intermediate_size": 2 * width,
            "num_heads": 4,
            "out_hidden_size": width,
            "fullatt_block_indexes": [1],
            "tokens_per_second": 2,
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=False,
    )
    readable = {ids[letter] for letter in map(chr, range(ord("!"), ord("~") + 1))} | {ids["Ġ"]}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = Qwen2_5_VLForConditionalGeneration(config).bfloat16()
    model.generation_config = GenerationConfig(
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids["<|im_end|>"],
        pad_token_id=ids["<|endoftext|>"],
        # Random weights would else answer with broken UTF-8, or one letter for ever, or nothing.
        suppress_tokens=sorted(set(ids.values()) - readable - {ids["<|im_end|>"]}),
        repetition_penalty=1.5,
        min_new_tokens=4,
    )
    model.save_pretrained(folder)


def main() -> None:
    """Write the checkpoint to the folder named on the command line, and print that folder."""
    parser = argparse.ArgumentParser(prog="python -m utils.tiny_vlm", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    print(make_tiny_vlm(parser.parse_args().folder))


if __name__ == "__main__":
    main()
