import json
import re
from pathlib import Path

import pytest
from pyarrow import Table, parquet

from lmms_eval_tasks import canonical
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.mlvu import release
from lmms_eval_tasks.prepare import prepare
from utils.sample_release.mlvu import mlvu_gold_answers

_REAL = Path(__file__).parents[3] / "shared" / "data" / "mlvu_dev"

ROW = {
    "video": "v.mp4",
    "duration": 246,
    "question": "What colour is it?",
    "candidates": ["Yellow", "Red", "Green", "Blue"],
    "answer": "Red",
    "question_type": "plotQA",
}
CAPTION = {
    "video": "v.mp4",
    "duration": 1.5,
    "question": "Describe the scene.",
    "answer": "A man runs.",
    "question_type": "subPlot",
    "scoring_points": ["A man runs"],
}
SUMMARY = {"video": "v.mp4", "question": "Sum it up.", "answer": "A man runs.", "question_type": "summary"}
SIX = {**ROW, "candidates": list("uvwxyz"), "answer": "x", "question_id": "AR_0", "question_type": "anomaly_reco"}
WRITTEN = {
    "video_name": "v.mp4",
    "duration": 246.0,
    "question": "What colour is it?\n(A) Yellow\n(B) Red\n(C) Green\n(D) Blue",
    "candidates": ["Yellow", "Red", "Green", "Blue"],
    "answer": "B",
    "task_type": "plotQA",
    "question_id": "PQA_0",
}


def write(folder: Path, **files) -> Path:
    """Writes files by their names without ending: JSON, or what a name's ending says."""
    for name, content in files.items():
        path = folder / (name if "." in name else f"{name}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            parquet.write_table(Table.from_pylist(content), path)
        elif path.suffix == ".jsonl":
            path.write_text("\n".join(map(json.dumps, content)), "utf-8")
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return folder


def change(row, **changes):
    return {key: value for key, value in {**row, **changes}.items() if value is not ...}


def test_the_sample_release_is_read_whole(mlvu_release):
    read = release.read(mlvu_release)
    assert {config: len(rows) for config, rows in read.rows.items()} == {
        "mc_dev": 15,
        "gen_dev": 4,
        "mc_test": 9,
        "gen_test": 2,
    }
    assert read.excluded == []
    gold = mlvu_gold_answers()
    for row in (row for rows in read.rows.values() for row in rows):
        assert row["answer"] in gold[row["question"]] and release.questions(row) == 1
        assert row["letters"] == [] or gold[row["question"]][1] in row["letters"]
    assert read.rows["mc_dev"][0]["id"] == "1_plotQA/0" and read.rows["mc_test"][0]["id"] == "TR_0"
    assert read.rows["mc_dev"][0]["video"] == "1_plotQA/rabbit.mp4"
    assert read.rows["mc_test"][0]["video"] == "test_films.mp4"


def test_equal_file_names_in_two_folders_are_two_videos(mlvu_prepared):
    videos = canonical.opened("mlvu").videos
    names = [row["video"] for row in canonical.opened("mlvu").rows("mc_dev") if row["video"].endswith("/clip.mp4")]
    assert sorted(set(names)) == ["6_anomaly_reco/clip.mp4", "7_topic_reasoning/clip.mp4"]
    assert videos.find(names[0]).read_bytes() != videos.find(names[-1]).read_bytes()


def test_videos_may_lie_in_one_folder(tmp_path, home, mlvu_release):
    write(tmp_path, **{"1_plotQA": [change(ROW, video="car.mp4")]})
    [video] = mlvu_release.rglob("rabbit.mp4")
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "car.mp4").symlink_to(video)
    assert prepare("mlvu", tmp_path).missing == []


