import json
import re
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.mt_video_bench import release
from utils.sample_release import gold_answers

ROUND = {"User": "What is it?", "Assistant": "A dog.", "Ability": "Memory Recall"}
CHECKS = {f"Q{n}": f"Question {n}?" for n in range(1, 6)} | {f"A{n}": "No" if n == 5 else "Yes" for n in range(1, 6)}


def entry(index=2, **changes):
    fields = {"round index": index, **CHECKS, **changes}
    return {key: value for key, value in fields.items() if value is not ...}


def event(number=1, rounds=3):
    return {"event_index": number, "mtqa": {f"Round {n}": dict(ROUND, User=f"q{n}") for n in range(1, rounds + 1)}}


def write(folder: Path, mtqa, checklist=None, ability="memory_recall") -> Path:
    for place, name, content in (("mtqa", ability, mtqa), ("checklist", f"{ability}_CheckList", checklist)):
        if content is not None:
            path = folder / place / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return folder


def read_one(tmp_path, mtqa, checklist):
    read = release.read(write(tmp_path, mtqa, checklist))
    return read, read.rows["memory_recall"]


def evaluated(row):
    return [n for n, turn in enumerate(row["turns"], 1) if turn["checklist"] and turn["excluded"] is None]


def test_the_sample_release_is_read_whole(mt_release):
    read = release.read(mt_release)
    assert list(read.rows) == list(release.ABILITIES)
    assert read.excluded == []
    rows = [row for of in read.rows.values() for row in of]
    assert (len(rows), sum(map(release.questions, rows))) == (12, 24)
    assert len({row["id"] for row in rows}) == 12
    answers = gold_answers(mt_release)
    for row in rows:
        for turn in row["turns"]:
            if turn["checklist"]:
                assert answers[turn["question"]] == turn["answer"]


def test_rounds_stay_in_the_files_order_and_indices_name_labels(tmp_path):
    _, [row] = read_one(tmp_path, {"v": [event(rounds=11)]}, {"v": {"1": [entry(10), entry(2)]}})
    assert [turn["question"] for turn in row["turns"]] == [f"q{n}" for n in range(1, 12)]
    assert evaluated(row) == [2, 10]


@pytest.mark.parametrize("number", [3, "3"])
def test_event_numbers_are_numbers_or_texts(tmp_path, number):
    _, [row] = read_one(tmp_path, {"v": [event(number)]}, {"v": {"3": [entry()]}})
    assert (row["id"], evaluated(row)) == ("memory_recall/v/3", [2])


def test_a_dialogue_or_round_without_checklist_is_history_only(tmp_path):
    read, rows = read_one(tmp_path, {"v": [event(1), event(2)]}, {"v": {"1": [entry(3)]}})
    assert [evaluated(row) for row in rows] == [[3], []]
    assert read.excluded == []


def test_files_are_found_anywhere_and_whatever_their_letter_case(tmp_path):
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "Summary.JSON").write_text(json.dumps({"v": [event()]}))
    (folder / "summary_checklist.json").write_text(json.dumps({"v": {"1": [entry()]}}))
    assert [evaluated(row) for row in release.read(tmp_path).rows["content_summary"]] == [[2]]


EXCLUSIONS = {
    "a round that does not exist": ([entry(9)], "does not exist"),
    "no round index": ([entry(None)], "does not exist"),
    "round 0": ([entry(0)], "does not exist"),
    "four of five answers": ([entry(A3=...)], "4 expected answers for 5"),
    "four of five questions": ([entry(Q3=...)], r"numbered \[1, 2, 4, 5\]"),
    "six answers": ([entry(A6="Yes")], "6 expected answers for 5"),
    "neither yes nor no": ([entry(A2="Maybe")], "A2 is 'Maybe'"),
    "yes or no": ([entry(A2="Yes/No")], "A2 is 'Yes/No'"),
    "a boolean": ([entry(A2=True)], "A2 is True"),
    "nothing": ([entry(A2=None)], "A2 is None"),
    "an empty question": ([entry(Q2=" ")], "Q2 is empty"),
    "a question that is no text": ([entry(Q2=7)], "Q2 is empty"),
    "no questions": ([{"round index": 2}], "no questions"),
    "two checklists for one round": ([entry(), entry(A1="No")], "two checklists"),
}


@pytest.mark.parametrize("name", EXCLUSIONS)
def test_what_cannot_be_scored_is_excluded_and_listed(tmp_path, name):
    entries, reason = EXCLUSIONS[name]
    read, [row] = read_one(tmp_path, {"v": [event()]}, {"v": {"1": [*entries, entry(3)]}})
    [excluded] = read.excluded
    assert excluded["id"].startswith("memory_recall/v/1/")
    assert re.search(reason, excluded["reason"])
    assert evaluated(row) == [3]


