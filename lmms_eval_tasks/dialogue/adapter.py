"""Any conversation program on lmms-eval's output type ``generate_until_agentic``.

_own = Conversations(_hooks, _own_answers)          # in a room's task.py; `_own_answers(doc)` is the program
doc_to_text_self, doc_to_visual_self = _own.doc_to_text, _own.doc_to_visual
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import plugin, settings
from lmms_eval_tasks.answers.failures import EveryAnswer
from lmms_eval_tasks.dialogue.program import Program, Running, Transcript, Turn
from lmms_eval_tasks.hooks import Hooks, Specific
from lmms_eval_tasks.media.sampling import Sampling
from lmms_eval_tasks.releases import videos_of

# What lmms-eval expects after a reply: visuals, text, whether it ends, all outputs, the state of the round.
_Step = tuple[list[str] | None, str | None, bool, list[str] | None, None]


class EveryTranscript:
    """The filter of conversation tasks: all repeats as one text, the only thing that lmms-eval takes from them."""

    def apply(self, responses: Iterable[Sequence[Any]], docs: object) -> list[str]:
        """Joins each request's transcripts; `transcripts` reads them.

        Args:
            responses: Per request, one response per repeat.
            docs: Unused; part of lmms-eval's filter interface.
        """
        return [json.dumps(of) for of in EveryAnswer().apply(responses, docs)]


def transcripts(results: Sequence[str]) -> list[Transcript]:
    """What lmms-eval hands `process_results`, one transcript for each repeat."""
    [joined] = results
    return list(map(Transcript.load, json.loads(joined)))


class Conversations:
    """The hooks of one task whose docs are conversations."""

    def __init__(self, hooks: Hooks, program: Callable[[Mapping[str, Any]], Program]) -> None:
        """Runs nothing yet.

        Args:
            hooks: Those of the room.
            program: Starts the program of a doc.
        """
        self._hooks, self._program = hooks, program

    def start(self, doc: Mapping[str, Any], specific: Specific = None) -> Running:
        """The conversation of a doc, at its first turn."""
        config = settings.load()
        sampling = Sampling.of(specific, config, len(videos_of(doc))) if config.clips else None
        return Running(self._program(doc), sampling)

    def doc_to_text(
        self,
        doc: Mapping[str, Any],
        lmms_eval_specific_kwargs: Specific = None,
        previous_output: Sequence[str] | None = None,
        round_idx: int | None = None,
        previous_round_info: object = None,
    ) -> str | _Step:
        """The first prompt; after replies, what follows them.

        lmms-eval calls it after each reply where conversations do not run in lock step: the program is replayed over
        the replies so far, so that nothing is kept between calls.
        """
        running = self.start(doc, lmms_eval_specific_kwargs)
        if previous_output is None:
            plugin.run_in_lock_step()
            self._hooks.asked(doc, lmms_eval_specific_kwargs)
            return running.turn.text if running.turn else ""
        for reply in previous_output:
            running.reply(reply)
        if running.turn is None:
            return None, None, True, [running.transcript().dump()], None
        return self.clips(doc, running.turn, lmms_eval_specific_kwargs), running.turn.text, False, None, None

    def doc_to_visual(self, doc: Mapping[str, Any], lmms_eval_specific_kwargs: Specific = None) -> list[str]:
        """The clips of the first turn."""
        turn = self.start(doc, lmms_eval_specific_kwargs).turn
        return self.clips(doc, turn, lmms_eval_specific_kwargs) if turn else []

    def clips(self, doc: Mapping[str, Any], turn: Turn, specific: Specific) -> list[str]:
        """The clips of a turn, with as many frames as each has where the doc's videos are shown together."""
        return self._hooks.clips(doc, specific, turn.videos)

    def messages(self, doc: Mapping[str, Any], turn: Turn, specific: Specific) -> list[dict[str, Any]]:
        """A turn as chat messages, as the room's other tasks build them."""
        return self._hooks.messages(turn.text, self.clips(doc, turn, specific), specific)
