"""The sample release of MLVU, whole and prepared."""

import pytest

from lmms_eval_tasks.prepare import prepare
from utils.sample_release.mlvu import make_mlvu


@pytest.fixture(scope="session")
def mlvu_release(tmp_path_factory):
    return make_mlvu(tmp_path_factory.mktemp("release") / "mlvu")


@pytest.fixture
def mlvu_prepared(mlvu_release, home):
    return prepare("mlvu", mlvu_release).folder
