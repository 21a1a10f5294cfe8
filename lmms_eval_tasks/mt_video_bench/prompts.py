"""Prompt texts of MT-Video-Bench (paper, Figures 15 to 17)."""

from collections.abc import Mapping, Sequence

from lmms_eval_tasks.judging.marks import between_marks
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


# For checklists of another length than the paper's, where it prints "four".
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

CHECKLIST = """\
You are an expert QA evaluator. Your goal is to create a verification checklist to evaluate if a model's answer \
matches the Ground Truth.

Input Data
1. User Question: {question}
2. Ground Truth Answer: {answer}

Task Instructions (Atomic Decomposition & Fact Reversal)
1. Decompose GT: Break down the Ground Truth into atomic facts (e.g., specific entities, actions, counts, colors, \
spatial relations).
2. Select & Mix Strategy: Select {number} critical facts. You must generate a mix of "Yes" and "No" verification \
questions:
- Positive Questions (Expected Answer: Yes): verify facts exactly as they appear in the GT.
- Negative/Reversal Questions (Expected Answer: No): Take a fact from the GT and intentionally reverse or alter it \
(e.g., change "5 apples" to "3 apples", or "red car" to "blue car").
3. Formulate Questions:
- Questions must be specific and check for the presence of the specific detail stated in the question.

Constraints
- Generate exactly {number} questions (Q1-Q{number}).
- Try to include only one "No" question (based on reversed facts) and {positive} "Yes" questions.
- Do NOT use the phrase "ground truth" in the questions.
- Questions must be self-contained and concrete.

Reply with a JSON object alone, with each question and its expected answer: {form}"""

CORRECTION = """\
{checklist}

This checklist was refused:
{draft}

What is wrong with it:
{faults}
Write the whole checklist again, without these faults."""


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
        answer=between_marks(answer),
        checklist="\n".join(f"Q{number}: {question}" for number, question in zip(numbers, questions, strict=True)),
        form="{" + ", ".join(f'"A{number}": "Yes" or "No"' for number in numbers) + "}",
    )


def checklist(question: str, answer: str, number: int) -> str:
    """The prompt that makes the checklist of a turn.

    Args:
        question: The turn's question.
        answer: Its reference answer.
        number: How many questions are asked for; one of them expects No.
    """
    positive = number - 1
    return fill(
        CHECKLIST,
        question=question,
        answer=answer,
        number=number,
        positive=_NUMBERS[positive] if positive < len(_NUMBERS) else positive,
        form="{" + ", ".join(f'"Q{k}": "…", "A{k}": "Yes" or "No"' for k in range(1, number + 1)) + "}",
    )


def correction(checklist: str, draft: str, faults: Sequence[str]) -> str:
    """The prompt that asks for a checklist again.

    Args:
        checklist: The prompt of `checklist`.
        draft: What came.
        faults: What is wrong with it.
    """
    return fill(CORRECTION, checklist=checklist, draft=draft, faults="\n".join(f"- {fault}" for fault in faults))
