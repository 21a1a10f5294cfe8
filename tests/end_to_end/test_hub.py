"""Loading from a local stand-in for the Hub with the real huggingface_hub and datasets, in processes of their own."""

import json
import os
import subprocess
import sys

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import ROOT, command
from tests.hf_upload.publishing import DATA, REPO, published, upload, use, videos
from utils.hub_server import Fault, HubServer
from utils.openai_server import OpenAIServer

# What is on the Hub beside the videos: the manifest, the card, and a file for each of six abilities.
ANNOTATIONS = 8
VIDEO = "videos/street_bikes.mp4"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "hf"


@pytest.fixture
def server():
    with HubServer() as server:
        server.put(REPO, published(), tag="v1")
        yield server


def failing(match, fault, times=1):
    """The first requests of content with a name go wrong."""
    return lambda method, path, number: fault if method == "GET" and match in path and number < times else None


def test_opening_brings_the_annotations_and_no_video(server, cache):
    code = """
assert len(prepared.rows()) == 12 and len(prepared.rows('memory_recall')) == 2
assert prepared.missing_videos() == [] and len(prepared.not_fetched()) == 4
print(canonical.attributes('mt_video_bench')('fingerprint'))
"""
    before = use(server, cache, code).splitlines()[-1]
    assert server.count("GET", "/resolve/") == ANNOTATIONS and len(server.requests) == 2 * ANNOTATIONS
    assert videos(server) == []
    asked = len(server.requests)
    after = "prepared.video('street_bikes')\nprint(canonical.attributes('mt_video_bench')('fingerprint'))"
    assert use(server, cache, after).splitlines()[-1] == before
    assert videos(server) == ["street_bikes.mp4"]
    # Whether v1 is what it was, and the video.
    assert len(server.requests) - asked == 3


def test_a_video_on_disk_wins(server, cache, mt_release):
    code = f"assert str(prepared.video('street_bikes')).startswith({str(mt_release)!r})"
    use(server, cache, code, **{f"{PREFIX}VIDEOS_MT_VIDEO_BENCH": mt_release})
    assert videos(server) == []


def test_a_pinned_version_stays_what_it_was(server, cache):
    code = "print(prepared.folder.name, prepared.fingerprint)"
    commit = server.tags(REPO)["v1"]
    changed = {
        path: content.replace(b'"fingerprint": "', b'"fingerprint": "0') for path, content in published().items()
    }
    server.put(REPO, changed)
    pinned, by_commit, latest = (
        use(server, cache, code, data).splitlines()[-1].split() for data in (f"{REPO}@v1", f"{REPO}@{commit}", REPO)
    )
    assert pinned == by_commit and pinned[0] == commit
    assert latest[0] == server.commits(REPO)[-1] and latest[1] == "0" + pinned[1]


def test_offline_it_works_from_the_cache_and_says_what_is_not_there(server, cache):
    bring = ("lmms-eval-tasks", "prepare", "mt_video_bench", "--fetch-videos")
    environment = {**server.environment(cache), DATA: f"{REPO}@v1"}
    assert "The videos are here" in command(*bring, cwd=ROOT, **environment)
    assert sorted(videos(server)) == sorted(os.path.basename(path) for path in published() if "videos/" in path)
    asked = len(server.requests)
    offline = {"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"}
    code = (
        "assert len(prepared.rows()) == 12 and prepared.video('car_talk').stat().st_size and not prepared.not_fetched()"
    )
    use(server, cache, code, f"{REPO}@v1", **offline)
    told = use(server, cache.with_name("empty"), "", f"{REPO}@v1", status=1, **offline)
    assert f"{REPO}@v1: manifest.json cannot be downloaded: it is not in the cache" in told
    assert len(server.requests) == asked


def test_offline_the_check_warns_of_videos_that_are_not_here(server, cache):
    check = "from lmms_eval_tasks.checks import Conditions, before_run\nbefore_run(['mt_video_bench'], Conditions())"
    assert "HF_HUB_OFFLINE" not in use(server, cache, check)
    told = use(server, cache, check, HF_HUB_OFFLINE="1")
    assert "4 of 4 videos are on the Hub alone" in told and videos(server) == []


