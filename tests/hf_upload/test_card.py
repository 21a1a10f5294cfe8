import json

import pytest
import yaml

from hf_upload.card import ABOUT, about, card, size
from lmms_eval_tasks import canonical
from lmms_eval_tasks.benchmarks import BENCHMARKS
from lmms_eval_tasks.errors import PackError


def test_every_benchmark_has_its_origin_and_terms():
    assert set(ABOUT) == set(BENCHMARKS)
    with pytest.raises(PackError, match="no entry in ABOUT"):
        about("another")


def test_the_card_tells_contents_columns_and_terms(mt_prepared):
    text = card(canonical.opened("mt_video_bench"), "org/mt", {"videos/a.mp4": 2_500_000, "videos/b.mp4": 1})
    front = yaml.safe_load(text.split("---")[1])
    assert [config["config_name"] for config in front["configs"]][:2] == ["default", "object_reference"]
    assert front["size_categories"] == ["n<1K"]
    for part in (
        "| `memory_recall` | 2 | 4 | 2 |", "| `default` | 12 | 24 | 4 |", "2 files, 2.5 MB", "| `turns` | `list<",
        "export LMMS_EVAL_TASKS_DATA_MT_VIDEO_BENCH=org/mt\n", "see the authors' repository", "NJU-LINK/MT-Video-Bench",
    ):  # fmt: skip
        assert part in text
    assert "cannot be scored" not in text and "{" not in text.split("---", 2)[2]


def test_the_card_tells_what_is_excluded_and_where_the_videos_are(mt_prepared):
    path = mt_prepared / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["excluded"] = [{"id": "x", "reason": "y"}]
    manifest["hub"] = {"repo": "authors/release", "revision": "0" * 40, "files": {}}
    path.write_text(json.dumps(manifest))
    text = card(canonical.opened("mt_video_bench"), "org/mt", {})
    assert "lists 1 questions that cannot be scored" in text
    assert "[authors/release](https://huggingface.co/datasets/authors/release)" in text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1_140_000, "1.14 MB"),
        (10**11, "100 GB"),
        (10**16, "1e+04 TB"),
    ],
)
def test_sizes(number, text):
    assert size(number) == text
