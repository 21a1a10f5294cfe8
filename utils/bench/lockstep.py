"""24 conversations of 6 turns with a server that takes 200 ms for each reply.

All through lmms-eval's `openai` backend with ``num_concurrent=24``; the turns are text alone, so that the waiting is
measured, not the encoding of frames. The server is a process of its own:

- stock: lmms-eval's own loop, one request at a time;
- ours: turn k of all conversations together (the best of three, as the first one opens the connections);
- ideal: 6 times the latency.
"""

import inspect
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lmms_eval_tasks import plugin
from lmms_eval_tasks.dialogue.adapter import Conversations
from lmms_eval_tasks.dialogue.program import Program, Turn
from lmms_eval_tasks.hooks import Hooks
from lmms_eval_tasks.settings import PREFIX
from utils.bench._measure import serving

CONVERSATIONS = 24
TURNS = 6
LATENCY = 0.2
REPEATS = 3


def run() -> dict[str, float]:
    """Measures and prints; returns the figures."""
    from lmms_eval import evaluator
    from lmms_eval.models.chat.openai import OpenAICompatible

    with tempfile.TemporaryDirectory() as scratch, serving(LATENCY) as server:
        os.environ[f"{PREFIX}HOME"] = scratch
        lm = OpenAICompatible(model_version="model", base_url=server.url, api_key="none", num_concurrent=CONVERSATIONS)
        lm.task_dict = {"bench": {"test": [{"id": str(k), "videos": []} for k in range(CONVERSATIONS)]}}
        plugin.run_in_lock_step()
        together = evaluator._run_generate_until_agentic
        ours, said = min(_seconds(lm, together) for _ in range(REPEATS))
        stock, same = _seconds(lm, inspect.unwrap(together))
    assert said == same, "the transcripts differ"
    figures = {
        "stock_over_ours": stock / ours,
        "ours_over_ideal": ours / (TURNS * LATENCY),
        "stock_seconds": stock,
        "ours_seconds": ours,
        "ideal_seconds": TURNS * LATENCY,
    }
    for name, value in figures.items():
        print(f"{name:24} {value:8.2f}")
    return {name: round(value, 3) for name, value in figures.items()}


def _questions(doc: Mapping[str, Any]) -> Program:
    said: list[str] = []
    for number in range(TURNS):
        said.append((yield Turn(f"{doc['id']}: question {number} after {said}")))
    return said[-1]


def _seconds(lm: Any, conversations: Callable[..., list[str]]) -> tuple[float, list[str]]:
    """Runs the conversations; returns how long they took, and what was said in them."""
    from lmms_eval.api.instance import Instance

    hooks = Conversations(Hooks("mt_video_bench", "0-A", {}, kind="ability"), _questions)
    doc_to_text = partial(hooks.doc_to_text, lmms_eval_specific_kwargs=None)
    requests = [
        Instance(
            "generate_until_agentic",
            (
                hooks.start(doc).turn.text,
                {"max_new_tokens": 64},
                hooks.doc_to_visual,
                doc_to_text,
                place,
                "bench",
                "test",
            ),
            idx=0,
            metadata={"task": "bench", "doc_id": place, "repeats": 1},
        )
        for place, doc in enumerate(lm.task_dict["bench"]["test"])
    ]
    began = time.perf_counter()
    said = conversations(lm, requests)
    return time.perf_counter() - began, said
