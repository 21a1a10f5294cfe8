"""One process of a torchrun run of a task; rank 0 writes results and items to the file that it is given.

torchrun --nproc_per_node N one_rank.py TASK ANSWERS.json RESULTS.json [LIMIT]
"""

import json
import os
import sys
from pathlib import Path

import torch
from lmms_eval.api.model import lmms
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks import TaskManager

from lmms_eval_tasks.benchmarks import FOLDER
from lmms_eval_tasks.results.items import flat


class ScriptedModel(lmms):
    """Answers by question, as every rank would."""

    is_simple = False

    def __init__(self, answers):
        super().__init__()
        self._answers = answers
        self._rank, self._world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cpu")

    def generate_until(self, requests):
        for request in requests:
            _, doc_to_messages, _, doc_id, task, split = request.args
            doc_to_messages(self.task_dict[task][split][doc_id])
        return [self._answers.get(request.args[0].rpartition("question:\n")[2], "vague") for request in requests]

    def loglikelihood(self, requests):
        raise AssertionError("not asked for")

    def generate_until_multi_round(self, requests):
        raise AssertionError("not asked for")


def main():
    task, answers, output, *limit = sys.argv[1:]
    torch.distributed.init_process_group("gloo")
    results = simple_evaluate(
        model=ScriptedModel(json.loads(Path(answers).read_text())),
        tasks=[task],
        task_manager=TaskManager(include_path=str(FOLDER), include_defaults=False),
        bootstrap_iters=0,
        distributed_executor_backend="torchrun",
        limit=int(limit[0]) if limit else None,
    )
    if results:
        items = list(flat(sample["overall"] for sample in results["samples"][task]))
        Path(output).write_text(json.dumps({"results": results["results"], "items": items}))


if __name__ == "__main__":
    main()