@pytest.mark.skipif(not _REAL.exists(), reason="the authors' annotations are not here")
def test_the_authors_dev_files(home):
    read = release.read(_REAL)
    assert {config: len(rows) for config, rows in read.rows.items()} == {"mc_dev": 2175, "gen_dev": 418}
    assert [(row["id"], row["reason"]) for row in read.excluded] == [
        ("2_needle/34", "the answer 'Catching a flying drone quadcopter' is not among the candidates"),
        ("2_needle/338", "the answer 'Catching a flying drone quadcopter' is not among the candidates"),
        ("7_topic_reasoning/26", "the question is empty"),
    ]
    rows = {row["id"]: row for rows in read.rows.values() for row in rows}
    assert len(rows) == 2593
    assert sum("stands 2 times" in note for note in read.notes) == 14
    assert [note.split(":")[0] for note in read.notes if "blank" in note] == ["1_plotQA/23", "3_ego/119", "3_ego/313"]
    several = {name: row["letters"] for name, row in rows.items() if len(row["letters"]) > 1 and not row["excluded"]}
    assert several == {
        "1_plotQA/335": ["B", "C"],
        "1_plotQA/387": ["A", "C"],
        "1_plotQA/493": ["A", "D"],
        "6_anomaly_reco/66": ["A", "D"],
        "7_topic_reasoning/163": ["A", "D"],
    }
    assert rows["3_ego/119"]["letters"] == ["C"] and rows["3_ego/119"]["answer"] == ""
    summary = prepare("mlvu", _REAL)
    assert [row[:3] for row in summary.table] == [
        ("mc_dev", 2175, 2172),
        ("gen_dev", 418, 418),
        ("all", 2593, 2590),
    ]


def test_dev_rows_are_named_after_file_and_index(tmp_path):
    write(tmp_path / "deep", **{"1_plotQA": [ROW, ROW], "9_summary": [SUMMARY]})
    read = release.read(tmp_path)
    assert [row["id"] for row in read.rows["mc_dev"]] == ["1_plotQA/0", "1_plotQA/1"]
    assert [row["id"] for row in read.rows["gen_dev"]] == ["9_summary/0"]
    assert "mc_test" not in read.rows
    assert "mc_dev: 2 questions; the full set as published has 2175" in read.notes


EXCLUSIONS = {
    "an answer that is not offered": ("1_plotQA", change(ROW, answer="Purple"), "'Purple' is not among the candidates"),
    "an empty question": ("1_plotQA", change(ROW, question=" "), "the question is empty"),
    "one candidate": ("1_plotQA", change(ROW, candidates=["Red"]), "it has 1 candidates"),
    "no candidates": ("1_plotQA", change(ROW, candidates=...), "it has 0 candidates"),
    "too many candidates": ("1_plotQA", change(ROW, candidates=["Red"] * 27), "it has 27 candidates"),
    "no answer": ("1_plotQA", change(ROW, answer=None), "it has no answer"),
    "a blank answer": ("1_plotQA", change(ROW, answer=""), "it has no answer"),
    "a caption without points": ("8_sub_scene", change(CAPTION, scoring_points=[" "]), "no scoring points"),
    "a summary without reference": ("9_summary", change(SUMMARY, answer=""), "it has no answer"),
}


@pytest.mark.parametrize("name", EXCLUSIONS)
def test_what_cannot_be_scored_is_excluded_and_listed(tmp_path, name):
    file, row, reason = EXCLUSIONS[name]
    read = release.read(write(tmp_path, **{file: [row], "5_order": [ROW]}))
    [excluded] = read.excluded
    assert excluded["id"] == f"{file}/0" and reason in excluded["reason"]
    rows = [row for rows in read.rows.values() for row in rows]
    assert [release.questions(row) for row in sorted(rows, key=lambda row: row["id"] == f"{file}/0")] == [1, 0]


LETTERS = {
    "a text": (ROW["candidates"], "Red", ["B"]),
    "a text that comes twice": (["Red", "Blue", "Red", "Green"], "Red", ["A", "C"]),
    "white space": (["Yes ", "No"], "Yes", ["A"]),
    "a number": ([2, 1, 5, 4], 1, ["B"]),
    "a blank": (["a", "", "b"], "", ["B"]),
    "a letter": (ROW["candidates"], "(C)", ["C"]),
    "a text that looks like a letter": (["B", "A", "D", "C"], "A", ["B"]),
    "another case": (["Red", "red"], "red", ["B"]),
}


