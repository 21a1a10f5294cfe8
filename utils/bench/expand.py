"""From the prepared dataset to requests: 1,000 dialogues, 5,887 evaluated turns, as MT-Video-Bench has.

lmms-eval's own loading of a task and building of requests, each in a fresh process with an empty cache of datasets; the
imports, and lmms-eval's index of the tasks, count as memory, not as time:

- stock: a task of as many docs, each a question and an answer, whose hooks do nothing;
- ours: the task, its check before the run included;
- the first figures: what ours takes more than the stock task before it (the median of three).
"""

import random
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from lmms_eval_tasks.benchmarks import FOLDER
from lmms_eval_tasks.settings import PREFIX
from utils.bench._dialogues import ANSWER_WORDS, QUESTION_WORDS, prepare_dialogues, words
from utils.bench._measure import Cost, cost, environment, shown, spent

DIALOGUES = 1000
TURNS = 5887
REPEATS = 3
_STOCK = """\
task: stock
dataset_path: {data}
test_split: test
output_type: generate_until
doc_to_text: !function utils.bench.expand.nothing
doc_to_visual: !function utils.bench.expand.no_video
doc_to_target: answer
process_results: !function utils.bench.expand.nothing
metric_list:
  - metric: nothing
    aggregation: !function utils.bench.expand.nothing
    higher_is_better: true
"""


def run() -> dict[str, float]:
    """Measures and prints; returns the figures."""
    pairs: list[tuple[Cost, Cost]] = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        with environment({f"{PREFIX}HOME": f"{scratch}/home", "HF_HOME": f"{scratch}/hf"}):
            cost(prepare_dialogues, scratch / "release", DIALOGUES, TURNS)
            cost(make_stock, scratch / "stock", TURNS)
            for number in range(REPEATS):
                with environment({"HF_HOME": f"{scratch}/hf_{number}"}):
                    tasks = (("stock", scratch / "stock"), ("mt_video_bench", FOLDER))
                    pairs.append(tuple(cost(build, *of).result for of in tasks))
    assert {of.result for pair in pairs for of in pair} == {TURNS}, "other numbers of requests"
    figures = {
        "seconds": median(ours.seconds - stock.seconds for stock, ours in pairs),
        "peak_mib": median(ours.peak_mib - stock.peak_mib for stock, ours in pairs),
        "cpu_seconds": median(ours.cpu - stock.cpu for stock, ours in pairs),
    }
    for name, of in zip(("stock", "ours"), zip(*pairs, strict=True), strict=True):
        figures[f"{name}_seconds"] = median(each.seconds for each in of)
        figures[f"{name}_peak_mib"] = median(each.peak_mib for each in of)
    return shown(figures)


def build(task: str, folder: Path) -> Cost:
    """Loads a task and builds its requests; the result is their number."""
    from lmms_eval.tasks import TaskManager, get_task_dict

    manager = TaskManager(include_path=str(folder), include_defaults=False, model_name="openai")

    def requests() -> int:
        loaded = get_task_dict([task], manager, "chat")[task]
        loaded.build_all_requests()
        return len(loaded.instances)

    return spent(requests)


def make_stock(folder: Path, rows: int) -> None:
    """Writes a dataset of questions and answers, and a task that asks them."""
    from datasets import Dataset

    dice = random.Random(rows)
    pairs = [{"question": words(dice, QUESTION_WORDS), "answer": words(dice, ANSWER_WORDS)} for _ in range(rows)]
    (folder / "data").mkdir(parents=True)
    Dataset.from_list(pairs).to_parquet(folder / "data" / "test.parquet")
    (folder / "stock.yaml").write_text(_STOCK.format(data=folder / "data"), "utf-8")


def nothing(*_: Any) -> str:
    """A hook that does nothing."""
    return ""


def no_video(_doc: Any) -> list[str]:
    """A doc without a video."""
    return []
