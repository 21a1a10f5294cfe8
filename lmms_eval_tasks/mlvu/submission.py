"""The leaderboard's file for MLVU's multiple-choice test: ``[{"question_id", "question_type", "option"}]``."""

import json
from collections.abc import Sequence
from pathlib import Path

from lmms_eval_tasks.answers.choices import read_choice
from lmms_eval_tasks.errors import PackError, listing
from lmms_eval_tasks.results.items import EXCLUDED, Item, answers_read
from lmms_eval_tasks.results.score import read

TASK = "mlvu_mc_test"


def write(logs: Sequence[Path], output: Path, allow_missing: bool = False) -> int:
    """Writes the file from the answers of a run.

    Args:
        logs: lmms-eval's sample logs, or run records, or folders of them; those of other tasks are passed over.
        output: The file to write.
        allow_missing: Leave out the questions for which there is no letter, instead of refusing.

    Returns:
        How many answers are in it.

    Raises:
        PackError: There is no letter for a question of the dataset; all such are named. Or a file cannot be read or
            written.
    """
    items = read(logs).get(TASK, [])
    if not items:
        raise PackError(f"No answer of {TASK} in {', '.join(map(str, logs))}")
    options, missing = entries(items)
    if missing and not (allow_missing and options):
        raise PackError(listing("The leaderboard wants one letter for each question. Ask again what failed, or leave "
                                "it out with --allow-missing. There is none for", missing))  # fmt: skip
    try:
        output.write_text(json.dumps(options, indent=4) + "\n", "utf-8")
    except OSError as error:
        raise PackError(f"--output {output} cannot be written ({error.strerror})") from None
    return len(options)


def entries(items: Sequence[Item]) -> tuple[list[dict[str, str]], list[str]]:
    """The file's entries, by the first answer to each question.

    Args:
        items: The items of all questions that were asked, each question once.

    Returns:
        The entries, and for each question without one its id and the reason, in words.
    """
    found: list[dict[str, str]] = []
    missing: list[str] = []
    for item in items:
        option, problem = _option(item)
        if option is None:
            missing.append(f"{item['id']}: {problem}")
        else:
            found.append({"question_id": item["id"], "question_type": item["question_type"], "option": option})
    skipped = [other for item in items for other in item.get("skipped") or ()]
    missing += [f"{other['id']}: {other['reason']}" for other in skipped]
    asked = len(items) + sum(other["status"] != EXCLUDED for other in skipped)
    elsewhere = items[0]["card"]["questions"] - asked
    if elsewhere > 0:
        missing.append(f"{elsewhere} more of the dataset's questions, which are not in these files")
    return found, missing


def _option(item: Item) -> tuple[str | None, str]:
    """The letter of an item's first answer, or None and why there is none."""
    answers = answers_read(item)
    if answers is None:
        return None, item["reason"]
    return read_choice(answers[0], item["candidates"]), f"no choice in {answers[0][:80]!r}"
