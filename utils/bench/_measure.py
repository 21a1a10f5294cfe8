"""What a piece of work costs, in a fresh process of its own."""

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from utils.openai_server import OpenAIServer


class Cost(NamedTuple):
    """What a piece of work took.

    Attributes:
        seconds: On the clock.
        cpu: CPU seconds, of its child processes too.
        peak_mib: Most memory, in MiB: of the process, plus of the largest of its children.
        result: What it returned.
    """

    seconds: float
    cpu: float
    peak_mib: float
    result: Any


def cost(work: Callable[..., Any], *arguments: Any) -> Cost:
    """Does a piece of work in a fresh process; its imports count as memory, not as time, if it has made them.

    Args:
        work: A function of a module, whose result can be pickled.
        arguments: What it is called with.

    Raises:
        RuntimeError: It failed; the reason is on standard error.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_do, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    try:
        measured: Cost = ours.recv()
    except EOFError:
        raise RuntimeError(f"{work.__name__} failed") from None
    finally:
        process.join()
    return measured


def spent(work: Callable[..., Any], *arguments: Any) -> Cost:
    """Does a piece of work in this process; its peak is the process's."""
    began, cpu = time.perf_counter(), _cpu()
    result = work(*arguments)
    seconds, cpu = time.perf_counter() - began, _cpu() - cpu
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return Cost(seconds, cpu, _own_peak_mib() + children, result)


def shown(figures: Mapping[str, float]) -> dict[str, float]:
    """Prints figures; returns them rounded."""
    for name, value in figures.items():
        print(f"{name:24} {value:8.2f}")
    return {name: round(value, 3) for name, value in figures.items()}


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for a while, also for the processes that start in it."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


class Served(NamedTuple):
    """A model and judge that runs.

    Attributes:
        url: Its base URL.
        requests: Tells how many chat requests it has got.
    """

    url: str
    requests: Callable[[], int]


@contextmanager
def serving(latency: float) -> Iterator[Served]:
    """A local model and judge in a process of its own.

    Args:
        latency: Seconds before each of its replies.

    Yields:
        Where it listens.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, latency))
    process.start()

    def requests() -> int:
        ours.send("requests")
        number: int = ours.recv()
        return number

    try:
        yield Served(ours.recv(), requests)
    finally:
        ours.send(None)
        process.join()


def _serve(pipe: Connection, latency: float) -> None:
    with OpenAIServer(latency=latency) as server:
        pipe.send(server.url)
        while pipe.recv() is not None:
            pipe.send(len(server.requests))


def _do(pipe: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    pipe.send(spent(work, *arguments))


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _own_peak_mib() -> float:
    # Unlike ru_maxrss, this does not start from the parent's.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
