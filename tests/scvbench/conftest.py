"""The sample release of SCVBench, whole and prepared."""

import pytest

from lmms_eval_tasks.prepare import prepare
from utils.sample_release.scvbench import make_scvbench


@pytest.fixture(scope="session")
def scvbench_release(tmp_path_factory):
    return make_scvbench(tmp_path_factory.mktemp("release") / "scvbench")


@pytest.fixture
def scvbench_prepared(scvbench_release, home):
    return prepare("scvbench", scvbench_release).folder
