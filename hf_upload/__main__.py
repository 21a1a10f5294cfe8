"""`python -m hf_upload BENCHMARK --repo ORG/NAME` publishes a prepared benchmark on the Hugging Face Hub."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hf_upload.publish import plan, publish
from lmms_eval_tasks.benchmarks import BENCHMARKS
from lmms_eval_tasks.errors import PackError


def main(arguments: Sequence[str] | None = None) -> int:
    """Plans, asks, and uploads what is missing or changed.

    Args:
        arguments: The command line without the program's name; None takes the process's own.

    Returns:
        The exit status: 0, or 1 after a failure or a No, whose text is on standard error.
    """
    options = _parser().parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="hf_upload.") as folder:
            planned = plan(
                options.benchmark, options.repo, Path(folder), not options.no_videos, options.skip_missing, options.tag
            )
            print(planned)
            if options.dry_run or planned.is_done:
                return 0
            if not options.yes and not _confirmed():
                raise PackError("nothing was uploaded")
            print(publish(planned, options.private))
    except PackError as error:
        print(f"hf_upload: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("hf_upload: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hf_upload",
        description="Publish a prepared benchmark on the Hugging Face Hub, or bring it up to date there. The token is "
        "that of `hf auth login` or HF_TOKEN.",
    )
    parser.add_argument("benchmark", choices=BENCHMARKS)
    parser.add_argument("--repo", required=True, metavar="ORG/NAME", help="dataset repository; made if need be")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--no-videos", action="store_true", help="annotations alone: the videos may not be passed on")
    parser.add_argument("--skip-missing", action="store_true", help="publish although videos are missing or broken")
    parser.add_argument("--tag", metavar="VERSION", help="name this state, such as v1.0; users write ORG/NAME@VERSION")
    parser.add_argument("--dry-run", action="store_true", help="print the plan, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def _confirmed() -> bool:
    try:
        return input("Upload? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


if __name__ == "__main__":
    sys.exit(main())
