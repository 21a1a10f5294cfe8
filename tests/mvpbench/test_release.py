import json
import shutil
import zipfile

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.mvpbench import metrics, prompts, release
from lmms_eval_tasks.mvpbench.metrics import SUBTASKS
from lmms_eval_tasks.prepare import prepare
from utils.sample_release.mvpbench import rows

PAIRING = {
    "id": "01209_f.mp4",
    "query": "Please analyze the given reference video, Ref Video: <video> Compare it with the three candidate videos "
    "provided: Video 1: <video>Video 2: <video>Video 3: <video> The task is to identify the candidate video.",
    "video_options": ["01209_s.mp4", "00460_s.mp4", "01043_s.mp4"],
    "options": ["1", "2", "3"],
    "answer": "1",
}
ORDER = {
    "id": "7",
    "query": "Sort these. Video 1: <video>Video 2: <video>Video 3: <video>",
    "video_options": ["a.mp4", "b.mp4", "c.mp4"],
    "options": ["1", "2", "3"],
    "answer": "3, 2, 1",
}


def line(base=PAIRING, **changes):
    return {key: value for key, value in {**base, **changes}.items() if value is not ...}


def write(path, *lines):
    """Writes a .jsonl, and an empty file for each clip that it names beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [of if isinstance(of, str) else json.dumps(of, ensure_ascii=False) for of in lines]
    path.write_text("\n".join(texts), "utf-8")
    for of in lines:
        if isinstance(of, dict) and isinstance(of.get("video_options"), list):
            for name in [of.get("id"), *of["video_options"]]:
                if str(name).endswith(".mp4") and "/" not in name and ".." not in name:
                    (path.parent / name).touch()
    return path.parent


def read_one(tmp_path, *lines, subtask="multiview_pairing"):
    write(tmp_path / subtask / "data.jsonl", *lines)
    found = release.read(tmp_path)
    return found, found.rows[subtask]


def test_the_sample_release_is_read_whole(mvp_release):
    found = release.read(mvp_release)
    assert list(found.rows) == list(SUBTASKS) and found.excluded == []
    assert found.notes == ["32 questions; the full set as published has 5050"]
    read = [row for of in found.rows.values() for row in of]
    for row, expected in zip(read, rows(), strict=True):
        assert (row["subtask"], row["query"]) == (expected.subtask, expected.query)
        assert row["gold"] == release._numbers(expected.answer)
        assert len(row["videos"]) == len(expected.videos) == row["query"].count("<video>")
        assert row["reference"] == ("Ref Video" in row["query"]) == (len(row["videos"]) == row["candidates"] + 1)
        assert release.questions(row) == 1
    assert len({row["id"] for row in read}) == 32
    assert read[0]["id"] == "caption_guided_splicing/0"


def test_every_clip_is_that_of_its_own_subtask(mvp_release, home):
    folder = prepare("mvpbench", mvp_release).folder
    clips = {}
    for row, expected in zip(canonical.opened("mvpbench").rows(), rows(), strict=True):
        for name, clip in zip(row["videos"], expected.videos, strict=True):
            assert name.startswith(f"{row['subtask']}/")
            clips.setdefault(clip, set()).add((folder / "videos" / name).read_bytes())
    assert all(len(contents) == 1 for contents in clips.values())
    assert len({content for contents in clips.values() for content in contents}) == len(clips) > 30


def test_a_line_of_the_authors_readme(tmp_path):
    found, [row] = read_one(tmp_path, PAIRING)
    names = [f"multiview_pairing/{name}" for name in ("01209_f.mp4", *PAIRING["video_options"])]
    assert row == {
        "id": "multiview_pairing/0",
        "subtask": "multiview_pairing",
        "videos": names,
        "reference": True,
        "query": PAIRING["query"],
        "candidates": 3,
        "gold": [1],
        "excluded": None,
        "seconds": None,
    }
    assert {name: path.name for name, path in found.videos.items()} == {name: name.split("/")[1] for name in names}


ANSWERS = ["3, 2, 1", "3,2,1", "[3, 2, 1]", "3 2 1", [3, 2, 1], ["3", "2", "1"], "(3,2,1)", " 3 ,2; 1 ", "3>2>1",
           "Video 3, Video 2, Video 1"]  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
@pytest.mark.parametrize("subtask", metrics.RANKINGS)
def test_sequences_are_read_in_every_spelling(tmp_path, subtask, answer):
    _, [row] = read_one(tmp_path, line(ORDER, answer=answer), subtask=subtask)
    assert (row["gold"], row["excluded"], row["reference"]) == ([3, 2, 1], None, False)


@pytest.mark.parametrize("answer", ["2", 2, " 2 ", ["2"], "Video 2"], ids=str)
def test_single_answers_are_read_in_every_spelling(tmp_path, answer):
    _, [row] = read_one(tmp_path, line(answer=answer, options=[1, "2", "Video 3"]))
    assert (row["gold"], row["candidates"]) == ([2], 3)


def test_k_is_that_of_the_rows_own_options(tmp_path):
    two = line(query="Ref <video> <video> <video>", video_options=["a.mp4", "b.mp4"], options=["1", "2"], answer="2")
    five = line(query="<video>" * 5, video_options=[f"{n}.mp4" for n in range(5)], options=list("12345"), answer="5")
    _, read = read_one(tmp_path, two, five, subtask="gait")
    assert [(row["candidates"], row["reference"], row["gold"]) for row in read] == [(2, True, [2]), (5, False, [5])]


INVALID = {
    "one placeholder too few": (line(query="<video><video>"), "2 times <video> in the query for 3 video_options"),
    "two too many": (line(query="<video>" * 5), "5 times <video>"),
    "no placeholder": (line(query="Which?"), "0 times <video>"),
    "an answer that is no option": (line(answer="4"), "'4' is not among the options"),
    "an answer of two": (line(answer="1, 2"), "'1, 2' is not among the options"),
    "an answer in words": (line(answer="the first"), "not among the options"),
    "no answer": (line(answer=...), "answer: Field required"),
    "an answer that is true": (line(answer=True), "True is not among the options"),
    "an answer that is nothing": (line(answer=None), "None is not among the options"),
    "too few options": (line(options=["1", "2"]), "the options are ['1', '2'] for 3 videos"),
    "no options": (line(options=...), "the options are None for 3 videos"),
    "options in another order": (line(options=["2", "1", "3"]), "the options are"),
    "an option twice": (line(options=["1", "1", "3"]), "the options are"),
    "one video": (line(video_options=["a.mp4"], query="<video>"), "video_options: List should have at least 2 items"),
    "no videos": (line(video_options=...), "video_options: Field required"),
    "videos that are no texts": (line(video_options=[1, 2, 3]), "video_options.0: Input should be a valid string"),
    "a video twice": (line(video_options=["a.mp4", "b.mp4", "a.mp4"]), "names a video twice"),
    "a path that leads out": (line(video_options=["a.mp4", "../b.mp4", "c.mp4"]), "'../b.mp4' is no name of a video"),
    "an absolute path": (line(id="/etc/a.mp4"), "'/etc/a.mp4' is no name of a video"),
    "no query and no recipe": (line(ORDER, query=" "), "the paper has no prompt", "caption_guided_splicing"),
    "no query for so many": (line(query=None, video_options=list("abcd")), "the paper has no prompt for 4 videos"),
    "an order of two": (line(ORDER, answer="2, 1"), "'2, 1' is no order of 3 videos", "clarity"),
    "an order with repeats": (line(ORDER, answer="3, 3, 1"), "no order of 3 videos", "clarity"),
    "an order with gaps": (line(ORDER, answer="1, 2, 4"), "no order of 3 videos", "clarity"),
    "an order in words": (line(ORDER, answer="second, first, third"), "no order of 3 videos", "clarity"),
    "no JSON": ('{"id": ', "not JSON"),
    "half a surrogate pair": (json.dumps(line()).replace("Ref", "\\ud800"), "surrogates not allowed"),
    "a name that no disk takes": (line(video_options=["a" * 256, "b.mp4", "c.mp4"]), "is no name of a video"),
    "no object": ("[1]", "an object is needed, not list"),
    "JSON nested too deeply": ("[" * 100000, "not JSON"),
}


@pytest.mark.parametrize("name", INVALID)
def test_what_cannot_be_scored_is_excluded_and_listed(tmp_path, name):
    given, reason, *subtask = INVALID[name]
    subtask = subtask[0] if subtask else "multiview_pairing"
    good = ORDER if subtask in metrics.RANKINGS else PAIRING
    found, [bad, row] = read_one(tmp_path, given, good, subtask=subtask)
    [excluded] = found.excluded
    assert excluded["id"] == bad["id"] == f"{subtask}/0"
    assert reason in excluded["reason"] and excluded["reason"] == bad["excluded"]
    assert (release.questions(bad), release.questions(row)) == (0, 1)
    assert bad["videos"] == [] and row["id"] == f"{subtask}/1"


def test_excluded_rows_are_counted_and_need_no_videos(tmp_path, home):
    write(tmp_path / "gait" / "gait.jsonl", line(answer="9"), PAIRING)
    summary = prepare("mvpbench", tmp_path)
    assert summary.table[0] == ("gait", 2, 1, 4)
    prepared = canonical.opened("mvpbench")
    assert prepared.videos_of_a_question() == [4] and prepared.questions() == 1


def test_a_query_that_is_missing_is_the_papers(tmp_path):
    write(tmp_path / "gait" / "a.jsonl", line(query=None))
    write(tmp_path / "weather" / "a.jsonl", line(ORDER, query=..., answer="2"))
    found = release.read(tmp_path)
    [gait], [weather] = found.rows["gait"], found.rows["weather"]
    assert gait["query"] == prompts.inference("gait", 3) and gait["reference"] and len(gait["videos"]) == 4
    assert weather["query"] == prompts.inference("weather", 3) and not weather["reference"]


def test_empty_lines_a_bom_and_line_separators_within_texts(tmp_path):
    text = json.dumps(line(query=PAIRING["query"] + "\u2028"), ensure_ascii=False)
    write(tmp_path / "gait" / "a.jsonl", f"\ufeff\n\n{text}\r\n  \n{text}\n\n")
    read = release.read(tmp_path).rows["gait"]
    assert [row["id"] for row in read] == ["gait/0", "gait/1"] and all(row["gold"] == [1] for row in read)


NAMES = {
    "Caption-guided Temporal Segment Splicing": "caption_guided_splicing",
    "Tem w_Cap": "caption_guided_splicing",
    "temporal_splicing_with_captions": "caption_guided_splicing",
    "caption free temporal segment splicing": "caption_free_splicing",
    "Tem_wo_Cap": "caption_free_splicing",
    "Daily-Action": "daily_action",
    "DailyLifeActionEvaluation": "daily_action",
    "dailyaction": "daily_action",
    "Pro-Action": "professional_action",
    "professional action evaluation": "professional_action",
    "weather_condition_evaluation": "weather",
    "05_Weather": "weather",
    "Video clarity evaluation": "clarity",
    "BRIGHTNESS": "brightness",
    "video-brightness": "brightness",
    "Forensic_Detection": "forensic",
    "Multi-view": "multiview_pairing",
    "multiview_visual_perception_pairing": "multiview_pairing",
    "Common-Sense": "common_sense_physics",
    "common sense judgement of physical laws": "common_sense_physics",
    "Gait recognition matching": "gait",
    "gait_test": "gait",
    "Cinematographic": "cinematographic_style",
    "shooting style matching": "cinematographic_style",
    "Olympic": "olympic_sports",
    "olympicsportsmatching": "olympic_sports",
    "Dance style matching": "dance_style",
    "dancestyle": "dance_style",
    **{subtask: subtask for subtask in SUBTASKS},
}


@pytest.mark.parametrize("name", NAMES)
def test_subtasks_are_known_by_the_names_of_folders_files_and_zips(tmp_path, home, name):
    base = line(ORDER, answer="2, 1, 3" if NAMES[name] in metrics.RANKINGS else "2")
    for place in (f"a/{name}/data.jsonl", f"b/{name}.jsonl", f"c/{name}/x/questions.jsonl"):
        write(tmp_path / place, base)
        found = release.read(tmp_path / place[0])
        assert list(found.rows) == [NAMES[name]] and found.excluded == []
    shutil.make_archive(str(tmp_path / "d" / name), "zip", write(tmp_path / "z" / "data.jsonl", base))
    assert list(release.read(tmp_path / "d").rows) == [NAMES[name]]


def test_every_spelling_is_of_one_subtask():
    for subtask in SUBTASKS:
        assert {release._subtask_of_name(name) for name in (subtask, *release._SPELLINGS[subtask])} == {subtask}
    for name in (
        "temporal_segment_splicing",
        "content_assessment",
        "video quality assessment",
        "videos",
        "data",
        "",
        "1",
    ):
        assert release._subtask_of_name(name) == ""


@pytest.mark.parametrize("row", list({row.subtask: row for row in rows()}.values()), ids=lambda row: row.subtask)
def test_where_no_name_tells_it_the_queries_do(tmp_path, row):
    number = len(row.videos) - ("Ref Video" in row.query)
    given = line(id="r.mp4", query=row.query, video_options=[f"{n}.mp4" for n in range(number)],
                 options=[str(n + 1) for n in range(number)], answer=row.answer)  # fmt: skip
    write(tmp_path / "part_1" / "annotations.jsonl", given)
    if row.subtask.endswith("_action"):
        # The two action subtasks share their prompt.
        with pytest.raises(PackError, match=r"those of daily_action or professional_action\. Name its folder"):
            release.read(tmp_path)
    else:
        assert list(release.read(tmp_path).rows) == [row.subtask]


def test_a_file_of_no_known_subtask_is_an_error_if_it_is_ours_and_else_a_note(tmp_path):
    write(tmp_path / "part_1" / "x.jsonl", line(query="What? <video><video><video>"))
    with pytest.raises(PackError, match=r"x\.jsonl is not read: it is of no subtask that we know"):
        release.read(tmp_path)
    write(tmp_path / "part_1" / "x.jsonl", {"score": 1})
    with pytest.raises(PackError, match="holds no MVPBench release"):
        release.read(tmp_path)
    write(tmp_path / "gait" / "x.jsonl", PAIRING)
    assert any("part_1/x.jsonl is not read" in note for note in release.read(tmp_path).notes)


def test_all_problems_are_named_at_once(tmp_path, home):
    write(tmp_path / "part_1" / "x.jsonl", line(query="?"))
    (tmp_path / "gait").mkdir()
    (tmp_path / "gait" / "a.jsonl").write_bytes(b"\xff\xfe{}")
    (tmp_path / "weather.zip").write_bytes(b"PK\3\4 and no more")
    with pytest.raises(PackError) as raised:
        release.read(tmp_path)
    assert all(
        text in str(raised.value) for text in ("x.jsonl is not read", "not UTF-8 text", "weather.zip: a damaged")
    )


def test_several_files_of_a_subtask_are_counted_on_and_a_copy_is_passed_over(tmp_path, home):
    rain = write(tmp_path / "weather" / "rain" / "rain.jsonl", line(ORDER, answer="1"), line(ORDER, answer="2"))
    write(tmp_path / "weather" / "snow" / "snow.jsonl", line(ORDER, answer="3"))
    (rain / "a.mp4").write_bytes(b"rain")
    shutil.make_archive(str(tmp_path / "weather"), "zip", tmp_path, "weather")
    found = release.read(tmp_path)
    read = found.rows["weather"]
    assert [(row["id"], row["gold"]) for row in read] == [("weather/0", [1]), ("weather/1", [2]), ("weather/2", [3])]
    assert sum("is a copy of" in note for note in found.notes) == 2
    # Each file's clips are those beside it, though they share their names.
    assert read[0]["videos"][0] == "weather/a.mp4" and read[2]["videos"][0] == "weather/snow/a.mp4"
    assert found.videos["weather/a.mp4"] == rain / "a.mp4"
    assert found.videos["weather/snow/a.mp4"] == tmp_path / "weather/snow/a.mp4"


def test_files_in_folders_of_one_name_keep_their_own_clips(tmp_path):
    for number in "123":
        folder = write(tmp_path / "weather" / number / "clips" / "q.jsonl", line(ORDER, answer=number))
        (folder / "a.mp4").write_text(number)
    found = release.read(tmp_path)
    shown = [(row["gold"], found.videos[row["videos"][0]].read_text()) for row in found.rows["weather"]]
    assert shown == [([1], "1"), ([2], "2"), ([3], "3")]


def test_clips_that_differ_in_their_endings_alone_stay_apart(tmp_path, home):
    place = write(tmp_path / "weather" / "q.jsonl", line(ORDER, answer="1", video_options=["a.mp4", "a.mov", "b.avi"]))
    for name in ("a.mp4", "a.mov", "b.avi"):
        (place / name).write_text(name)
    prepare("mvpbench", tmp_path)
    prepared = canonical.opened("mvpbench")
    assert [prepared.video(name).read_text() for name in prepared.video_names()] == ["a.mp4", "a.mov", "b.avi"]


def test_a_reference_that_is_also_a_candidate_is_noted(tmp_path):
    found, rows_read = read_one(tmp_path, PAIRING, line(id="00460_s.mp4"))
    assert all(row["excluded"] is None for row in rows_read)
    [note] = [note for note in found.notes if "also a candidate" in note]
    assert note.startswith(
        "multiview_pairing: the reference is also a candidate in 1 questions, such as multiview_pairing/1"
    )


def test_zips_lie_in_folders_and_in_zips(tmp_path, home):
    inner = write(tmp_path / "inner" / "gait" / "gait.jsonl", PAIRING).parent
    shutil.make_archive(str(tmp_path / "outer" / "Gait"), "zip", inner)
    shutil.make_archive(str(tmp_path / "source" / "deep" / "er" / "all"), "zip", tmp_path / "outer")
    found = release.read(tmp_path / "source")
    assert list(found.rows) == ["gait"] and len(found.videos) == 4
    assert all(path.is_relative_to(home / "unpacked" / "mvpbench") for path in found.videos.values())


def test_clips_are_found_beside_the_questions_first_and_never_in_another_subtask(tmp_path):
    gait, weather = tmp_path / "gait", tmp_path / "weather"
    base = line(ORDER, answer="1")
    write(gait / "gait.jsonl", base)
    write(weather / "weather.jsonl", base)
    (gait / "old").mkdir()
    (gait / "old" / "a.mp4").touch()
    (weather / "a.mp4").unlink()
    (weather / "clips").mkdir()
    (weather / "b.mp4").rename(weather / "clips" / "b.MP4")
    (weather / "c.mp4").unlink()
    found = release.read(tmp_path)
    assert found.videos == {
        **{f"gait/{name}": gait / name for name in ("a.mp4", "b.mp4", "c.mp4")},
        "weather/b.mp4": weather / "clips" / "b.MP4",
    }


def test_questions_apart_from_their_clips_find_them_in_the_folder_of_their_subtask(tmp_path, home):
    for subtask in ("gait", "weather"):
        folder = write(tmp_path / "clips" / subtask / "x.jsonl", line(ORDER, answer="1"))
        (tmp_path / "questions").mkdir(exist_ok=True)
        (folder / "x.jsonl").rename(tmp_path / "questions" / f"{subtask}.jsonl")
    found = release.read(tmp_path)
    assert {name: path.parent.name for name, path in found.videos.items()} == {
        f"{subtask}/{name}.mp4": subtask for subtask in ("gait", "weather") for name in "abc"
    }


def test_clips_that_are_not_found_are_missing_though_another_subtask_has_their_names(tmp_path, home):
    for folder, subtask in (
        ("Gait_Recognition", "gait"),
        ("Olympic", "olympic_sports"),
        ("Weather_condition", "weather"),
    ):
        write(tmp_path / folder / f"{subtask}.jsonl", line(ORDER, answer="1"))
    for name in "abc":
        (tmp_path / "Weather_condition" / f"{name}.mp4").unlink()
    assert prepare("mvpbench", tmp_path).missing == [f"weather/{name}.mp4" for name in "abc"]
    assert canonical.opened("mvpbench").missing_videos("weather") == [f"weather/{name}.mp4" for name in "abc"]


def test_equal_contents_have_equal_fingerprints_wherever_they_were_unpacked(tmp_path, home, monkeypatch):
    write(tmp_path / "a" / "gait" / "gait.jsonl", PAIRING)
    shutil.make_archive(str(tmp_path / "b" / "gait"), "zip", tmp_path / "a")
    prints = set()
    for source in ("a", "b"):
        prepare("mvpbench", tmp_path / source)
        prints.add(canonical.opened("mvpbench").fingerprint)
    assert len(prints) == 1


def test_hidden_files_and_what_macos_adds_are_no_questions(tmp_path):
    write(tmp_path / "gait" / "gait.jsonl", PAIRING)
    for name in ("gait/._gait.jsonl", "__MACOSX/gait/._gait.jsonl", ".cache/gait.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"\x00\x05\x16\x07\xff")
    assert len(release.read(tmp_path).rows["gait"]) == 1


def test_a_folder_that_is_no_release_is_refused(tmp_path):
    with pytest.raises(PackError, match=r"holds no MVPBench release: no \.jsonl of one of its subtasks"):
        release.read(tmp_path)
    with pytest.raises(PackError, match="is not a folder"):
        release.read(tmp_path / "nowhere")


def test_a_zip_that_leads_out_is_refused(tmp_path, home):
    with zipfile.ZipFile(tmp_path / "gait.zip", "w") as archive:
        archive.writestr("../gait.jsonl", json.dumps(PAIRING))
    with pytest.raises(PackError, match="leads out"):
        release.read(tmp_path)
    assert not list(home.rglob("*.jsonl"))
