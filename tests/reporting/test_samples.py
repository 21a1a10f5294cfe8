import json
import re

import pytest

from lmms_eval_tasks.reporting import samples
from lmms_eval_tasks.reporting.runs import Run
from lmms_eval_tasks.reporting.samples import script, write_samples

from .conftest import HOSTILE
from .stand_ins import RUNS, dialogues

TEXTS = [HOSTILE, "</script>", "<!--<script>", "\u2028\u2029", "\ud800", "`${x}`", '"\\', "\x00\x1f", "é模😀", ""]


def read(path):
    """A chunk, as the page takes it."""
    kind, number, text = re.fullmatch(r'report\.take\("(\w+)",(\d+),(.*)\);\n', path.read_text("ascii"), re.S).groups()
    return kind, int(number), json.loads(text)


def whole(folder, kind):
    """All chunks of a kind, one after the other."""
    files = sorted(folder.glob(f"{kind}-*.js"), key=lambda path: int(path.stem.rpartition("-")[2]))
    return [value for path in files for value in read(path)[2]]


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_can_leave_its_string(text):
    written = script("answers", 0, [text])
    assert "<" not in written and written.isascii() and written.count("\n") == 1
    assert json.loads(written.removeprefix('report.take("answers",0,').removesuffix(");\n")) == [text]


def test_every_turn_is_there_once_and_its_question_once_for_all_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "CHUNK", 7)
    runs = [Run(name, name, "mt_video_bench", dialogues(seed, 4)) for name, seed in (("a", 1), ("b", 2))]
    number = len(runs[0].items)
    assert write_samples(runs, tmp_path) == 2 * number
    _, _, index = read(tmp_path / "samples" / "index.js")
    assert index["chunk"] == 7 and index["run"] == [0] * number + [1] * number
    assert index["question"] == [*range(number)] * 2
    assert index["score"] == [item.get("score") for run in runs for item in run.items]
    assert index["turn"][:number] == [item["turn"] for item in runs[0].items]
    answers = whole(tmp_path / "samples", "answers")
    assert [of["answers"] for of in answers] == [item["answers"] for run in runs for item in run.items]
    questions = whole(tmp_path / "samples", "questions")
    # The benchmark is not prepared here: what was asked is not known.
    assert questions == [{"id": item["id"]} for item in runs[0].items]


def test_checks_stand_beside_what_the_judge_said(tmp_path):
    [item] = [item for item in dialogues(1, 1, 1) if "score" in item][:1]
    item["verdicts"] = [[["yes"] * 5, ["no"] * 5]]
    write_samples([Run("m", "m", item["task"], [item])], tmp_path)
    [answer] = whole(tmp_path / "samples", "answers")
    assert answer["checks"][0] == {"question": "Is it 0?", "expected": "yes", "given": ["yes", "no"]}
    assert len(answer["checks"]) == 5


def test_what_was_not_asked_is_there_too(tmp_path):
    items = dialogues(1, 1, 1)
    items[0]["skipped"] = [{"id": "x/1", "ability": "memory_recall", "status": "excluded", "reason": "A3 is 'Maybe'"}]
    write_samples([Run("m", "m", "mt_video_bench", items)], tmp_path)
    _, _, index = read(tmp_path / "samples" / "index.js")
    assert index["statuses"][index["status"][1]] == "excluded" and index["kind"][1] == "memory_recall"
    assert whole(tmp_path / "samples", "answers")[1]["reason"] == "A3 is 'Maybe'"


def test_the_dialogue_comes_from_the_prepared_dataset(sample_report):
    folder, _ = sample_report
    questions = {of["id"]: of for of in whole(folder / "samples", "questions")}
    third = questions["object_reference/street_bikes/1/3"]
    assert third["question"] == "And what is he holding on to?"
    assert third["history"][1] == ["What does he have on his head?", "He wears a grey and black bicycle helmet."]
    assert len(third["history"]) == 2 and third["reference"].startswith("He keeps his balance")


def test_frames_are_there_where_the_clip_is_one_file_for_all_turns_and_runs(sample_report):
    folder, _ = sample_report
    _, _, index = read(folder / "samples" / "index.js")
    assert [strip["video"] for strip in index["strips"]] == ["car_talk"]
    assert [path.name for path in (folder / "samples").glob("*.jpg")] == [index["strips"][0]["file"]]
    ids = [of["id"] for of in whole(folder / "samples", "questions")]
    frames = [of["frames"] for of in whole(folder / "samples", "answers")]
    shown = ["car_talk" in ids[place] for place in index["question"]]
    assert frames == [[0] if of else [] for of in shown] and any(shown)


@pytest.mark.parametrize("name", RUNS)
def test_every_benchmark_can_be_shown(name, tmp_path):
    _, make = RUNS[name]
    items = make(1)
    assert write_samples([Run("m", "m", items[0]["task"], items)], tmp_path) == len(items)
    assert len(whole(tmp_path / "samples", "answers")) == len(items)
