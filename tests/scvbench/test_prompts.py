import pytest

from lmms_eval_tasks.scvbench import prompts

HISTORY = [{"question": "Who's there?", "answer": 'A "dog"\nwith a {hat}.'}, {"question": "Where?", "answer": "Home"}]
OPTIONS = ["In {story}", "Out", "Up", "Down", "Away"]

# The protocol, byte for byte: a change here is a change of the task's version.
CHOICE = (
    "What {came} first?\nA. In {story}\nB. Out\nC. Up\nD. Down\nE. Away\n"
    "Respond with only the letter (A, B, C, D, or E) of the correct option"
)
FQA = (
    "Select the best answer to the following multiple-choice question based on the video and the historical "
    "conversations\n" + CHOICE
)
INSTRUCTION = (
    "Select the best answer to the following multiple-choice question based on the video and the given story, as well "
    "as the historical conversations."
)
LINES = "[\"User: Who's there?\", 'Assistant: A \"dog\"\\nwith a {hat}.', 'User: Where?', 'Assistant: Home']"
PQA = f"{INSTRUCTION}\nConversation history:\n{LINES}\nCurrent question:\n{CHOICE}"
WITH_STORY = (
    f"{INSTRUCTION}\nStory:\nOnce {{upon}} a time.\nConversation history:\n{LINES}\nCurrent question:\n{CHOICE}"
)
SUB_QUESTION = (
    "Answer the question based on the video and the historical conversations.\n"
    "Conversation history:\n[]\nCurrent question:\nWho's {there}?"
)
EVENTS = """\
You are the event extraction agent of a team that works out the story of a video. Below is a question about the video \
with its answer.

Question: Who's there?
Answer: A "dog"
with a {hat}.

Think step by step about what the question asks and what the answer tells. If both tell of one event, say what it is: \
who does what, and where and when. If they tell of several, put them in the order in which they happen in the video. \
Add nothing that neither question nor answer says.

Reply with the events alone, one a line, numbered in their temporal order."""
STORY = """\
You are the story-centric reasoning agent of a team that works out the story of a video. Below are questions about the \
video, each with its answer and with the events that were extracted from the two. They stand in no particular order.

Question 1: Who's there?
Answer 1: A "dog"
with a {hat}.
Events 1:
1. {answer}

Question 2: Where?
Answer 2: Home
Events 2:
1. Home.
2. Bed.

Infer the logical order of all these events: which one leads to another, and which must come before another. Then \
write the story of the video as one coherent text that tells the events in this order.

Reply with the story alone."""


def test_final_question_without_history():
    assert prompts.fqa("What {came} first?", OPTIONS) == FQA


def test_final_question_with_history():
    assert prompts.pqa("What {came} first?", OPTIONS, HISTORY) == PQA
    assert "Conversation history:\n[]\nCurrent question:\n" in prompts.pqa("?", OPTIONS, [])


def test_final_question_with_history_and_story():
    assert prompts.pqa("What {came} first?", OPTIONS, HISTORY, "Once {upon} a time.") == WITH_STORY


def test_sub_question():
    assert prompts.sub_question("Who's {there}?", []) == SUB_QUESTION
    assert f"\nConversation history:\n{LINES}\nCurrent question:\nWhy?" in prompts.sub_question("Why?", HISTORY)


def test_event_extraction():
    assert prompts.events(HISTORY[0]) == EVENTS


def test_story():
    assert prompts.story(HISTORY, ["1. {answer}", "1. Home.\n2. Bed."]) == STORY


@pytest.mark.parametrize(
    "number, letters", [(2, "A or B"), (3, "A, B, or C"), (4, "A, B, C, or D"), (6, "A, B, C, D, E, or F")]
)
def test_letters_are_those_of_the_options(number, letters):
    options = list(map(str, range(number)))
    for prompt in (prompts.fqa("?", options), prompts.pqa("?", options, [])):
        assert prompt.endswith(f"Respond with only the letter ({letters}) of the correct option")
        assert f"\n{'ABCDEF'[number - 1]}. {number - 1}\nRespond" in prompt


@pytest.mark.parametrize("text", ["{question}", "{history}", "\\1", "%s", "{0}", "\x00", "\u202e", "}{", "\\g<0>"])
def test_any_text_stands_as_it_is(text):
    turn = {"question": text, "answer": text}
    assert f"\n{text}\nA. {text}\nB. b\n" in prompts.fqa(text, [text, "b"])
    assert f"Current question:\n{text}\nA. {text}\nB. b\n" in prompts.pqa(text, [text, "b"], [turn], text)
    assert f"Story:\n{text}\nConversation" in prompts.pqa(text, [text, "b"], [turn], text)
    assert f"Question: {text}\nAnswer: {text}\n" in prompts.events(turn)
    assert f"Question 1: {text}\nAnswer 1: {text}\nEvents 1:\n{text}\n" in prompts.story([turn], [text])


def test_a_story_of_nothing_is_still_a_story():
    assert "Story:\n\nConversation history:" in prompts.pqa("?", OPTIONS, HISTORY, "")
