import errno
import json
import resource
import threading

import pytest

from lmms_eval_tasks.judging.verdicts import Verdict, VerdictStore
from lmms_eval_tasks.results import records

VERDICT = Verdict(["yes", "no"], "snapshot-1", 12, 3, "0123456789ab")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "home" / "judgements" / "judge"


def line(key="k", **changes):
    fields = {"key": key, "value": ["yes"], "model": "m", "input_tokens": 1, "output_tokens": 2, "prompt": "p"}
    return json.dumps({**fields, **changes}).encode() + b"\n"


def file_in(folder, content, name="a.jsonl"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def test_a_verdict_is_found_by_this_store_and_by_the_next(folder):
    store = VerdictStore(folder)
    assert store.get("k") is None
    store.put("k", VERDICT)
    assert store.get("k") == VerdictStore(folder).get("k") == VERDICT


def test_nothing_is_made_before_the_first_verdict(folder):
    VerdictStore(folder).get("k")
    assert not folder.exists()


def test_each_store_writes_a_file_of_its_own(folder):
    for key in "abc":
        VerdictStore(folder).put(key, VERDICT)
    assert len(list(folder.glob("*.jsonl"))) == 3
    assert all(VerdictStore(folder).get(key) == VERDICT for key in "abc")


def test_every_kind_of_value_comes_back_as_it_was(folder):
    values = [["yes"], 3, 0, 0.5, "A", "", False, {"a": [1, None]}, "line\nend \u2028 \ud800 ü"]
    store = VerdictStore(folder)
    for number, value in enumerate(values):
        store.put(str(number), Verdict(value))
    again = VerdictStore(folder)
    assert [again.get(str(number)).value for number in range(len(values))] == values


IGNORED = {
    "empty": b"",
    "blank lines": b"\n\n \n",
    "garbage": b"hello\n{]\n",
    "binary": bytes(range(256)) + b"\n\0\0\0\0\n\xff\xfe\n",
    "no object": b'[]\n7\nnull\n"text"\n',
    "deep": b"[" * 100_000 + b"\n",
    "no key": line().replace(b'"key"', b'"kay"'),
    "key no text": line(["k"]) + line(7) + line(None) + line({"a": 1}),
    "no value": line(value=None),
    "no value at all": b'{"key": "k"}\n',
    "unknown field": line(extra=1),
    "model no text": line(model=7),
    "tokens no number": line(input_tokens="7") + line(output_tokens=None) + line(input_tokens=[1]),
    "torn": line()[:-1],
    "torn earlier": line()[:-20],
}


@pytest.mark.parametrize("name", IGNORED)
def test_what_is_no_verdict_is_passed_over(folder, name):
    file_in(folder, line("before") + IGNORED[name])
    file_in(folder, IGNORED[name], "b.jsonl")
    file_in(folder, line("after"), "c.jsonl")
    store = VerdictStore(folder)
    assert set(store._known) == {"before", "after"}
    assert store.get("before").value == ["yes"]


def test_good_lines_around_bad_ones_are_read(folder):
    file_in(folder, line("a") + b"\0\0{half" + b"\n" + line("b") + line("torn")[:-5])
    assert set(VerdictStore(folder)._known) == {"a", "b"}


def test_what_cannot_be_read_is_said_and_passed_over(folder, logged):
    (folder / "a.jsonl").mkdir(parents=True)
    file_in(folder, line("b"), "b.jsonl")
    assert set(VerdictStore(folder)._known) == {"b"}
    assert "a.jsonl cannot be read" in logged[0]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_file_in_the_way_of_the_folder_loses_nothing_in_memory(folder, logged, depth):
    way = [folder, *folder.parents][depth]
    way.parent.mkdir(parents=True, exist_ok=True)
    way.touch()
    store = VerdictStore(folder)
    for key in "abc":
        store.put(key, VERDICT)
    assert all(store.get(key) == VERDICT for key in "abc")
    assert sum("takes no verdicts" in text for text in logged) == 1
    # As soon as it can, it writes all that it owes.
    way.unlink()
    store.put("d", VERDICT)
    assert set(VerdictStore(folder)._known) == set("abcd")


class FullDisk:
    """A file on a disk with room for so many bytes; `left` may grow again."""

    def __init__(self, file, left):
        self.file, self.left = file, left

    def write(self, data):
        if not self.left:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self.file.write(data[: self.left])
        self.left -= written
        return written

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("room", [0, 1, 20, 100, 150, 250])
def test_a_full_disk_tears_no_line(folder, logged, room):
    store = VerdictStore(folder)
    store.put("first", VERDICT)
    [path] = folder.iterdir()
    disk = store._file._file = FullDisk(store._file._file, room)
    for key in "abc":
        store.put(key, VERDICT)
    assert store.get("c") == VERDICT
    assert set(VerdictStore(folder)._known) >= {"first"}
    assert sum("No space left" in text for text in logged) == 1
    disk.left = 10_000
    store.put("d", VERDICT)
    lines = path.read_text().splitlines()
    assert [json.loads(text)["key"] for text in lines] == ["first", "a", "b", "c", "d"]
    assert set(VerdictStore(folder)._known) == {"first", *"abcd"}


def test_a_file_size_limit_is_a_full_disk(folder, logged):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = VerdictStore(folder)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))
        for key in "abcdef":
            store.put(key, VERDICT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert all(store.get(key) == VERDICT for key in "abcdef")
    assert 1 <= len(VerdictStore(folder)._known) < 6
    assert len(logged) == 1
    store.put("g", VERDICT)
    assert set(VerdictStore(folder)._known) == set("abcdefg")


def test_many_threads_write_whole_lines(folder):
    store = VerdictStore(folder)

    def put(thread):
        for number in range(100):
            store.put(f"{thread}/{number}", VERDICT)

    threads = [threading.Thread(target=put, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [path] = folder.iterdir()
    assert len({json.loads(text)["key"] for text in path.read_text().splitlines()}) == 800


def test_file_names_tell_time_host_and_process(folder):
    VerdictStore(folder).put("k", VERDICT)
    [path] = folder.iterdir()
    assert path.name.endswith(f"-{records.socket.gethostname()}-{records.os.getpid()}.jsonl")
