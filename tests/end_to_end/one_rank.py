"""One process of a torchrun run of tasks; rank 0 writes results and items to the file that it is given.

torchrun --nproc_per_node N one_rank.py TASKS RELEASE RESULTS.json [LIMIT]

TASKS are separated by commas; RELEASE is the sample release of MT-Video-Bench.
"""

import json
import os
import sys
import traceback
from pathlib import Path

import torch
from lmms_eval.api.model import lmms
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks import TaskManager

from lmms_eval_tasks.benchmarks import FOLDER, tasks
from lmms_eval_tasks.results.items import flat
from utils.openai_server import rule_based
from utils.sample_release import sample_answers
from utils.sample_release.mlvu import mlvu_reply, mlvu_sample_answers
from utils.sample_release.mvpbench import played
from utils.sample_release.mvpbench import sample_answers as mvpbench_sample_answers
from utils.sample_release.scvbench import scvbench_reply, scvbench_sample_answers


class ScriptedModel(lmms):
    """Answers by the messages alone, as every rank would."""

    is_simple = False

    def __init__(self, release):
        super().__init__()
        self._replies = {
            "mt_video_bench": rule_based(sample_answers(release)),
            "mvpbench": played(mvpbench_sample_answers()),
            "mlvu": mlvu_reply(mlvu_sample_answers()),
            "scvbench": scvbench_reply(scvbench_sample_answers()),
        }
        self._rank, self._world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cpu")

    def generate_until(self, requests):
        return list(map(self._answer, requests))

    def _answer(self, request):
        _, doc_to_messages, _, doc_id, task, split = request.args
        messages = doc_to_messages(self.task_dict[task][split][doc_id])
        answer = self._replies[tasks()[task].benchmark]({"messages": messages}, 0)
        # Else the judge would be asked the same about an answer of both, twice where another rank has it.
        return f"{answer} That is all." if task == "mt_video_bench_self" else answer

    def loglikelihood(self, requests):
        raise AssertionError("not asked for")

    def generate_until_multi_round(self, requests):
        raise AssertionError("not asked for")


def items_of(results, task):
    """The items under the task's main metric."""
    main = results["configs"][task]["metric_list"][0]["metric"]
    return list(flat(sample[main] for sample in results["samples"][task]))


def main():
    names, release, output, *limit = sys.argv[1:]
    torch.distributed.init_process_group("gloo")
    try:
        results = simple_evaluate(
            model=ScriptedModel(Path(release)),
            tasks=names.split(","),
            task_manager=TaskManager(include_path=str(FOLDER), include_defaults=False),
            bootstrap_iters=0,
            distributed_executor_backend="torchrun",
            limit=int(limit[0]) if limit else None,
        )
    except Exception:
        # As lmms-eval's command line does: the process then ends with status 0.
        traceback.print_exc()
        return
    if results:
        items = {task: items_of(results, task) for task in results["samples"]}
        Path(output).write_text(json.dumps({"results": results["results"], "items": items}))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
