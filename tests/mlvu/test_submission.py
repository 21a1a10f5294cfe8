import json

import pytest

from lmms_eval_tasks.cli import main
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.mlvu import submission
from lmms_eval_tasks.results.items import Item

CARD = {"task": "mlvu_mc_test", "version": "1-A", "questions": 2, "judge": None}


def item(name="AR_0", answers=("(B)",), task="mlvu_mc_test", skipped=()):
    return Item(
        id=name,
        task=task,
        question_type="anomaly_reco",
        candidates=["a1", "b1", "c1", "d1", "e1", "f1"],
        answers=list(answers),
        status="unjudged",
        skipped=list(skipped),
        card=CARD,
    )


def record(folder, *items):
    path = folder / "run.jsonl"
    path.write_text("".join(json.dumps(of) + "\n" for of in items))
    return path


def test_the_leaderboards_schema(tmp_path):
    log = record(tmp_path, item("AR_0", ["(B)"]), item("AR_1", ["<think>A?</think>F"]), item("x", task="mlvu_mc_dev"))
    assert submission.write([log], tmp_path / "out.json") == 2
    assert json.loads((tmp_path / "out.json").read_text()) == [
        {"question_id": "AR_0", "question_type": "anomaly_reco", "option": "B"},
        {"question_id": "AR_1", "question_type": "anomaly_reco", "option": "F"},
    ]


def test_each_question_stands_in_it_once(tmp_path):
    log = record(tmp_path, item("AR_0"), item("AR_0"), item("AR_1"))
    assert submission.write([log, log], tmp_path / "out.json") == 2


def test_the_first_of_several_answers_is_taken():
    assert submission.entries([item(answers=["C", "D"]), item("AR_1")])[0][0]["option"] == "C"


WITHOUT = {
    "an answer without a choice": (item("AR_1", ["I cannot tell."]), "AR_1: no choice in 'I cannot tell.'"),
    "a letter that is not offered": (item("AR_1", ["(G)"]), "AR_1: no choice in '(G)'"),
    "an answer cut in its reasoning": (item("AR_1", ["<think>A or"]), "AR_1: no choice in ''"),
    "a failed request": (item("AR_1", ["[LMMS_EVAL_REQUEST_FAILED] boom"]), "AR_1: [LMMS_EVAL_REQUEST_FAILED] boom"),
    "a question that was not asked": (
        item("AR_2", skipped=[{"id": "AR_1", "status": "no_answer", "reason": "video v is missing"}]),
        "AR_1: video v is missing",
    ),
    "a question that is not there": (None, "1 more of the dataset's questions, which are not in these files"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_question_without_a_letter_refuses_the_file(tmp_path, capsys, name):
    other, reason = WITHOUT[name]
    items = [item("AR_0")] if other is None else [item("AR_0"), other]
    log, output = record(tmp_path, *items), tmp_path / "out.json"
    assert main(["submission", "mlvu", str(log), "-o", str(output)]) == 1
    printed = capsys.readouterr().err
    assert reason in printed and "--allow-missing" in printed and not output.exists()
    assert main(["submission", "mlvu", str(log), "-o", str(output), "--allow-missing"]) == 0
    assert "AR_1" not in output.read_text() and "AR_0" in output.read_text()


def test_all_that_is_missing_is_named_at_once():
    found, missing = submission.entries([item("a", ["?"]), item("b", ["[ERROR] x"])])
    assert found == [] and [line[:2] for line in missing] == ["a:", "b:"]


def test_excluded_rows_have_no_letter_either():
    skipped = [{"id": "AR_9", "category": "c", "status": "excluded", "reason": "bad data"}]
    found, missing = submission.entries([item("a", skipped=skipped), item("b")])
    assert len(found) == 2 and missing == ["AR_9: bad data"]


def test_nothing_to_submit_is_an_error(tmp_path):
    log = record(tmp_path, item(task="mlvu_gen_test"))
    with pytest.raises(PackError, match="No answer of mlvu_mc_test"):
        submission.write([log], tmp_path / "out.json")
    with pytest.raises(PackError, match="There is none for"):
        submission.write([record(tmp_path, item(answers=["?"]))], tmp_path / "out.json", allow_missing=True)


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    log = record(tmp_path, item("AR_0"), item("AR_1"))
    with pytest.raises(PackError, match="cannot be written"):
        submission.write([log], tmp_path / "nowhere" / "out.json")
