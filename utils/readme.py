"""The README's tables that are made from code.

python -m utils.readme      # writes them anew
"""

import re
from pathlib import Path

from lmms_eval_tasks.media.backends import BACKENDS
from lmms_eval_tasks.settings import Settings

README = Path(__file__).parents[1] / "README.md"


def with_tables(text: str) -> str:
    """The README's text with its tables made anew between their markers."""
    for name, table in (("backends", backends()), ("settings", settings())):
        block = f"<!-- {name} -->\n{table}\n<!-- end of {name} -->"
        text = re.sub(
            f"<!-- {name} -->(.*<!-- end of {name} -->)?", lambda _, block=block: block, text, flags=re.DOTALL
        )
    return text


def backends() -> str:
    """A row for each backend: the frame argument and its default."""
    rows = ["| backend | argument for 128 frames | its default | mind |", "| --- | --- | --- | --- |"]
    for name, backend in BACKENDS.items():
        more = "".join(f",{key}={value}" for key, value in backend.also.items())
        argument = f"`{backend.argument}=128{more}`" if backend.argument else "none"
        default = backend.default if backend.default is not None else "the server's"
        rows.append(f"| `{name}` | {argument} | {default} | {backend.note} |")
    return "\n".join(rows)


def settings() -> str:
    """A row for each setting."""
    rows = ["| variable | default | |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        default = (
            ""
            if field.default is None
            else f"`{int(field.default) if field.default in (True, False) else field.default}`"
        )
        rows.append(f"| `{name.upper()}` | {default} | {field.description} |")
    return "\n".join(rows)


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text("utf-8")), "utf-8")