def test_the_videos_of_a_limited_run_are_brought(server, cache):
    bring = ("lmms-eval-tasks", "prepare", "mt_video_bench", "--fetch-videos", "--limit", "1")
    command(*bring, cwd=ROOT, **server.environment(cache), **{DATA: REPO})
    rows = "print({prepared.rows(config)[0]['video'] + '.mp4' for config in prepared.configs} == set(%r))"
    assert use(server, cache, rows % videos(server)).splitlines()[-1] == "True"


def test_several_ranks_download_once(server, cache):
    code = (
        "from lmms_eval_tasks import canonical\nprepared = canonical.opened('mt_video_bench')\n"
        "print(len(prepared.rows()), prepared.video('street_bikes').stat().st_size)"
    )
    environment = {**os.environ, **server.environment(cache), DATA: REPO}
    ranks = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    printed = {rank.communicate()[0] for rank in ranks}
    assert printed == {f"12 {len(published()[VIDEO])}\n"}
    assert server.count("GET", "/resolve/") == ANNOTATIONS + 1


def test_a_large_video_goes_on_where_it_was_cut(server, cache):
    content = os.urandom(1 << 20) * 25
    publish_with(server, {VIDEO: content})
    server.faults = failing("street_bikes", Fault("cut", after=21 << 20))
    use(server, cache, "assert prepared.video('street_bikes').stat().st_size == 25 << 20")
    assert videos(server) == ["street_bikes.mp4"] * 2
    assert [request.status for request in server.requests if "street_bikes" in request.path][1:] == [200, 206]


@pytest.mark.parametrize("name", ["corrupt", "short"])
@pytest.mark.parametrize("file", [VIDEO, "data/memory_recall.parquet"])
def test_a_damaged_file_is_thrown_away_and_fetched_once_more(server, cache, name, file):
    server.faults = failing(file, Fault(name))
    code = "print(prepared.rows('memory_recall')['id'], prepared.video('street_bikes').stat().st_size)"
    assert use(server, cache, code).splitlines()[-1].endswith(f" {len(published()[VIDEO])}")
    server.faults = None
    assert server.count("GET", file) == 2


def test_a_file_that_stays_damaged_is_named_and_not_kept(server, cache):
    server.faults = failing("street_bikes", Fault("corrupt"), times=2)
    told = use(server, cache, "prepared.video('street_bikes')", status=1)
    assert f"{REPO}@{server.tags(REPO)['v1']}: {VIDEO} arrived damaged twice (another SHA-256)" in told
    assert not [path for path in cache.rglob("street_bikes*") if path.exists()]
    assert "prepared" not in use(server, cache, "prepared.video('street_bikes')")
    assert len(videos(server)) == 3


def test_a_damaged_manifest_is_fetched_once_more(server, cache):
    server.faults = failing("manifest.json", Fault("corrupt"))
    use(server, cache, "assert len(prepared.rows()) == 12")
    assert server.count("GET", "manifest.json") == 2


def test_a_copy_that_changes_in_the_cache_is_noticed(server, cache):
    use(server, cache, "print(prepared.video('street_bikes'))")
    [copy] = [path.resolve() for path in cache.rglob("street_bikes.mp4")]
    copy.write_bytes(copy.read_bytes()[:-5] + b"other")
    use(server, cache, f"assert prepared.video('street_bikes').stat().st_size == {len(published()[VIDEO])}")
    assert len(videos(server)) == 2
    use(server, cache, "prepared.video('street_bikes')")
    assert len(videos(server)) == 2


def test_a_busy_hub_is_waited_for(server, cache):
    def busy(method, path, number):
        return Fault("status", status=429, retry_after=0) if number == 0 and "street_bikes" in path else None

    server.faults = busy
    use(server, cache, "prepared.video('street_bikes')")
    assert server.count("GET", "street_bikes") == 2


