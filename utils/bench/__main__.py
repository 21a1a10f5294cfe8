"""Runs benches: ``python -m utils.bench [NAME …] [--json] [--save FILE]``."""

import argparse
import importlib
import json
import os
import pkgutil
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import utils.bench
from utils.bench._measure import cost


def main() -> None:
    """Runs the benches that the command line names, or all; with ``--json`` the last line is their figures."""
    every = [module.name for module in pkgutil.iter_modules(utils.bench.__path__) if not module.name.startswith("_")]
    parser = argparse.ArgumentParser(prog="python -m utils.bench", description=utils.bench.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(every)}; all if none is")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures, beside earlier ones of others")
    arguments = parser.parse_args()
    names = arguments.names or every
    if unknown := set(names) - set(every):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    figures = {}
    for name in names:
        bench = importlib.import_module(f"utils.bench.{name}")
        print(f"\n{name}: {_about(bench)}", flush=True)
        # A process of its own, so that no bench finds what another one has imported.
        figures[name] = cost(bench.run).result
        if arguments.save:
            save(arguments.save, bench, figures[name])
    if arguments.json:
        print(json.dumps(figures if len(figures) > 1 else figures[names[0]]))


def save(file: Path, bench: ModuleType, figures: Mapping[str, float]) -> None:
    """Puts a bench's figures into a JSON file; those of other machines are dropped."""
    earlier = json.loads(file.read_text("utf-8")) if file.exists() else {}
    benches = earlier["benches"] if earlier.get("machine") == machine() else {}
    benches[bench.__name__.rpartition(".")[2]] = {"about": _about(bench), "figures": dict(figures)}
    text = json.dumps({"machine": machine(), "benches": dict(sorted(benches.items()))}, indent=1)
    file.write_text(text + "\n", "utf-8")


def machine() -> str:
    """Model and number of the CPU cores that this process may use."""
    cpus = Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.+)$", cpus.read_text("utf-8"), re.MULTILINE) if cpus.exists() else None
    return f"{model[1] if model else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def _about(bench: ModuleType) -> str:
    return str(bench.__doc__).partition("\n")[0]


if __name__ == "__main__":
    main()
