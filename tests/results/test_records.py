import json
import os
import threading

import pytest

from lmms_eval_tasks.results import records
from lmms_eval_tasks.results.items import Item
from lmms_eval_tasks.settings import PREFIX


@pytest.fixture(autouse=True)
def new_runs():
    yield
    records._files.clear()


def item(number=0, task="mt_video_bench", **more):
    return Item(id=f"a/{number}", task=task, answers=["x"], status="unjudged", **more)


def written(home):
    return {path: [json.loads(line) for line in path.read_text().splitlines()] for path in (home / "runs").iterdir()}


def test_an_item_is_on_disk_at_once(home):
    records.append(item(answer="a\nb\u2028\ud800ü"))
    [[line]] = written(home).values()
    assert line == item(answer="a\nb\u2028\ud800ü")


def test_each_run_of_a_task_has_a_file_of_its_own(home):
    for task in ("mt_video_bench", "mt_video_bench_chat"):
        records.begin(task)
        records.append(item(1, task))
        records.append(item(2, task))
    records.begin("mt_video_bench")
    records.append(item(3))
    files = written(home)
    assert sorted([line["id"] for line in lines] for lines in files.values()) == [
        ["a/1", "a/2"],
        ["a/1", "a/2"],
        ["a/3"],
    ]
    assert all(f"-{os.getpid()}.jsonl" in path.name for path in files)
    assert sum("-mt_video_bench_chat-" in path.name for path in files) == 1


def test_writing_does_not_wait_for_the_judge(home):
    unsettled = item()
    unsettled.finish = lambda: pytest.fail("waited")
    records.append(unsettled)
    assert unsettled.finish is not None


def test_threads_write_whole_lines(home):
    def append(thread):
        for number in range(50):
            records.append(item(f"{thread}/{number}", text="x" * 10_000))

    threads = [threading.Thread(target=append, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [lines] = written(home).values()
    assert len({line["id"] for line in lines}) == 400


@pytest.mark.parametrize("way", ["", "runs"])
def test_a_file_in_the_way_is_said_once_and_stops_nothing(home, monkeypatch, logged, way):
    blocked = home / "blocked"
    monkeypatch.setenv(f"{PREFIX}HOME", str(blocked))
    place = blocked / way if way else blocked
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch()
    for number in range(3):
        records.append(item(number))
    assert len(logged) == 1 and "takes no mt_video_bench" in logged[0]
    place.unlink()
    records.append(item(3))
    [lines] = written(blocked).values()
    assert [line["id"] for line in lines] == ["a/0", "a/1", "a/2", "a/3"]


def test_what_json_does_not_know_is_written_as_text(home):
    records.append(item(odd={1, 2} - {1}, path=home))
    [[line]] = written(home).values()
    assert (line["odd"], line["path"]) == ("{2}", str(home))
