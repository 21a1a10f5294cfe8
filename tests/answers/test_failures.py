import pytest

from lmms_eval_tasks.answers.failures import FAILED, NO_CONTENT, EveryAnswer, is_failure


@pytest.mark.parametrize(
    "answer",
    [
        NO_CONTENT,
        f"{FAILED} ValueError: x",
        "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 400",
        " [LMMS_EVAL_BUDGET_EXCEEDED]",
        "[ERROR] Failed to generate",
        "Video ['/a/b.mp4', '/c.mp4'] can not load, check the source",
        "Video /a/b.mp4 can not load, check the source\n",
    ],
)
def test_what_backends_return_for_a_failed_request_is_no_answer(answer):
    assert is_failure(answer)


@pytest.mark.parametrize(
    "answer", ["", "B", "An error.", "error: [ERROR]", "The text says: Video x can not load, check the source"]
)
def test_a_models_answer_is_an_answer_however_bad(answer):
    assert not is_failure(answer)


def test_all_repeats_are_kept_and_absent_content_is_marked():
    assert EveryAnswer().apply([["a", None], [], ["\ud800"]], None) == [["a", NO_CONTENT], [NO_CONTENT], ["?"]]
