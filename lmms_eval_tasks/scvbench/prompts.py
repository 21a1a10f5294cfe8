"""Prompts of SCVBench: the paper's (section 5.1) for final questions, our own wording for what it does not print."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from lmms_eval_tasks.text import fill

_HISTORY = "\nConversation history:\n{history}\nCurrent question:\n{question}"
_CHOICE = "\n{options}\nRespond with only the letter ({letters}) of the correct option"

_WITH_HISTORY = (
    "Select the best answer to the following multiple-choice question based on the video and the given story, as well "
    "as the historical conversations."
)

FQA = (
    "Select the best answer to the following multiple-choice question based on the video and the historical "
    "conversations\n{question}" + _CHOICE
)

PQA = _WITH_HISTORY + _HISTORY + _CHOICE

PQA_WITH_STORY = _WITH_HISTORY + "\nStory:\n{story}" + _HISTORY + _CHOICE

SUB_QUESTION = "Answer the question based on the video and the historical conversations." + _HISTORY

EVENTS = """\
You are the event extraction agent of a team that works out the story of a video. Below is a question about the video \
with its answer.

Question: {question}
Answer: {answer}

Think step by step about what the question asks and what the answer tells. If both tell of one event, say what it is: \
who does what, and where and when. If they tell of several, put them in the order in which they happen in the video. \
Add nothing that neither question nor answer says.

Reply with the events alone, one a line, numbered in their temporal order."""

STORY = """\
You are the story-centric reasoning agent of a team that works out the story of a video. Below are questions about the \
video, each with its answer and with the events that were extracted from the two. They stand in no particular order.

{events}

Infer the logical order of all these events: which one leads to another, and which must come before another. Then \
write the story of the video as one coherent text that tells the events in this order.

Reply with the story alone."""

_EVENTS_OF = """\
Question {number}: {question}
Answer {number}: {answer}
Events {number}:
{events}"""

History = Sequence[Mapping[str, str]]
"""Earlier turns, ``{"question", "answer"}`` each."""


def fqa(question: str, options: Sequence[str]) -> str:
    """The prompt of a final question without history.

    Args:
        question: The final question.
        options: The texts of its options, which become A, B, … in their order.
    """
    return fill(FQA, question=question, **_choice(options))


def pqa(question: str, options: Sequence[str], history: History, story: str | None = None) -> str:
    """The prompt of a final question with history, and with the story where one was written.

    Args:
        question: The final question.
        options: The texts of its options, which become A, B, … in their order.
        history: The sub-questions with their answers.
        story: What the story-centric reasoning agent wrote.
    """
    template = PQA if story is None else PQA_WITH_STORY
    return fill(template, question=question, history=_lines(history), story=story, **_choice(options))


def sub_question(question: str, history: History) -> str:
    """The prompt of a sub-question.

    Args:
        question: The sub-question.
        history: The earlier ones with their answers.
    """
    return fill(SUB_QUESTION, question=question, history=_lines(history))


def events(turn: Mapping[str, str]) -> str:
    """The event extraction agent's second tier: from a sub-question and its answer to events (paper, section 4)."""
    return fill(EVENTS, **turn)


def story(history: History, extracted: Sequence[str]) -> str:
    """The story-centric reasoning agent's first layer: from all events to the story (paper, section 4).

    Args:
        history: The sub-questions with their answers.
        extracted: The events of each.
    """
    parts = [
        fill(_EVENTS_OF, number=number, events=of, **turn)
        for number, (turn, of) in enumerate(zip(history, extracted, strict=True), start=1)
    ]
    return fill(STORY, events="\n\n".join(parts))


def _lines(history: History) -> str:
    """The history as a Python list of strings, as in MT-Video-Bench."""
    return str([line for turn in history for line in (f"User: {turn['question']}", f"Assistant: {turn['answer']}")])


def _choice(options: Sequence[str]) -> dict[str, str]:
    letters = ascii_uppercase[: len(options)]
    comma = "," if len(letters) > 2 else ""  # noqa: PLR2004
    return {
        "options": "\n".join(f"{letter}. {text}" for letter, text in zip(letters, options, strict=True)),
        "letters": f"{', '.join(letters[:-1])}{comma} or {letters[-1]}",
    }
