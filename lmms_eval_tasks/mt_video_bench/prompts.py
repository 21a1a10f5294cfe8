"""Prompt texts of MT-Video-Bench (paper, Figures 15 and 17)."""

from collections.abc import Mapping, Sequence

from lmms_eval_tasks.text import fill

SYSTEM = "You're an AI assistant helping to answer questions about a video. Use the conversation history if helpful."

INFERENCE = SYSTEM + "\nConversation history:\n{history}\nCurrent question:\n{question}"

JUDGE = """\
Given a current model-generated answer and a checklist of {number} questions, output whether the model has correctly \
addressed the above questions. Output 'Yes' or 'No'.

1. Model Answer:
{answer}

2. Checklist:
{checklist}

Reply with a JSON object alone, with one key for each question: {form}"""


def inference(history: Sequence[Mapping[str, str]], question: str) -> str:
    """The prompt of a turn, with the history as the authors' script prints it: a Python list of strings.

    Args:
        history: Earlier turns, ``{"question", "answer"}`` each.
        question: The current question.
    """
    lines = [line for turn in history for line in (f"User: {turn['question']}", f"Assistant: {turn['answer']}")]
    return fill(INFERENCE, history=str(lines), question=question)


def judge(answer: str, questions: Sequence[str]) -> str:
    """The judge's prompt for one answer; it never sees the expected answers.

    Args:
        answer: The model's answer, without its reasoning.
        questions: The checklist's questions, in order.
    """
    numbers = range(1, len(questions) + 1)
    return fill(
        JUDGE,
        number=len(questions),
        answer=answer,
        checklist="\n".join(f"Q{number}: {question}" for number, question in zip(numbers, questions, strict=True)),
        form="{" + ", ".join(f'"A{number}": "Yes" or "No"' for number in numbers) + "}",
    )
