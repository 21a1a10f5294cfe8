"""Folders that are either complete or not there."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def finished_folder(folder: Path) -> Iterator[Path | None]:
    """Let the caller fill a temporary folder that takes its final name only when all went well.

    Args:
        folder: The final name. If it exists it is finished, and is left alone.

    Yields:
        The temporary folder to fill, or None when there is nothing to do.

    Raises:
        Exception: Whatever the caller raises; nothing is left behind then.
    """
    if folder.exists():
        yield None
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    draft.chmod(0o755)
    try:
        yield draft
        try:
            draft.rename(folder)
        except OSError:
            # Another process finished the same folder first; its content is the same.
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
