"""Answers that name a video or an order of videos: hostile ones by family, and the laws that hold for all."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.answers.numbers import read_number, read_ranking
from lmms_eval_tasks.answers.reasoning import strip_reasoning

_SHARED = Path(__file__).parents[3] / "shared" / "cases" / "mvpbench_answers.jsonl"

# By family: answers that pick one of three videos.
_NUMBERS = {
    "what surrounds it": [
        ("The car is in video 3.", 3),
        ("Only 2", 2),
        ("2 only", 2),
        ("👉 2", 2),
        ("The worst video is 3.", None),
        ("least bright: 2", None),
        ("The best option is video 1, the worst option is video 3.", 1),
        ("first or second", None),
        ("Video 1 - a dog\nVideo 2 - a cat\nVideo 3 - a car", None),
    ],
    "bare": [
        ("1", 1),
        ("1.", 1),
        ("(2)", 2),
        ("[3]", 3),
        ("**2**", 2),
        ("#3", 3),
        ("No. 2", 2),
        ("№ 2", 2),
        ("2️⃣", 2),
        ("②", 2),
        ("２", 2),
        ("\\boxed{2}", 2),
        ("$\\boxed{\\text{Video 2}}$", 2),
        ("<answer>2</answer>.", 2),
        ("<|begin_of_box|>2<|end_of_box|>", 2),
        ('{"answer": 2}', 2),
        ('{"answer": "Video 2"}', 2),
        ('{"answer": "2", "reason": "Video 1 is dark."}', 2),
        ("two", 2),
        ("Two.", 2),
        ("One", 1),
        ("second", 2),
        ("Third.", 3),
        ("2nd", 2),
        ("\u200e2\u200f\x00", 2),
    ],
    "named": [
        ("Video 2", 2),
        ("video 2.", 2),
        ("Video2", 2),
        ("**Video 1**", 1),
        ("Video #2", 2),
        ("Video (2)", 2),
        ("Video: 2", 2),
        ("Video-2", 2),
        ("video_2", 2),
        ("Video two", 2),
        ("I choose video two.", 2),
        ("The first video", 1),
        ("the second clip", 2),
        ("The third one.", 3),
        ("2nd video", 2),
        ("Clip 2", 2),
        ("Candidate 3", 3),
        ("option 2", 2),
        ("V2", 2),
        ("Video clip 3", 3),
        ("Video number 3", 3),
        ("第2个视频", 2),
        ("第二个视频", 2),
        ("第二个", 2),
        ("视频三", 3),
        ("视频2", 2),
        ("2号视频", 2),
        ("答案是2", 2),
        ("答案：视频1。", 1),
        ("选2", 2),
        ("Видео 2", 2),
        ("La vidéo 2", 2),
        ("動画2", 2),
    ],
    "concluded": [
        ("Answer: 2", 2),
        ("**Answer:** Video 2", 2),
        ("Final answer: 3", 3),
        ("The answer is 2.", 2),
        ("The answer is two.", 2),
        ("The answer is 2 because video 1 is too dark.", 2),
        ("The correct answer is Video 3, as it shows the same gait.", 3),
        ("The video that best matches the reference is Video 2.", 2),
        ("Ref Video matches Video 2", 2),
        ("The reference video matches Video 2.", 2),
        ("I would choose the second video.", 2),
        ("Video 2 is the correct answer.", 2),
        ("Video 1 shows rain, Video 2 shows heavier rain, so the answer is 2.", 2),
        ("Video 1 is dim, Video 2 is dark. Therefore, Video 3.", 3),
        ("Video 1 is dim and Video 2 is dark.\n\n3", 3),
        ("Step 1: look. Step 2: compare. Final answer: 3", 3),
        ("1. Video 1 shows rain.\n2. Video 2 shows snow.\n3. Video 3 shows fog.\n\nAnswer: 2", 2),
        ("2\n\nVideo 2 has the most rain, while Video 1 and Video 3 have little.", 2),
        ("Video 2. Video 1 is darker.", 2),
        ("3 matches.", 3),
        ("2, because of the rain in 1 of the shots", 2),
        ("The answer is 1. Wait, actually it's 2.", 2),
        ("Video 1. Hmm, no wait, Video 3.", 3),
        ("Video 2 shows the heavier rain.", 2),
        ("Both videos are good, but Video 2 is better.", 2),
    ],
    "denied": [
        ("Neither 1 nor 2; 3 matches.", 3),
        ("Not video 1 but video 3", 3),
        ("Not Video 1.", None),
        ("It is not 2.", None),
        ("Video 1 does not match.", None),
        ("Video 1 and Video 2 do not match. Video 3 does.", 3),
        ("It's not 1, it's 2.", 2),
    ],
    "several": [
        ("Both videos are good", None),
        ("1 and 2", None),
        ("1, 2", None),
        ("1/3", None),
        ("12 or 3", None),
        ("Video 1 or Video 3", None),
        ("Videos 1 and 3", None),
        ("between 1 and 2", None),
        ("It is between Video 1 and Video 2.", None),
        ("1\n2\n3", None),
        ("The first and the third video.", None),
        ("3, 2, 1", None),
        ("1-2", None),
        ("The answer is 1 or 2.", None),
        ("Video 1: rain\nVideo 2: snow\nVideo 3: fog", None),
    ],
    "no video": [
        ("At 0:15 the man falls.", None),
        ("at 0:15", None),
        ("0:15", None),
        ("30 fps", None),
        ("90%", None),
        ("1920x1080", None),
        ("1.5", None),
        ("-1", None),
        ("1,000", None),
        ("In 2 of the 3 videos it rains.", None),
        ("3 candidate videos", None),
        ("There are 3 videos.", None),
        ("two people", None),
        ("Two people walk.", None),
        ("The first 10 seconds", None),
        ("First, I look at the videos.", None),
        ("the reference video", None),
        ("The one with more rain", None),
        ("this one", None),
        ("One of the videos is brighter.", None),
        ("Only one video shows rain.", None),
        ("One can see rain.", None),
        ("A second later it rains.", None),
        ("Step 2", None),
        ("I cannot watch videos.", None),
        ("两个视频都很好", None),
        ("2个人", None),
        ("9" * 5000, None),
        ("", None),
    ],
    "as models write": [
        ("Based on the analysis, Video 2 best matches the reference video.", 2),
        ("Video 3 is the most similar to the reference video in dance style.", 3),
        ("Comparing the three videos, the second video has the best quality. Therefore, the answer is 2.", 2),
        ("The video with the heaviest rain is Video 3.", 3),
        ("Video 1 has the highest brightness, followed by Video 3 and Video 2. The answer: 1", 1),
        ("**Answer: 3**\n\n**Reasoning:** In Video 1, 2 people walk; in Video 2, 3 people.", 3),
        ("The forged video is Video 2.", 2),
        ("Video 2 violates the laws of physics, whereas videos 1 and 3 do not.", 2),
        ("2. Video 2", 2),
        ("Answer: 2 (Video 2)", 2),
        ("Video 2 (the second one)", 2),
        ("The third video is generated by AI.", 3),
        ("I think the first one.", 1),
        ("It's the second one.", 2),
        ("The person in the reference video walks like the person in Video 1.", 1),
        ("Video 1 and Video 2 are real, so the fake one is Video 3.", 3),
        ("I would select Video 2 as the better performance.", 2),
        ("Video 1 is better than Video 2.", 1),
        ("1 is better than 2.", 1),
        ("Score: 8/10", None),
        ("At 00:02, video 2 shows a goal.", 2),
        ("All three videos are the same.", None),
        ("The answer is 3 of 3.", None),
        ("I need 2 more frames.", None),
        ("最终答案：第三个视频", 3),
        ("第一个视频和第二个视频都不对，第三个视频才是正确的。", 3),
        ("The second and third videos are dark. The first video is bright.", None),
        ("Cannot determine.", None),
        ("Video 2 > Video 1", None),
        ("The correct option is 2) Video 2", 2),
        ("Final Answer: Video 2.", 2),
        ("The answer is Video 1, not Video 2.", 1),
        ("None of the 3 videos.", None),
        ("Video 4 does not exist. Video 2.", 2),
        ("The answer is Video 2 or possibly Video 3.", None),
        ("1st", 1),
        ("Video 1st", 1),
        ("two videos", None),
        ("number 2", 2),
        ("There are 3 videos. The answer is the last one.", None),
        ("The best video is 3.", 3),
        ("Video B", None),
        ("Video 2 at 0:15 shows 3 people.", 2),
        ("2 seconds", None),
        ("For the first 10 seconds, video 1 is dark", 1),
        ("The first video is not correct. The second one is.", 2),
        ("The candidate that matches is #2.", 2),
        ("2) Video 2 has more rain", 2),
        ("3. It rains the most.", 3),
        ("It has to be the third video.", 3),
        ("2024", 2024),
        ("$2$", 2),
        ("video 1 & 2", None),
        ("Video 1\nVideo 2", None),
        ("Video 2 is wrong, 3 is right", 3),
        ("Out of 3 videos, video 2", 2),
        ("I rate video 1 with 5 and video 2 with 7", None),
        ("答案是视频2，因为视频1较暗。", 2),
        ("我选择第3个视频", 3),
        ("第3个", 3),
        ("3个视频中，第2个最亮。", 2),
        ("Video 1: No. Video 2: Yes. Video 3: No.", None),
        ("Video 1: Incorrect. Video 2: Correct. Video 3: Incorrect.", 2),
        ("video 2 is better than video 1 and video 3", 2),
        ("The answer is video 1. Let me recheck. The answer is video 3.", 3),
        ("1 video", None),
        ("The second of the three.", None),
        ("Top 1", None),
    ],
    "outside": [("7", 7), ("Video 4", 4), ("0", 0), ("Video 0", 0), ("The answer is 10.", 10), ("第五个视频", 5)],
}


@pytest.mark.parametrize(
    ("answer", "number"), [case for cases in _NUMBERS.values() for case in cases], ids=lambda value: ascii(value)[:60]
)
def test_numbers(answer, number):
    assert read_number(answer, 3) == number


# By family: orders of three videos.
_RANKINGS = {
    "separated": [
        ("3, 2, 1", [3, 2, 1]),
        ("3,2,1", [3, 2, 1]),
        ("3, 2, 1.", [3, 2, 1]),
        ("[3, 1, 2]", [3, 1, 2]),
        ("(3,1,2)", [3, 1, 2]),
        ("312", [3, 1, 2]),
        ("3 1 2", [3, 1, 2]),
        ("3\n1\n2", [3, 1, 2]),
        ("1 -> 3 -> 2", [1, 3, 2]),
        ("1->3->2", [1, 3, 2]),
        ("3→1→2", [3, 1, 2]),
        ("3 > 1 > 2", [3, 1, 2]),
        ("3-1-2", [3, 1, 2]),
        ("3 - 1 - 2", [3, 1, 2]),
        ("3、1、2", [3, 1, 2]),
        ("3，1，2", [3, 1, 2]),
        ("3; 1; 2", [3, 1, 2]),
        ("**3, 1, 2**", [3, 1, 2]),
        ("3, 1, and 2", [3, 1, 2]),
        ("\\boxed{3, 1, 2}", [3, 1, 2]),
        ("\\boxed{[3, 1, 2]}", [3, 1, 2]),
        ('{"answer": [3, 1, 2]}', [3, 1, 2]),
        ('{"order": "3, 1, 2"}', [3, 1, 2]),
        ('["3", "1", "2"]', [3, 1, 2]),
        ("<answer>3, 1, 2</answer>.", [3, 1, 2]),
    ],
    "named": [
        ("Video 3, Video 1, Video 2", [3, 1, 2]),
        ("Video 3 > Video 1 > Video 2", [3, 1, 2]),
        ("Video 3 → Video 1 → Video 2.", [3, 1, 2]),
        ("Video3, Video1, Video2", [3, 1, 2]),
        ("3rd, 1st, 2nd", [3, 1, 2]),
        ("third, first, second", [3, 1, 2]),
        ("three, one, two", [3, 1, 2]),
        ("视频3、视频1、视频2", [3, 1, 2]),
        ("三、一、二", [3, 1, 2]),
        ("三，一，二", [3, 1, 2]),
        ("答案是3, 1, 2", [3, 1, 2]),
        ("正确顺序为：3，1，2。", [3, 1, 2]),
        ("Video 3 is the clearest, followed by Video 1, and then Video 2.", [3, 1, 2]),
    ],
    "listed": [
        ("1. Video 3\n2. Video 1\n3. Video 2", [3, 1, 2]),
        ("1. 3\n2. 1\n3. 2", [3, 1, 2]),
        ("1) Video 3 - sharp\n2) Video 1 - softer\n3) Video 2 - blurred", [3, 1, 2]),
        ("1st place: Video 3\n2nd place: Video 1\n3rd place: Video 2", [3, 1, 2]),
        ("first: 3, second: 1, third: 2", [3, 1, 2]),
        ("First: Video 3\nSecond: Video 1\nThird: Video 2", [3, 1, 2]),
        ("Step 1: Video 3\nStep 2: Video 1\nStep 3: Video 2", [3, 1, 2]),
        ("The correct order is:\n\n1. **Video 3** (sharp)\n2. **Video 1**\n3. **Video 2**", [3, 1, 2]),
        ("1. Video 1\n2. Video 2\n3. Video 3", [1, 2, 3]),
        ("1. Video 1 shows rain.\n2. Video 2 shows snow.\n3. Video 3 shows fog.", None),
        ("1. Video 1: rain.\n2. Video 2: snow.\n3. Video 3: fog.\n\nOrder: 2, 1, 3", [2, 1, 3]),
        ("Video 1: 2nd\nVideo 2: 3rd\nVideo 3: 1st", None),
        ("1. Video 3\n2. Video 1", None),
    ],
    "concluded": [
        ("The correct order is: 2, 1, 3. Step 0 shows chopping.", [2, 1, 3]),
        ("The correct order is 2, 1, 3.", [2, 1, 3]),
        ("The answer is 2, 1, 3 because video 2 comes first.", [2, 1, 3]),
        ("The answer is 213.", [2, 1, 3]),
        ("Order: 2 -> 1 -> 3", [2, 1, 3]),
        ("Ranking from clearest to blurriest: 2, 1, 3", [2, 1, 3]),
        ("3, 1, 2\n\nVideo 3 shows step 1, Video 1 shows step 2, Video 2 shows step 3.", [3, 1, 2]),
        ("Video 2 shows cutting. Video 3 shows frying. Video 1 shows serving.\n\nFinal order: 2, 3, 1", [2, 3, 1]),
        ("Video 2 shows cutting.\n\n2, 3, 1", [2, 3, 1]),
        ("Video 1, Video 2 and Video 3 are given. Order: 3, 1, 2", [3, 1, 2]),
        ("Given videos 1, 2, 3, the order is 3, 1, 2.", [3, 1, 2]),
        ('You asked for a format such as "3, 2, 1". The order is 1, 3, 2.', [1, 3, 2]),
        ("The order is 1, 2, 3. Wait, the order is 2, 1, 3.", [2, 1, 3]),
        ("The order is not 1, 2, 3 but 2, 1, 3.", [2, 1, 3]),
    ],
    "none": [
        ("3, 3, 1", None),
        ("3, 1", None),
        ("3, 1, 2, 1", None),
        ("331", None),
        ("31", None),
        ("3", None),
        ("3, 2, 1 or 1, 2, 3", None),
        ("3, 2, 1\n\n1, 2, 3", None),
        ("Not 3, 2, 1", None),
        ("Video 1, Video 2 and Video 3 are given.", None),
        ("Video 1 and Video 2 and Video 3", None),
        ("The answer is 3, 1.", None),
        ('The answer should be given such as "3, 2, 1".', None),
        ("I cannot watch videos.", None),
        ("", None),
    ],
    "as models write": [
        ("Final ranking: Video 2 > Video 3 > Video 1", [2, 3, 1]),
        ("The clips should be ordered as follows: 2, 3, 1.", [2, 3, 1]),
        ("Clip 2 -> Clip 3 -> Clip 1", [2, 3, 1]),
        ("The correct sequence is [2, 3, 1], because clip 2 shows step 1.", [2, 3, 1]),
        ("Based on the steps: 1. chop (Video 2), 2. fry (Video 3), 3. serve (Video 1). So 2, 3, 1.", [2, 3, 1]),
        ("**2, 3, 1**\n\nExplanation: 1, 2, 3 would be wrong.", [2, 3, 1]),
        ("Ranking: 2 (best), 3, 1 (worst)", None),
        ("First Video 2, then Video 3, and finally Video 1.", [2, 3, 1]),
        ("顺序是：第二个视频、第三个视频、第一个视频", [2, 3, 1]),
        ("视频2 -> 视频3 -> 视频1", [2, 3, 1]),
        ("Order: Video 2 (chopping), Video 3 (frying), Video 1 (serving)", None),
        ("1, 2, 3 are the videos. 2, 3, 1", [2, 3, 1]),
        ("Video 2: 1\nVideo 3: 2\nVideo 1: 3", None),
        ("Answer: 2,3,1\n", [2, 3, 1]),
        ("The ranking from highest to lowest clarity is: Video 2, Video 3, Video 1.", [2, 3, 1]),
        ("- Video 2\n- Video 3\n- Video 1", [2, 3, 1]),
        ("Video 2\nVideo 3\nVideo 1", [2, 3, 1]),
        ("2 = 3 > 1", None),
        ("The order should be 2, 3, 1", [2, 3, 1]),
        ("2nd, 3rd, 1st", [2, 3, 1]),
        (
            "Step 1: Video 2 - chopping\nStep 2: Video 3 - frying\nStep 3: Video 1 - serving\n\nTherefore, the "
            "order is 2, 3, 1.",
            [2, 3, 1],
        ),
        ("So the correct order is Video 2 → Video 3 → Video 1, i.e. 2, 3, 1", [2, 3, 1]),
        ("Order: 2, 3, 1 (not 1, 2, 3)", [2, 3, 1]),
        ("1, 2, 3", [1, 2, 3]),
        ("<2, 3, 1>", [2, 3, 1]),
        ("2/3/1", None),
        ("The ranking is Video 2 first, Video 3 second, Video 1 third.", None),
        ("Video 2 (best), Video 3, Video 1", None),
        ("2, 3, 1, in that order.", [2, 3, 1]),
        ("order = [2, 3, 1]", [2, 3, 1]),
        ("[2, 3, 1]\n[2, 3, 1]", [2, 3, 1]),
        ("Frames 1, 2, 3 show the chop.", None),
        ("At 1, 2, 3 seconds", None),
        ("I choose 2, 3, 1.", [2, 3, 1]),
        ("2,3,1,", [2, 3, 1]),
        ("Clip 2: chop\nClip 3: fry\nClip 1: serve", None),
        ("2 then 3 then 1", [2, 3, 1]),
        ("Video 2 comes first, then Video 3, then Video 1", [2, 3, 1]),
    ],
    "outside": [("4, 2, 1", [4, 2, 1]), ("0, 1, 2", [0, 1, 2]), ("421", [4, 2, 1])],
}


@pytest.mark.parametrize(
    ("answer", "order"), [case for cases in _RANKINGS.values() for case in cases], ids=lambda value: ascii(value)[:60]
)
def test_rankings(answer, order):
    assert read_ranking(answer, 3) == order


def test_rankings_of_other_lengths():
    ten = [10, 2, 1, 3, 4, 5, 6, 7, 8, 9]
    assert read_ranking(", ".join(map(str, ten)), 10) == ten
    assert read_ranking("".join(map(str, ten)), 10) is None
    assert read_ranking("2, 1", 2) == [2, 1]
    assert read_ranking("21", 2) == [2, 1]
    assert read_ranking("1", 0) is None
    assert read_number("1", 0) is None


def _cases():
    return [json.loads(line) for line in _SHARED.read_text("utf-8").splitlines()] if _SHARED.exists() else []


@pytest.mark.parametrize("case", _cases())
def test_shared_cases(case):
    answer = strip_reasoning(case["answer"]).text
    if case["kind"] == "ranking":
        assert read_ranking(answer, case["n_videos"]) == case["expected"]
    else:
        assert read_number(answer, case["n_videos"]) == (case["expected"] or [None])[0]


_PIECES = [
    *"0123 \n.,:;?!()[]{}*#-/>→第一二、\x00\ud800",
    "Video ",
    "video one",
    "first ",
    "1. ",
    "not ",
    "or ",
    "order: ",
]
_TEXT = st.one_of(st.text(), st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))


@settings(deadline=None)  # patterns are compiled on the way
@given(_TEXT, st.integers(0, 12))
def test_any_text_is_read_or_not(answer, candidates):
    number, order = read_number(answer, candidates), read_ranking(answer, candidates)
    assert number is None or number >= 0
    assert order is None or len(set(order)) == len(order) == candidates


_SEPARATORS = [", ", ",", " ", "->", " > ", "、", "→", "\n"]
_SAYINGS = ["{}", "**{}**", "[{}]", "The order is {}.", "Answer: {}", "Videos 1 and 2 are dark.\n\nFinal order: {}"]


@settings(deadline=None)  # patterns are compiled on the way
@given(st.integers(3, 12).flatmap(lambda n: st.permutations(range(1, n + 1))), st.sampled_from(_SEPARATORS), st.data())
def test_what_is_written_is_read(order, separator, data):
    for noun in ("", "Video "):
        answer = data.draw(st.sampled_from(_SAYINGS)).format(separator.join(f"{noun}{number}" for number in order))
        assert read_ranking(answer, len(order)) == order
        assert read_ranking(answer, len(order) + 1) is None
        assert read_number(answer, len(order)) is None


@pytest.mark.parametrize(
    "piece",
    ["1 ", "1, ", "1", "Video ", "Video 1 ", "first ", "(", "1.\n", "1. Video 1\n",
     "-", ">", "第", "一", "no ", "0", "\n",
     "the answer is 1 or ", "first: 1, ", "0:1"],
)  # fmt: skip
def test_a_long_answer_is_read_in_linear_time(piece):
    start = time.process_time()
    read_number(piece * (60_000 // len(piece)), 3)
    read_ranking(piece * (60_000 // len(piece)), 3)
    assert time.process_time() - start < 8  # a quadratic reader takes minutes
