import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.benchmarks import BENCHMARKS, room, tasks
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.hooks import Hooks
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.settings import PREFIX
from utils.sample_release import MAKERS


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The sample releases of all benchmarks, prepared."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(f"{PREFIX}HOME", str(tmp_path_factory.mktemp("home")))
        return {
            name: prepare(name, MAKERS[name](tmp_path_factory.mktemp("release") / name)).folder for name in BENCHMARKS
        }


@pytest.mark.parametrize("name", tasks())
def test_the_docs_of_every_task_carry_its_name_and_are_as_many_as_announced(prepared, name, monkeypatch):
    task = tasks()[name]
    monkeypatch.setenv(f"{PREFIX}DATA_{task.benchmark.upper()}", str(prepared[task.benchmark]))
    opened = canonical.opened(task.benchmark)
    docs = getattr(room(task.benchmark, "task"), task.process_docs)(opened.rows(task.config))
    assert set(docs["task"]) == {name}
    assert sum(len(doc.get("parts", [doc])) for doc in docs) == opened.questions(task.config)


def test_docs_of_a_task_that_does_not_exist_are_refused(mt_prepared):
    hooks = Hooks("mt_video_bench", "1-A", {}, kind="ability")
    with pytest.raises(PackError, match="'mt_video_bench_other', which no YAML file in mt_video_bench/ names"):
        hooks.docs(canonical.opened("mt_video_bench").rows(), lambda row: [], {}, variant="other")
