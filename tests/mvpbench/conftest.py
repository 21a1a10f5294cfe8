import pytest

from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.settings import PREFIX
from utils.sample_release.mvpbench import make_mvpbench


@pytest.fixture(scope="session")
def mvp_release(tmp_path_factory):
    return make_mvpbench(tmp_path_factory.mktemp("release") / "mvpbench")


@pytest.fixture(scope="session")
def mvp_dataset(mvp_release, tmp_path_factory):
    """The sample release, prepared once for all tests, which must leave it as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"{PREFIX}HOME", str(tmp_path_factory.mktemp("prepared")))
        return prepare("mvpbench", mvp_release).folder


@pytest.fixture
def mvp_prepared(mvp_dataset, monkeypatch):
    monkeypatch.setenv(f"{PREFIX}DATA_MVPBENCH", str(mvp_dataset))
    return mvp_dataset
