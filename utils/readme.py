"""The README's tables that are made from code.

python -m utils.readme      # writes them anew
"""

import json
import re
from pathlib import Path

from lmms_eval_tasks.media.backends import BACKENDS
from lmms_eval_tasks.settings import Settings

README = Path(__file__).parents[1] / "README.md"
BENCHES = Path(__file__).parent / "bench" / "results.json"
# So many of a bench's figures are shown: those that its aim is about come first.
FIGURES = 3


def with_tables(text: str) -> str:
    """The README's text with its tables made anew between their markers."""
    for name, table in (("backends", backends()), ("settings", settings()), ("benches", benches())):
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


def benches() -> str:
    """A row for each bench: its first figures as they were measured last, and on which machine."""
    results = json.loads(BENCHES.read_text("utf-8"))
    rows = [f"| bench | on {results['machine']} | |", "| --- | --- | --- |"]
    for name, bench in results["benches"].items():
        figures = [f"{figure} {value:.4g}" for figure, value in list(bench["figures"].items())[:FIGURES]]
        rows.append(f"| `{name}` | {', '.join(figures)} | {bench['about'].rstrip('.')} |")
    return "\n".join(rows)


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text("utf-8")), "utf-8")
