"""How many frames lmms-eval's backends take of a clip: read from the sources of lmms-eval 0.7.3.

A backend samples again what it is handed. Asked for a clip's own number of frames it takes each of them once.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple


class Backend(NamedTuple):
    """What decides the frames that a backend's model sees.

    Attributes:
        argument: The key in ``--model_args``; None: the backend has none that works.
        default: What it is when not given; None: the backend or its server decides.
        override: A key that, when given, makes the backend sample by rate instead; None: there is none.
        pixels: (key, default) of a limit on a frame's pixels that is below 720x404; None: no such limit.
        also: Further arguments without which clips are not read as they should be.
        note: A pitfall, for the README's table and the warning.
        several: What goes wrong when a question has several videos; empty: they all reach the model, in their order.
    """

    argument: str | None
    default: int | None
    override: str | None = None
    pixels: tuple[str, int] | None = None
    also: Mapping[str, str] = {}
    note: str = ""
    several: str = ""


_EVEN = "an odd number becomes an even one, and more frames than the clip has raise an error"
_CENTRES = "takes segment centres: every frame but the last, and the middle one twice"
_STOPS = "it stops at a question with several videos (use internvl_hf)"
_SLOW = (
    "divides by the clip's frame rate rounded to whole frames a second and fails below 0.5: "
    "set LMMS_EVAL_TASKS_CLIP_TIMING=official"
)

BACKENDS: Mapping[str, Backend] = {
    "qwen2_5_vl": Backend("max_num_frames", 32, "fps", note="one frame fewer where the number is odd"),
    "qwen3_vl": Backend("max_num_frames", 32, "fps", note=_EVEN),
    "qwen3_5": Backend("max_num_frames", 768, note=_EVEN),
    "internvl3": Backend("num_frame", 32, also={"modality": "video"}, note=_CENTRES, several=_STOPS),
    "internvl3_5": Backend("num_frame", 32, also={"modality": "video"}, note=_CENTRES, several=_STOPS),
    "internvl_hf": Backend("num_frames", 32, "fps"),
    "internvideo2_5": Backend("max_frames_num", 32, note=_CENTRES, several=_STOPS),
    "llava_hf": Backend("max_frames_num", 32),
    "llava_onevision": Backend(
        "max_frames_num",
        32,
        note="a video that it cannot read it drops, and answers without",
        several="it sees the first video alone (use llava_hf)",
    ),
    "llava_onevision1_5": Backend("max_num_frames", 32, note=_EVEN),
    "llava_vid": Backend(
        "max_frames_num",
        20,
        also={"force_sample": "True"},
        note=_SLOW,
        several="it cannot load several videos, and answers with the text of an error",
    ),
    "vllm": Backend("nframes", 32, "fps", note=f"max_frame_num, its simple variant's argument, does nothing; {_EVEN}"),
    "vllm_generate": Backend("nframes", 32, "fps", note=_EVEN),
    "sglang": Backend(None, None, note="its nframes changes the prompt alone; the engine samples the file by itself"),
    "openai": Backend("max_frames_num", 10, "video_fps", note=_EVEN),
    "async_openai": Backend("nframes", 64, "fps", ("max_pixels", 151_200), note=_EVEN),
    "gemini": Backend(None, None, note="uploads the file, and its server takes one frame a second"),
    "huggingface": Backend(
        None, None, note="its max_num_frames is never read; the model's processor samples by itself"
    ),
}
"""Backend, by its name on the command line -> what decides its frames."""

ALIASES: Mapping[str, str] = {
    "gemini_api": "gemini",
    "openai_compatible": "openai",
    "openai_compatible_chat": "openai",
    "async_openai_compatible": "async_openai",
    "async_openai_compatible_chat": "async_openai",
}


def several_videos(model: str, simple: bool) -> str:
    """What goes wrong when a backend is given a question with several videos; empty when nothing is known to.

    Args:
        model: The backend's name, as given to ``--model``.
        simple: Whether it takes text and visuals instead of chat messages.
    """
    name = ALIASES.get(model, model)
    if name == "qwen2_5_vl" and simple:
        return "it samples the first video as asked, the others at two frames a second (leave out --force_simple)"
    backend = BACKENDS.get(name)
    return backend.several if backend else ""


def frame_warning(model: str, model_args: str | Mapping[str, object] | None, frames: Collection[int]) -> str | None:
    """What the command line's model arguments would do to the frames of a clip.

    Args:
        model: The backend's name, as given to ``--model``.
        model_args: What was given to ``--model_args``: ``"a=1,b=2"``, or already parsed.
        frames: The numbers of frames that clips have; of several, the smallest is what the model can see of each.

    Returns:
        One text with everything that keeps the model from seeing all frames and with the arguments to add; None if
        there is nothing, or the backend is not known.
    """
    backend = BACKENDS.get(ALIASES.get(model, model))
    if backend is None:
        return None
    given = _parsed(model_args)
    numbers = " or ".join(map(str, sorted(frames)))
    if backend.argument is None:
        return f"{model}: no argument makes it take a clip's {numbers} frames: {backend.note}"
    found = []
    wanted = {}
    if str(given.get(backend.argument, backend.default)) != str(min(frames)):
        how = "is given" if backend.argument in given else "by default"
        found.append(f"takes {given.get(backend.argument, backend.default)} frames ({how}) of a clip's {numbers}")
        wanted[backend.argument] = str(min(frames))
    if backend.override in given:
        found.append(f"samples by rate with {backend.override}={given[backend.override]}, which must go")
    if backend.pixels and int(str(given.get(*backend.pixels))) <= backend.pixels[1]:
        found.append(f"makes frames smaller than {given.get(*backend.pixels)} pixels")
        wanted[backend.pixels[0]] = "602112"
    for key, value in backend.also.items():
        if str(given.get(key)).lower() != value.lower():
            found.append(f"needs {key}={value}")
            wanted[key] = value
    if not found:
        return None
    remedy = f"; add to --model_args: {','.join(f'{key}={value}' for key, value in wanted.items())}" if wanted else ""
    return f"{model}: it {', '.join(found)}{remedy}{f' ({backend.note})' if backend.note else ''}"


def _parsed(model_args: str | Mapping[str, object] | None) -> dict[str, object]:
    if not isinstance(model_args, str):
        return dict(model_args or {})
    pairs = (part.partition("=") for part in model_args.split(","))
    return {key.strip(): value.strip() for key, _, value in pairs if value}