@pytest.mark.parametrize("name", LETTERS)
def test_every_letter_with_the_right_text_is_right(tmp_path, name):
    candidates, answer, letters = LETTERS[name]
    row = change(ROW, candidates=candidates, answer=answer)
    [read] = release.read(write(tmp_path, **{"1_plotQA": [row]})).rows["mc_dev"]
    assert read["letters"] == letters and read["excluded"] is None


def test_a_test_set_with_answers_in_it(tmp_path):
    write(tmp_path, test_multi_choice_tasks=[SIX], test_generation_tasks=[CAPTION, SUMMARY])
    read = release.read(tmp_path)
    [row] = read.rows["mc_test"]
    assert (row["id"], row["letters"], row["category"], row["question_type"]) == (
        "AR_0", ["D"], "anomaly_recognition", "anomaly_reco",
    )  # fmt: skip
    assert [row["id"] for row in read.rows["gen_test"]] == ["test_generation_tasks/0", "test_generation_tasks/1"]
    assert read.excluded == []


def test_a_test_set_without_answers_is_asked(tmp_path):
    bare = [change(row, answer=..., scoring_points=...) for row in (CAPTION, SUMMARY)]
    write(tmp_path, test_multi_choice_tasks=[change(SIX, answer=None)], test_generation_tasks=bare)
    read = release.read(tmp_path)
    rows = [row for rows in read.rows.values() for row in rows]
    assert [release.questions(row) for row in rows] == [1, 1, 1] and not any(map(release.has_reference, rows))
    assert read.excluded == []
    assert "mc_test: 1 questions have no reference answer: they are asked, and not scored" in read.notes


@pytest.mark.parametrize("with_id", [True, False])
def test_answers_in_files_of_their_own_join_the_questions(tmp_path, with_id):
    other = change(SIX, question_id="AR_1", video="w.mp4", answer=...)
    answers = [
        change(row, question_id=row["question_id"] if with_id else ...) for row in (SIX, change(other, answer="z"))
    ]
    write(
        tmp_path,
        test_multi_choice_tasks=[other, change(SIX, answer=...)],
        test_generation_tasks=[change(CAPTION, answer=..., scoring_points=...)],
        **{"gt/test_mcq_gt": answers, "gt/test_ssc_gt": [CAPTION]},
    )
    read = release.read(tmp_path)
    assert [(row["id"], row["letters"]) for row in read.rows["mc_test"]] == [("AR_1", ["F"]), ("AR_0", ["D"])]
    assert [row["scoring_points"] for row in read.rows["gen_test"]] == [["A man runs"]]


def test_the_leaderboards_questions_are_the_same_questions(tmp_path):
    other = change(SIX, question_id="AR_1", answer=...)
    write(tmp_path, test_multi_choice_tasks=[SIX], test_question=[change(SIX, answer=...), other])
    assert [(row["id"], row["letters"]) for row in release.read(tmp_path).rows["mc_test"]] == [
        ("AR_0", ["D"]),
        ("AR_1", []),
    ]


def test_multiple_choice_and_generation_have_ids_of_their_own(tmp_path):
    generation = [change(CAPTION, question_id="AR_0")]
    read = release.read(write(tmp_path, test_multi_choice_tasks=[SIX], test_generation_tasks=generation))
    assert [row["id"] for rows in read.rows.values() for row in rows] == ["AR_0", "AR_0"]


def test_answers_alone_are_a_test_set(tmp_path):
    read = release.read(write(tmp_path, test_mcq_gt=[SIX], test_vs_gt=[SUMMARY]))
    assert [row["id"] for rows in read.rows.values() for row in rows] == ["AR_0", "test_vs_gt/0"]


