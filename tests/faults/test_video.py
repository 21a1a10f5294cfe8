"""A video that fails while lmms-eval generates: its command line would pass over an error, and exit with 0."""

import pytest

from lmms_eval_tasks import canonical
from lmms_eval_tasks.errors import PackError


def cli_evaluate_single(args=None):
    """Named as what calls us on lmms-eval's command line."""
    return canonical.clip("mt_video_bench", "car_talk")


def in_process():
    return canonical.clip("mt_video_bench", "car_talk")


@pytest.mark.parametrize(
    ("ask", "ranks", "ends"),
    [
        (in_process, None, PackError),
        (in_process, "", PackError),
        (in_process, "1", PackError),
        (in_process, "2", SystemExit),
        (cli_evaluate_single, None, SystemExit),
        (cli_evaluate_single, "2", SystemExit),
    ],
)
def test_it_ends_the_process_where_an_error_would_be_passed_over(mt_prepared, monkeypatch, ask, ranks, ends):
    video = mt_prepared / "videos" / "car_talk.mp4"
    video.unlink()
    video.write_bytes(b"no video")
    if ranks is not None:
        monkeypatch.setenv("WORLD_SIZE", ranks)
    with pytest.raises(ends, match=r"car_talk\.mp4 \(codec unknown\): it cannot be opened.*ON_MISSING_VIDEO=skip"):
        ask()
