"""``python -m lmms_eval_tasks``."""

import sys

from lmms_eval_tasks.cli import main

sys.exit(main())
