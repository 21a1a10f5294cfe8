"""Multi-turn, multi-video, long-video and story-video benchmarks for lmms-eval."""

__version__ = "0.1.0"