@pytest.mark.parametrize("ending", ["json", "jsonl", "parquet"])
def test_the_reorganised_copy(tmp_path, ending):
    six = change(WRITTEN, candidates=list("uvwxyz"), answer="D", task_type="needleQA",
                 question="What?\n(A) u\n(B) v\n(C) w\n(D) x\n(E) y\n(F) z")  # fmt: skip
    write(tmp_path, **{f"dev/test.{ending}": [WRITTEN], f"test/test.{ending}": [six]})
    read = release.read(tmp_path)
    [dev], [test] = read.rows["mc_dev"], read.rows["mc_test"]
    assert (dev["id"], dev["question"], dev["letters"], dev["answer"]) == ("PQA_0", "What colour is it?", ["B"], "Red")
    assert (dev["video"], dev["duration"]) == ("1_plotQA/v.mp4", 246)
    assert (test["question"], test["letters"], test["category"]) == ("What?", ["D"], "needle_qa")
    assert test["video"] == "v.mp4"


QUESTIONS = {
    "the question alone": "What colour is it?",
    "lines": "What colour is it?\n(A) Yellow\n(B) Red\n(C) Green\n(D) Blue",
    "the whole prompt": "Question: What colour is it?\nOptions:\n(A) Yellow\n(B) Red\n(C) Green\n(D) Blue\n"
    "Only give the best option.",
    "points": "What colour is it?\nA. Yellow\nB. Red\nC. Green\nD. Blue\n",
    "one line": "What colour is it? (A) Yellow (B) Red (C) Green (D) Blue",
    "small letters": "What colour is it?\n(a) Yellow\n(b) Red\n(c) Green\n(d) Blue",
    "choices": "What colour is it?\nChoices: A: Yellow, B: Red, C: Green, D: Blue",
    "the word option": "What colour is it? Option A: Yellow Option B: Red Option C: Green Option D: Blue",
    "other line ends": "What colour is it?\r\n(A) Yellow\r\n(B) Red\r\n(C) Green\r\n(D) Blue\r\n",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_options_that_are_written_into_a_question_are_taken_out(tmp_path, name):
    [row] = release.read(write(tmp_path, copy=[change(WRITTEN, question=QUESTIONS[name])])).rows["mc_dev"]
    assert row["question"] == "What colour is it?"


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "(b)", "B.", "B)", "(B) Red", "B. Red", "Red", " Red "])
@pytest.mark.parametrize("lettered", [False, True])
def test_answers_of_the_reorganised_copy(tmp_path, answer, lettered):
    candidates = ["A. Yellow", "B. Red", "C. Green", "D. Blue"] if lettered else WRITTEN["candidates"]
    [row] = release.read(write(tmp_path, copy=[change(WRITTEN, answer=answer, candidates=candidates)])).rows["mc_dev"]
    assert (row["letters"], row["answer"]) == (["B"], "Red")


@pytest.mark.parametrize("answer", ["E", "e", "(A) Red", "B. Yellow", "A or B", "2"])
def test_answers_that_name_no_option(tmp_path, answer):
    [row] = release.read(write(tmp_path, copy=[change(WRITTEN, answer=answer)])).rows["mc_dev"]
    assert (row["letters"], row["excluded"]) == ([], f"the answer {answer!r} is not among the candidates")


def test_events_of_a_question_are_no_options(tmp_path):
    question = "Order: (1)A. Smith runs; (2)A man falls. Is plan A. right?"
    row = change(WRITTEN, question=f"{question}\n(A) 1->2\n(B) 2->1", candidates=["1->2", "2->1"], answer="A")
    [read] = release.read(write(tmp_path, copy=[row])).rows["mc_dev"]
    assert read["question"] == question


def test_options_with_their_own_letters(tmp_path):
    row = change(WRITTEN, candidates=["(A) Yellow", "(B) Red", "(C) Green", "(D) Blue"])
    [read] = release.read(write(tmp_path, copy=[row])).rows["mc_dev"]
    assert read["candidates"] == ["Yellow", "Red", "Green", "Blue"] and read["question"] == "What colour is it?"


def test_a_copys_letters_go_before_texts_that_look_like_them(tmp_path):
    row = change(WRITTEN, candidates=["B", "A", "D", "C"], answer="A", question="Which?\n(A) B\n(B) A\n(C) D\n(D) C")
    [read] = release.read(write(tmp_path, copy=[row])).rows["mc_dev"]
    assert (read["letters"], read["question"]) == (["A"], "Which?")


