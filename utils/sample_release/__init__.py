"""Small releases of the benchmarks in their authors' layouts, with real videos and dialogues of our own."""

from utils.sample_release.mt_video_bench import gold_answers, make_mt_video_bench, sample_answers

__all__ = ["gold_answers", "make_mt_video_bench", "sample_answers"]