@pytest.mark.parametrize("answer", ["Yes", "yes", " YES ", "Yes."])
def test_expected_answers_are_read_leniently(tmp_path, answer):
    _, [row] = read_one(tmp_path, {"v": [event()]}, {"v": {"1": [entry(A2=answer)]}})
    assert [check["expected"] for check in row["turns"][1]["checklist"]] == ["yes", "yes", "yes", "yes", "no"]


@pytest.mark.parametrize(
    "label, content",
    [("Turn 2", ROUND), ("Round 2", {"User": "q"}), ("Round 2", "text"), ("Round 2", dict(ROUND, Assistant=None))],
)
def test_a_broken_dialogue_is_excluded_with_all_its_turns(tmp_path, label, content):
    broken = event()
    broken["mtqa"] = {"Round 1": ROUND, label: content, "Round 3": ROUND}
    read, rows = read_one(tmp_path, {"v": [broken, event(2)]}, {"v": {"1": [entry(3)], "2": [entry(3)]}})
    assert [excluded["id"] for excluded in read.excluded] == ["memory_recall/v/1/3"]
    assert [evaluated(row) for row in rows] == [[], [3]]


def test_a_duplicate_event_is_excluded(tmp_path):
    read, rows = read_one(tmp_path, {"v": [event(1), event("1"), event(2)]}, {"v": {"1": [entry()], "2": [entry()]}})
    assert [excluded["id"] for excluded in read.excluded] == ["memory_recall/v/1/2"]
    assert "occurs 2 times" in read.excluded[0]["reason"]
    assert len({row["id"] for row in rows}) == 3
    assert [evaluated(row) for row in rows] == [[], [], [2]]


NOTES = {
    "a checklist for an unknown event": ({"1": [entry()], "8": [entry()]}, "event 8: no such event"),
    "another number of questions": ({"1": [entry(Q5=..., A5=...)]}, "4 checklist questions, not 5"),
}


@pytest.mark.parametrize("name", NOTES)
def test_what_is_odd_is_noted(tmp_path, name):
    checklist, note = NOTES[name]
    read, _ = read_one(tmp_path, {"v": [event()]}, {"v": checklist})
    assert any(note in line for line in read.notes)


def test_a_video_without_dialogues_and_missing_files_are_noted(tmp_path):
    read, _ = read_one(tmp_path, {"v": [event()]}, {"w": {"1": [entry()]}})
    assert any("'w' has no dialogues" in note for note in read.notes)
    assert sum("no " in note and ".json below" in note for note in read.notes) == 5
    assert any("1 dialogues; the full set as published has 1000" in note for note in read.notes)


REFUSED = {
    "broken JSON": ('{"v": [}', None, r"memory_recall\.json, line 1, column 8: not JSON"),
    "a key twice": ('{"v": [], "v": []}', None, "key 'v' twice"),
    "not an object": ("[]", None, "an object is needed, not list"),
    "events that are no list": ({"v": {}}, None, "a list is needed, not dict"),
    "an event without number": ({"v": [{"mtqa": {}}]}, None, "'event_index' is None"),
    "an event without rounds": ({"v": [{"event_index": 1}]}, None, "key 'mtqa'"),
    "a path as video": ({"../v": [event()]}, None, r"'\.\./v' is no name of a video"),
    "an absolute path as video": ({"/etc/v": [event()]}, None, "'/etc/v' is no name of a video"),
    "a checklist that is no list": ({"v": [event()]}, {"v": {"1": {}}}, "a list is needed, not dict"),
    "a broken checklist file": ({"v": [event()]}, "{", r"memory_recall_CheckList\.json, line 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_file_and_place(tmp_path, name):
    mtqa, checklist, message = REFUSED[name]
    with pytest.raises(PackError, match=message):
        release.read(write(tmp_path, mtqa, checklist))


def test_all_problems_are_named_at_once(tmp_path):
    write(tmp_path, "{", ability="summary")
    write(tmp_path, {"../v": [event()], "../w": [event()]})
    with pytest.raises(PackError) as raised:
        release.read(tmp_path)
    assert all(name in str(raised.value) for name in ("summary.json", "'../v'", "'../w'"))


def test_a_folder_that_is_no_release_is_refused(tmp_path):
    with pytest.raises(PackError, match=r"holds no MT-Video-Bench release"):
        release.read(tmp_path)
    with pytest.raises(PackError, match="is not a folder"):
        release.read(tmp_path / "nowhere")


def test_files_of_one_name_are_ambiguous(tmp_path):
    write(tmp_path / "a", {"v": [event()]})
    write(tmp_path / "b", {"v": [event()]})
    with pytest.raises(PackError, match="occurs 2 times below"):
        release.read(tmp_path)


def test_text_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "summary.json").write_bytes(b'{"v\xff": []}')
    with pytest.raises(PackError, match="not UTF-8"):
        release.read(tmp_path)
