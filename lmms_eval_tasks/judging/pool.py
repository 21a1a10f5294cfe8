"""Judging in the background: bounded calls in flight, each verdict asked for once and kept on disk.

    pool().submit(prompt, read, repeat=0, task="mt_video_bench")  ->  Future[Verdict]

`read` turns the judge's text into a JSON-able value, or None when it cannot be read (the judge is asked again). Futures
never raise: what went wrong is the verdict's ``reason``.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, as_completed
from dataclasses import replace
from functools import lru_cache, partial
from queue import SimpleQueue
from typing import Any

from tqdm import tqdm

from lmms_eval_tasks import plugin, settings
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.judging.client import MAX_TOKENS, CallFailed, Judge, NoReply, Refused, Unusable
from lmms_eval_tasks.judging.verdicts import Verdict, VerdictStore
from lmms_eval_tasks.log import logger
from lmms_eval_tasks.settings import Settings
from lmms_eval_tasks.text import digest, text_hash

REASKS = 3
SILENCE = 20
"""Calls in a row without any reply, after the SDK's retries, that end judging: each may take several timeouts."""
OUTAGE = 600
"""Seconds without any reply that a judge may take before that: a short outage does not end a night's judging."""

CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 40
NO_JUDGE = "no judge is configured"
INTERRUPTED = "interrupted"

Read = Callable[[str], Any]


