"""The sample release of SCVBench: its layout, its answers, and the model that is played with them."""

import json
from fractions import Fraction

import av
import pytest

from lmms_eval_tasks.scvbench import prompts
from utils.openai_server import VAGUE_ANSWER
from utils.sample_release.scvbench import (
    make_scvbench,
    scvbench_gold_answers,
    scvbench_reply,
    scvbench_sample_answers,
)

GOLD, SAMPLE = scvbench_gold_answers(), scvbench_sample_answers()


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return make_scvbench(tmp_path_factory.mktemp("releases") / "scvbench")


@pytest.fixture(scope="module")
def lines(release):
    return list(map(json.loads, (release / "scvbench.jsonl").read_text("utf-8").splitlines()))


def say(reply, prompt):
    return reply({"messages": [{"role": "user", "content": prompt}]}, 0)


def test_a_line_for_each_final_question_and_a_video_for_each_film(release, lines):
    assert {path.name for path in release.iterdir()} == {"scvbench.jsonl", "videos"}
    assert {path.stem for path in (release / "videos").iterdir()} == {line["video_id"] for line in lines}
    assert len(lines) == 6
    for line in lines:
        assert "".join(line["options"]) == "ABCDE" and len(set(line["options"].values())) == 5
        assert 2 <= len(line["sub_questions"]) <= 4
    questions = [of["question"] for line in lines for of in (line, *line["sub_questions"])]
    assert len(set(questions)) == len(questions) and questions == list(GOLD) == list(SAMPLE)


def test_the_right_answers_are_spread_over_the_letters(lines):
    assert {line["answer"] for line in lines} == set("ABCDE")


def test_the_gold_model_is_right_with_and_without_history(lines):
    reply = scvbench_reply(GOLD)
    for line in lines:
        options, history = list(line["options"].values()), []
        for turn in line["sub_questions"]:
            answer = say(reply, prompts.sub_question(turn["question"], history))
            assert answer == turn["answer"]
            assert say(reply, prompts.events(turn)) == f"1. {turn['question']} {answer}"
            history.append(turn)
        assert say(reply, prompts.fqa(line["question"], options)) == line["answer"]
        assert say(reply, prompts.pqa(line["question"], options, history)) == line["answer"]
        story = say(reply, prompts.story(history, ["…"] * len(history)))
        assert all(turn["answer"] in story for turn in history)


def test_the_middling_model_needs_the_right_history(lines):
    reply = scvbench_reply(SAMPLE)
    kinds = []
    for line in lines:
        options, history = list(line["options"].values()), line["sub_questions"]
        own = [{**turn, "answer": SAMPLE[turn["question"]]} for turn in history]
        assert say(reply, prompts.pqa(line["question"], options, history)) == line["answer"]
        right = [say(reply, prompt) == line["answer"] for prompt in
                 (prompts.fqa(line["question"], options), prompts.pqa(line["question"], options, own))]  # fmt: skip
        kinds.append((own == history, *right))
    assert kinds == [
        (True, True, True),
        (True, False, True),
        (False, False, False),
        (False, True, True),
        (True, False, True),
        (False, True, False),
    ]


def test_about_what_it_does_not_know_it_stays_vague():
    assert say(scvbench_reply(GOLD), "What is the weather like?") == VAGUE_ANSWER


def test_videos_decode_and_last_as_long_as_the_lines_say(release, lines):
    seen = {}
    for path in (release / "videos").iterdir():
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            frames = sum(1 for _ in container.decode(stream))
            seen[path.stem] = (frames, stream.width, stream.height, stream.average_rate, stream.codec_context.name)
        assert path.stat().st_size < 500_000
    assert seen == {
        "street_bikes": (250, 320, 136, 25, "h264"),
        "three_films": (358, 320, 180, Fraction(30000, 1001), "h264"),
        "meadow_rabbit": (132, 320, 180, 20, "h264"),
    }
    for line in lines:
        frames, *_, rate, _ = seen[line["video_id"]]
        assert line["duration"] == pytest.approx(float(frames / rate), abs=0.01)


def test_same_again_and_left_alone(release, tmp_path):
    again = make_scvbench(tmp_path / "again")
    for path in (path for path in release.rglob("*") if path.is_file()):
        assert path.read_bytes() == (again / path.relative_to(release)).read_bytes(), path.name
    (again / "scvbench.jsonl").unlink()
    assert not (make_scvbench(again) / "scvbench.jsonl").exists()
