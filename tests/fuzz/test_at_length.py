"""All properties again, with as many examples as a release deserves: about 100,000 together."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = 3600


@pytest.mark.slow
def test_a_hundred_thousand_examples():
    if "FUZZ_EXAMPLES" in os.environ:
        pytest.skip("it is running")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", "-k", "not 200_kb", "tests/fuzz"]
    environment = {**os.environ, "FUZZ_EXAMPLES": str(EXAMPLES)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
