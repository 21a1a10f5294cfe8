import hashlib

import pytest

from lmms_eval_tasks import hub
from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.hub import File, RemoteVideos, Repo

IDS = {
    "org/name": Repo("org/name"),
    "Org-1/na.me_2": Repo("Org-1/na.me_2"),
    "org/name@v1.0": Repo("org/name", "v1.0"),
    "org/name@refs/pr/1": Repo("org/name", "refs/pr/1"),
    "org/name@": None,
    "org/name@-x": None,
    "org/name@../../x": None,
    "org/..": None,
    "../name": None,
    "./org/name": None,
    "/org/name": None,
    "~/name": None,
    "name": None,
    "org/name/more": None,
    "": None,
    "org/na me": None,
    "org/name\n": None,
}


@pytest.mark.parametrize("text", IDS)
def test_ids(text):
    assert hub.parse(text) == IDS[text]


def test_a_folder_that_exists_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert hub.parse("org/name") is not None
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert hub.parse("org/name") is None


@pytest.mark.parametrize("text", ["org/name", "org/name@v1", "name", "../name", "/org/name"])
def test_a_repository_is_a_name_alone(text):
    assert hub.is_repo(text) == (text == "org/name")


SHA = "a" * 64
MALFORMED = {
    "no object": ([], "does not describe its files"),
    "nothing": (None, "does not describe its files"),
    "a size that is none": ({"a": {"size": -1}}, "a.size"),
    "no size": ({"a": {"sha256": SHA}}, "a.size"),
    "a hash that is none": ({"a": {"size": 1, "sha256": "x"}}, "a.sha256"),
    "a way out": ({"videos/../../evil.mp4": {"size": 1}}, "lead out of its folder"),
    "the parent": ({"..": {"size": 1}}, "lead out of its folder"),
    "an absolute path": ({"/etc/passwd": {"size": 1}}, "lead out of its folder"),
    "a drive": ({"C:/evil": {"size": 1}}, "lead out of its folder"),
    "a backslash": ({"..\\evil": {"size": 1}}, "lead out of its folder"),
    "an empty part": ({"videos//a.mp4": {"size": 1}}, "lead out of its folder"),
    "a control character": ({"a\x00.mp4": {"size": 1}}, "lead out of its folder"),
    "no name": ({"": {"size": 1}}, "lead out of its folder"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_list_of_files_that_cannot_be_trusted_is_refused(name):
    described, text = MALFORMED[name]
    with pytest.raises(PackError, match=text):
        hub.files(described, "org/name")


def test_every_path_that_leads_out_is_named():
    with pytest.raises(PackError) as raised:
        hub.files({"../a": {"size": 1}, "b": {"size": 1}, "/c": {"size": 1}}, "org/name")
    assert "'../a'" in str(raised.value) and "'/c'" in str(raised.value) and "'b'" not in str(raised.value)


def test_a_file_is_described_by_all_of_it(tmp_path):
    content = bytes(range(256)) * 10_000
    (tmp_path / "file").write_bytes(content)
    assert File.of(tmp_path / "file") == File(size=len(content), sha256=hashlib.sha256(content).hexdigest())


def test_videos_are_found_by_name_as_on_disk():
    paths = ["README.md", "videos/a.mp4", "videos/1_plot/3.MKV", "videos/2_needle/3.mp4", "b.json"]
    videos = RemoteVideos(Repo("org/name", "0" * 40), {path: File(size=1) for path in paths})
    names = {
        "a": "videos/a.mp4",
        "A.mp4": "videos/a.mp4",
        "1_plot/3.mp4": "videos/1_plot/3.MKV",
        "2_needle/3": "videos/2_needle/3.mp4",
        "b": None,
        "README.md": None,
    }
    found = {name: videos.find(name) for name in names}
    assert {name: remote and remote.path for name, remote in found.items()} == names
    with pytest.raises(PackError):
        videos.find("../a.mp4")


@pytest.mark.parametrize(
    "change",
    [
        {"repo": "../../x"}, {"repo": None}, {"revision": "main"}, {"revision": "../" * 20}, {"files": None},
        {"files": {"../a.mp4": {"size": 1}}}, {"files": {"a.mp4": {}}},
    ],
)  # fmt: skip
def test_an_origin_that_cannot_be_trusted_is_refused(change):
    described = {"repo": "org/name", "revision": "0" * 40, "files": {"a.mp4": {"size": 1}}}
    assert hub.origin(described, "manifest.json").find("a").repo == Repo("org/name", "0" * 40)
    with pytest.raises(PackError, match=r"manifest\.json is (damaged|refused)"):
        hub.origin({**described, **change}, "manifest.json")
    with pytest.raises(PackError, match=r"manifest\.json is damaged"):
        hub.origin("org/name", "manifest.json")


def test_without_a_network_the_message_says_so_and_what_is_asked_for(tmp_path):
    with pytest.raises(PackError, match=r"org/nowhere@v1: manifest\.json cannot be downloaded: it is not in the cache"):
        hub.annotations(Repo("org/nowhere", "v1"))
    with pytest.raises(PackError, match="org/nowhere is no folder or file here, and on the Hub it cannot be listed"):
        hub.release(Repo("org/nowhere"))
