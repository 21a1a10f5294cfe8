"""The pack's logger: lmms-eval's own, so that its ``--verbosity`` holds for us too."""

from loguru import logger

__all__ = ["logger"]
