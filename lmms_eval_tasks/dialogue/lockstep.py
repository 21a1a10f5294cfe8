"""Running conversations in lock step: turn k of all of them is one batch, then turn k+1.

run([Running(program(doc)) for doc in docs], ask)    # ask(step, [(place, turn), …]) -> replies
"""

from collections.abc import Callable, Sequence

from lmms_eval_tasks.answers.failures import FAILED
from lmms_eval_tasks.dialogue.program import Running, Turn
from lmms_eval_tasks.log import logger
from lmms_eval_tasks.media.sampling import Sampling

Asked = Sequence[tuple[int, Turn]]
Ask = Callable[[int, Asked], Sequence[str | None]]
"""From a step and its turns, each with its conversation's place, to the replies in the same order."""
_Key = tuple[str, tuple[str, ...], Sampling | None]


def run(conversations: Sequence[Running], ask: Ask, most: int = 1000) -> None:
    """Runs conversations to their ends.

    Args:
        conversations: Programs under way, of one task.
        ask: Asks the model. Where it raises, each turn is asked alone, and those that raise again have failed.
        most: Turns of a conversation; one that would go on has failed.

    Raises:
        Exception: What ``ask`` raised, where no turn of the first step could be asked.
    """
    known: dict[_Key, str | None] = {}
    step = 0
    while waiting := [(place, of.turn) for place, of in enumerate(conversations) if of.turn is not None]:
        keys = {place: _key(conversations[place], turn) for place, turn in waiting if turn.once}
        first = {key: place for place, key in reversed(keys.items())}
        asked = [
            (place, turn)
            for place, turn in waiting
            if not turn.once or (first[keys[place]] == place and keys[place] not in known)
        ]
        replies = dict(zip([place for place, _ in asked], _replies(ask, step, asked), strict=True))
        known |= {keys[place]: replies[place] for place, turn in asked if turn.once}
        for place, _ in waiting:
            conversations[place].reply(replies[place] if place in replies else known[keys[place]])
        step += 1
        if step == most:
            for place, _ in waiting:
                conversations[place].stop()


def _key(of: Running, turn: Turn) -> _Key:
    return turn.text, tuple(turn.videos), of.sampling if turn.videos else None


def _replies(ask: Ask, step: int, asked: Asked) -> Sequence[str | None]:
    if not asked:
        return []
    try:
        return ask(step, asked)
    except Exception as error:
        logger.error(f"Turn {step + 1} of {len(asked)} conversations failed ({error}); each is asked alone")
        replies = [_alone(ask, step, one) for one in asked]
        if step == 0 and all(isinstance(reply, Exception) for reply in replies):
            raise
        return [
            f"{FAILED} {type(reply).__name__}: {reply}" if isinstance(reply, Exception) else reply for reply in replies
        ]


def _alone(ask: Ask, step: int, one: tuple[int, Turn]) -> str | Exception | None:
    try:
        return ask(step, [one])[0]
    except Exception as error:
        return error
