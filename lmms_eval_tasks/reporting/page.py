"""The page: tables, plots and samples in one HTML file that asks the network for nothing."""

import base64
import hashlib
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from lmms_eval_tasks import __version__
from lmms_eval_tasks.reporting.bootstrap import FEW_VIDEOS, LEAST_FOR_DIFFERENCE, LEVEL, RESAMPLES, Interval
from lmms_eval_tasks.reporting.html import Html, joined, tag
from lmms_eval_tasks.reporting.layout import task_name
from lmms_eval_tasks.reporting.plots import Drawing
from lmms_eval_tasks.reporting.runs import judge_of
from lmms_eval_tasks.reporting.tables import Filled, Pair, Scored

_SECTIONS = {"scores": "Scores", "differences": "Differences", "plots": "Plots", "samples": "Samples",
             "reading": "How to read this"}  # fmt: skip


def page(tables: Sequence[Filled], plots: Sequence[tuple[Drawing, Path]], samples: int) -> str:
    """The whole page.

    Args:
        tables: The tables.
        plots: The plots, each with its SVG file.
        samples: How many samples lie beside it.
    """
    style, code = (_asset(f"report.{kind}") for kind in ("css", "js"))
    # Scripts and pictures beside the page and within it, and nothing else: no connection, no form, no frame.
    policy = (
        f"default-src 'none'; script-src {_allowed(code)} 'self' file:; style-src {_allowed(style)}; "
        "img-src 'self' file: data:; base-uri 'none'; form-action 'none'"
    )
    names = ", ".join(dict.fromkeys(filled.table.title.partition(":")[0] for filled in tables))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{names}: report"),
        tag("style", Html(style)),
    )
    shown = {key: text for key, text in _SECTIONS.items() if key != "plots" or plots}
    sections = {
        "scores": _scores(tables),
        "differences": _differences(tables),
        "plots": tag("div", *(_figure(*plot) for plot in plots), class_="figures"),
        "samples": _samples(samples),
        "reading": _reading(),
    }
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("header", tag("h1", names), tag("p", _summary(tables, samples))),
        tag("nav", *(tag("a", text, href=f"#{key}") for key, text in shown.items()), aria_label="Sections"),
        tag(
            "main",
            *(
                tag("section", tag("h2", text, id=f"{key}-heading"), sections[key], id=key,
                    aria_labelledby=f"{key}-heading")
                for key, text in shown.items()
            ),
            id="content",
            tabindex=-1,
        ),
        tag("footer", tag("p", f"Made by lmms-eval-tasks {__version__}")),
        tag("script", Html(code)),
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _asset(name: str) -> str:
    return (files("lmms_eval_tasks.reporting") / name).read_text("utf-8")


def _allowed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _summary(tables: Sequence[Filled], samples: int) -> str:
    runs = {id(row) for filled in tables for row in filled.rows}
    return f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}, {samples:,} answers"


# ------------------------------------------------------------------------------------------------------------- tables


def _scores(tables: Iterable[Filled]) -> Html:
    return joined(*(joined(_table(filled), _notes(filled)) for filled in tables))


def _table(filled: Filled) -> Html:
    several = len({row.run.task for row in filled.rows}) > 1
    judged = any(judge_of(row.run.card) for row in filled.rows)
    facts = [*(["Task"] if several else []), *(["Judge"] if judged else []), "Coverage"]
    head = _head(["Run", *facts[:-1]], ["Coverage", *map(_words, filled.columns)])
    best = {column: filled.best(column) for column in filled.columns}
    rows = []
    for number, row in enumerate(filled.rows):
        cells = [*([task_name(filled.benchmark, row.run.task)] if several else []),
                 *([judge_of(row.run.card) or "none"] if judged else [])]  # fmt: skip
        rows.append(
            tag(
                "tr",
                tag("th", row.run.label, scope="row"),
                *(tag("td", cell, class_="text") for cell in cells),
                _coverage(row),
                *(_value(row, column, best[column] == number) for column in filled.columns),
            )
        )
    width = 1 + len(facts) + len(filled.columns)
    parts = [head, tag("tbody", *rows)]
    if filled.published:
        title = tag("th", "Published", tag("small", f" {filled.source}"), colspan=width, scope="rowgroup")
        parts.append(
            tag("tbody", tag("tr", title), *(_printed(filled, name, len(facts)) for name in filled.published),
                class_="published")
        )  # fmt: skip
    caption = tag("caption", tag("strong", filled.table.title), f" ({filled.table.unit})")
    return tag("div", tag("table", caption, *parts), class_="wide", tabindex=0, role="region",
               aria_label=filled.table.title)  # fmt: skip


