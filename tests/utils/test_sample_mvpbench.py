"""The sample release of MVPBench: the authors' layout, honest clips, and a model and judge that can be told apart."""

import json
import zipfile

import av
import pytest

from lmms_eval_tasks.mvpbench.metrics import RANKINGS, SUBTASKS
from lmms_eval_tasks.mvpbench.prompts import extraction, numbered
from utils.sample_release.mvpbench import CHANGES, gold_answers, make_mvpbench, played, rows, sample_answers


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return make_mvpbench(tmp_path_factory.mktemp("sample") / "mvpbench")


@pytest.fixture(scope="module")
def unzipped(release, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unzipped")
    for path in release.iterdir():
        if path.suffix == ".zip":
            zipfile.ZipFile(path).extractall(folder)
    return [path for place in (release, folder) for path in place.iterdir() if path.is_dir()]


def test_fourteen_folders_and_zips_of_a_few_megabytes(release, unzipped):
    assert len(list(release.iterdir())) == len(unzipped) == 14
    assert len(list(release.glob("*.zip"))) == 3
    assert sum(path.stat().st_size for path in release.rglob("*") if path.is_file()) < 4_000_000


def test_lines_are_those_of_the_authors(unzipped):
    number = 0
    for folder in unzipped:
        [path] = folder.glob("*.jsonl")
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            assert set(row) == {"id", "query", "video_options", "options", "answer"}
            placeholders, videos = row["query"].count("<video>"), row["video_options"]
            assert placeholders == len(videos) + ("Ref Video: <video>" in row["query"])
            assert row["options"] == [str(n + 1) for n in range(len(videos))]
            assert all((folder / "videos" / name).is_file() for name in [row["id"], *videos])
            number += 1
    assert number == len(list(rows())) == 32


def test_all_subtasks_rankings_of_three_and_four_and_references_of_two_and_three():
    sample = list(rows())
    assert list(dict.fromkeys(row.subtask for row in sample)) == list(SUBTASKS)
    assert {len(row.videos) for row in sample if row.subtask in RANKINGS} == {3, 4}
    assert {len(row.videos) for row in sample if "Ref Video" in row.query} == {3, 4}


def test_clips_decode_and_differ_in_length_and_size(unzipped):
    seen = set()
    for path in (path for folder in unzipped for path in (folder / "videos").iterdir()):
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            seen.add((sum(1 for _ in container.decode(stream)), stream.width, stream.height))
    assert len(seen) > 15 and len({frames for frames, _, _ in seen}) > 10
    assert all(frames >= 8 for frames, _, _ in seen)


def brightness(path):
    with av.open(str(path)) as container:
        return next(container.decode(video=0)).to_ndarray(format="gray").mean()


def test_the_answers_about_brightness_are_true(unzipped):
    [folder] = [folder for folder in unzipped if folder.name == "video_brightness"]
    for line in (folder / "video_brightness.jsonl").read_text().splitlines():
        row = json.loads(line)
        levels = [brightness(folder / "videos" / name) for name in row["video_options"]]
        assert min(levels) == levels[int(row["answer"]) - 1] < 0.5 * sorted(levels)[1]


def test_no_two_questions_share_a_query_and_every_change_is_used():
    assert len(gold_answers()) == len(sample_answers()) == 32
    assert set(CHANGES) == {"light_snow", "snow", "heavy_snow", "soft", "blurred", "dim", "dark", "left", "right",
                            "backwards", "fast", "slow"}  # fmt: skip


def test_the_model_knows_a_question_however_its_placeholders_are_written():
    reply = played(gold_answers())
    for query, answer in gold_answers().items():
        parts = [{"type": "text", "text": text} for text in query.split("<video>")]
        for content in (parts, numbered(query), query):
            assert reply({"messages": [{"role": "user", "content": content}]}, 0) == answer


def test_the_middling_model_is_right_in_about_two_thirds_and_its_judge_knows_what_it_means():
    right = [row for row in rows() if ", ".join(map(str, row.means)) == gold_answers()[row.query]]
    assert 0.5 < len(right) / 32 < 0.75
    reply = played(sample_answers())
    for row in rows():
        request = {"messages": [{"role": "user", "content": extraction(row.weak)}]}
        assert reply(request, 0) == (", ".join(map(str, row.means)) or "None")
    assert reply({"messages": [{"role": "user", "content": extraction("What?")}]}, 0) == "None"


def test_left_alone_when_there(release):
    before = sorted(release.iterdir())
    assert make_mvpbench(release) == release and sorted(release.iterdir()) == before
