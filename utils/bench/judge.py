"""Judging 400 answers by a judge that takes 200 ms for each reply, and judging them again.

The answers are turns of MT-Video-Bench, of the paper's lengths. lmms-eval's own post-processing hands them to
``process_results``, in 4 threads as is its default. Each run is a fresh process, which asks the judge once before its
clock starts: in ours, that is the check before a run. The judge is a process of its own:

- stock: ``process_results`` waits for lmms-eval's own judge client, as lmms-eval's judged tasks do;
- ours: the task's own hooks with 32 calls in flight, until all metrics are there (the median of three);
- second run: the last of them once more, with the same answers;
- ideal: 400 calls, 32 at a time.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval_tasks import canonical, checks, settings
from lmms_eval_tasks.hooks import coverage
from lmms_eval_tasks.judging.replies import read_checklist
from lmms_eval_tasks.mt_video_bench import metrics, prompts, task
from lmms_eval_tasks.results.items import mean
from lmms_eval_tasks.settings import PREFIX
from utils.bench._dialogues import prepare_dialogues
from utils.bench._measure import Cost, cost, environment, serving, shown, spent

CALLS = 400
DIALOGUES = 68
LATENCY = 0.2
IN_FLIGHT = 32
REPEATS = 3
# lmms-eval's default of --process_docs_parallel.
THREADS = 4
# Calls of the check before a run.
CHECKS = 1

Doc = Mapping[str, Any]


def run() -> dict[str, float]:
    """Measures and prints; returns the figures."""
    with tempfile.TemporaryDirectory() as scratch, serving(LATENCY) as judge:
        shared = {
            "HF_HOME": f"{scratch}/hf",
            "OPENAI_API_URL": judge.url,
            "OPENAI_API_KEY": "none",
            f"{PREFIX}HOME": f"{scratch}/home",
            f"{PREFIX}DATA_MT_VIDEO_BENCH": f"{scratch}/home/datasets/mt_video_bench",
            f"{PREFIX}JUDGE_MODEL": "judge",
            f"{PREFIX}JUDGE_CONCURRENCY": str(IN_FLIGHT),
            f"{PREFIX}JUDGE_REPEATS": "1",
        }
        with environment(shared):
            cost(prepare_dialogues, Path(scratch) / "release", DIALOGUES, CALLS)
            stock: Cost = cost(ask_stock).result
            ours: list[Cost] = []
            for number in range(REPEATS):
                with environment({f"{PREFIX}HOME": f"{scratch}/run_{number}"}):
                    ours.append(cost(ask_ours).result)
                    before = judge.requests()
                    again: Cost = cost(ask_ours).result
                    asked = judge.requests() - before - CHECKS
    assert {of.result for of in (stock, *ours, again)} == {stock.result}, "the scores differ"
    middle = sorted(ours)[REPEATS // 2]
    ideal = CALLS * LATENCY / IN_FLIGHT
    return shown(
        {
            "stock_over_ours": stock.seconds / middle.seconds,
            "ours_over_ideal": middle.seconds / ideal,
            "second_run_calls": asked,
            "stock_seconds": stock.seconds,
            "ours_seconds": middle.seconds,
            "ideal_seconds": ideal,
            "second_run_seconds": again.seconds,
            "stock_cpu_seconds": stock.cpu,
            "ours_cpu_seconds": middle.cpu,
        }
    )


def ask_stock() -> Cost:
    """Judges all answers within ``process_results``; the result is their mean score."""
    from lmms_eval.llm_judge.protocol import Request, ServerConfig
    from lmms_eval.llm_judge.providers.openai import OpenAIProvider

    client = OpenAIProvider(ServerConfig(settings.load().judge_model))

    def ask(prompt: str) -> str:
        reply: str = client.evaluate(Request([{"role": "user", "content": prompt}])).content
        return reply

    def process_results(doc: Doc) -> float:
        checks = doc["checklist"]
        questions, expected = ([check[key] for check in checks] for key in ("question", "expected"))
        verdict = read_checklist(ask(prompts.judge(doc["reference"], questions)), len(questions))
        return metrics.answer_score(expected, [verdict])

    docs, post_processed = _docs(), _post_processing()
    ask("Reply with the word Yes.")
    return spent(lambda: mean(post_processed(process_results, docs)))


def ask_ours() -> Cost:
    """Judges all answers by the task's own hooks; the result is their mean score."""

    def judge() -> float:
        found = post_processed(lambda doc: task.process_results(doc, [doc["reference"]]), docs)
        by_metric = defaultdict(list)
        for of in found:
            for metric, item in of.items():
                by_metric[metric].append(item)
        for metric, part in by_metric.items():
            (coverage if metric == "coverage" else task.score)(part)
        return mean(item["score"] for item in by_metric["overall"])

    docs, post_processed = _docs(), _post_processing()
    checks.before_run(["mt_video_bench"], checks.Conditions())
    return spent(judge)


def _docs() -> list[Doc]:
    return list(task.process_docs(canonical.opened("mt_video_bench").rows()))


def _post_processing() -> Callable[[Callable[[Doc], Any], Iterable[Doc]], list[Any]]:
    """How lmms-eval calls ``process_results`` for all docs."""
    from lmms_eval.evaluator import _thread_map_ordered

    return partial(_thread_map_ordered, max_workers=THREADS)
