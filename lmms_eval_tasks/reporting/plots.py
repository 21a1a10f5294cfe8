"""Plots, as the papers draw them: told apart without colours, and legible when small."""

import math
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from lmms_eval_tasks.reporting.layout import Plot, layout, task_name
from lmms_eval_tasks.reporting.tables import Scored

# Okabe and Ito's colours that stand on white, in an order in which neighbours differ in lightness too.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#000000", "#d55e00", "#56b4e9", "#cc79a7")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---", "+++", "ooo")

_STYLE: Any = {
    "font.size": 12,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d0d0d0",
    "grid.linewidth": 0.8,
    "hatch.linewidth": 0.8,
    "svg.hashsalt": "lmms-eval-tasks",
    # Text stays text: names in any script, and a file that can be searched.
    "svg.fonttype": "none",
    # A model's name may hold dollar signs.
    "text.parse_math": False,
}
# Characters.
_LEGEND_WIDTH = 38
_WORD_WIDTH = 11
# Of keys, above which their names are slanted.
_CROWDED = 8
_PERCENT = "percent"


class Series(NamedTuple):
    """What is drawn of one run: a value for each key of the axis, NaN where it has none."""

    name: str
    values: list[float]
    lows: list[float]
    highs: list[float]


class Drawing(NamedTuple):
    """A plot with its data.

    Attributes:
        name: File name without ending.
        title: What it shows.
        plot: How it is drawn.
        keys: What stands along its axis.
        series: The runs.
        references: Further marks at each key.
    """

    name: str
    title: str
    plot: Plot
    keys: list[str]
    series: list[Series]
    references: dict[str, list[float]]


def drawings(runs: Sequence[Scored]) -> list[Drawing]:
    """The plots of all benchmarks that have a run, without those that would be empty."""
    found = []
    for benchmark in dict.fromkeys(of.run.benchmark for of in runs):
        rows = [row for row in runs if row.run.benchmark == benchmark]
        for plot in layout(benchmark).PLOTS:
            shown = [row for row in rows if not plot.tasks or row.run.task in plot.tasks]
            found += list(_by_context(plot, shown) if plot.contexts else _of_runs(plot, shown))
    return found


def _of_runs(plot: Plot, rows: Sequence[Scored]) -> Iterator[Drawing]:
    # Where one task alone is there, its name tells nothing.
    several = len({row.run.task for row in rows}) > 1
    names = [_named(row, several) for row in rows]
    yield from _drawing(plot, f"{_room(rows)}_{plot.name}", plot.title, rows, names)


def _by_context(plot: Plot, rows: Sequence[Scored]) -> Iterator[Drawing]:
    for number, label in enumerate(dict.fromkeys(row.run.label for row in rows), start=1):
        of = sorted((row for row in rows if row.run.label == label), key=lambda row: plot.tasks.index(row.run.task))
        if len(of) > 1:
            names = [task_name(row.run.benchmark, row.run.task) for row in of]
            yield from _drawing(plot, f"{_room(of)}_{plot.name}_{number}", f"{plot.title}: {label}", of, names)


def _room(rows: Sequence[Scored]) -> str:
    return rows[0].run.benchmark if rows else ""


def _named(row: Scored, several: bool) -> str:
    task = task_name(row.run.benchmark, row.run.task) if several else ""
    return f"{row.run.label}, {task}" if task else row.run.label


def _drawing(plot: Plot, name: str, title: str, rows: Sequence[Scored], names: Sequence[str]) -> Iterator[Drawing]:
    keys = _keys(plot, rows)
    if isinstance(plot.keys, str):
        scores = {key: f"{plot.keys}/{key}" for key in keys}
    else:
        scores = {key: plot.value.format(key) for key in keys}
    series = [_series(label, row, list(scores.values())) for label, row in zip(names, rows, strict=True)]
    references = {
        label: [rows[0].values.get(pattern.format(key), math.nan) for key in keys]
        for label, pattern in plot.references.items()
        if rows
    }
    shown = [of for of in series if not all(map(math.isnan, of.values))]
    if shown:
        yield Drawing(name, title, plot, keys, shown, references)


def _keys(plot: Plot, rows: Iterable[Scored]) -> list[str]:
    """The keys that any run has a value for; a breakdown's groups in the order of the run that has most of them."""
    if not isinstance(plot.keys, str):
        return [key for key in plot.keys if any(plot.value.format(key) in row.values for row in rows)]
    start = f"{plot.keys}/"
    groups = [[name.removeprefix(start) for name in row.values if name.startswith(start)] for row in rows]
    longest = max(groups, key=len, default=[])
    every = {group for of in groups for group in of}
    # Groups that one run alone has, such as the longest dialogues, stand behind.
    return [*longest, *sorted(every - set(longest))]


def _series(name: str, row: Scored, scores: Sequence[str]) -> Series:
    values = [row.values.get(score, math.nan) for score in scores]
    ends = [row.intervals.get(score, (value, value)) for score, value in zip(scores, values, strict=True)]
    return Series(name, values, [low for low, _ in ends], [high for _, high in ends])


