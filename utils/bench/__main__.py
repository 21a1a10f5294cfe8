"""Runs one bench: ``python -m utils.bench media [--json]``."""

import argparse
import importlib
import json
import pkgutil

import utils.bench


def main() -> None:
    """Runs the bench that the command line names; with ``--json`` the last line is its figures as an object."""
    names = [module.name for module in pkgutil.iter_modules(utils.bench.__path__) if not module.name.startswith("_")]
    parser = argparse.ArgumentParser(prog="python -m utils.bench", description=utils.bench.__doc__)
    parser.add_argument("name", choices=names)
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    arguments = parser.parse_args()
    figures = importlib.import_module(f"utils.bench.{arguments.name}").run()
    if arguments.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
