"""Making clips before they are asked for: all of them on request, or those of coming docs while the model works.

The threads here only wait: the work is done by one process for each clip, which ends with this one and shares nothing
with a parent that has CUDA open.
"""

import queue
import re
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media import clips, shelf
from lmms_eval_tasks.media.sampling import Sampling

Job = tuple[Path, Sampling]
Source = Path | Callable[[], Path]
"""A video, or what brings it when its turn comes."""

_Job = TypeVar("_Job", bound=Hashable)


def make_all(jobs: Iterable[Job], workers: int | None = None, progress: bool = True) -> list[str]:
    """Makes all clips that are not there yet.

    Args:
        jobs: Videos and samplings; repetitions count once.
        workers: How many are made at a time; by default half as many as there are cores.
        progress: Show a bar on standard error.

    Returns:
        What failed: one text for each, which names the file, why, and what to do.
    """
    distinct = list(dict.fromkeys(jobs))
    workers = workers or max(1, clips.cores() // 2)
    threads = max(1, clips.cores() // workers)
    failures = {}
    with ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(clips.ensure, *job, threads): job for job in distinct}
        try:
            for done in tqdm(as_completed(waiting), total=len(waiting), desc="clips", disable=not progress):
                if isinstance(error := done.exception(), PackError):
                    failures[waiting[done]] = str(error)
                else:
                    done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [failures[job] for job in distinct if job in failures]


def shard(jobs: Iterable[_Job], part: str) -> list[_Job]:
    """The share of the work that one node of a job array does.

    Args:
        jobs: All jobs, in the same order on every node.
        part: ``"I/N"``, I from 1 to N.

    Raises:
        PackError: ``part`` is something else.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", part)
    number, of = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= of:
        raise PackError(f"--shard {part}: I/N is needed, with I from 1 to N, such as 2/8")
    return list(dict.fromkeys(jobs))[number - 1 :: of]


class Prefetch:
    """Makes clips in the background, in order, until it is stopped or the process ends."""

    def __init__(self, jobs: Iterable[tuple[Source, Sampling]], workers: int) -> None:
        """Starts at once; nothing is raised or printed: who asks for a clip that failed gets the error then."""
        self._jobs: queue.SimpleQueue[tuple[Source, Sampling]] = queue.SimpleQueue()
        for job in dict.fromkeys(jobs):
            self._jobs.put(job)
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begins no further clip."""
        self._stopped.set()

    def wait(self) -> None:
        """Waits for all clips."""
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while not self._stopped.is_set() and _has_room():
            try:
                source, sampling = self._jobs.get_nowait()
            except queue.Empty:
                return
            try:
                clips.ensure(source if isinstance(source, Path) else source(), sampling, threads=1)
            except Exception:
                continue


def prefetch(jobs: Sequence[tuple[Source, Sampling]], workers: int | None = None, ranks: int = 1) -> Prefetch | None:
    """Makes the clips of coming docs in the background.

    Args:
        jobs: Videos and samplings in this rank's order.
        workers: Processes at a time; by default a quarter of the cores, shared by the ranks of this machine.
        ranks: Processes of this run on this machine.

    Returns:
        What is running, or None with the setting ``CLIPS=0``.
    """
    if not settings.load().clips:
        return None
    return Prefetch(jobs, workers or max(1, min(8, clips.cores() // 4 // ranks)))


def _has_room() -> bool:
    # Running ahead into a full cache would push out clips before they are used.
    options = settings.load()
    return shelf.size(clips.folder(options.root)) < options.clip_cache_gb * 1e9
