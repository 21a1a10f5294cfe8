import json
import os

import pytest

from lmms_eval_tasks.settings import PREFIX
from utils.bench import expand, judge, startup
from utils.bench.__main__ import machine, save
from utils.bench._measure import cost, environment, serving, spent


@pytest.fixture
def in_process(monkeypatch):
    """The benches without their fresh processes, and small."""
    for bench in (judge, expand):
        monkeypatch.setattr(bench, "cost", spent)
        monkeypatch.setattr(bench, "REPEATS", 1)
        monkeypatch.setattr(bench, "DIALOGUES", 2)
    monkeypatch.setattr(judge, "CALLS", 11)
    monkeypatch.setattr(judge, "LATENCY", 0.01)
    monkeypatch.setattr(expand, "TURNS", 11)


def test_judge_has_its_figures_and_asks_nothing_twice(in_process):
    figures = judge.run()
    assert list(figures)[:3] == ["stock_over_ours", "ours_over_ideal", "second_run_calls"]
    assert figures["second_run_calls"] == 0 and figures["ideal_seconds"] == round(11 * 0.01 / 32, 3)


def test_expand_has_its_figures(in_process):
    figures = expand.run()
    assert list(figures)[:2] == ["seconds", "peak_mib"]
    assert figures["seconds"] == pytest.approx(figures["ours_seconds"] - figures["stock_seconds"], abs=0.002)


@pytest.mark.slow
def test_startup_finds_the_plugin_in_one_process_and_none_in_the_other(monkeypatch):
    monkeypatch.setattr(startup, "REPEATS", 1)
    figures = startup.run()
    assert list(figures)[:2] == ["added_seconds", "own_seconds"]
    assert 0 < figures["own_seconds"] < figures["ours_seconds"]


def test_an_environment_ends_as_it_was(monkeypatch):
    monkeypatch.setenv(f"{PREFIX}FRAMES", "8")
    with environment({f"{PREFIX}FRAMES": "4", f"{PREFIX}LONG_SIDE": "64"}):
        assert (os.environ[f"{PREFIX}FRAMES"], os.environ[f"{PREFIX}LONG_SIDE"]) == ("4", "64")
    assert os.environ[f"{PREFIX}FRAMES"] == "8" and f"{PREFIX}LONG_SIDE" not in os.environ


def test_a_fresh_process_has_what_it_was_given_and_nothing_else():
    assert cost(divmod, 7, 2).result == (3, 1)
    with pytest.raises(RuntimeError, match="divmod failed"):
        cost(divmod, 7, 0)


def test_a_server_counts_its_requests():
    import httpx

    with serving(0.0) as server:
        assert server.requests() == 0
        httpx.post(f"{server.url}/chat/completions", json={"messages": []}, trust_env=False)
        assert server.requests() == 1


def test_figures_are_kept_beside_those_of_the_same_machine(tmp_path):
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"machine": "another", "benches": {"media": {"about": "", "figures": {}}}}), "utf-8")
    save(file, judge, {"ours_seconds": 1})
    save(file, expand, {"seconds": 2})
    kept = json.loads(file.read_text("utf-8"))
    assert kept["machine"] == machine() and list(kept["benches"]) == ["expand", "judge"]
    assert kept["benches"]["judge"]["figures"] == {"ours_seconds": 1} and kept["benches"]["judge"]["about"]