FAILURES = {
    "no such dataset": ("org/other", "there is no such dataset (nor a folder of this name)"),
    "no such version": (f"{REPO}@v9", "it has no such tag, branch or commit"),
    "no prepared dataset": ("org/official", "manifest.json cannot be downloaded: it has no such file"),
    "another benchmark": ("org/strange", "holds mvpbench"),
    "a broken manifest": ("org/broken", "its manifest.json is damaged, or it is no prepared dataset"),
    "a manifest that leads out": ("org/evil", "paths in it lead out of its folder:\n  - '../../evil.mp4'"),
}


def test_what_cannot_be_loaded_is_said_in_one_line(server, cache, tmp_path):
    manifest = json.loads(published()["manifest.json"])
    evil = {**manifest["files"], "../../evil.mp4": {"size": 4, "sha256": None}}
    server.put("org/official", {"mtqa/summary.json": b"{}"})
    server.put(
        "org/strange", {"manifest.json": json.dumps({**manifest, "benchmark": "mvpbench", "files": {}}).encode()}
    )
    server.put("org/broken", {"manifest.json": b"{"})
    server.put(
        "org/evil", {"manifest.json": json.dumps({**manifest, "files": evil}).encode(), "../../evil.mp4": b"evil"}
    )
    for data, text in FAILURES.values():
        told = command("lmms-eval-tasks", "prepare", "mt_video_bench", "--fetch-videos", cwd=ROOT, status=1,
                       **{**server.environment(cache), DATA: data})  # fmt: skip
        assert text in told and "Traceback" not in told
    assert not list(tmp_path.rglob("*evil.mp4"))


def test_what_the_hub_refuses_is_told(server, cache):
    server.faults = lambda method, path, _: Fault("status", status=403) if "manifest.json" in path else None
    told = use(server, cache, "", status=1)
    assert f"{REPO}: manifest.json cannot be downloaded: it is not allowed (HTTP 403): set a token that may" in told


def publish_with(server, files):
    """Publishes the dataset with other content for some files, and a manifest to it."""
    from hashlib import sha256

    manifest = json.loads(published()["manifest.json"])
    described = {path: {"size": len(content), "sha256": sha256(content).hexdigest()} for path, content in files.items()}
    names = {
        path.removeprefix("videos/").removesuffix(".mp4"): ["memory_recall"] for path in files if "videos/" in path
    }
    manifest = {**manifest, "files": {**manifest["files"], **described}, "videos": {**manifest["videos"], **names}}
    server.put(REPO, {**published(), **files, "manifest.json": json.dumps(manifest).encode()})


def test_two_thousand_videos_cost_no_request_until_they_are_asked_for(server, cache):
    publish_with(server, {f"videos/{number:04}.mp4": b"%d" % number for number in range(2000)})
    code = "assert len(prepared.video_names()) == 2004 and prepared.missing_videos() == []\n"
    use(server, cache, code + "assert prepared.video('1234').read_bytes() == b'1234'")
    assert len(server.requests) == 2 * (ANNOTATIONS + 1) and videos(server) == ["1234.mp4"]


@pytest.fixture
def official(server, mt_release):
    """The authors' own repository: their files, and one that nobody needs."""
    files = {path.relative_to(mt_release).as_posix(): path.read_bytes() for path in mt_release.rglob("*.*")}
    server.put("org/official", {**files, "figures/large.png": b"x" * 1000, "videos.zip": b"PK"}, tag="2026")
    return server