def _head(texts: Iterable[str], numbers: Iterable[str], more: Iterable[str] = ()) -> Html:
    """A table's head; texts stand at the left of their column, numbers at the right."""
    cells = [(text, "text") for text in texts] + [(text, None) for text in numbers] + [(text, "text") for text in more]
    return tag("thead", tag("tr", *(tag("th", text, scope="col", class_=kind) for text, kind in cells)))


def _printed(filled: Filled, name: str, empty: int) -> Html:
    row = filled.published[name]
    cells = (tag("td", _number(row.get(column, math.nan))) for column in filled.columns)
    return tag("tr", tag("th", name, scope="row"), *(tag("td", class_="text") for _ in range(empty)), *cells)


def _coverage(row: Scored) -> Html:
    share, number = row.result["coverage"], row.result["counts"]
    text = "none" if share is None else f"{share:.1f} %"
    scored = f"{number['scored']:,} of {sum(number[key] for key in ('scored', 'unjudged', 'no_answer')):,}"
    return tag("td", text, tag("small", scored))


def _value(row: Scored, column: str, best: bool) -> Html:
    if column not in row.values:
        return tag("td", "–")
    text = _signed(f"{row.values[column]:.2f}")
    ends = row.intervals.get(column)
    return tag("td", tag("strong", text) if best else text, tag("small", _ends(ends)) if ends else None)


def _ends(ends: Interval) -> str:
    return _signed(f"{ends.low:.1f} to {ends.high:.1f}")


def _notes(filled: Filled) -> Html | None:
    notes = [(row.run.label, task_name(filled.benchmark, row.run.task), note)
             for row in filled.rows for note in [*row.result["notes"], *_few(row)]]  # fmt: skip
    if not notes:
        return None
    lines = []
    for (label, task), of in groupby(notes, key=lambda note: note[:2]):
        heading = f"{label}, {task}" if task else label
        lines.append(tag("li", tag("strong", heading), tag("ul", *(tag("li", note) for _, _, note in of))))
    return tag("details", tag("summary", f"Notes on these runs ({len(notes)})"), tag("ul", *lines), class_="notes")


def _few(row: Scored) -> list[str]:
    if row.videos >= FEW_VIDEOS:
        return []
    return [f"{row.videos} videos with a score: intervals from so few are too narrow, and no two runs are told apart "
            f"by what rests on fewer than {LEAST_FOR_DIFFERENCE}"]  # fmt: skip


def _differences(tables: Iterable[Filled]) -> Html:
    compared = [_pairs(filled) for filled in tables if filled.pairs]
    if not compared:
        return tag("p", "Nothing to compare: a table needs two runs.")
    intro = tag(
        "p",
        "Each row subtracts the second run from the first, over the questions that both have scored. ",
        tag("strong", "Bold"),
        f": the {LEVEL} % interval leaves 0 out. ≈: it does not, and which run is better is open.",
    )
    return joined(intro, *compared)


def _pairs(filled: Filled) -> Html:
    columns = [column for column in filled.columns if any(column in pair.differences for pair in filled.pairs)]
    if not columns:
        why = f"each score rests on fewer than {LEAST_FOR_DIFFERENCE} videos"
        return tag("p", f"{filled.table.title}: no two runs are told apart, {why}.")
    rows = [
        tag(
            "tr",
            tag("th", _name(filled, pair.one), scope="row"),
            tag("th", _name(filled, pair.other), scope="row"),
            tag("td", f"{pair.items:,}"),
            *(_difference(pair, column) for column in columns),
            tag("td", ", ".join(pair.conditions) or "none", class_="text"),
        )
        for pair in filled.pairs
    ]
    head = _head(["First", "Second"], ["Questions", *map(_words, columns)], ["Conditions that differ"])
    caption = tag("caption", tag("strong", filled.table.title), f": differences ({filled.table.unit})")
    return tag("div", tag("table", caption, head, tag("tbody", *rows)), class_="wide", tabindex=0, role="region",
               aria_label=f"{filled.table.title}: differences")  # fmt: skip


def _name(filled: Filled, number: int) -> str:
    run = filled.rows[number].run
    task = task_name(run.benchmark, run.task)
    several = len({row.run.task for row in filled.rows}) > 1
    return f"{run.label}, {task}" if several and task else run.label


def _difference(pair: Pair, column: str) -> Html:
    found = pair.differences.get(column)
    if found is None:
        return tag("td", "–")
    text = _signed(f"{found.value:+.2f}")
    value = tag("strong", text) if found.clear else f"≈ {text}"
    p = "p < 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"  # noqa: PLR2004
    return tag("td", value, tag("small", _signed(f"{found.low:+.1f} to {found.high:+.1f}")), tag("small", p))


