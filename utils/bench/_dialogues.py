"""MT-Video-Bench of any size, of meaningless words in the authors' layout."""

import json
import random
from pathlib import Path
from typing import Any

import av

from lmms_eval_tasks.mt_video_bench.metrics import ABILITIES
from lmms_eval_tasks.mt_video_bench.release import CHECKLIST_LENGTH, FILE_NAMES
from lmms_eval_tasks.prepare import prepare

# About as long as the paper's questions and answers, 35.5 and 74.5 tokens (Table 1).
QUESTION_WORDS, ANSWER_WORDS, CHECK_WORDS = 27, 56, 15
VIDEOS = 135
_WORDS = (
    "the person then walks across a bright room towards his old table while another man in red points at it and looks "
    "outside where several cars wait near tall trees before someone opens that wooden door slowly with both hands"
).split()


def prepare_dialogues(folder: Path, dialogues: int, turns: int) -> Path:
    """Writes a release and prepares it below ``HOME``.

    Args:
        folder: Where the release is written.
        dialogues: How many dialogues, spread evenly over abilities and videos.
        turns: How many turns they have together, spread evenly; each is evaluated.

    Returns:
        The prepared folder.
    """
    folder.mkdir()
    dice = random.Random(turns)
    mtqa: dict[str, dict[str, list[Any]]] = {ability: {} for ability in ABILITIES}
    checklists: dict[str, dict[str, dict[str, Any]]] = {ability: {} for ability in ABILITIES}
    for number in range(dialogues):
        ability, video, event = ABILITIES[number % len(ABILITIES)], f"video_{number % VIDEOS}", str(number)
        rounds = range(1, 1 + (number + 1) * turns // dialogues - number * turns // dialogues)
        talk = {
            f"Round {k}": {"User": words(dice, QUESTION_WORDS), "Assistant": words(dice, ANSWER_WORDS)} for k in rounds
        }
        mtqa[ability].setdefault(video, []).append({"event_index": event, "mtqa": talk})
        checklists[ability].setdefault(video, {})[event] = [{"round index": k, **_checklist(dice)} for k in rounds]
    for ability in ABILITIES:
        name = FILE_NAMES.get(ability, ability)
        (folder / f"{name}.json").write_text(json.dumps(mtqa[ability]), "utf-8")
        (folder / f"{name}_CheckList.json").write_text(json.dumps(checklists[ability]), "utf-8")
    _make_videos(folder, min(VIDEOS, dialogues))
    return prepare("mt_video_bench", folder).folder


def _checklist(dice: random.Random) -> dict[str, str]:
    """A checklist with one expected No, as the paper's."""
    numbers = range(1, 1 + CHECKLIST_LENGTH)
    questions = {f"Q{k}": words(dice, CHECK_WORDS) for k in numbers}
    return questions | {f"A{k}": "No" if k == CHECKLIST_LENGTH else "Yes" for k in numbers}


def words(dice: random.Random, words: int) -> str:
    return " ".join(dice.choices(_WORDS, k=words))


def _make_videos(folder: Path, number: int) -> None:
    """One second of black under many names: only containers are opened here."""
    first = folder / "video_0.mp4"
    with av.open(str(first), "w") as container:
        stream = container.add_stream("libx264", rate=8)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        frames = [av.VideoFrame(64, 64, "yuv420p") for _ in range(8)]
        for frame in (*frames, None):
            container.mux(stream.encode(frame))
    for k in range(1, number):
        (folder / f"video_{k}.mp4").symlink_to(first)
