"""Judging in the background: bounded calls in flight, each verdict asked for once and kept on disk.

    pool().submit(prompt, read, repeat=0, task="mt_video_bench")  ->  Future[Verdict]

`read` turns the judge's text into a JSON-able value, or None when it cannot be read (the judge is asked again). Futures
never raise: what went wrong is the verdict's ``reason``.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tqdm import tqdm

from lmms_eval_tasks import plugin, settings
from lmms_eval_tasks.canonical import digest
from lmms_eval_tasks.judging.client import MAX_TOKENS, CallFailed, Judge, Refused, Unusable
from lmms_eval_tasks.judging.verdicts import Verdict, VerdictStore
from lmms_eval_tasks.log import logger
from lmms_eval_tasks.settings import Settings
from lmms_eval_tasks.text import text_hash

REASKS = 3
CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 40
NO_JUDGE = "no judge is configured"

Read = Callable[[str], Any]


class Pool:
    """The judge calls of this process."""

    def __init__(self, config: Settings) -> None:
        """Reads the verdicts on disk; calls nobody yet.

        Args:
            config: The settings, with or without a judge.
        """
        self.judge = Judge(config) if config.judge_model else None
        self.repeats = config.judge_repeats
        self._submitted = self._cached = self._characters = 0
        self._stopped = "" if self.judge else NO_JUDGE
        self._lock = threading.Lock()
        self._pending: dict[str, Future[Verdict]] = {}
        if self.judge is not None:
            name = digest([self.judge.model, self.judge.endpoint])
            self._store = VerdictStore(config.root / "judgements" / name)
            ranks = int(os.environ.get("WORLD_SIZE", "1"))
            self._executor = ThreadPoolExecutor(max(1, config.judge_concurrency // ranks), "judge")

    def submit(self, prompt: str, read: Read, repeat: int, task: str) -> "Future[Verdict]":
        """Asks the judge in the background, or finds the verdict on disk or in flight.

        Args:
            prompt: The whole prompt.
            read: Turns a reply's text into a JSON-able value, None when it cannot be read.
            repeat: Number of the repeat; equal prompts with equal repeats are asked once.
            task: Name of the task that the usage is counted for.

        Returns:
            A future that ends with a verdict, never with an error.
        """
        if self.judge is None:
            return _done(Verdict(None, reason=NO_JUDGE))
        parameters = [self.judge.model, self.judge.endpoint, self.judge.temperature, MAX_TOKENS]
        key = digest([*parameters, prompt, repeat])
        with self._lock:
            if key in self._pending:
                return self._pending[key]
            known = self._store.get(key)
            if known is not None:
                self._cached += 1
                return _done(known)
            self._submitted += 1
            self._characters += len(prompt)
            future = self._executor.submit(self._verdict, key, prompt, read, task)
            self._pending[key] = future
        future.add_done_callback(lambda _: self._pending.pop(key, None))
        return future

    def describe(self) -> dict[str, Any] | None:
        """The judge as it stands in protocol cards; None without one."""
        if self.judge is None:
            return None
        return {
            "model": self.judge.model,
            "endpoint": self.judge.endpoint,
            "repeats": self.repeats,
            "temperature": self.judge.temperature,
        }

    def wait(self) -> None:
        """Waits until every call has ended, with a progress bar.

        Interrupting it ends judging; what is judged by then is on disk.
        """
        with self._lock:
            waiting = list(self._pending.values())
        if not waiting:
            return
        tokens = round((self._characters / CHARACTERS_PER_TOKEN + self._submitted * REPLY_TOKENS) / 1000)
        logger.info(f"Judging: {self._submitted} calls (about {tokens}k tokens), {self._submitted - len(waiting)} of "
                    f"them done; {self._cached} verdicts were on disk")  # fmt: skip
        quiet = os.environ.get("RANK", "0") != "0"
        try:
            for _ in tqdm(as_completed(waiting), "Judging", len(waiting), disable=quiet):
                pass
        except KeyboardInterrupt:
            self.stop("interrupted")
            raise

    def stop(self, reason: str) -> None:
        """Ends judging: what has not begun stays unjudged, for this reason."""
        self._stopped = self._stopped or reason

    def _verdict(self, key: str, prompt: str, read: Read, task: str) -> Verdict:
        verdict = Verdict(None, prompt=text_hash(prompt))
        assert self.judge is not None
        for _ in range(1 + REASKS):
            if self._stopped:
                return replace(verdict, reason=self._stopped)
            try:
                reply = self.judge.ask(prompt)
            except Unusable as error:
                self._give_up(str(error))
                continue
            except (CallFailed, Refused) as error:
                return replace(verdict, reason=f"{type(error).__name__}: {error}")
            plugin.log_usage(reply.model, task, reply.input_tokens, reply.output_tokens)
            verdict = replace(
                verdict,
                value=read(reply.text),
                model=reply.model,
                input_tokens=verdict.input_tokens + reply.input_tokens,
                output_tokens=verdict.output_tokens + reply.output_tokens,
            )
            if verdict.value is not None:
                self._store.put(key, verdict)
                return verdict
        return replace(verdict, reason=f"unreadable after {1 + REASKS} replies")

    def _give_up(self, reason: str) -> None:
        assert self.judge is not None
        with self._lock:
            if self._stopped:
                return
            self._stopped = f"judge {self.judge.model} is unusable: {reason}"
        logger.error(f"Judging ends: {self._stopped}. Answers are kept; `lmms-eval-tasks score` judges them later")


def _done(verdict: Verdict) -> "Future[Verdict]":
    future: Future[Verdict] = Future()
    future.set_result(verdict)
    return future


def pool() -> Pool:
    """The pool for the current settings; the same one for the same settings."""
    return _pool(settings.load())


@lru_cache(maxsize=4)
def _pool(config: Settings) -> Pool:
    return Pool(config)
