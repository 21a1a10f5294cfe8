import random

import pytest

from lmms_eval_tasks.answers.failures import FAILED, is_failure
from lmms_eval_tasks.dialogue import lockstep
from lmms_eval_tasks.dialogue.program import Running, Turn


def counting(name, length):
    said = []
    for number in range(length):
        said.append((yield Turn(f"{name} {number} {said}")))
    return said[-1]


def echo(turn):
    return f"<{turn.text}>"


class Model:
    """Answers by the prompt alone, and keeps what it was asked in each batch."""

    def __init__(self, fails=lambda turn: False):
        self.batches, self.fails = [], fails

    def __call__(self, step, asked):
        assert step <= len(self.batches)
        self.batches.append([turn.text for _, turn in asked])
        for _, turn in asked:
            if self.fails(turn):
                raise RuntimeError(f"cannot: {turn.text[:3]}")
        return [echo(turn) for _, turn in asked]


def alone(program):
    running = Running(program)
    while running.turn is not None:
        running.reply(echo(running.turn))
    return running.transcript()


def test_conversations_of_any_lengths_say_what_they_say_alone():
    lengths = [random.Random(1).randint(1, 30) for _ in range(50)]
    model = Model()
    running = [Running(counting(f"c{place}", length)) for place, length in enumerate(lengths)]
    lockstep.run(running, model)
    assert [of.transcript() for of in running] == [
        alone(counting(f"c{place}", length)) for place, length in enumerate(lengths)
    ]
    assert [len(batch) for batch in model.batches] == [
        sum(length > step for length in lengths) for step in range(max(lengths))
    ]


def test_nothing_to_run():
    lockstep.run([], Model())


def test_one_conversation_that_fails_costs_no_other():
    model = Model(fails=lambda turn: turn.text.startswith("c1 2"))
    running = [Running(counting(f"c{place}", 5)) for place in range(3)]
    lockstep.run(running, model)
    said = [of.transcript() for of in running]
    assert said[0] == alone(counting("c0", 5)) and said[2] == alone(counting("c2", 5))
    assert len(said[1].turns) == 3 and said[1].answer.startswith(f"{FAILED} RuntimeError: cannot: c1")


def test_a_model_that_dies_later_leaves_what_was_said():
    model = Model(fails=lambda turn: " 3 " in turn.text)
    running = [Running(counting(f"c{place}", 5)) for place in range(3)]
    lockstep.run(running, model)
    assert all(len(of.transcript().turns) == 4 and is_failure(of.transcript().answer) for of in running)


def test_a_model_that_answers_nothing_stops_the_run():
    with pytest.raises(RuntimeError, match="cannot"):
        lockstep.run([Running(counting("a", 2)), Running(counting("b", 2))], Model(fails=lambda turn: True))


def test_a_conversation_that_does_not_end_is_ended_and_has_failed():
    def endless():
        while True:
            yield Turn("Are you done?")

    running = [Running(endless()), Running(counting("a", 3)), Running(counting("b", 4))]
    lockstep.run(running, Model(), most=3)
    said = [of.transcript() for of in running]
    assert [len(of.turns) for of in said] == [3, 3, 3] and said[1] == alone(counting("a", 3))
    assert said[0].answer == said[2].answer == f"{FAILED} the conversation did not end after 3 turns"


def captioned(video, question, once=True):
    caption = yield Turn("caption", [video], once)
    return (yield Turn(f"{caption} {question}"))


def test_equal_turns_are_asked_once_where_they_say_so():
    model = Model()
    running = [Running(captioned(video, place)) for place, video in enumerate("abacab")]
    lockstep.run(running, model)
    assert model.batches[0] == ["caption"] * 3 and len(model.batches[1]) == 6
    assert [of.transcript() for of in running] == [
        alone(captioned(video, place)) for place, video in enumerate("abacab")
    ]


def test_equal_turns_are_asked_each_time_otherwise():
    model = Model()
    lockstep.run([Running(captioned("a", place, once=False)) for place in range(4)], model)
    assert [len(batch) for batch in model.batches] == [4, 4]


def later(steps):
    for step in range(steps):
        yield Turn(f"wait {step} of {steps}")
    return (yield Turn("caption", ["a"], once=True))


def test_a_turn_that_was_asked_in_an_earlier_step_is_not_asked_again():
    model = Model()
    running = [Running(later(0)), Running(later(2))]
    lockstep.run(running, model)
    assert [batch.count("caption") for batch in model.batches] == [1, 0]
    assert running[1].transcript().answer == "<caption>"
