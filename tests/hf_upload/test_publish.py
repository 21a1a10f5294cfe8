"""Publishing to a local stand-in for the Hub with the real huggingface_hub, each time in a process of its own."""

import hashlib
import json
import os
import subprocess
import sys

import httpx
import pytest
import yaml

from lmms_eval_tasks.prepare import prepare
from tests.end_to_end.running import ROOT
from tests.hf_upload.publishing import DATA, REPO, upload, use, videos
from utils.hub_server import Fault, HubServer

VIDEOS = {f"videos/{name}.mp4" for name in ("street_bikes", "meadow_rabbit", "car_talk", "three_films")}


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "hf"


def writes(server):
    return [request for request in server.requests if request.method in ("POST", "PUT")]


def prepare_changed(mt_release, folder, old, new):
    """Prepares the sample release with one file of it changed."""
    for path in mt_release.rglob("*.json"):
        target = folder / path.relative_to(mt_release)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    return prepare("mt_video_bench", folder, videos=mt_release).folder


def test_a_dry_run_tells_and_changes_nothing(mt_prepared, cache):
    with HubServer() as server:
        told = upload(server, cache, "--dry-run", "--tag", "v1")
        assert "which is made" in told and "12 files" in told and "4 videos" in told and "tag       v1" in told
        assert writes(server) == []


def test_all_is_published_with_its_hashes_and_again_nothing_is(mt_prepared, cache):
    with HubServer(page=5) as server:
        assert f"export {DATA}={REPO}@v1" in upload(server, cache, "--yes", "--private", "--tag", "v1")
        files = server.files(REPO, "v1")
        assert VIDEOS < set(files)
        manifest = json.loads(files["manifest.json"])
        assert {path: (len(content), hashlib.sha256(content).hexdigest()) for path, content in files.items()} == {
            **{path: (file["size"], file["sha256"]) for path, file in manifest["files"].items()},
            "manifest.json": (len(files["manifest.json"]), hashlib.sha256(files["manifest.json"]).hexdigest()),
        }
        assert files["videos/car_talk.mp4"] == (mt_prepared / "videos" / "car_talk.mp4").read_bytes()
        front = yaml.safe_load(files["README.md"].decode().split("---")[1])
        own = yaml.safe_load((mt_prepared / "README.md").read_text().split("---")[1])
        assert front["configs"] == own["configs"] and front["license"] == "unknown"
        # It is private.
        assert httpx.get(f"{server.url}/api/datasets/{REPO}", trust_env=False).status_code == 404
        commits, already = server.commits(REPO), len(writes(server))
        assert "Nothing is to be done" in upload(server, cache, "--yes", "--tag", "v1")
        assert server.commits(REPO) == commits and len(writes(server)) == already


def test_after_a_break_only_what_is_missing_is_sent(mt_prepared, cache):
    sent = []

    def third_upload_fails(method, path, _):
        if method != "PUT":
            return None
        sent.append(path)
        return Fault("status", status=400) if len(sent) == 3 else None

    with HubServer(third_upload_fails) as server:
        assert "The same command goes on from here" in upload(server, cache, "--yes", status=1)
        assert server.commits(REPO) == [] and server.count("PUT") >= 3
        refused, stored = sent[2], {path for path in sent if path != sent[2]}
        sent[:] = [*range(3)]
        upload(server, cache, "--yes")
        assert refused in sent[3:] and not stored & set(sent[3:])
        assert VIDEOS < set(server.files(REPO))


def test_what_lists_the_videos_comes_after_them(mt_prepared, cache):
    def only_videos(method, path, number):
        return Fault("status", status=400) if path.endswith("/commit/main") and number == 1 else None

    with HubServer(only_videos) as server:
        upload(server, cache, "--yes", "--tag", "v1", status=1)
        assert set(server.files(REPO)) == VIDEOS and server.tags(REPO) == {}
        puts = server.count("PUT")
        upload(server, cache, "--yes", "--tag", "v1")
        assert "manifest.json" in server.files(REPO, "v1") and server.count("PUT") == puts


