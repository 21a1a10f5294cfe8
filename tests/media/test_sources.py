import os
import unicodedata

import pytest

from lmms_eval_tasks.errors import PackError
from lmms_eval_tasks.media.sources import Videos, check_name, probe
from tests.media import films


def tree(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    return root


@pytest.mark.parametrize(
    ("files", "name", "expected"),
    [
        (["a.mp4"], "a.mp4", "a.mp4"),
        (["a.mp4"], "a", "a.mp4"),
        (["a.MP4"], "a.mp4", "a.MP4"),
        (["A.mp4"], "a", "A.mp4"),
        (["a.webm"], "a.mp4", "a.webm"),
        (["a.mkv", "a.webm"], "a.mp4", "a.mkv"),
        (["a.webm", "x/a.mp4"], "a.mp4", "x/a.mp4"),
        (["a.MP4", "a.mp4"], "a.mp4", "a.mp4"),
        (["a.MP4", "a.webm"], "a.mp4", "a.MP4"),
        (["deep/er/a.mp4"], "a.mp4", "deep/er/a.mp4"),
        (["y/a.mp4", "x/a.mp4"], "a.mp4", "x/a.mp4"),
        (["x/y/a.mp4", "z/a.mp4"], "a.mp4", "z/a.mp4"),
        (["1_plot/3.mp4", "2_needle/3.mp4"], "2_needle/3.mp4", "2_needle/3.mp4"),
        (["1_plot/3.mp4", "2_needle/3.MKV"], "2_needle/3.mp4", "2_needle/3.MKV"),
        (["video/1_plot/3.mp4", "video/2_needle/3.mp4"], "2_needle/3.mp4", "video/2_needle/3.mp4"),
        (["1_plot/3.mp4", "2_needle/4.mp4"], "2_needle/3.mp4", None),
        (["3.mp4"], "2_needle/3.mp4", "3.mp4"),
        (["all/3.mp4"], "2_needle/3.mp4", "all/3.mp4"),
        (["1_plot/3.mp4", "4_count/4.mp4"], "2_needle/3.mp4", None),
        (["2_NEEDLE/3.mp4", "1/3.mp4"], "2_needle/3.mp4", "2_NEEDLE/3.mp4"),
        (["v1.5_a.mp4", "v1.mp4"], "v1.5_a", "v1.5_a.mp4"),
        (["a.txt", "a", "a.json"], "a", None),
        (["ab.mp4"], "a", None),
        ([], "a", None),
    ],
)
def test_layouts(tmp_path, files, name, expected):
    tree(tmp_path, *files)
    assert Videos([tmp_path]).find(name) == (tmp_path / expected if expected else None)


def test_order_of_roots_and_missing(tmp_path):
    first, second = tree(tmp_path / "1", "sub/a.webm"), tree(tmp_path / "2", "a.mp4", "b.mp4")
    videos = Videos([tmp_path / "nowhere", first, second])
    assert videos.find("a.mp4") == first / "sub/a.webm"
    assert videos.find("b.mp4") == second / "b.mp4"
    assert videos.missing(["z", "a", "z", "b", "y"]) == ["z", "y"]


def test_links_are_followed_and_circles_end(tmp_path):
    blobs = tree(tmp_path / "blobs", "0a1b", "film.mp4")
    root = tmp_path / "snapshot"
    root.mkdir()
    (root / "a.mp4").symlink_to(blobs / "0a1b")
    (root / "gone.mp4").symlink_to(blobs / "nothing")
    (root / "around").symlink_to(root)
    (root / "folder").symlink_to(blobs)
    videos = Videos([root])
    assert videos.find("A") == root / "a.mp4"
    assert videos.find("film") == root / "folder/film.mp4"
    assert videos.missing(["gone", "gone.mp4"]) == ["gone", "gone.mp4"]


def test_accents_may_be_composed_or_not(tmp_path):
    tree(tmp_path, unicodedata.normalize("NFD", "Amélie.mp4"))
    assert Videos([tmp_path]).find(unicodedata.normalize("NFC", "amélie"))


TRICKS = [
    *("../a.mp4", "a/../../b.mp4", "/etc/a.mp4", "C:/a.mp4", "c:a.mp4", "a\0.mp4", "a\\b.mp4", "", " ", ".", ".."),
    *("a//b", "./a", "a\nb.mp4", "a/"),
]


@pytest.mark.parametrize("name", TRICKS)
def test_tricks_are_refused(tmp_path, name):
    with pytest.raises(PackError):
        check_name(name)
    with pytest.raises(PackError):
        Videos([tmp_path]).find(name)


def test_walks_once_and_only_at_need(tmp_path, monkeypatch):
    tree(tmp_path, "a.mp4", "x/b.mp4")
    walks = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: walks.append(path) or scandir(path))
    videos = Videos([tmp_path])
    assert videos.find("a.mp4")
    assert walks == []
    for _ in range(3):
        assert videos.find("b")
        assert not videos.find("c")
    assert len(walks) == 2


def test_probe(tmp_path):
    found = probe(films.write(tmp_path / "a.mp4", 50))
    assert (found.seconds, found.frames, found.width, found.height, found.codec) == (2.0, 50, 96, 64, "h264")
    (tmp_path / "b.mp4").write_bytes(b"no video")
    with pytest.raises(PackError, match=r"b\.mp4"):
        probe(tmp_path / "b.mp4")
    with pytest.raises(PackError, match=r"c\.mp4"):
        probe(tmp_path / "c.mp4")
