import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.settings import PREFIX

ENDPOINTS = {
    "http://host:8000/v1": "http://host:8000/v1",
    "http://host:8000/v1/": "http://host:8000/v1",
    "https://host/v1/chat/completions": "https://host/v1",
    "https://host/v1/chat/completions/": "https://host/v1",
    " https://host/openai/v1 ": "https://host/openai/v1",
}


def test_defaults(home):
    config = settings.load()
    assert (config.judge_concurrency, config.judge_repeats, config.judge_temperature) == (32, 3, None)
    assert config.root == home and config.judge_model is None and config.judge_endpoint is None


@pytest.mark.parametrize("variable", [f"{PREFIX}JUDGE_BASE_URL", "OPENAI_API_URL", "OPENAI_BASE_URL"])
@pytest.mark.parametrize("given", ENDPOINTS)
def test_endpoints_in_both_conventions(monkeypatch, variable, given):
    monkeypatch.setenv(variable, given)
    assert settings.load().judge_endpoint == ENDPOINTS[given]


def test_the_packs_own_variables_win_over_lmms_evals(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    assert settings.load().judge_key == "theirs"
    monkeypatch.setenv(f"{PREFIX}JUDGE_API_KEY", "ours")
    assert settings.load().judge_key == "ours"


BAD = [
    ("JUDGE_CONCURRENCY", "0"),
    ("JUDGE_CONCURRENCY", "many"),
    ("JUDGE_TIMEOUT", "-1"),
    ("JUDGE_REPEATS", "2.5"),
    ("JUDGE_TEMPERATURE", "3"),
    ("FRAMES", "0"),
    ("ON_MISSING_VIDEO", "ignore"),
    ("CLIP_TIMING", "30fps"),
    ("AUTOLOAD", "perhaps"),
]


@pytest.mark.parametrize("name, value", BAD)
def test_a_bad_value_names_variable_value_and_what_is_allowed(monkeypatch, name, value):
    monkeypatch.setenv(f"{PREFIX}{name}", value)
    with pytest.raises(PackError, match=rf"{PREFIX}{name}='{value}': Input should be"):
        settings.load()


def test_all_bad_values_are_named_at_once(monkeypatch):
    for name, value in BAD[1:4]:
        monkeypatch.setenv(f"{PREFIX}{name}", value)
    with pytest.raises(PackError) as raised:
        settings.load()
    assert all(name in str(raised.value) for name, _ in BAD[1:4])


def test_the_key_is_in_no_text_of_the_settings(monkeypatch):
    monkeypatch.setenv(f"{PREFIX}JUDGE_API_KEY", "sk-very-secret")
    config = settings.load()
    assert "sk-very-secret" not in f"{config!r} {config} {config.model_dump()} {config.model_dump_json()}"


def test_an_empty_variable_is_an_unset_one(monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "")
    assert settings.load().frames is None


def test_misspelt_variables_are_found(monkeypatch):
    monkeypatch.setenv(f"{PREFIX}JUDGE_MODELL", "x")
    monkeypatch.setenv(f"{PREFIX}JUDGE_MODEL", "x")
    assert settings.unknown() == [f"{PREFIX}JUDGE_MODELL"]


def test_credentials_in_a_url_are_not_shown():
    assert settings.without_credentials("https://me:pass@host:1/v1?key=x") == "https://host:1/v1"