def test_an_official_release_is_prepared_from_its_annotations(official, cache, home, mt_release):
    prepare = ("lmms-eval-tasks", "prepare", "mt_video_bench", "--source", "org/official@2026")
    environment = official.environment(cache)
    told = command(*prepare, cwd=ROOT, **environment)
    assert "all                           12          24       4" in told and "missing" not in told
    assert "also holds archives, which are left there, such as videos.zip" in told
    assert videos(official) == [] and official.count("GET", "/resolve/") == 12
    prepared = canonical.opened("mt_video_bench")
    assert prepared.missing_videos() == [] and prepared.remote("car_talk").path == "videos/car_talk.mp4"
    assert prepared.remote("car_talk").repo.revision == official.tags("org/official")["2026"]
    asked = len(official.requests)
    # From here on the dataset is the prepared one, and the repository is asked for videos alone.
    code = "from lmms_eval_tasks import canonical\nprint(canonical.opened('mt_video_bench').video('car_talk'))"
    path = command("python", "-c", code, cwd=ROOT, **environment).splitlines()[-1]
    with open(path, "rb") as file:
        assert file.read() == (mt_release / "videos" / "car_talk.mp4").read_bytes()
    assert len(official.requests) - asked == 2
    bring = ("lmms-eval-tasks", "prepare", "mt_video_bench", "--fetch-videos")
    command(*bring, cwd=ROOT, **environment)
    assert len(videos(official)) == 4


def test_what_was_prepared_from_the_hub_can_be_published_without_its_videos(official, cache, mt_release):
    command("lmms-eval-tasks", "prepare", "mt_video_bench", "--source", "org/official", cwd=ROOT,
            **official.environment(cache))  # fmt: skip
    upload(official, cache, "--yes", repo="org/mine")
    assert not any(path.startswith("videos/") for path in official.files("org/mine"))
    use(official, cache, "assert not prepared.missing_videos()\nprepared.video('car_talk')", "org/mine")
    assert videos(official) == ["car_talk.mp4"]


def test_an_official_release_whose_paths_lead_out_is_refused(official, cache, home, tmp_path):
    official.put("org/evil", {**official.files("org/official"), "../../evil.json": b"{}"})
    told = command("lmms-eval-tasks", "prepare", "mt_video_bench", "--source", "org/evil", cwd=ROOT, status=1,
                   **official.environment(cache))  # fmt: skip
    assert "org/evil is refused: paths in it lead out of its folder:\n  - '../../evil.json'" in told
    assert official.count("GET", "/resolve/") == 0 and not list(tmp_path.rglob("evil.json"))


def test_without_source_something_must_be_asked_for(home):
    told = command("lmms-eval-tasks", "prepare", "mt_video_bench", cwd=ROOT, status=1)
    assert "prepare needs --source" in told
    told = command("lmms-eval-tasks", "prepare", "mt_video_bench", "--fetch-videos", cwd=ROOT, status=1)
    assert "mt_video_bench is not prepared" in told and "Traceback" not in told


@pytest.mark.slow
def test_lmms_eval_runs_from_the_hub_and_downloads_what_it_asks(server, cache, tmp_path):
    with OpenAIServer() as model:
        played = f"model_version=played,base_url={model.url},api_key=none,num_concurrent=4,max_frames_num=4"
        command(
            "lmms-eval", "--model", "openai", "--model_args", played, "--tasks", "mt_video_bench", "--limit", "3",
            "--output_path", tmp_path / "logs", "--log_samples", "--batch_size", "1", cwd=tmp_path,
            **{
                **server.environment(cache), DATA: f"{REPO}@v1", f"{PREFIX}FRAMES": 4, f"{PREFIX}LONG_SIDE": 64,
                f"{PREFIX}JUDGE_BASE_URL": model.url, f"{PREFIX}JUDGE_MODEL": "judge", f"{PREFIX}JUDGE_API_KEY": "none",
                f"{PREFIX}JUDGE_REPEATS": 1,
            },
        )  # fmt: skip
        assert len([request for request in model.requests if request["model"] == "played"]) == 3
    [log] = (tmp_path / "logs").rglob("*_samples_mt_video_bench.jsonl")
    samples = [json.loads(line)["overall"] for line in log.read_text().splitlines()]
    assert [sample["status"] for sample in samples] == ["scored"] * 3
    assert set(videos(server)) == {f"{sample['video']}.mp4" for sample in samples} and len(videos(server)) < 3
    assert len(server.requests) == 2 * (ANNOTATIONS + len(videos(server)))
