"""The pack's own errors: what a user did or has that the pack cannot work with."""

from collections.abc import Iterable


class PackError(Exception):
    """A problem that the user can mend; its text names what is wrong and what to do.

    The command line prints the text alone, without a traceback, and exits 1.
    """


def listing(heading: str, lines: Iterable[str], limit: int = 20) -> str:
    """Formats a heading and its lines as one message.

    Args:
        heading: The first line, without a colon.
        lines: What follows, one line each.
        limit: How many lines are shown; the rest is counted.

    Returns:
        The message: the heading and a colon, then a line for each of the lines.
    """
    lines = list(lines)
    shown = [f"  - {line}" for line in lines[:limit]]
    if len(lines) > limit:
        shown.append(f"  - … and {len(lines) - limit} more")
    return "\n".join([f"{heading}:", *shown])
