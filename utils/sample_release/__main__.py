"""`python -m utils.sample_release mt_video_bench FOLDER` writes a sample release."""

import argparse
from pathlib import Path

from utils.sample_release import make_mt_video_bench

MAKERS = {"mt_video_bench": make_mt_video_bench}


def main() -> None:
    """Write the sample release of a benchmark, and print its folder."""
    parser = argparse.ArgumentParser(prog="python -m utils.sample_release", description=main.__doc__)
    parser.add_argument("benchmark", choices=MAKERS)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    print(MAKERS[arguments.benchmark](arguments.folder))


if __name__ == "__main__":
    main()