def draw(drawing: Drawing) -> Figure:
    """Draws a plot."""
    plot = drawing.plot
    # The style must hold while ticks and texts are made, and again when they are saved.
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_size(drawing))
        axes: Any = figure.add_subplot(projection="polar" if plot.kind == "radar" else None)
        handles = {"radar": _radar, "lines": _lines, "bars": _bars}[plot.kind](axes, drawing)
        axes.set_title(textwrap.fill(drawing.title, 60), pad=24)
        names = [*(of.name for of in drawing.series), *drawing.references]
        wrapped = ["\n".join(textwrap.wrap(name, _LEGEND_WIDTH)) for name in names]
        # Below everything, however long the names of the keys are.
        bottom = figure.get_tightbbox().y0 / figure.get_figheight()
        figure.legend(handles, wrapped, loc="upper center", bbox_to_anchor=(0.5, bottom), ncols=2, frameon=False,
                      handlelength=3, handleheight=1.4)  # fmt: skip
    return figure


def save(drawing: Drawing, folder: Path) -> tuple[Path, Path]:
    """Draws a plot and writes it as SVG and as PNG.

    Args:
        drawing: The plot.
        folder: Where the files go, which exists.

    Returns:
        The SVG and the PNG.
    """
    figure = draw(drawing)
    files = folder / f"{drawing.name}.svg", folder / f"{drawing.name}.png"
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that the font lacks: the PNG has boxes there, the SVG its text.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        for file in files:
            # Without a date the same data give the same file.
            metadata = {"Date": None} if file.suffix == ".svg" else None
            figure.savefig(file, dpi=150, bbox_inches="tight", pad_inches=0.15, facecolor="white", metadata=metadata)
    return files


def _size(drawing: Drawing) -> tuple[float, float]:
    """Width and height in inches."""
    match drawing.plot.kind:
        case "radar":
            return 7, 7
        case "lines":
            return 8, 5
    return max(8, len(drawing.keys) * (0.4 + 0.25 * len(drawing.series)), 1.3 * min(len(drawing.keys), _CROWDED)), 5


def _radar(axes: Any, drawing: Drawing) -> list[Any]:
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    angles = [2 * math.pi * place / len(drawing.keys) for place in range(len(drawing.keys))]
    handles = [
        axes.plot([*angles, angles[0]], [*of.values, of.values[0]], **_line(number))[0]
        for number, of in enumerate(drawing.series)
    ]
    axes.set_ylim(0, 100)
    axes.set_yticks([20, 40, 60, 80, 100])
    axes.tick_params(axis="y", labelsize=10, labelcolor="#555555")
    axes.tick_params(axis="x", pad=16)
    axes.set_xticks(angles, _words(drawing.keys))
    return handles


def _lines(axes: Any, drawing: Drawing) -> list[Any]:
    spread = 0.3 / len(drawing.series)
    handles = []
    for number, of in enumerate(drawing.series):
        # Side by side, so that intervals do not hide each other.
        shift = spread * (number - (len(drawing.series) - 1) / 2)
        places = [place + shift for place in range(len(drawing.keys))]
        handles.append(axes.errorbar(places, of.values, yerr=_arms(of), capsize=3, elinewidth=1, **_line(number)))
    _ticks(axes, drawing)
    return handles


def _bars(axes: Any, drawing: Drawing) -> list[Any]:
    width = 0.8 / max(len(drawing.series), 2)
    handles = []
    for number, of in enumerate(drawing.series):
        places = [place + width * (number + 0.5 - len(drawing.series) / 2) for place in range(len(drawing.keys))]
        looks = {"color": _colour(number), "edgecolor": "white", "hatch": HATCHES[number % len(HATCHES)]}
        errors = {"elinewidth": 1, "ecolor": "#333333", "capsize": 3}
        handles.append(axes.bar(places, of.values, width, yerr=_arms(of), error_kw=errors, **looks))
    ends = [place - 0.45 for place in range(len(drawing.keys))], [place + 0.45 for place in range(len(drawing.keys))]
    for number, values in enumerate(drawing.references.values()):
        handles.append(axes.hlines(values, *ends, colors="black", linestyles=LINES[number], linewidth=2))
    _ticks(axes, drawing)
    return handles


def _line(number: int) -> dict[str, Any]:
    return {
        "color": _colour(number),
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number % len(LINES)],
        "linewidth": 2,
        "markersize": 7,
    }


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _arms(of: Series) -> list[list[float]]:
    """How far intervals reach below and above; a value may lie just outside of its interval."""
    below = [max(0.0, value - low) for value, low in zip(of.values, of.lows, strict=True)]
    above = [max(0.0, high - value) for value, high in zip(of.values, of.highs, strict=True)]
    return [below, above]


def _ticks(axes: Any, drawing: Drawing) -> None:
    crowded = len(drawing.keys) > _CROWDED
    words = _words(drawing.keys, 100 if crowded else _WORD_WIDTH)
    axes.set_xticks(range(len(drawing.keys)), words, rotation=40 if crowded else 0, ha="right" if crowded else "center")
    axes.grid(False, axis="x")
    axes.set_xlabel(drawing.plot.axis)
    axes.set_ylabel(drawing.plot.unit)
    if drawing.plot.unit == _PERCENT:
        axes.set_ylim(0, 100)


def _words(keys: Iterable[str], width: int = _WORD_WIDTH) -> list[str]:
    return [textwrap.fill(key.replace("_", " "), width, break_long_words=False) for key in keys]
