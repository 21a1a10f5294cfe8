"""The command line: thin, each verb one call into a room."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks import __version__
from lmms_eval_tasks.benchmarks import BENCHMARKS, FOLDER
from lmms_eval_tasks.errors import PackError, listing


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a verb.

    Args:
        arguments: The command line without the program's name; None takes the process's own.

    Returns:
        The exit status: 0, or 1 after a failure, whose text is on standard error.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.verb(options) or 0)
    except PackError as error:
        print(f"lmms-eval-tasks: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lmms-eval-tasks: interrupted; what is finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `head` does.
        sys.stderr.close()
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lmms-eval-tasks", description="Prepare, check and score the benchmarks that this pack adds to lmms-eval."
    )
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    verb = _verb(verbs, "list", _list, "the tasks, and what is prepared")
    verb.add_argument("--json", action="store_true", help="print one JSON object")

    _verb(verbs, "path", _path, "the folder for lmms-eval's --include_path")

    verb = _verb(verbs, "doctor", _doctor, "whether all that a run needs is there; exits 1 on a problem")
    verb.add_argument("--json", action="store_true", help="print one JSON object")

    verb = _verb(verbs, "prepare", _prepare, "convert the authors' files of a benchmark")
    verb.add_argument("benchmark", choices=BENCHMARKS)
    verb.add_argument("--source", type=Path, required=True, help="folder with the authors' files")
    verb.add_argument("--videos", type=Path, help="folder with the videos, if they are not below --source")
    verb.add_argument("--copy-videos", action="store_true", help="copy the videos instead of linking to them")
    verb.add_argument("--clips", action="store_true", help="make all clips now, not while the model waits")
    verb.add_argument("--model", help="with --clips: the backend, where it has a frame size of its own")
    verb.add_argument("--workers", type=_positive, help="with --clips: how many are made at a time")
    verb.add_argument("--shard", default="1/1", metavar="I/N", help="with --clips: the I-th of N shares of the videos")

    verb = _verb(verbs, "score", _score, "score sample logs and run records, judging what is not judged yet")
    verb.add_argument("logs", type=Path, nargs="+", help="sample logs, run records, or folders of them")
    verb.add_argument("--task", help="the task of a --predict_only log whose name does not tell it")
    verb.add_argument("--rejudge", action="store_true", help="judge every answer again with the current judge")
    verb.add_argument("--official-rounding", action="store_true", help="round as the authors' script, for comparison")
    verb.add_argument("--json", action="store_true", help="print one JSON object")
    verb.add_argument("-o", "--output", type=Path, help="write the JSON object to this file")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def _verb(verbs: Any, name: str, function: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(verb=function)
    return parser


def _list(options: argparse.Namespace) -> None:
    from lmms_eval_tasks.doctor import task_states

    states = task_states()
    if options.json:
        print(json.dumps(states, indent=1))
        return
    for name, state in states.items():
        print(f"{name:<40} {state}")


def _path(_: argparse.Namespace) -> None:
    print(FOLDER)


def _doctor(options: argparse.Namespace) -> int:
    from lmms_eval_tasks.doctor import examine

    findings = examine()
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=1))
    else:
        for finding in findings:
            print(finding)
    return int(any(not finding.ok for finding in findings))


def _prepare(options: argparse.Namespace) -> int:
    from lmms_eval_tasks.media.ahead import shard
    from lmms_eval_tasks.prepare import make_clips, prepare

    shard((), options.shard)
    print(prepare(options.benchmark, options.source, options.videos, options.copy_videos))
    if not options.clips:
        return 0
    failures = make_clips(options.benchmark, options.model, options.workers, options.shard)
    print(listing(f"{len(failures)} clips could not be made", failures) if failures else "All clips are made")
    return int(bool(failures))


def _score(options: argparse.Namespace) -> None:
    from lmms_eval_tasks.checks import warn_of_unknown_settings
    from lmms_eval_tasks.results.score import score, table

    warn_of_unknown_settings()
    results = score(options.logs, options.task, options.rejudge, options.official_rounding)
    text = json.dumps(results, indent=1, ensure_ascii=False)
    if options.output:
        try:
            options.output.write_text(text + "\n", "utf-8")
        except OSError as error:
            raise PackError(f"--output {options.output} cannot be written ({error.strerror})") from None
    print(text if options.json else table(results))