class _Workers:
    """Threads that an exiting interpreter does not wait for, as it would for an executor's."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._threads = 0
        self._queue: SimpleQueue[tuple[Future[Verdict], Callable[[], Verdict]]] = SimpleQueue()

    def submit(self, call: Callable[[], Verdict]) -> "Future[Verdict]":
        """Queues a call that does not raise; not safe for several threads."""
        future: Future[Verdict] = Future()
        self._queue.put((future, call))
        if self._threads < self._limit:
            self._threads += 1
            threading.Thread(target=self._work, name=f"judge-{self._threads}", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            future, call = self._queue.get()
            future.set_result(call())


class Pool:
    """The judge calls of this process."""

    def __init__(self, config: Settings) -> None:
        """Reads the verdicts on disk; calls nobody yet.

        Args:
            config: The settings, with or without a judge.
        """
        self.judge, self._no_judge = _judge(config)
        self.repeats = config.judge_repeats
        self._submitted = self._cached = self._characters = 0
        self._stopped = ""
        self._silent, self._heard = 0, 0.0
        self._lock = threading.Lock()
        self._pending: dict[str, Future[Verdict]] = {}
        if self.judge is not None:
            name = digest([self.judge.model, self.judge.endpoint])
            self._store = VerdictStore(config.root / "judgements" / name)
            self._workers = _Workers(max(1, config.judge_concurrency // _ranks()))

    def submit(self, prompt: str, read: Read, repeat: int, task: str, kind: str = "") -> "Future[Verdict]":
        """Asks the judge in the background, or finds the verdict on disk or in flight.

        Args:
            prompt: The whole prompt.
            read: Turns a reply's text into a JSON-able value, None when it cannot be read.
            repeat: Number of the repeat; equal prompts with equal repeats are asked once.
            task: Name of the task that the usage is counted for.
            kind: Tells apart what ``read`` makes of one reply, where equal prompts are read in several ways.

        Returns:
            A future that ends with a verdict, never with an error.
        """
        if self.judge is None:
            return _done(Verdict(None, reason=self._no_judge))
        parameters = [self.judge.model, self.judge.endpoint, self.judge.temperature, MAX_TOKENS]
        key = digest([*parameters, prompt, repeat, *filter(None, [kind])])
        with self._lock:
            if self._stopped == INTERRUPTED:
                # Whoever submits now has begun anew.
                self._stopped = ""
            if key in self._pending:
                return self._pending[key]
            known = self._store.get(key)
            if known is not None:
                self._cached += 1
                return _done(known)
            self._submitted += 1
            self._characters += len(prompt)
            future = self._workers.submit(partial(self._verdict, key, prompt, read, task))
            self._pending[key] = future
        future.add_done_callback(lambda _: self._pending.pop(key, None))
        return future

    def forget(self) -> None:
        """Asks for everything again, whatever is on disk."""
        if self.judge is not None:
            self._store.forget()

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
        """Waits until every call has ended, with a progress bar; what is submitted later is a new attempt.

        Interrupting it ends judging; what is judged by then is on disk.
        """
        with self._lock:
            waiting = list(self._pending.values())
        if waiting:
            self._announce(len(waiting))
        quiet = not waiting or os.environ.get("RANK", "0") != "0"
        try:
            for _ in tqdm(as_completed(waiting), "Judging", len(waiting), disable=quiet):
                pass
        except KeyboardInterrupt:
            self.stop(INTERRUPTED)
            raise
        self._submitted = self._cached = self._characters = self._silent = 0
        self._stopped = ""

    def stop(self, reason: str) -> None:
        """Ends judging: what has not begun stays unjudged, for this reason."""
        self._stopped = self._stopped or reason

    def _announce(self, waiting: int) -> None:
        tokens = round((self._characters / CHARACTERS_PER_TOKEN + self._submitted * REPLY_TOKENS) / 1000)
        logger.info(f"Judging: {self._submitted} calls (about {tokens}k tokens), {self._submitted - waiting} of them "
                    f"done; {self._cached} verdicts were on disk")  # fmt: skip

    def _verdict(self, key: str, prompt: str, read: Read, task: str) -> Verdict:
        try:
            return self._asked(key, prompt, read, task)
        except Exception as error:
            # A fault of a reader, say: it costs this verdict, never the run.
            return Verdict(None, reason=f"{type(error).__name__}: {error}"[:300])

    def _asked(self, key: str, prompt: str, read: Read, task: str) -> Verdict:
        verdict = Verdict(None, prompt=text_hash(prompt))
        assert self.judge is not None
        for _ in range(1 + REASKS):
            if self._stopped:
                return replace(verdict, reason=self._stopped)
            try:
                reply = self.judge.ask(prompt)
            except Unusable as error:
                return replace(verdict, reason=self._give_up(str(error)))
            except NoReply as error:
                return replace(verdict, reason=self._unanswered(error))
            except (CallFailed, Refused) as error:
                self._silent = 0
                return replace(verdict, reason=f"{type(error).__name__}: {error}")
            self._silent = 0
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

    def _unanswered(self, error: NoReply) -> str:
        with self._lock:
            if not self._silent:
                self._heard = time.monotonic()
            self._silent += 1
            ends = self._silent >= SILENCE and time.monotonic() - self._heard >= OUTAGE
        if ends:
            self._give_up(f"no reply to {SILENCE} calls in a row ({error})")
        return f"CallFailed: {error}"

    def _give_up(self, reason: str) -> str:
        assert self.judge is not None
        with self._lock:
            first = not self._stopped
            if first:
                self._stopped = f"judge {self.judge.model} is unusable: {reason}"
        if first:
            logger.error(f"Judging ends: {self._stopped}. Answers are kept; `lmms-eval-tasks score` judges them later")
        return self._stopped


def _ranks() -> int:
    """How many processes share this run."""
    size = os.environ.get("WORLD_SIZE", "")
    return int(size) if size.isdecimal() and int(size) else 1


def _judge(config: Settings) -> tuple[Judge | None, str]:
    """The judge of the settings, or why there is none: after generation that is no reason to stop."""
    if not config.judge_model:
        return None, NO_JUDGE
    try:
        return Judge(config), ""
    except PackError as error:
        logger.error(f"There is no judge: {error}")
        return None, str(error)


def _done(verdict: Verdict) -> "Future[Verdict]":
    future: Future[Verdict] = Future()
    future.set_result(verdict)
    return future


_pool_lock = threading.Lock()


def pool() -> Pool:
    """The pool for the current settings; the same one for the same settings."""
    # lmms-eval's threads come here at once, and `lru_cache` alone would give each of them a pool of its own.
    with _pool_lock:
        return _pool(settings.load())


@lru_cache(maxsize=4)
def _pool(config: Settings) -> Pool:
    return Pool(config)
