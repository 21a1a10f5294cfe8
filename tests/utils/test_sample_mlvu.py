import json
from pathlib import Path

import av
import pytest

from utils.openai_server import VAGUE_ANSWER
from utils.sample_release.mlvu import grade, make_mlvu, mlvu_gold_answers, mlvu_reply, mlvu_sample_answers

DEV = [
    "1_plotQA",
    "2_needle",
    "3_ego",
    "4_count",
    "5_order",
    "6_anomaly_reco",
    "7_topic_reasoning",
    "8_sub_scene",
    "9_summary",
]


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    return make_mlvu(tmp_path_factory.mktemp("releases") / "mlvu")


def rows(path: Path) -> list[dict]:
    return json.loads(path.read_text("utf-8"))


def every_row(sample: Path) -> list[dict]:
    return [row for path in sorted(sample.rglob("*.json")) for row in rows(path)]


def asked(reply, text):
    return reply({"messages": [{"role": "user", "content": text}]}, 0)


def test_layout(sample):
    assert sorted(path.stem for path in (sample / "MLVU" / "json").iterdir()) == DEV
    for name in DEV:
        found = rows(sample / "MLVU" / "json" / f"{name}.json")
        keys = {"video", "duration", "question", "answer", "question_type"}
        keys |= {"scoring_points"} if name == "8_sub_scene" else set() if name == "9_summary" else {"candidates"}
        assert all(set(row) == keys for row in found)
        assert all(
            len(row["candidates"]) == 4 and row["answer"] in row["candidates"] for row in found if "candidates" in row
        )
        assert all((sample / "MLVU" / "video" / name / row["video"]).is_file() for row in found)
    test = rows(sample / "MLVU_Test" / "test_multi_choice_tasks.json")
    assert all(len(row["candidates"]) == 6 and row["answer"] in row["candidates"] for row in test)
    assert len({row["question_id"] for row in test}) == len({row["question_type"] for row in test}) == 9
    test += rows(sample / "MLVU_Test" / "test_generation_tasks.json")
    assert all((sample / "MLVU_Test" / "video" / row["video"]).is_file() for row in test)


def test_no_two_questions_share_a_text(sample):
    texts = [row["question"] for row in every_row(sample)]
    assert len(set(texts)) == len(texts) == len(mlvu_gold_answers())


def test_durations_are_those_of_the_videos(sample):
    for path in sample.rglob("*.mp4"):
        with av.open(str(path)) as container:
            seconds = float(container.duration / av.time_base)
        found = {row["duration"] for row in every_row(sample) if row["video"] == path.name}
        assert any(abs(duration - seconds) < 0.1 for duration in found), path
        assert path.stat().st_size < 500_000


def test_a_middling_model_is_right_in_about_two_thirds(sample):
    gold, middling = mlvu_gold_answers(), mlvu_sample_answers()
    assert list(gold) == list(middling)
    assert 0.5 < sum(gold[question] == middling[question] for question in gold) / len(gold) < 0.75


def test_the_played_model_knows_questions_with_and_without_options():
    reply = mlvu_reply({"Who?": "(A) I", "Sum up.": "All."})
    assert asked(reply, "Question: Who?\nOptions:\n(A) I\nOnly give the best option.\nBest option: (") == "(A) I"
    assert asked(reply, "Sum up.") == "All."
    assert asked(reply, "What?") == VAGUE_ANSWER


def test_reference_answers_get_full_grades_and_vague_ones_the_lowest(sample):
    for row in every_row(sample):
        if "candidates" in row:
            continue
        points = "\n".join(row["scoring_points"]) if "scoring_points" in row else None
        for answer, expected in ((row["answer"], 5), (VAGUE_ANSWER, 1), ("", 1)):
            scores = json.loads(grade(answer, points, row["answer"]).split("\n")[1])
            if answer == row["answer"] or points is None:
                assert set(scores.values()) == {expected}, row["question"]
            else:
                assert scores["accuracy"] == expected


def test_same_again_and_left_alone(sample, tmp_path):
    again = make_mlvu(tmp_path / "again")
    for path in (path for path in sample.rglob("*") if path.is_file()):
        assert path.read_bytes() == (again / path.relative_to(sample)).read_bytes(), path.name
    (again / "MLVU" / "json" / "3_ego.json").unlink()
    make_mlvu(again)
    assert not (again / "MLVU" / "json" / "3_ego.json").exists()
