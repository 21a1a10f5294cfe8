"""The command line: thin, each verb one call into a room."""

import argparse
import io
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
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A file's name may be no text: it is shown with escapes, as on standard error, and stops nothing.
        sys.stdout.reconfigure(errors="backslashreplace")
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
    verb.add_argument("--source", metavar="FOLDER|ORG/NAME[@REVISION]",
                      help="folder with the authors' files, or their dataset on the Hub; may be left out where it was "
                      "given before, or the dataset is published")  # fmt: skip
    verb.add_argument("--videos", type=Path, help="folder with the videos, if they are not below --source")
    verb.add_argument("--copy-videos", action="store_true", help="copy the videos instead of linking to them")
    verb.add_argument("--fetch-videos", action="store_true", help="download the videos that are on the Hub alone now")
    verb.add_argument(
        "--limit", type=_positive, metavar="N", help="with --fetch-videos: enough for a run of this --limit"
    )
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
    verb.add_argument("--items", type=Path, help="write the scored items to this file, one a line, for agreement")

    verb = _verb(verbs, "report", _report, "make a page, plots and tables of finished runs; no judge is asked")
    verb.add_argument("logs", nargs="+", metavar="[NAME=]LOGS",
                      help="sample logs, results folders or run records; NAME is what the run is called")  # fmt: skip
    verb.add_argument("-o", "--output", type=Path, required=True, help="the folder to write")
    verb.add_argument("--json", action="store_true", help="print one JSON object")

    verb = _verb(verbs, "agreement", _agreement, "how far judges agree, with each other or with people")
    verb.add_argument("judges", type=Path, nargs="+",
                      help="at least two: what a judge has scored (a sample log, a run record, a folder of them, or "
                      "what score --items wrote), or labels of people: a .csv file with the columns id and score (in "
                      "percent), or id, check (a number from 1) and verdict (yes or no), and perhaps annotator "
                      "and task")  # fmt: skip
    verb.add_argument("--json", action="store_true", help="print one JSON object")

    verb = _verb(verbs, "checklist", _checklist, "make checklists for dialogues of your own; exits 1 on a failure")
    verb.add_argument("dialogues", type=Path, metavar="DIALOGUES.jsonl", help="one dialogue a line: see the README")
    verb.add_argument("-o", "--output", type=Path, required=True, help="the folder to write, for prepare --source")
    verb.add_argument("--questions", type=_positive, default=5, help="of each checklist (5, as in the paper)")

    verb = _verb(verbs, "submission", _submission, "write a leaderboard's file from sample logs and run records")
    verb.add_argument("benchmark", choices=("mlvu",))
    verb.add_argument("logs", type=Path, nargs="+", help="sample logs, run records, or folders of them")
    verb.add_argument("-o", "--output", type=Path, required=True, help="the file to write, such as test_res.json")
    verb.add_argument("--allow-missing", action="store_true", help="leave out questions without a readable answer")
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
    from lmms_eval_tasks.prepare import fetch_videos, make_clips, prepare

    shard((), options.shard)
    if options.source:
        print(prepare(options.benchmark, options.source, options.videos, options.copy_videos))
    elif not (options.fetch_videos or options.clips):
        raise PackError(
            "prepare needs --source, or for a dataset that is prepared or published --fetch-videos or --clips"
        )
    failed = False
    if options.fetch_videos:
        failures = fetch_videos(options.benchmark, options.limit)
        print(listing(f"{len(failures)} videos are not here", failures) if failures else "The videos are here")
        failed |= bool(failures)
    if options.clips:
        failures = make_clips(options.benchmark, options.model, options.workers, options.shard)
        print(listing(f"{len(failures)} clips could not be made", failures) if failures else "All clips are made")
        failed |= bool(failures)
    return int(failed)


def _score(options: argparse.Namespace) -> None:
    from lmms_eval_tasks.checks import warn_of_unknown_settings
    from lmms_eval_tasks.results.score import score, table

    warn_of_unknown_settings()
    results = score(options.logs, options.task, options.rejudge, options.official_rounding, options.items)
    text = json.dumps(results, indent=1, ensure_ascii=False)
    if options.output:
        try:
            options.output.write_text(text + "\n", "utf-8")
        except OSError as error:
            raise PackError(f"--output {options.output} cannot be written ({error.strerror})") from None
    print(text if options.json else table(results))


def _report(options: argparse.Namespace) -> None:
    from lmms_eval_tasks.reporting.report import PAGE, report

    result = report(options.logs, options.output)
    print(json.dumps(result, indent=1, ensure_ascii=False) if options.json else options.output / PAGE)


def _agreement(options: argparse.Namespace) -> None:
    from lmms_eval_tasks.reporting.agreement import agreement, table

    result = agreement(options.judges)
    print(json.dumps(result, indent=1, ensure_ascii=False) if options.json else table(result))


def _checklist(options: argparse.Namespace) -> int:
    from lmms_eval_tasks.checks import warn_of_unknown_settings
    from lmms_eval_tasks.mt_video_bench.checklist import write

    warn_of_unknown_settings()
    made = write(options.dialogues, options.output, options.questions)
    print(made)
    return int(bool(made.failures))


def _submission(options: argparse.Namespace) -> None:
    from lmms_eval_tasks.benchmarks import room

    number = room(options.benchmark, "submission").write(options.logs, options.output, options.allow_missing)
    print(f"{number} answers in {options.output}")
