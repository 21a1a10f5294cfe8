"""The table of backends against the installed lmms-eval: its sources are read, not imported."""

import ast
from pathlib import Path

import lmms_eval
import pytest

from lmms_eval_tasks.media.backends import ALIASES, BACKENDS, frame_warning

MODELS = Path(lmms_eval.__file__).parent / "models"
INHERITED = {"internvl3_5": "internvl3", "qwen3_5": "qwen3_5"}


def defaults(path: Path) -> dict[str, object]:
    """Argument -> default of the __init__ of the backends in a file."""
    found: dict[str, object] = {}
    for node in ast.walk(ast.parse(path.read_text())) if path.is_file() else []:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            pairs = [
                *zip(arguments, node.args.defaults, strict=True),
                *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
            ]
            found |= {a.arg: v.value for a, v in pairs if isinstance(v, ast.Constant)}
    return found


@pytest.mark.parametrize("name", [name for name, backend in BACKENDS.items() if backend.argument])
def test_arguments_and_defaults_are_those_of_the_installed_backends(name):
    backend = BACKENDS[name]
    file = f"{INHERITED.get(name, name)}.py"
    # A chat variant wins where there are both, and may leave its arguments to the simple one.
    known = {**defaults(MODELS / "simple" / file), **defaults(MODELS / "chat" / file)}
    assert known[backend.argument] == backend.default
    if backend.pixels:
        assert known[backend.pixels[0]] == backend.pixels[1]
    assert set(backend.also) <= set(known)
    if backend.override:
        assert backend.override in known


def test_table_has_what_the_readme_promises():
    promised = {"qwen2_5_vl", "qwen3_vl", "internvl3_5", "llava_onevision", "llava_vid", "vllm", "sglang", "openai"}
    assert promised | {"async_openai", "gemini", "huggingface"} <= set(BACKENDS)
    assert set(ALIASES.values()) <= set(BACKENDS)


@pytest.mark.parametrize(
    ("model", "arguments", "expected"),
    [
        ("qwen3_vl", "pretrained=x,max_num_frames=128", None),
        ("qwen3_vl", "pretrained=x, max_num_frames=128", None),
        ("qwen3_vl", {"max_num_frames": 128}, None),
        (
            "qwen3_vl",
            "pretrained=x",
            "takes 32 frames (by default) of a clip's 128; add to --model_args: max_num_frames=128",
        ),
        ("qwen3_vl", None, "max_num_frames=128"),
        ("qwen3_vl", "max_num_frames=64", "takes 64 frames (is given)"),
        ("qwen3_vl", "max_num_frames=128,fps=1", "fps=1, which must go"),
        ("openai", "model_version=x,base_url=http://a/?b=c", "max_frames_num=128"),
        ("openai_compatible", "max_frames_num=128", None),
        ("async_openai", "nframes=128", "max_pixels=602112"),
        ("async_openai", "nframes=128,max_pixels=602112", None),
        ("llava_vid", "max_frames_num=128", "force_sample=True"),
        ("llava_vid", {"max_frames_num": 128, "force_sample": True}, None),
        ("internvl3_5", "num_frame=128", "modality=video"),
        ("internvl3_5", "num_frame=128,modality=video", None),
        ("vllm", "max_frame_num=128", "nframes=128"),
        ("gemini", "", "no argument"),
        ("huggingface", "max_num_frames=128", "no argument"),
        ("somebody_elses", "", None),
    ],
)
def test_warning(model, arguments, expected):
    warning = frame_warning(model, arguments, {128})
    if expected is None:
        assert warning is None
    else:
        assert expected in warning
        assert warning.startswith(model)
