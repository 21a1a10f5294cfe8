import pytest

from lmms_eval_tasks.dialogue.program import Running, Turn
from lmms_eval_tasks.mvpbench import prompts, single
from lmms_eval_tasks.mvpbench.metrics import SUBTASKS


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("7", 7.0),
        ("7.8", 7.8),
        ("**7.8**", 7.8),
        ("Score: 7.8", 7.8),
        ("Score: 7.8/10", 7.8),
        ("8 out of 10.", 8.0),
        ("10", 10.0),
        ("10/10", 10.0),
        ("0", 0.0),
        ("The video has 3 divers in it. Score: 6.5", 6.5),
        ("I would rate this video 6.", 6.0),
        ("I give it a 4, as 4 is fair.", 4.0),
        ("Score:8", 8.0),
        ("7 of 10", 7.0),
        ("On a scale from 0 to 10, I would give it a 7.", 7.0),
        ("I'd rate it 8 on a 0-10 scale.", 8.0),
        ("9.5\n\nThe diver enters at 45 degrees.", 9.5),
        ("", None),
        ("Good.", None),
        ("11", None),
        ("between 6 and 7", None),
        ("Score: 6. No, score: 7.", None),
        ("6-7", None),
        ("The score is between 6 and 7", None),
        ("Score: 6 or 7", None),
        ("7\n\nScore: 8", None),
        ("0 to 10", None),
        (".5", None),
        ("0:15", None),
        ("1,000", None),
        ("v2", None),
    ],
)
def test_a_score_is_read_or_not(reply, expected):
    assert single.read_score(reply) == expected


@pytest.mark.parametrize(
    ("subtask", "given", "reference", "expected"),
    [
        ("weather", [2, 9.5, 4], False, "2"),
        ("weather", [9.5, 2, 9.5], False, ""),
        ("weather", [2, 2, 9.5], False, "3"),
        ("daily_action", [7.8, 7.8], False, ""),
        ("clarity", [2, 9, 4], False, "2, 3, 1"),
        ("clarity", [2, 9, 9], False, ""),
        ("caption_free_splicing", [5, 0, 9, 7], False, "2, 1, 4, 3"),
        ("caption_guided_splicing", [1, 2, 3], False, "1, 2, 3"),
        ("gait", [5, 9, 4, 1], True, "2"),
        ("gait", [5, 4, 6, 1], True, ""),
        ("gait", [7.1, 7.3, 6.9, 1], True, ""),
        ("dance_style", [5, 5], True, "1"),
        ("weather", [2, None, 4], False, ""),
    ],
)
def test_scores_give_an_answer_unless_equal_ones_leave_it_open(subtask, given, reference, expected):
    assert single.choice(subtask, given, reference) == expected


def played(program, reply):
    running, asked = Running(program), []
    while running.turn is not None:
        asked.append(running.turn)
        running.reply(reply(running.turn))
    return asked, running.transcript().answer


DOC = {
    "subtask": "multiview_pairing",
    "query": "Ref Video: <video> Compare Video 1: <video>Video 2: <video> and answer.",
    "videos": ["m/r.mp4", "m/a.mp4", "m/b.mp4"],
    "reference": True,
}


def test_captions_stand_where_the_videos_stood():
    asked, answer = played(
        single.captions(DOC), lambda turn: f"shows {turn.videos[0]}" if turn.videos else "<think>2?</think>2"
    )
    assert asked[:3] == [Turn(prompts.CAPTION, [name], once=True) for name in DOC["videos"]]
    assert asked[3:] == [
        Turn('Ref Video: "shows m/r.mp4"  Compare Video 1: "shows m/a.mp4" Video 2: "shows m/b.mp4"  and answer.')
    ]
    assert answer == "<think>2?</think>2"


def test_each_video_is_scored_alone_and_the_nearest_to_the_reference_is_the_answer():
    scores = {"m/r.mp4": "5", "m/a.mp4": "Score: 9", "m/b.mp4": "<think>1</think>6/10"}
    asked, answer = played(single.scores(DOC), lambda turn: scores[turn.videos[0]])
    assert [turn.videos for turn in asked] == [[name] for name in DOC["videos"]]
    assert len({turn.text for turn in asked}) == 1 and all(turn.once for turn in asked)
    assert answer == "2"


def test_every_subtask_has_a_quality_of_its_own_kind():
    assert set(prompts.QUALITIES) == set(SUBTASKS)


def test_a_recipe_is_told_where_there_is_one():
    query = "Sort. Video 1: <video> Recipe Description: Step 0: Chop. Step 1: Fry. Please determine and provide it."
    assert "this recipe: Step 0: Chop. Step 1: Fry." in prompts.score("caption_guided_splicing", query)
    assert "Please determine" not in prompts.score("caption_guided_splicing", query)
    assert "recipe" not in prompts.score("weather", "Video 1: <video>")
