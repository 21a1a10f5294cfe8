import os
import tempfile
from pathlib import Path

import pytest

from lmms_eval_tasks.log import logger
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.settings import PREFIX
from utils.openai_server import OpenAIServer
from utils.sample_release import make_mt_video_bench

# Nothing in the suite may leave the machine.
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
# Nor may it read or fill the user's caches; libraries read this once, when they are imported.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="hf-home-")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path_factory):
    for name in list(os.environ):
        if name.startswith((PREFIX, "OPENAI_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv(f"{PREFIX}HOME", str(home))
    return home


@pytest.fixture
def home(clean_environment) -> Path:
    return clean_environment


@pytest.fixture(scope="session")
def mt_release(tmp_path_factory) -> Path:
    return make_mt_video_bench(tmp_path_factory.mktemp("release") / "mt_video_bench")


@pytest.fixture
def mt_prepared(mt_release, home) -> Path:
    return prepare("mt_video_bench", mt_release).folder


@pytest.fixture
def judge_server(monkeypatch):
    """A local judge that the settings name; its reply can be set with `server.reply`."""
    with OpenAIServer() as server:
        monkeypatch.setenv(f"{PREFIX}JUDGE_BASE_URL", server.url)
        monkeypatch.setenv(f"{PREFIX}JUDGE_MODEL", "test-judge")
        monkeypatch.setenv(f"{PREFIX}JUDGE_API_KEY", "sk-secret-of-the-test-judge")
        monkeypatch.setenv(f"{PREFIX}JUDGE_REPEATS", "1")
        yield server


@pytest.fixture
def quick_retries(monkeypatch):
    """The SDK waits milliseconds between its retries, not seconds."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.005)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.01)


@pytest.fixture
def logged():
    """What the pack logs, as one list of lines."""
    lines: list[str] = []
    sink = logger.add(lambda message: lines.append(str(message)), level="DEBUG", format="{level} {message}")
    yield lines
    logger.remove(sink)
