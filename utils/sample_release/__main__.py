"""`python -m utils.sample_release BENCHMARK FOLDER` writes a sample release."""

import argparse
from pathlib import Path

from utils.sample_release import MAKERS


def main() -> None:
    """Write the sample release of a benchmark, and print its folder."""
    parser = argparse.ArgumentParser(prog="python -m utils.sample_release", description=main.__doc__)
    parser.add_argument("benchmark", choices=MAKERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dialogues", type=int, help="of mt_video_bench: repeat the sample's, up to so many")
    arguments = parser.parse_args()
    more = {"dialogues": arguments.dialogues} if arguments.dialogues else {}
    print(MAKERS[arguments.benchmark](arguments.folder, **more))


if __name__ == "__main__":
    main()
