"""Prompt texts of MLVU: the authors' for multiple choice, our own wording of their rubrics for the judge."""

from collections.abc import Sequence
from string import ascii_uppercase

from lmms_eval_tasks.judging.marks import between_marks
from lmms_eval_tasks.text import fill

MULTIPLE_CHOICE = """\
Question: {question}
Options:
{options}
Only give the best option.
Best option: ("""

SUB_SCENE_CAPTIONING = """\
You grade an answer to a question about one scene of a long video. You do not see the video: go by the scoring points, \
which are true and say what a complete answer mentions.

Question:
{question}

Scoring points:
{points}

{answer}

Grade two things.

1. Accuracy. Give each of the {number} scoring points a grade:
   5: the answer addresses the point;
   3: the answer says something related to the point that is not entirely correct;
   1: the answer misses the point.
   Accuracy is the mean of these grades, a number from 1 to 5 that need not be whole.
2. Relevance, a whole number from 1 to 5. It is about keeping to the question; whether the answer is correct does not \
count:
   5: the answer is about what was asked from beginning to end;
   4: it is mostly about what was asked, and sure of it;
   3: it addresses what was asked, but leaves doubt whether it means the same scene;
   2: much of it has nothing to do with what was asked;
   1: it is off the topic.

First write your reasons: the grade of each point, then those for the relevance. Then end your reply with this JSON \
object, with your numbers in it, and write nothing after it:
{"accuracy": <number>, "relevance": <whole number>}"""

VIDEO_SUMMARIZATION = """\
You grade a summary of a long video. You do not see the video: go by the reference summary, which is true.

Reference summary:
{reference}

{answer}

Grade two things, each with a whole number from 1 to 5.

1. Completeness: how many of the reference's key points the answer covers.
   5: all of them; 4: most; 3: about half; 2: a few; 1: hardly any.
2. Reliability: whether what the answer says agrees with the reference.
   5: no error and no contradiction; 4: one slip; 3: a few slips, or one error; 2: an error in something central; \
1: several errors and contradictions.
   A detail that the reference does not mention, and that does not conflict with it, costs nothing.

First write your reasons. Then end your reply with this JSON object, with your numbers in it, and write nothing after \
it:
{"completeness": <whole number>, "reliability": <whole number>}"""


def multiple_choice(question: str, candidates: Sequence[str]) -> str:
    """The prompt of a multiple-choice question, as the authors' script writes it.

    The authors begin the model's own turn with ``Best Option: (``; a user's message can only suggest it.

    Args:
        question: The question.
        candidates: The texts of the options, which become (A), (B), … in their order.
    """
    options = "\n".join(f"({letter}) {text}" for letter, text in zip(ascii_uppercase, candidates, strict=False))
    return fill(MULTIPLE_CHOICE, question=question, options=options.rstrip())


def sub_scene_captioning(question: str, points: Sequence[str], answer: str) -> str:
    """The judge's prompt for a sub-scene caption (paper, appendix G.3: accuracy and relevance).

    Args:
        question: The question.
        points: The scoring points, which the judge sees in place of a reference.
        answer: The model's answer, without its reasoning.
    """
    numbered = "\n".join(f"{number}. {point}" for number, point in enumerate(points, start=1))
    return fill(
        SUB_SCENE_CAPTIONING, question=question, points=numbered, number=len(points), answer=between_marks(answer)
    )


def video_summarization(reference: str, answer: str) -> str:
    """The judge's prompt for a video summary (paper, appendix G.3: completeness and reliability).

    Args:
        reference: The annotators' summary.
        answer: The model's answer, without its reasoning.
    """
    return fill(VIDEO_SUMMARIZATION, reference=reference, answer=between_marks(answer))
