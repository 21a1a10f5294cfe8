import json
import re

import pytest

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.scvbench import release
from utils.sample_release.scvbench import scvbench_gold_answers

SUBS = [{"question": "Who?", "answer": "Ann"}, {"question": "Where?", "answer": "At home"}]
OPTIONS = ["one", "two", "three", "four", "five"]
LETTERED = list(zip("ABCDE", OPTIONS, strict=True))
LINE = {"video_id": "v", "question": "Which order?", "options": OPTIONS, "answer": "B", "sub_questions": SUBS}


def line(**changes):
    return {key: value for key, value in {**LINE, **changes}.items() if value is not ...}


def write(folder, *lines, name="scvbench.jsonl"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [of if isinstance(of, str) else json.dumps(of) for of in lines]
    path.write_text("\n".join(texts) + "\n", "utf-8")
    return path


def rows(path):
    return release.read(path).rows["final_questions"]


def read_one(tmp_path, *lines):
    read = release.read(write(tmp_path, *lines))
    [row] = read.rows["final_questions"]
    return read, row


def test_the_sample_release_is_read_whole(scvbench_release):
    read = release.read(scvbench_release)
    found = read.rows["final_questions"]
    assert [row["id"] for row in found] == [
        f"{film}/{number}" for film in ("street_bikes", "three_films", "meadow_rabbit") for number in (1, 2)
    ]
    assert read.excluded == [] and sum(map(release.questions, found)) == 6
    assert read.notes == ["6 final questions; the full set as published has 1253"]
    gold = scvbench_gold_answers()
    for row in found:
        assert row["letters"] == [gold[row["question"]]] and len(row["options"]) == 5
        assert row["answer"] == row["options"]["ABCDE".index(row["letters"][0])]
        assert all(gold[turn["question"]] == turn["answer"] for turn in row["sub_questions"])
        assert row["title"] and row["logline"] and row["synopsis"] and row["genre"] and row["duration"] > 0


def test_the_documented_form(tmp_path):
    film = {"title": " Rain ", "logline": "It rains.", "synopsis": "It rains a lot.", "genre": "drama"}
    read, row = read_one(tmp_path, line(**film, duration=612.5, video_url="https://…"))
    assert row == {
        **{"title": "Rain", "logline": "It rains.", "synopsis": "It rains a lot.", "genre": "drama"},
        **{"id": "v/1", "video": "v", "question": "Which order?", "options": OPTIONS, "letters": ["B"]},
        **{"answer": "two", "sub_questions": SUBS, "duration": 612.5, "seconds": None, "excluded": None},
    }
    assert read.excluded == [] and release.features().keys() == row.keys()


FORMS = {
    "a line for each film": {
        "video_id": "v",
        "questions": [{key: LINE[key] for key in ("question", "options", "answer", "sub_questions")}],
    },
    "a film's sub-questions": {
        "video_id": "v",
        "sub_questions": SUBS,
        "final_questions": [{key: LINE[key] for key in ("question", "options", "answer")}],
    },
    "a final question of its own": {
        "video_id": "v",
        "final_question": {key: LINE[key] for key in ("question", "options", "answer")},
        "sub_questions": SUBS,
    },
    "fqa and pqa": {
        "video_id": "v",
        "fqa": {key: LINE[key] for key in ("question", "options", "answer")},
        "pqa": SUBS,
    },
    "options by letter": line(options=dict(LETTERED)),
    "options by letter in another order": line(options=dict(LETTERED[::-1])),
    "options by small letters": line(options=dict(zip("abcde", OPTIONS, strict=True))),
    "options by letters in brackets": line(options={f"({key})": of for key, of in LETTERED}),
    "options with letters": line(options=[f"{key}. {of}" for key, of in LETTERED]),
    "options with letters in brackets": line(options=[f"({key}) {of}" for key, of in LETTERED]),
    "options by letter with letters": line(options={key: f"{key}) {of}" for key, of in LETTERED}),
    "options as lines": line(options="\n".join(f"{key}: {of}" for key, of in LETTERED)),
    "choices": {**line(options=...), "choices": OPTIONS},
    "Correct Answer": {**line(answer=...), "Correct Answer": "B"},
    "answer_index": {**line(answer=...), "answer_index": 1},
    "subQuestions": {**line(sub_questions=...), "subQuestions": SUBS},
    "two lists": {**line(sub_questions=["Who?", "Where?"]), "sub_answers": ["Ann", "At home"]},
    "pairs": line(sub_questions=[["Who?", "Ann"], ["Where?", "At home"]]),
    "sub-questions as questions": {**line(sub_questions=...), "questions": SUBS},
    "q and a": line(sub_questions=[{"q": of["question"], "a": of["answer"]} for of in SUBS]),
    "a null beside the field": {**line(), "final_question": None, "choices": None},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_obvious_spellings_give_the_same_row(tmp_path, form):
    _, expected = read_one(tmp_path / "documented", LINE)
    assert read_one(tmp_path / "other", FORMS[form])[1] == expected


@pytest.mark.parametrize(
    "answer, letter",
    [("B", "B"), ("b", "B"), ("(B)", "B"), ("B.", "B"), (" B ", "B"), ("two", "B"), ("Two ", "B"), ("B. two", "B"),
     ("(B) two", "B"), (1, "B"), ("1", "B"), (0, "A"), (4, "E")],
)  # fmt: skip
def test_answers_are_letters_texts_or_indices(tmp_path, answer, letter):
    _, row = read_one(tmp_path, line(answer=answer))
    assert (row["letters"], row["excluded"]) == ([letter], None)


def test_indices_count_from_0_unless_one_is_then_no_option(tmp_path):
    answers = [1, 4, "2", "C"]
    zero = release.read(write(tmp_path / "0", *(line(answer=answer) for answer in answers)))
    assert [row["letters"] for row in zero.rows["final_questions"]] == [["B"], ["E"], ["C"], ["C"]]
    assert any("3 answers are numbers, read as indices of options counted from 0" in note for note in zero.notes)
    one = release.read(write(tmp_path / "1", *(line(answer=answer) for answer in [*answers, 5, 0])))
    assert [row["letters"] for row in one.rows["final_questions"]] == [["A"], ["D"], ["B"], ["C"], ["E"], []]
    assert one.excluded == [{"id": "v/6", "reason": "the answer '0' is not among the options"}]
    assert any("counted from 1" in note for note in one.notes)


def test_a_letter_goes_before_a_text_and_a_text_before_an_index(tmp_path):
    options = ["B", "A", "3", "1", "E"]
    answers = ["A", "B", 3, "1", 1, "E"]
    found = rows(write(tmp_path, *(line(options=options, answer=answer) for answer in answers)))
    assert [row["letters"] for row in found] == [["A"], ["B"], ["C"], ["D"], ["D"], ["E"]]


def test_every_letter_of_the_right_text_counts(tmp_path):
    read, row = read_one(tmp_path, line(options=["one", "two", "Two ", "four", "two"], answer="C"))
    assert row["letters"] == ["B", "C", "E"] and row["excluded"] is None
    assert "1 final questions have options of the same text, and are scored: v/1" in read.notes


@pytest.mark.parametrize("number", [2, 3, 4, 6, 26])
def test_another_number_of_options_is_noted_and_scored(tmp_path, number):
    read, row = read_one(tmp_path, line(options=[f"option {k}" for k in range(number)], answer="B"))
    assert row["letters"] == ["B"] and len(row["options"]) == number
    assert "1 final questions have another number of options than 5, and are scored: v/1" in read.notes


def test_texts_that_begin_like_letters_keep_their_beginning(tmp_path):
    options = ["A. Smith", "B. Jones", "Nobody"]
    assert read_one(tmp_path, line(options=options, answer="A. Smith"))[1]["options"] == options


EXCLUSIONS = {
    "an answer that is no option": (line(answer="seven"), "the answer 'seven' is not among the options"),
    "a letter beyond the options": (line(answer="F"), "the answer 'F' is not among the options"),
    "a letter that contradicts its text": (line(answer="B. three"), "the answer 'B. three' is not among"),
    "a negative index": (line(answer=-1), "the answer '-1' is not among the options"),
    "an index beyond the options": (line(answer=6), "the answer '6' is not among the options"),
    "an empty answer": (line(answer=" "), "answer: ' ' is no letter, text or number"),
    "a boolean": (line(answer=True), "answer: True is no letter, text or number"),
    "a fraction": (line(answer=1.5), "answer: 1.5 is no letter"),
    "no answer": ({**line(answer=...), "key": "B"}, "no answer: it has video_id, .*, key, and none of answer, final_"),
    "a null answer": (line(answer=None), "no answer: it has video_id, question, options, sub_questions, and none of"),
    "a key that is a lone surrogate": ({**line(answer=None), "\ud800": 1}, "no answer: it has .*, \\?, and none"),
    "no options": (line(options=...), "no options: .*none of options, choices, "),
    "one option": (line(options=["one"], answer="A"), "options: List should have at least 2"),
    "27 options": (line(options=list(map(str, range(27)))), "options: List should have at most 26"),
    "options without B": (line(options={"A": "one", "C": "two"}), "options: its keys are A, C, not A, B"),
    "options by name": (line(options={"first": "one", "B": "two"}), "options: its keys are first, B"),
    "an option that is no text": (line(options=["one", ["two"]]), "options 2: Input should be a valid string"),
    "options that are no list": (line(options=5), "options: Input should be a valid list"),
    "an empty question": (line(question=" "), "question: String should have at least 1 character"),
    "no question": (line(question=...), "no question: .*none of question, final_question"),
    "a question that is no text": (line(question=7), "question: Input should be a valid string"),
    "a lone surrogate": (line(question="\ud800?"), "question: .*unicode"),
    "no sub-questions": (line(sub_questions=...), "no sub_questions: .*none of sub_questions, "),
    "an empty list of sub-questions": (line(sub_questions=[]), "sub_questions: List should have at least 1"),
    "a sub-question that is empty": (line(sub_questions=[SUBS[0], {"question": "", "answer": "x"}]),
                                     "sub_questions 2 question: String should have at least 1"),
    "a sub-question without answer": (line(sub_questions=[{"question": "Who?"}]), "sub_questions 1 answer: Field"),
    "sub-questions without answers": (line(sub_questions=["Who?"]), "sub_questions 1 answer: Field required"),
    "fewer sub-answers": ({**line(sub_questions=["Who?", "Why?"]), "sub_answers": ["x"]}, "sub_questions 2 answer"),
    "sub-questions that are a text": (line(sub_questions="Who?"), "sub_questions: Input should be a valid list"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXCLUSIONS)
def test_what_cannot_be_scored_is_excluded_and_listed(tmp_path, name):
    broken, reason = EXCLUSIONS[name]
    read = release.read(write(tmp_path, broken, LINE))
    excluded, scored = read.rows["final_questions"]
    assert re.search(reason, excluded["excluded"]), excluded["excluded"]
    assert read.excluded == [{"id": "v/1", "reason": excluded["excluded"]}]
    assert (scored["id"], scored["excluded"]) == ("v/2", None)
    assert [release.questions(row) for row in (excluded, scored)] == [0, 1]


def test_all_that_is_wrong_with_a_question_is_said_at_once(tmp_path):
    read, row = read_one(tmp_path, line(options=..., answer="", question=""))
    assert [part in row["excluded"] for part in ("no options", "answer: ''", "question: String")] == [True] * 3
    assert read.excluded[0]["id"] == "v/1"


@pytest.mark.parametrize(
    "duration, seconds",
    [(780, 780), ("780.5", 780.5), ("13:00", 780), ("1:02:03.5", 3723.5), ("PT13M", None), (-1, None), (0, None),
     (True, None), ("nan", None), ("inf", None), ([], None), (None, None)],
)  # fmt: skip
def test_durations(tmp_path, duration, seconds):
    _, row = read_one(tmp_path, line(duration=duration))
    assert (row["duration"], row["excluded"]) == (seconds, None)


@pytest.mark.parametrize(
    "given, told", [(["drama", "horror"], "drama, horror"), (7, None), ("", None), ([1], None), ("\ud800", "?")]
)
def test_metadata_never_costs_a_question(tmp_path, given, told):
    _, row = read_one(tmp_path, {**line(), "genre": given})
    assert (row["genre"], row["excluded"]) == (told, None)


def test_ids_count_the_final_questions_of_a_film_excluded_ones_too(tmp_path):
    lines = [line(video_id="a"), line(video_id=7), line(video_id="a", answer="?"), line(video_id="a", question="Q")]
    assert [row["id"] for row in rows(write(tmp_path, *lines))] == ["a/1", "7/1", "a/2", "a/3"]


def test_what_is_asked_twice_or_blank_is_noted(tmp_path):
    notes = release.read(write(tmp_path, LINE, LINE, line(question="Q", options=["one", "two", " "]))).notes
    assert "'v: Which order?' is asked 2 times" in notes
    assert "1 final questions have an option that is blank, and are scored: v/3" in notes


REFUSED = {
    "broken JSON": (["{", LINE], r"scvbench\.jsonl, line 1, column 2: not JSON"),
    "a number without end": ([f'{{"video_id": {"1" * 5000}}}'], "line 1: not JSON of a release"),
    "nothing but brackets": (["[" * 100_000], "line 1: not JSON of a release"),
    "a key twice": (['{"video_id": "v", "video_id": "w"}'], "line 1: an object has the key 'video_id' twice"),
    "no object": (["[1]"], "line 1: an object is needed, not list"),
    "no video": ([line(video_id=...)], "line 1: no video_id: it has question, .*none of video_id, video, "),
    "a video that is no name": ([line(video_id=["v"])], r"line 1: video_id is \['v'\]"),
    "a path as video": ([line(video_id="../v")], r"line 1: '\.\./v' is no name of a video"),
    "an empty video": ([line(video_id="")], "line 1: '' is no name of a video"),
    "a final question that is no object": ([{"video_id": "v", "questions": ["Q"]}], "line 1: a final question is 'Q'"),
    "nothing": ([""], "holds no SCVBench release: there is no line in it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_file_and_line(tmp_path, name):
    lines, message = REFUSED[name]
    with pytest.raises(PackError, match=message):
        release.read(write(tmp_path, *lines))


def test_all_problems_are_named_at_once(tmp_path):
    with pytest.raises(PackError) as raised:
        release.read(write(tmp_path, line(video_id="../v"), LINE, "3", line(video_id=...)))
    assert all(f"line {number}: " in str(raised.value) for number in (1, 3, 4))
    with pytest.raises(PackError) as raised:
        release.read(write(tmp_path, "{", json.dumps(LINE), "]"))
    assert all(f"line {number}, column " in str(raised.value) for number in (1, 3))


def test_empty_lines_and_a_byte_order_mark_do_not_count(tmp_path):
    path = tmp_path / "a.jsonl"
    text = json.dumps(line(question="a\u2028b"), ensure_ascii=False)
    path.write_text(f"\ufeff\n{text}\n\n", "utf-8")
    assert rows(path)[0]["question"] == "a\u2028b"


def test_the_source_is_a_file_or_a_folder_with_one(tmp_path):
    file = write(tmp_path / "one" / "deep", LINE, name="SCVBench.JSONL")
    write(tmp_path / "one", {"not": "ours"}, name="notes.json")
    assert rows(tmp_path / "one") == rows(file) != []
    listed = write(tmp_path / "list", json.dumps([LINE, LINE]), name="data.json")
    assert len(rows(tmp_path / "list")) == len(rows(listed)) == 2
    plain = write(tmp_path / "plain", LINE, name="data.txt")
    assert len(rows(plain)) == 1


def test_a_source_that_is_not_one_file_is_refused(tmp_path):
    with pytest.raises(PackError, match="is neither a file nor a folder"):
        release.read(tmp_path / "nowhere")
    with pytest.raises(PackError, match=r"no \.jsonl or \.json file is below"):
        release.read(tmp_path)
    write(tmp_path, LINE, name="a.jsonl")
    write(tmp_path, LINE, name="b/b.jsonl")
    with pytest.raises(PackError, match=r"2 \.jsonl files are below .*a\.jsonl, .*b\.jsonl\. Give the right one"):
        release.read(tmp_path)
    with pytest.raises(PackError, match="a list of final questions or films is needed, not dict"):
        release.read(write(tmp_path, "{}", name="c.json"))


def test_prepare_takes_a_file_and_finds_videos_by_their_id(scvbench_release, home):
    summary = prepare("scvbench", scvbench_release / "scvbench.jsonl", videos=scvbench_release / "videos")
    assert (summary.missing, summary.broken, summary.excluded) == ([], [], [])
    assert summary.table[0] == ("final_questions", 6, 6, 3)
    alone = prepare("scvbench", scvbench_release / "scvbench.jsonl")
    assert alone.missing == ["street_bikes", "three_films", "meadow_rabbit"]


def test_prepare_writes_nothing_where_no_question_can_be_asked(tmp_path, home):
    with pytest.raises(PackError, match=r"nothing was written:\n  - v/1: no sub_questions: it has"):
        prepare("scvbench", write(tmp_path, line(sub_questions=...)))
    assert not (home / "datasets").exists()
