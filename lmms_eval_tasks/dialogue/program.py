"""Conversation programs: generators that ask a model several things in a row.

def described(doc) -> Program:
    caption = yield Turn("Describe the video.", [doc["video"]])
    return (yield Turn(f"{caption} {doc['question']}"))
"""

import json
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from lmms_eval_tasks.answers.failures import FAILED, NO_CONTENT, EveryAnswer, is_failure
from lmms_eval_tasks.answers.reasoning import strip_reasoning
from lmms_eval_tasks.log import logger
from lmms_eval_tasks.media.sampling import Sampling


class Turn(NamedTuple):
    """One request to the model.

    Attributes:
        text: The whole prompt: a model remembers nothing of earlier turns but what stands in it.
        videos: Names of the videos that it is shown, in their order; none for a turn of text alone.
        once: Whether equal turns of other conversations (and repeats) share its reply, which then is asked for once.
        name: What its reply is found by in the transcript, where the program's answer is not all that is scored.
    """

    text: str
    videos: Sequence[str] = ()
    once: bool = False
    name: str = ""


Program = Generator[Turn, str, str]
"""Yields a turn, receives the reply without its reasoning, returns the answer; it asks at least once."""


class Transcript(NamedTuple):
    """What was said in a conversation.

    Attributes:
        turns: ``{"prompt", "videos", "reply"}`` of each turn, the reply as the model wrote it, and its ``name``.
        answer: What the program returned; a text that `is_failure` knows where a turn or the program failed.
    """

    turns: list[dict[str, Any]]
    answer: str

    def dump(self) -> str:
        """The transcript as the JSON object that lmms-eval carries as the model's answer."""
        return json.dumps({"answer": self.answer, "turns": self.turns}, ensure_ascii=True)

    def reply(self, turn: int | str) -> str:
        """The reply to a turn, by its place, from 0, or its name; what failed, where the conversation ended before."""
        for place, said in enumerate(self.turns):
            if turn in (place, said.get("name")):
                return str(said["reply"])
        return self.answer if is_failure(self.answer) else NO_CONTENT

    @classmethod
    def load(cls, text: str) -> "Transcript":
        """Reads what `dump` wrote; another text, such as a failed request, is an answer without turns."""
        try:
            value = json.loads(text)
            turns, answer = list(value["turns"]), value["answer"]
            # A model whose conversation was cut off may write anything in the place of a transcript.
            if all(isinstance(text, str) for text in (answer, *(turn["reply"] for turn in turns))):
                return cls(turns, answer)
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        return cls([], text if is_failure(text) else f"{FAILED} the conversation did not end: {text[:200]}")


class Running:
    """A program under way.

    Attributes:
        turn: The turn that waits for its reply; None after the end.
        sampling: What is sampled from its videos; the same name is another clip under another sampling.
    """

    def __init__(self, program: Program, sampling: Sampling | None = None) -> None:
        """Runs the program up to its first turn."""
        self.sampling = sampling
        self._program = program
        self._turns: list[dict[str, Any]] = []
        self._answer = NO_CONTENT
        self.turn: Turn | None = None
        self._advance(None, "")

    def reply(self, text: str | None) -> None:
        """Gives the waiting turn its reply; a failed request ends the conversation."""
        assert self.turn is not None
        # As lmms-eval's filters see an answer: the next prompt must be a text that every request can hold.
        [[said]] = EveryAnswer().apply([[text]], None)
        turn = self.turn
        self._turns.append({"name": turn.name, "prompt": turn.text, "videos": list(turn.videos), "reply": said})
        self.turn = None
        if is_failure(said):
            self._answer = said
            self._program.close()
        else:
            self._advance(strip_reasoning(said).text, said)

    def stop(self) -> None:
        """Ends the conversation as failed, if it has not ended."""
        if self.turn is not None:
            self.turn = None
            self._answer = f"{FAILED} the conversation did not end after {len(self._turns)} turns"
            self._program.close()

    def transcript(self) -> Transcript:
        """What was said until now."""
        return Transcript(self._turns, self._answer)

    def _advance(self, reply: str | None, said: str) -> None:
        try:
            self.turn = self._program.send(reply) if reply is not None else next(self._program)
        except StopIteration as ended:
            # A reply that is the answer stays as it was written: whether it was cut inside its reasoning is counted.
            self._answer = said if ended.value is reply else str(ended.value)
        except Exception as error:
            logger.error(f"A conversation ended: {type(error).__name__}: {error}")
            self._answer = f"{FAILED} {type(error).__name__}: {error}"
