import re

from lmms_eval_tasks.benchmarks import FOLDER, tasks
from lmms_eval_tasks.cli import main
from utils.readme import README, with_tables

TEXT = README.read_text("utf-8")


def test_its_tables_are_those_of_the_code():
    assert with_tables(TEXT) == TEXT, "run `python -m utils.readme`"


def test_every_task_is_named():
    for name, task in tasks().items():
        room = (FOLDER / task.benchmark / "README.md").read_text("utf-8")
        ability = name.removeprefix(f"{task.benchmark}_")
        assert f"`{name}`" in room or f"`{ability}`" in room


def test_every_verb_that_it_uses_is_there(capsys):
    verbs = set(re.findall(r"lmms-eval-tasks (\w+)", TEXT)) - {"and"}
    for verb in verbs:
        try:
            main([verb, "--help"])
        except SystemExit as ended:
            assert ended.code == 0, verb
