from functools import partial
from types import SimpleNamespace

import pytest

from lmms_eval_tasks.answers.failures import NO_CONTENT
from lmms_eval_tasks.dialogue import lockstep
from lmms_eval_tasks.dialogue.adapter import Conversations, EveryTranscript, transcripts
from lmms_eval_tasks.dialogue.program import Transcript, Turn
from lmms_eval_tasks.hooks import Hooks
from lmms_eval_tasks.settings import PREFIX


def program(doc):
    said = []
    for number in range(doc["turns"]):
        said.append((yield Turn(f"{doc['id']} {number} {said}", ["v.mp4"] * (number % 2))))
    return said[-1]


@pytest.fixture
def conversations(monkeypatch):
    hooks = Hooks("mt_video_bench", "1-A", {}, kind="ability")
    monkeypatch.setattr(hooks, "asked", lambda doc, specific: None)
    monkeypatch.setattr(hooks, "clips", lambda doc, specific, shown=None: [f"/clips/{name}" for name in shown])
    return Conversations(hooks, program)


def serially(conversations, doc, answer):
    """What lmms-eval's own loop makes of a conversation."""
    from lmms_eval.evaluator import _run_generate_until_agentic as run

    run = getattr(run, "__wrapped__", run)
    shown = []

    def generate_until(requests):
        [request] = requests
        text, _, visual, *_ = request.args
        shown.append((text, visual(doc)))
        return [answer(text)]

    lm = SimpleNamespace(is_simple=True, task_dict={"t": {"test": [doc]}}, generate_until=generate_until)
    request = SimpleNamespace(
        args=(
            conversations.doc_to_text(doc),
            {"max_agentic_steps": 1000},
            conversations.doc_to_visual,
            partial(conversations.doc_to_text, lmms_eval_specific_kwargs=None),
            0,
            "t",
            "test",
        ),
        metadata={"task": "t", "doc_id": 0, "repeats": 1},
    )
    [output] = run(lm, [request])
    return Transcript.load(output), shown


@pytest.mark.parametrize("turns", [1, 2, 13, 60])
def test_lmms_evals_own_loop_runs_any_program(conversations, turns):
    doc = {"id": "d", "video": "v.mp4", "turns": turns}
    said, shown = serially(conversations, doc, lambda text: f"<{len(text)}>")
    running = conversations.start(doc)
    while running.turn is not None:
        running.reply(f"<{len(running.turn.text)}>")
    assert said == running.transcript() and len(said.turns) == turns
    assert shown == [(turn["prompt"], [f"/clips/{name}" for name in turn["videos"]]) for turn in said.turns]


def test_lmms_evals_own_loop_ends_with_a_failed_request(conversations):
    failed = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] 500"
    said, _ = serially(
        conversations, {"id": "d", "video": "v.mp4", "turns": 4}, lambda text: failed if "2" in text else "fine"
    )
    assert said.answer == failed and len(said.turns) == 3


def test_messages_hold_the_text_first_unless_the_model_wants_the_video_first(conversations):
    doc, turn = {"id": "d", "video": "v.mp4", "turns": 1}, Turn("text", ["a.mp4", "b.mp4"])
    text, videos = {"type": "text", "text": "text"}, [{"type": "video", "url": f"/clips/{n}.mp4"} for n in "ab"]
    for specific, content in ((None, [text, *videos]), ({"text_first": False}, [*videos, text])):
        assert conversations.messages(doc, turn, specific) == [{"role": "user", "content": content}]


def test_transcripts_of_all_repeats_pass_lmms_eval_as_one_text():
    said = [Transcript([], "a"), Transcript([], NO_CONTENT), Transcript([], "[x] {")]
    responses = [said[0].dump(), None, said[2].dump()]
    [joined] = EveryTranscript().apply([responses], None)
    assert transcripts([joined]) == said
    assert transcripts(EveryTranscript().apply([[]], None)) == [Transcript([], NO_CONTENT)]


def test_a_clip_of_another_sampling_is_another_turn(monkeypatch):
    def described(doc):
        return (yield Turn("Describe the video.", ["a"], once=True))

    of_three, of_four = ({"task": "t", "videos": list(names), "id": names, "video": "a"} for names in ("abc", "abcd"))
    conversations = Conversations(Hooks("mvpbench", "1-A", {}, kind="subtask"), described)

    def asked():
        batch = []
        running = [conversations.start(doc) for doc in (of_three, of_four, of_three)]
        lockstep.run(running, lambda _, turns: batch.extend(place for place, _ in turns) or ["reply"] * len(turns))
        assert {of.transcript().answer for of in running} == {"reply"}
        return batch

    # The videos of a question share its frames.
    assert asked() == [0, 1]
    for name, value in (("FRAMES", "4"), ("CLIPS", "0")):
        monkeypatch.setenv(f"{PREFIX}{name}", value)
        assert asked() == [0]
        monkeypatch.delenv(f"{PREFIX}{name}")
