"""What the plugin adds to a start of lmms-eval: its import, its registration, and the index of its tasks.

A start is the import of lmms-eval's command line and the index of all tasks, in a fresh process that has imported
torch, transformers and datasets before its clock starts:

- stock: the plugin's entry point gives nothing, as if it were not installed;
- ours: with the plugin;
- added: what ours takes more than the stock start before it (the median of five, of starts that vary by more);
- own: what of ours is spent in the plugin (the median).
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata
from statistics import median
from typing import Any

from utils.bench._measure import Cost, cost, shown, spent

REPEATS = 5


def run() -> dict[str, float]:
    """Measures and prints; returns the figures."""
    pairs = [(cost(start, False).result, cost(start, True).result) for _ in range(REPEATS)]
    return shown(
        {
            "added_seconds": median(ours.seconds - stock.seconds for stock, ours in pairs),
            "own_seconds": median(ours.result[0] for _, ours in pairs),
            "added_cpu_seconds": median(ours.cpu - stock.cpu for stock, ours in pairs),
            "own_cpu_seconds": median(ours.result[1] for _, ours in pairs),
            "stock_seconds": median(stock.seconds for stock, _ in pairs),
            "ours_seconds": median(ours.seconds for _, ours in pairs),
        }
    )


def start(with_plugin: bool) -> Cost:
    """Starts lmms-eval until it knows its tasks.

    Returns:
        Its cost; the result is what of it the plugin spent: ``(seconds, CPU seconds)``.
    """
    for library in ("torch", "transformers", "datasets"):
        import_module(library)
    own: list[tuple[float, float]] = []

    def timed(work: Callable[..., Any], sign: int = 1) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            done = spent(partial(work, *arguments, **named))
            own.append((sign * done.seconds, sign * done.cpu))
            return done.result

        return call

    def load(entry: metadata.EntryPoint) -> Any:
        if entry.module != "lmms_eval_tasks.plugin":
            return loaded(entry)
        if not with_plugin:
            return list
        register = timed(loaded)(entry)
        plugin = import_module(entry.module)
        index = plugin._with_our_tasks
        # What lmms-eval does for its own tasks within it is not ours, nor what it imports by itself a little later.
        import_module("lmms_eval.tasks")
        plugin._with_our_tasks = timed(lambda original, *of, **named: index(timed(original, -1), *of, **named))
        return timed(register)

    def until_tasks() -> tuple[float, ...]:
        import_module("lmms_eval.__main__")
        from lmms_eval.tasks import TaskManager

        assert ("mt_video_bench" in TaskManager().all_tasks) == with_plugin
        return tuple(map(sum, zip(*own, strict=True))) or (0.0, 0.0)

    loaded, metadata.EntryPoint.load = metadata.EntryPoint.load, load  # type: ignore[method-assign]
    return spent(until_tasks)
