import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest

from utils.openai_server import QUOTED, judge_by_phrases, rule_based
from utils.sample_release import gold_answers, make_mt_video_bench, sample_answers

ABILITIES = {
    "summary",
    "object_reference",
    "memory_recall",
    "answer_refusal",
    "proactive_interaction",
    "topic_shifting",
}
QUESTIONS = range(1, 6)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_mt_video_bench(tmp_path_factory.mktemp("releases") / "mt_video_bench")


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def dialogues(release: Path) -> list[tuple[str, str, dict]]:
    return [
        (path.stem, video, dialogue)
        for path in sorted((release / "mtqa").iterdir())
        for video, found in load(path).items()
        for dialogue in found
    ]


def evaluated(release: Path) -> list[tuple[str, dict, dict]]:
    rounds = []
    for ability, video, dialogue in dialogues(release):
        checklists = load(release / "checklist" / f"{ability}_CheckList.json")[video][str(dialogue["event_index"])]
        rounds += [(ability, dialogue["mtqa"][f"Round {each['round index']}"], each) for each in checklists]
    return rounds


def score(answer: str, checklist: dict) -> float:
    questions = "\n".join(f"Q{k}: {checklist[f'Q{k}']}" for k in QUESTIONS)
    prompt = f"Fill in the checklist.\nModel Answer:\n{answer}\nChecklist:\n{questions}"
    verdicts = json.loads(rule_based()({"messages": [{"role": "user", "content": prompt}]}, 0))
    return sum(verdicts[f"A{k}"] == checklist[f"A{k}"] for k in QUESTIONS) / len(QUESTIONS)


def test_layout(release: Path) -> None:
    assert {path.name for path in (release / "mtqa").iterdir()} == {f"{ability}.json" for ability in ABILITIES}
    assert {path.name for path in (release / "checklist").iterdir()} == {f"{each}_CheckList.json" for each in ABILITIES}
    videos = {path.stem for path in (release / "videos").iterdir()}
    assert {video for _, video, _ in dialogues(release)} == videos
    for path in (release / "mtqa").iterdir():
        checklist = load(release / "checklist" / f"{path.stem}_CheckList.json")
        events = {video: [str(each["event_index"]) for each in found] for video, found in load(path).items()}
        assert {video: list(found) for video, found in checklist.items()} == events


def test_dialogues(release: Path) -> None:
    found = dialogues(release)
    assert sorted(ability for ability, _, _ in found) == sorted([*ABILITIES, *ABILITIES])
    assert {type(dialogue["event_index"]) for _, _, dialogue in found} == {int, str}
    lengths = [len(dialogue["mtqa"]) for _, _, dialogue in found]
    assert min(lengths) >= 5
    assert max(lengths) >= 10
    for _, _, dialogue in found:
        assert list(dialogue["mtqa"]) == [f"Round {number}" for number in range(1, len(dialogue["mtqa"]) + 1)]
        assert all(set(each) == {"User", "Assistant", "Ability"} for each in dialogue["mtqa"].values())
    rounds = [each for _, _, dialogue in found for each in dialogue["mtqa"].values()]
    assert len({each["User"] for each in rounds}) == len(rounds)
    assert any(each["Ability"] != ability for ability, each, _ in evaluated(release))


def test_checklists(release: Path) -> None:
    counts: dict[str, int] = {}
    for ability, turn, checklist in evaluated(release):
        counts[ability] = counts.get(ability, 0) + 1
        assert set(checklist) == {"round index", *(f"{letter}{k}" for letter in "QA" for k in QUESTIONS)}
        assert sorted(checklist[f"A{k}"] for k in QUESTIONS) == ["No", "Yes", "Yes", "Yes", "Yes"]
        for k in QUESTIONS:
            phrases = QUOTED.findall(checklist[f"Q{k}"])
            assert phrases, turn["User"]
    assert set(counts) == ABILITIES
    assert sum(counts.values()) == 24


def test_reference_answers_score_full_marks(release: Path) -> None:
    gold = gold_answers(release)
    assert {turn["User"]: score(gold[turn["User"]], checklist) for _, turn, checklist in evaluated(release)} == {
        turn["User"]: 1.0 for _, turn, _ in evaluated(release)
    }


def test_middling_answers_score_in_between(release: Path) -> None:
    gold, answers = gold_answers(release), sample_answers(release)
    assert list(answers) == list(gold)
    scores = [score(answers[turn["User"]], checklist) for _, turn, checklist in evaluated(release)]
    assert 0.6 < scores.count(1.0) / len(scores) < 0.75
    assert all(each == 1.0 or each < 0.7 for each in scores)
    asked = {turn["User"] for _, turn, _ in evaluated(release)}
    assert {question for question in gold if gold[question] != answers[question]} <= asked


def test_judge_reads_the_phrase_in_any_case() -> None:
    assert json.loads(judge_by_phrases("A RABBIT.", 'Q1: Is there a "rabbit"?\nQ2: A "fox"?')) == {
        "A1": "Yes",
        "A2": "No",
    }


def test_videos_decode(release: Path) -> None:
    seen = {}
    for path in (release / "videos").iterdir():
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            frames = sum(1 for _ in container.decode(stream))
            seen[path.stem] = (frames, stream.width, stream.height, stream.average_rate, stream.codec_context.name)
        assert path.stat().st_size < 1_000_000
    assert seen == {
        "meadow_rabbit": (132, 640, 360, 20, "h264"),
        "street_bikes": (250, 640, 272, 25, "h264"),
        "car_talk": (120, 176, 144, 15, "h264"),
        "three_films": (358, 320, 180, Fraction(30000, 1001), "h264"),
    }


def test_same_again_and_left_alone(release: Path, tmp_path: Path) -> None:
    again = make_mt_video_bench(tmp_path / "again")
    for path in (path for path in release.rglob("*") if path.is_file()):
        assert path.read_bytes() == (again / path.relative_to(release)).read_bytes(), path.name
    (again / "mtqa" / "summary.json").unlink()
    make_mt_video_bench(again)
    assert not (again / "mtqa" / "summary.json").exists()


@pytest.mark.parametrize("number", [5, 30])
def test_dialogues_can_be_repeated_or_fewer(tmp_path: Path, number: int) -> None:
    made = make_mt_video_bench(tmp_path / "made", number)
    found = dialogues(made)
    assert len({(ability, video, str(dialogue["event_index"])) for ability, video, dialogue in found}) == number
    assert evaluated(made)
    videos = {path.stem for path in (made / "videos").iterdir() if path.exists()}
    assert {video for _, video, _ in found} <= videos