def test_a_changed_dataset_sends_what_changed_and_leaves_what_is_not_ours(mt_release, mt_prepared, cache, tmp_path):
    with HubServer() as server:
        upload(server, cache, "--yes", "--tag", "v1")
        server.put(REPO, {**server.files(REPO), "LICENSE": b"text", "data/old[1].parquet": b"old"})
        prepare_changed(mt_release, tmp_path / "changed", "rabbit ", "hare ")
        told = upload(server, cache, "--yes", "--tag", "v1", status=1)
        assert "has the tag v1 already, for another state" in told
        puts = server.count("PUT")
        told = upload(server, cache, "--yes", "--tag", "v2")
        assert "removed   1 files" in told and "data/old[1].parquet" in told
        assert 0 < server.count("PUT") - puts < 6
        files = server.files(REPO, "v2")
        assert b"text" == files["LICENSE"] and "data/old[1].parquet" not in files and VIDEOS < set(files)
        assert server.files(REPO, "v1")["manifest.json"] != files["manifest.json"]


def test_without_videos_those_that_were_there_go(mt_prepared, cache):
    with HubServer() as server:
        upload(server, cache, "--yes")
        told = upload(server, cache, "--yes", "--no-videos")
        assert "removed   4 files" in told
        files = server.files(REPO)
        assert not VIDEOS & set(files) and "The videos are not in this repository" in files["README.md"].decode()
        assert not any(path.startswith("videos/") for path in json.loads(files["manifest.json"])["files"])


def test_missing_and_broken_videos_refuse_unless_said_otherwise(mt_prepared, cache):
    (mt_prepared / "videos" / "car_talk.mp4").unlink()
    (mt_prepared / "videos" / "street_bikes.mp4").unlink()
    (mt_prepared / "videos" / "street_bikes.mp4").symlink_to("/nowhere.mp4")
    with HubServer() as server:
        told = upload(server, cache, "--yes", status=1)
        assert "2 of 4 videos" in told and "- car_talk" in told and "- street_bikes" in told and server.requests == []
        assert "left out  2 videos" in upload(server, cache, "--yes", "--skip-missing")
        assert {path for path in server.files(REPO) if path in VIDEOS} == VIDEOS - {
            "videos/car_talk.mp4", "videos/street_bikes.mp4"
        }  # fmt: skip


@pytest.mark.slow
def test_two_thousand_videos_are_published_and_only_those_asked_for_downloaded(mt_prepared, cache):
    path = mt_prepared / "manifest.json"
    manifest = json.loads(path.read_text())
    for number in range(2000):
        (mt_prepared / "videos" / f"{number:04}.mp4").write_bytes(b"%d" % number)
        manifest["videos"][f"{number:04}"] = ["memory_recall"]
    path.write_text(json.dumps(manifest))
    with HubServer() as server:
        upload(server, cache, "--yes")
        assert len([path for path in server.files(REPO) if path.startswith("videos/")]) == 2004
        assert len(server.commits(REPO)) == 2
        asked = len(server.requests)
        assert "unchanged 2012 files" in upload(server, cache, "--dry-run")
        # The repository, its files in three pages, its tags.
        assert len(server.requests) - asked == 5
        use(server, cache, "assert prepared.video('1234').read_bytes() == b'1234' and not prepared.missing_videos()")
        assert videos(server) == ["1234.mp4"]


def answer(server, cache, text):
    """Runs an upload that asks, and answers."""
    done = subprocess.run(
        [sys.executable, "-m", "hf_upload", "mt_video_bench", "--repo", REPO],
        cwd=ROOT, input=text, capture_output=True, text=True, check=False,
        env={**os.environ, **server.environment(cache)},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("text", "status"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_it_asks_first(mt_prepared, cache, text, status):
    with HubServer() as server:
        found, told = answer(server, cache, text)
        assert found == status and "Upload? [y/N]" in told and ("nothing was uploaded" in told) == bool(status)
        assert bool(writes(server)) != bool(status)


@pytest.mark.parametrize("token", ["", "hf_wrong"])
def test_a_token_that_may_not_write_is_told_and_never_printed(mt_prepared, cache, token):
    with HubServer() as server:
        told = upload(server, cache, "--yes", status=1, HF_TOKEN=token)
        assert (
            "not allowed (HTTP 401): set a token that may" in told
            and "hf_wrong" not in told
            and "Traceback" not in told
        )
        assert "hf_local" not in upload(server, cache, "--yes")


REFUSED = {
    "a repository without an owner": (["--repo", "mt"], {}, "ORG/NAME is needed"),
    "a path": (["--repo", "../mt/x"], {}, "ORG/NAME is needed"),
    "a dataset that is on the Hub": ([], {DATA: REPO}, "is org/mt@"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_published_is_refused(mt_prepared, cache, name):
    options, environment, text = REFUSED[name]
    with HubServer() as server:
        upload(server, cache, "--yes")
        already = len(writes(server))
        assert text in upload(server, cache, "--yes", *options, status=1, **environment)
        assert len(writes(server)) == already
