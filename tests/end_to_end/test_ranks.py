"""Real multi-process runs: the numbers and the items of any number of ranks are those of one."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from lmms_eval_tasks.benchmarks import tasks
from lmms_eval_tasks.prepare import prepare
from lmms_eval_tasks.settings import PREFIX
from tests.end_to_end.running import ROOT, command, metrics
from utils.openai_server import VAGUE_ANSWER, OpenAIServer, rule_based
from utils.sample_release import make_mt_video_bench
from utils.sample_release.mlvu import make_mlvu, mlvu_reply
from utils.sample_release.mvpbench import make_mvpbench, played
from utils.sample_release.scvbench import make_scvbench

pytestmark = pytest.mark.slow

MAKE = {
    "mt_video_bench": make_mt_video_bench,
    "mvpbench": make_mvpbench,
    "mlvu": make_mlvu,
    "scvbench": make_scvbench,
}
# Of every kind: judged always, where rules do not read, and never; single requests and conversations; groups.
ASKED = ["mt_video_bench", "mt_video_bench_self", "mvpbench", "mlvu", "scvbench"]
NAMES = [
    "mt_video_bench", "mt_video_bench_self", "mvpbench", "mlvu_mc_dev", "mlvu_gen_dev", "scvbench_fqa", "scvbench_pqa",
    "scvbench_pqa_gold", "scvbench_storycot",
]  # fmt: skip
SCRIPT = Path(__file__).with_name("one_rank.py")


def judge(body, n):
    """Plays the judge of every benchmark; each of its parts is vague, or says yes, about the prompts of others."""
    said = [of(body, n) for of in (mlvu_reply({}), played({}), rule_based())]
    return next((text for text in said if text not in (VAGUE_ANSWER, "Yes.")), "Yes.")


class Runs:
    """Runs of all tasks, each under the number of ranks that share it."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self._done = {}

    def environment(self, judge, **more):
        return {
            f"{PREFIX}HOME": self.folder / "home",
            f"{PREFIX}JUDGE_BASE_URL": self.server.url,
            f"{PREFIX}JUDGE_MODEL": judge,
            f"{PREFIX}JUDGE_API_KEY": "sk-none",
            f"{PREFIX}JUDGE_REPEATS": 2,
            f"{PREFIX}FRAMES": 4,
            f"{PREFIX}LONG_SIDE": 64,
            "PYTHONPATH": ROOT,
            **more,
        }

    def run(self, ranks, *limit, names=tuple(ASKED), status=0, **more):
        # A judge of its own for each run, so that no verdict is on disk.
        name = "-".join(map(str, ("judge", ranks, *limit)))
        output = self.folder / f"{name}.json"
        printed = command(
            "torchrun", "--standalone", "--nproc_per_node", ranks, SCRIPT, ",".join(names),
            self.folder / "mt_video_bench", output, *limit,
            cwd=self.folder, status=status, **self.environment(name, **more),
        )  # fmt: skip
        return printed if status else json.loads(output.read_text())

    def whole(self, ranks):
        if ranks not in self._done:
            self._done[ranks] = self.run(ranks, **{f"{PREFIX}CLIPS": 0})
        return self._done[ranks]

    def calls(self, judge):
        return sum(request["model"] == judge for request in self.server.requests)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    with pytest.MonkeyPatch.context() as patch, OpenAIServer(reply=judge) as server:
        patch.setenv(f"{PREFIX}HOME", str(folder / "home"))
        for name, make in MAKE.items():
            prepare(name, make(folder / name))
        yield Runs(folder, server)


def comparable(found, task):
    """Items by id, without what names the judge."""
    kept = {
        item["id"]: {**item, "card": {**item["card"], "judge": None}, "judge": None} for item in found["items"][task]
    }
    assert len(kept) == len(found["items"][task])
    return kept


@pytest.mark.parametrize("task", NAMES)
@pytest.mark.parametrize("ranks", [2, 3])
def test_any_number_of_ranks_gives_what_one_gives(runs, ranks, task):
    one, several = runs.whole(1), runs.whole(ranks)
    assert set(one["items"]) == set(several["items"]) == set(NAMES)
    found = comparable(one, task)
    assert comparable(several, task) == found
    assert {item["status"] for item in found.values()} == {"scored"} and len(found) > 2
    assert metrics(one, task) == metrics(several, task)
    assert metrics(one, task)["coverage"] == 100


def test_ranks_share_docs_unevenly_and_judge_each_answer_once(runs):
    one = runs.whole(1)
    sizes = [len(one["items"][task]) for task in NAMES]
    assert any(size % 2 for size in sizes) and any(size % 3 for size in sizes)
    judged = sum(len(one["items"][task]) * 2 for task in NAMES if tasks()[task].judged == "all")
    unread = sum("judge" in item for item in one["items"]["mvpbench"])
    # Those, and the check before the run.
    assert 0 < unread < len(one["items"]["mvpbench"])
    for ranks in (1, 2, 3):
        runs.whole(ranks)
        assert runs.calls(f"judge-{ranks}") == 1 + judged + unread


def test_fewer_docs_than_ranks_and_every_clip_made_once(runs, tmp_path):
    # Whoever makes a clip starts a worker, which tells its source here.
    (tmp_path / "sitecustomize.py").write_text(
        "import json, sys\n"
        "if 'lmms_eval_tasks.media.worker' in sys.orig_argv:\n"
        f"    print(sys.orig_argv[-1], file=open({str(tmp_path / 'made')!r}, 'a'))\n"
    )
    found = runs.run(3, 2, PYTHONPATH=f"{tmp_path}:{ROOT}")
    whole = runs.whole(1)
    for task in NAMES:
        items = comparable(found, task)
        # A doc of `mt_video_bench_self` is a dialogue of several turns.
        assert len(items) == 2 or task == "mt_video_bench_self"
        full = comparable(whole, task)
        for name, item in items.items():
            assert {**item, "card": None} == {**full[name], "card": None}
        assert metrics(found, task)["coverage"] == 100
    made = [json.loads(line) for line in (tmp_path / "made").read_text().splitlines()]
    clips = list((runs.folder / "home" / "clips").glob("*.mp4"))
    assert len(made) == len(clips) > 10
    assert set(Counter((job["source"], str(job["sampling"])) for job in made).values()) == {1}


def test_a_video_that_one_rank_cannot_decode_ends_the_run_of_all(runs, tmp_path):
    # Headers are whole, so that the check before the run is content. With one doc the second rank only waits.
    videos = shutil.copytree(runs.folder / "mt_video_bench" / "videos", tmp_path / "videos")
    for path in videos.iterdir():
        content = path.read_bytes()
        start = content.index(b"mdat") + 4
        end = content.index(b"moov") - 4 if content.index(b"moov") > start else len(content)
        path.write_bytes(content[:start] + bytes(end - start) + content[end:])
    printed = runs.run(2, 1, names=["mt_video_bench"], status=1, **{f"{PREFIX}VIDEOS_MT_VIDEO_BENCH": videos})
    assert f"lmms-eval-tasks: {videos}" in printed and "(codec h264)" in printed
    assert "ON_MISSING_VIDEO=skip to run without its questions" in printed
