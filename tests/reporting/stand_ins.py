"""Items of made-up runs, as their rooms' hooks would leave them."""

import random

from lmms_eval_tasks.mlvu import metrics as mlvu
from lmms_eval_tasks.mt_video_bench import metrics as mt
from lmms_eval_tasks.mvpbench import metrics as mvp

CARD = {"version": "1-A", "prompts": {}, "sampling": {"clips": True}, "dataset": "f00d", "judge": None, "questions": 0}
JUDGE = {"model": "test-judge", "endpoint": "http://127.0.0.1:9/v1", "repeats": 1, "temperature": None}


def dialogues(seed, videos=12, of_video=6, skill=0.6, scored=0.95, task="mt_video_bench"):
    """MT-Video-Bench: which videos and dialogues there are depends on nothing but the numbers, scores on the seed."""
    plan, dice = random.Random(0), random.Random(seed)
    items = []
    for video in range(videos):
        seconds, ease = plan.uniform(200, 1500), plan.uniform(-0.3, 0.3)
        for event in range(plan.randint(1, of_video)):
            ability, turns = plan.choice(mt.ABILITIES), plan.randint(5, 8)
            dialogue = f"{ability}/video_{video}/{event}"
            scenes = plan.choice([None, 3, 8, 15, 40])
            for turn in range(2, turns + 1):
                item = {"id": f"{dialogue}/{turn}", "task": task, "video": f"video_{video}", "dialogue": dialogue,
                        "ability": ability, "turn": turn, "turns": turns, "seconds": seconds, "scenes": scenes,
                        "checklist": [{"question": f"Is it {n}?", "expected": "yes"} for n in range(5)],
                        "answers": [f"answer {dice.random()}"], "status": "unjudged", "skipped": [],
                        "version": "1-A", "card": {**CARD, "task": task, "judge": JUDGE}}  # fmt: skip
                if dice.random() < scored:
                    words = [("no", "yes")[dice.random() < skill + ease] for _ in range(5)]
                    item |= {"status": "scored", "verdicts": [[words]], "score": 20.0 * words.count("yes")}
                items.append(item)
    return items


def comparisons(seed, each=8, skill=0.5):
    """MVPBench."""
    plan, dice = random.Random(0), random.Random(seed)
    items = []
    for subtask in mvp.SUBTASKS:
        for number in range(each):
            candidates = plan.randint(2, 4)
            gold = [*range(1, candidates + 1)] if subtask in mvp.RANKINGS else [plan.randint(1, candidates)]
            item = {"id": f"{subtask}/{number}", "task": "mvpbench", "video": f"clip_{plan.randrange(40)}",
                    "subtask": subtask, "candidates": candidates, "gold": gold, "seconds": 10.0, "answers": ["1"],
                    "chance": mvp.chance_level(subtask, candidates), "status": "unjudged", "skipped": [],
                    "version": "1-A", "card": {**CARD, "task": "mvpbench"}}  # fmt: skip
            if dice.random() < 0.9:
                item |= {"status": "scored", "score": 100.0 * (dice.random() < skill), "first": dice.random(),
                         "choices": [gold]}  # fmt: skip
            items.append(item)
    return items


def questions(seed, task="mlvu_mc_dev", each=12, skill=0.5):
    """MLVU, multiple choice or generation."""
    plan, dice = random.Random(0), random.Random(seed)
    kinds = mlvu.GENERATION if "gen" in task else (*mlvu.MULTIPLE_CHOICE, *mlvu.EXTRA)
    items = []
    for category in kinds:
        for number in range(each):
            item = {"id": f"{category}/{number}", "task": task, "video": f"video_{plan.randrange(30)}",
                    "category": category, "seconds": plan.choice([None, 100.0, 400.0, 900.0, 5000.0]),
                    "candidates": ["a", "b"], "answers": ["A"], "status": "scored", "skipped": [],
                    "version": "1-A", "card": {**CARD, "task": task}}  # fmt: skip
            if "gen" in task:
                names = [grade for of, grade in mlvu.GRADES.values() if of == category]
                item["verdicts"] = [[{name: dice.randint(1, 5) for name in names} for _ in range(2)]]
                item["score"] = mlvu.total(item["verdicts"])
            else:
                item["score"] = 100.0 * (dice.random() < skill)
            items.append(item)
    return items


def films(seed, task="scvbench_pqa", number=60, skill=0.5):
    """SCVBench; the request without history failed in some."""
    plan, dice = random.Random(0), random.Random(seed)
    items = []
    for place in range(number):
        item = {"id": f"film_{place % 40}/{place}", "task": task, "video": f"film_{place % 40}", "question": "?",
                "sub_questions": plan.randint(3, 5), "seconds": plan.choice([None, 400.0, 800.0, 1500.0]),
                "answers": ["A"], "choices": ["A"], "status": "scored", "score": 100.0 * (dice.random() < skill),
                "skipped": [], "version": "1-A", "card": {**CARD, "task": task}}  # fmt: skip
        if "pqa" in task:
            failed = dice.random() < 0.1
            item["without_history"] = {"answers": []} if failed else {"score": 100.0 * (dice.random() < skill)}
        items.append(item)
    return items


RUNS = {
    "dialogues": ("mt_video_bench", dialogues),
    "comparisons": ("mvpbench", comparisons),
    "choices": ("mlvu", questions),
    "films": ("scvbench", films),
    "films without history": ("scvbench", lambda seed: films(seed, "scvbench_fqa")),
    "generation": ("mlvu", lambda seed: questions(seed, "mlvu_gen_dev")),
}