# -------------------------------------------------------------------------------------------------------------- plots


def _figure(drawing: Drawing, svg: Path) -> Html:
    data = base64.b64encode(svg.read_bytes()).decode()
    text = f"{drawing.title}, of {', '.join(of.name for of in drawing.series)}. Numbers: below."
    picture = tag("img", src=f"data:image/svg+xml;base64,{data}", loading="lazy", alt=text)
    names = [*(of.name for of in drawing.series), *drawing.references]
    columns = [*(of.values for of in drawing.series), *drawing.references.values()]
    rows = (
        tag("tr", tag("th", _words(key), scope="row"), *(tag("td", _number(of[place])) for of in columns))
        for place, key in enumerate(drawing.keys)
    )
    table = tag("table", _head([drawing.plot.axis], names), tag("tbody", *rows))
    numbers = tag(
        "details",
        tag("summary", "Numbers"),
        tag("div", table, class_="wide", tabindex=0, role="region", aria_label=f"{drawing.title}: numbers"),
    )
    return tag("figure", picture, tag("figcaption", numbers))  # fmt: skip


def _number(value: float) -> str:
    return "–" if math.isnan(value) else _signed(f"{value:.2f}")


def _signed(text: str) -> str:
    """Numbers with a minus that is as wide as a plus."""
    return text.replace("-", "−")


def _words(name: str) -> str:
    return name.replace("_", " ")


# ------------------------------------------------------------------------------------------------------------ samples


def _samples(number: int) -> Html:
    filters = tag(
        "form",
        _choice("run", "Run"),
        _choice("benchmark", "Benchmark"),
        _choice("kind", "Ability or category"),
        _choice("status", "Status"),
        _choice("turn", "Turn"),
        _field("least", "Score from", type="number", step="any", inputmode="decimal"),
        _field("most", "Score to", type="number", step="any", inputmode="decimal"),
        _field("text", "Text in question or answer", type="search", class_="long"),
        _choice("order", "Order"),
        tag("button", "Clear filters", type="reset"),
        id="filters",
        aria_label="Filter samples",
        autocomplete="off",
    )
    return joined(
        filters,
        tag("p", f"{number:,} answers", id="count", role="status", aria_live="polite"),
        tag(
            "div",
            tag("div", tag("div", id="rows", role="presentation"), id="list", role="listbox", tabindex=0,
                aria_label="Samples", aria_describedby="keys"),
            tag("article", tag("p", "Choose a sample to see its dialogue, answer and checks."), id="sample",
                tabindex=-1, aria_labelledby="sample-name"),
            class_="browser",
        ),
        tag("p", "Arrow keys, Page Up and Down, Home and End move through the list; Enter goes to the sample, Escape "
            "back to the list.", id="keys", class_="hint"),
    )  # fmt: skip


def _choice(name: str, label: str) -> Html:
    return _labelled(name, label, tag("select", id=f"by-{name}", name=name))


def _field(name: str, label: str, class_: str | None = None, **attributes: str) -> Html:
    return _labelled(name, label, tag("input", id=f"by-{name}", name=name, class_=class_, **attributes))


def _labelled(name: str, label: str, control: Html) -> Html:
    return tag("div", tag("label", label, for_=f"by-{name}"), control)


# ------------------------------------------------------------------------------------------------------------ reading


def _reading() -> Html:
    return tag(
        "dl",
        *(
            joined(tag("dt", term), tag("dd", text))
            for term, text in {
                "Scores": "Computed as in the benchmark's paper, over the answers that have a score. Coverage is the "
                "share of the evaluated questions that have one; failed requests and silent judges are missing from "
                "it, and never count as zero.",
                f"{LEVEL} % intervals": f"Below each score, from {RESAMPLES:,} bootstrap resamples in which whole "
                "videos are drawn, with all their questions, and the score is computed anew (percentiles). They "
                "say how much the choice of videos matters, not what another judging or sampling of answers would "
                f"change, and are too narrow from fewer than {FEW_VIDEOS} videos.",
                "Differences": "Paired: only questions that both runs have scored count, and each resample draws the "
                f"same videos for both; there is none from fewer than {LEAST_FOR_DIFFERENCE} videos. p is twice the "
                "smaller share of resamples on one side of 0. Nothing is "
                "corrected for the number of comparisons: of twenty between equal models, one is clear by chance.",
                "Bold scores": "Ahead of every other run of the table, each of these differences clear of 0. Where "
                "none is bold, no run is shown to be the best. Rows keep the order in which the runs were given.",
                "Published rows": "What the paper prints, for orientation: frames, decoding and judge may differ, and "
                "there are no answers to compare with.",
            }.items()
        ),
    )
