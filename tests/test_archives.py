import io
import os
import shutil
import stat
import struct
import zipfile

import pytest

from lmms_eval_tasks.archives import unpacked
from lmms_eval_tasks.errors import PackError

FILES = {"gait/a.jsonl": b"{}\n", "gait/clips/1.mp4": bytes(range(256)) * 40}


def pack(path, files, kind=stat.S_IFREG | 0o644):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = kind << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return path


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_is_there_as_it_was_and_once(tmp_path):
    archive = pack(tmp_path / "gait.zip", {**FILES, "empty/": b""})
    folder = unpacked(archive, tmp_path / "place")
    assert folder.parent == tmp_path / "place" and folder.name.startswith("gait-")
    assert contents(folder) == FILES
    (folder / "mark").touch()
    assert unpacked(archive, tmp_path / "place") == folder
    assert (folder / "mark").exists()


def test_another_archive_of_the_same_name_has_a_folder_of_its_own(tmp_path):
    folder = unpacked(pack(tmp_path / "a.zip", FILES), tmp_path / "place")
    other = unpacked(pack(tmp_path / "a.zip", {"gait/a.jsonl": b"[]\n"}), tmp_path / "place")
    assert folder != other
    assert contents(other) == {"gait/a.jsonl": b"[]\n"} and contents(folder) == FILES


def test_backslashes_of_windows_are_folders_and_what_macos_adds_is_left_out(tmp_path):
    archive = pack(tmp_path / "a.zip", {"gait\\1.mp4": b"1", "__MACOSX/gait/._1.mp4": b"x"})
    with zipfile.ZipFile(archive) as file:
        assert "\\" in file.namelist()[0]
    assert contents(unpacked(archive, tmp_path / "place")) == {"gait/1.mp4": b"1"}


ESCAPES = ["../evil", "a/../../evil", "/evil", "C:/evil", "..\\evil", "a\\..\\..\\evil", "..", "a/\n/b"]


@pytest.mark.parametrize("name", ESCAPES, ids=repr)
def test_no_path_leads_out(tmp_path, name):
    archive = pack(tmp_path / "a.zip", {"fine.mp4": b"1", name: b"evil"})
    with pytest.raises(PackError, match=r"a\.zip is not unpacked:\n.*leads out"):
        unpacked(archive, tmp_path / "deep" / "place")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.zip"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_no_links_and_no_devices(tmp_path, kind):
    archive = pack(tmp_path / "a.zip", {"evil": b"/etc/passwd"}, kind | 0o777)
    with pytest.raises(PackError, match="'evil' is a link or a device"):
        unpacked(archive, tmp_path / "place")


def test_all_that_is_wrong_is_named_at_once(tmp_path):
    with pytest.raises(PackError) as raised:
        unpacked(pack(tmp_path / "a.zip", {"../1": b"", "/2": b""}), tmp_path / "place")
    assert "'../1'" in str(raised.value) and "'/2'" in str(raised.value)


def truncated(data):
    return data[: len(data) // 2]


def flipped(data):
    spot = data.index(b"gait/clips/1.mp4") + 60
    return data[:spot] + bytes([data[spot] ^ 255]) + data[spot + 1 :]


def without_bytes(data):
    return data[:20] + data[40:]


def other_checksum(data):
    spot = data.index(b"PK\1\2") + 16
    return data[:spot] + b"\0\0\0\0" + data[spot + 4 :]


def unknown_method(data):
    first, central = data.index(b"PK\3\4") + 8, data.index(b"PK\1\2") + 10
    for spot in (first, central):
        data = data[:spot] + struct.pack("<H", 97) + data[spot + 2 :]
    return data


DAMAGES = [truncated, flipped, without_bytes, other_checksum, unknown_method, lambda _: b"", lambda _: b"PK"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_archive_is_one_clear_error_and_leaves_nothing(tmp_path, damage):
    archive = pack(tmp_path / "a.zip", FILES)
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(PackError, match=r"a\.zip: a damaged archive"):
        unpacked(archive, tmp_path / "place")
    assert not list(tmp_path.glob("place/*")) and not list(tmp_path.glob("place/.*"))


def test_damaged_bz2_is_no_matter_of_space(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.mp4", bytes(range(256)) * 40)
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[80] ^= 255
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(PackError, match=r"a\.zip: a damaged archive \(Invalid data stream\)"):
        unpacked(tmp_path / "a.zip", tmp_path / "place")


def test_an_encrypted_archive_is_refused(tmp_path):
    archive = pack(tmp_path / "a.zip", FILES)
    data = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + offset] |= 1
    archive.write_bytes(data)
    with pytest.raises(PackError, match="is encrypted"):
        unpacked(archive, tmp_path / "place")


def test_a_bomb_is_not_unpacked(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(100 << 20))
    (tmp_path / "bomb.zip").write_bytes(buffer.getvalue())
    with pytest.raises(PackError, match=r"bomb\.zip is not unpacked: \d+ bytes that unpack to 104857600"):
        unpacked(tmp_path / "bomb.zip", tmp_path / "place")


def test_a_member_that_holds_more_than_it_declares_is_damaged(tmp_path):
    archive = pack(tmp_path / "a.zip", {"zeros": bytes(1 << 20)})
    data = archive.read_bytes()
    for mark, offset in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        spot = data.index(mark) + offset
        data = data[:spot] + struct.pack("<I", 10) + data[spot + 4 :]
    archive.write_bytes(data)
    with pytest.raises(PackError, match="damaged"):
        unpacked(archive, tmp_path / "place")
    assert not list(tmp_path.glob("place/.*"))


def test_an_archive_for_which_there_is_no_room_is_refused(tmp_path, monkeypatch):
    archive = pack(tmp_path / "a.zip", FILES)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100}))
    with pytest.raises(PackError, match="where 100 are free"):
        unpacked(archive, tmp_path / "place")


def test_a_folder_that_cannot_be_written_is_an_error_and_a_killed_attempt_is_not_taken_for_whole(tmp_path, monkeypatch):
    archive = pack(tmp_path / "a.zip", FILES)
    (tmp_path / "file").touch()
    with pytest.raises(PackError, match="cannot be unpacked into"):
        unpacked(archive, tmp_path / "file")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", killed)
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            unpacked(archive, tmp_path / "place")
    assert len(list((tmp_path / "place").iterdir())) == 1
    assert contents(unpacked(archive, tmp_path / "place")) == FILES


def test_what_a_killed_attempt_left_is_removed_when_it_is_old(tmp_path):
    archive = pack(tmp_path / "a.zip", FILES)
    place = tmp_path / "place"
    name = unpacked(archive, place).name
    shutil.rmtree(place / name)
    old, young = place / f".{name}.old", place / f".{name}.young"
    old.mkdir()
    young.mkdir()
    os.utime(old, (0, 0))
    unpacked(archive, place)
    assert not old.exists() and young.exists()