REFUSED = {
    "broken JSON": ({"1_plotQA": "[{]"}, r"1_plotQA\.json, line 1, column 3: not JSON"),
    "no list": ({"1_plotQA": {"a": 1}}, r"1_plotQA\.json: a list of questions is needed, not dict"),
    "no question": ({"1_plotQA": [ROW, change(ROW, question=...)]}, "row 1: question: Field required"),
    "no object": ({"1_plotQA": [ROW, "x"]}, "row 1: Input should be a valid dictionary"),
    "a path as video": ({"1_plotQA": [change(ROW, video="../v")]}, r"row 0: '\.\./v' is no name of a video"),
    "a text as candidates": ({"1_plotQA": [change(ROW, candidates="a, b")]}, "row 0: candidates: Input should be"),
    "a negative duration": ({"1_plotQA": [change(ROW, duration=-1)]}, "row 0: duration: Input should be greater"),
    "an unknown category": (
        {"test_multi_choice_tasks": [change(SIX, question_type="cookery")]},
        r"question_type is none of plotqa, .*\n.*AR_0: 'cookery'",
    ),
    "an id twice": ({"test_multi_choice_tasks": [SIX, change(SIX, video="w"), SIX]}, "AR_0: rows 0, 1, 2"),
    "an id twice in a copy": ({"copy.jsonl": [WRITTEN, WRITTEN]}, "PQA_0: rows 0, 1"),
    "a broken line": ({"copy.jsonl": [WRITTEN]}, "copy.jsonl, line 2, column 2: not JSON"),
    "two answers": (
        {"test_multi_choice_tasks": [SIX], "test_mcq_gt": [change(SIX, answer="u")]},
        "contradict it.*AR_0: test_mcq_gt.json has other answer",
    ),
    "an answer to other options": (
        {"test_multi_choice_tasks": [change(SIX, answer=...)], "test_mcq_gt": [change(SIX, candidates=list("abcdef"))]},
        "AR_0: test_mcq_gt.json has other candidates",
    ),
    "both forms of the dev set": ({"1_plotQA": [ROW], "copy": [WRITTEN]}, "plot_qa of mc_dev is in .*1_plotQA"),
    "both forms of the test set": (
        {"test_mcq_gt": [SIX], "copy": [change(WRITTEN, candidates=list("abcdef"), task_type="anomaly_reco")]},
        "anomaly_recognition of mc_test is in",
    ),
    "two copies": ({"copy": [WRITTEN], "b/copy": [WRITTEN]}, "PQA_0 of mc_dev is in .*copy.json too"),
    "a copy of generation": ({"copy": [change(WRITTEN, candidates=..., task_type="summary")]}, "no row has candidates"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_file_and_row(tmp_path, name):
    files, message = REFUSED[name]
    write(tmp_path, **files)
    if name == "a broken line":
        with (tmp_path / "copy.jsonl").open("a") as file:
            file.write("\n{")
    with pytest.raises(PackError, match=re.compile(message, re.DOTALL)):
        release.read(tmp_path)


def test_all_problems_are_named_at_once(tmp_path):
    write(
        tmp_path,
        **{"1_plotQA": "{", "2_needle": [{}, change(ROW, question=3.5, duration="x")]},
        copy=[{**WRITTEN, "answer": []}],
    )
    with pytest.raises(PackError) as raised:
        release.read(tmp_path)
    assert all(text in str(raised.value) for text in (
        "1_plotQA.json, line 1", "row 0: video: Field required", "row 0: question: Field required",
        "row 1: duration", "copy.json, rows counted from 0",
    ))  # fmt: skip


def test_a_folder_that_is_no_release_is_refused(tmp_path):
    write(tmp_path, other=[{"video_name": "v"}], test_res=[{"question_id": "AR_0"}])
    with pytest.raises(PackError, match="holds no MLVU release"):
        release.read(tmp_path)
    with pytest.raises(PackError, match="is not a folder"):
        release.read(tmp_path / "nowhere")
