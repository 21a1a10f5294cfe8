"""Small releases of the benchmarks in their authors' layouts, with real videos and questions of our own."""

from utils.sample_release.mlvu import make_mlvu
from utils.sample_release.mt_video_bench import gold_answers, make_mt_video_bench, sample_answers
from utils.sample_release.mvpbench import make_mvpbench
from utils.sample_release.scvbench import make_scvbench

__all__ = ["MAKERS", "gold_answers", "make_mt_video_bench", "sample_answers"]

MAKERS = {
    "mt_video_bench": make_mt_video_bench,
    "mvpbench": make_mvpbench,
    "mlvu": make_mlvu,
    "scvbench": make_scvbench,
}
