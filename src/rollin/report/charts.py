"""Learning curves: the mean over seeds, its standard error as a band, published values on top.

All figures have one look: colours that stay apart in print and for colour-blind readers. A
condition has the same colour and line on every chart.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollin.analysis.results import Line, Panel, few_enough, held, over_seeds
from rollin.report.labels import label_text, quantity_text, shown
from rollin.runs.engines import engine
from rollin.runs.files import write_atomically
from rollin.sweeps.condition import Published

# ------------------------------------------------------------------ the look

SCRATCH = "#111827"
BASELINE = "#6b7280"
ROLLIN = "#7c3aed"
BETA_COLOURS = {
    0.0: BASELINE,
    0.1: "#0891b2",
    0.2: "#059669",
    0.3: "#65a30d",
    0.5: "#d97706",
    0.75: ROLLIN,
    0.9: "#db2777",
}
SPARE = ("#a16207", "#be123c", "#4d7c0f", "#1d4ed8", "#a21caf", "#0f766e")
"""For conditions that have no colour of their own."""
STYLES = (
    "-",
    "--",
    ":",
    "-.",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
    (0, (8, 3)),
    (0, (3, 1, 1, 3)),
)

INK = "#374151"
GRID = "#e5e7eb"
PAPER = "#ffffff"
THEME = {
    INK: "ink",
    GRID: "grid",
    PAPER: "paper",
    SCRATCH: "scratch",
    BASELINE: "baseline",
    ROLLIN: "rollin",
    **{colour: f"spare-{number}" for number, colour in enumerate(SPARE, 1)},
}
"""Colours that a page may replace, as its CSS variables `--plot-…`: a dark one needs others."""
RC: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "svg.fonttype": "none",  # text that can be read, searched and restyled
    "svg.hashsalt": "rollin",  # the same figure is the same file
    "legend.frameon": False,
}
GROUP = "line:"  # how the id of an SVG group that belongs to a line begins

Look = dict[str, Any]


def beta_colour(beta: float) -> str:
    """Colour of a mixing ratio."""
    return BETA_COLOURS.get(round(beta, 4), ROLLIN if beta > 0 else BASELINE)


def own_colour(labels: Mapping[str, str]) -> str | None:
    """The colour that a method or a β has everywhere; None if the labels name neither."""
    method = labels.get("method")
    if method == "scratch":
        return SCRATCH
    if method == "baseline":
        return BASELINE
    try:
        beta = float(labels["beta"])
    except (KeyError, ValueError):
        return ROLLIN if method == "rollin" else None
    if method in ("rollin", None):
        return BETA_COLOURS.get(round(beta, 4))
    return None


def looks_of(names: Sequence[Mapping[str, str]]) -> list[Look]:
    """A look for each condition, by its labels: colour by method, so that no two look alike."""
    spare = iter(SPARE * len(names))
    taken: dict[str, int] = {}
    found: list[Look] = []
    known: dict[str, str] = {}
    for labels in names:
        method = _method(labels)
        colour = own_colour(labels) or known.get(method) or next(spare)
        known.setdefault(method, colour)
        if taken.get(colour, 0) >= len(STYLES):  # no line of that colour is left
            colour = min((*SPARE, *BETA_COLOURS.values()), key=lambda c: taken.get(c, 0))
        style = STYLES[taken.get(colour, 0) % len(STYLES)]
        taken[colour] = taken.get(colour, 0) + 1
        found.append({"color": colour, "linestyle": style, "linewidth": 1.6})
    return found


def _method(labels: Mapping[str, str]) -> str:
    """What conditions of one colour share."""
    names = ("method", "beta") if "method" in labels or "beta" in labels else tuple(labels)
    return ",".join(f"{name}={labels.get(name)}" for name in names)


@contextmanager
def styled() -> Iterator[None]:
    """Use the style while inside, without touching global settings."""
    with mpl.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name may be in any script
        yield


def themed(colour: str) -> str:
    """A colour as CSS has it: one that a page may replace, or itself."""
    name = THEME.get(colour)
    return f"var(--plot-{name}, {colour})" if name else colour


def to_svg(figure: Figure, prefix: str = "", *, tight: bool = True) -> str:
    """The figure as an SVG element, to be put into a page.

    prefix: of its ids, which must not be those of another figure; tight: cut off the margins.
    """
    out = io.StringIO()
    box = "tight" if tight else None
    figure.savefig(out, format="svg", bbox_inches=box, metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(f'id="{GROUP}([^"]*)"', r'data-line="\1"', text)  # several parts of one line
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", text)
    text = re.sub(r'( id="|url\(#|href="#)', lambda m: m[0] + prefix, text)
    for colour in THEME:
        text = re.sub(f': {colour}(?=[;"])', f": {themed(colour)}", text)
    return text


def to_png(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150, bbox_inches="tight", metadata={"Software": None})
    return out.getvalue()


PICTURES: dict[str, Callable[[Figure], bytes]] = {
    ".png": to_png,
    ".svg": lambda figure: to_svg(figure).encode(),
}


def save_picture(path: Path, figure: Figure) -> None:
    """Write a figure in the format that the file's name asks for."""
    write_atomically(path, PICTURES[path.suffix](figure))


FEW = 3  # lines of a panel that leave room for those of the seeds
NOTHING = 0.1  # what a panel shows at least, of a quantity that stays near 0


def line_names(panel: Panel) -> list[str]:
    """What the lines of a panel are called: by the labels that distinguish them."""
    return [_line_name(line.labels) for line in panel.lines]


def _line_name(labels: Mapping[str, str]) -> str:
    return label_text(labels) or "all runs"


def line_id(name: str) -> str:
    """What a line is called in a page's code: a name may hold anything, and is only ever text."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def looks_by_name(panels: Sequence[Panel]) -> dict[str, Look]:
    """Colours and lines by name: a name looks the same on all panels, and no two look alike."""
    found: dict[str, Mapping[str, str]] = {}
    for panel in panels:
        for labels in (*panel.every, *(line.labels for line in panel.lines)):
            found.setdefault(_line_name(labels), labels)
    return dict(zip(found, looks_of(list(found.values())), strict=True))


def panel_title(panel: Panel) -> str:
    """The setting, or the task if there is but one."""
    return label_text(panel.setting) or shown(panel.task)


def panel_figure(
    panel: Panel, looks: Mapping[str, Look] | None = None, *, wide: bool = False
) -> Figure:
    """A figure of one panel; wide: where few panels share a screen."""
    figure = Figure(figsize=(4.8, 2.6) if wide else (3.5, 2.5), layout="constrained")
    draw_panel(figure.subplots(), panel, looks)
    return figure


def draw_panel(ax: Axes, panel: Panel, looks: Mapping[str, Look] | None = None) -> dict[str, Any]:
    """Draw it; returns what a legend shows by name. looks: if other panels share its legend."""
    handles: dict[str, Any] = {}
    looks = looks or looks_by_name([panel])
    for name, line in zip(line_names(panel), panel.lines, strict=True):
        _draw_line(ax, handles, name, looks[name], line, panel)
    ax.set_title(panel_title(panel), parse_math=False)  # a task may be called anything
    ax.set_ylabel(quantity_text(panel.quantity, panel.engine), parse_math=False)
    ax.set_xlabel(engine(panel.engine).step_words)
    ax.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
    ax.set_xlim(left=0)
    low, high = ax.get_ylim()
    if panel.quantity == "kappa":
        ax.set_ylim(-0.03, 1.05)
    elif max(-low, high) < NOTHING:  # no magnified zero
        ax.set_ylim(-NOTHING / 5, NOTHING)
    return handles


def _draw_line(
    ax: Axes, handles: dict[str, Any], name: str, look: Look, line: Line, panel: Panel
) -> None:
    """Draw the mean and its band; the seeds as thin lines where a panel has few lines."""
    steps, mean, error = over_seeds(line.traces)
    if not len(steps):
        return  # one seed ends before another was first logged
    colour = look["color"]
    group = GROUP + line_id(name)
    stepped = panel.quantity == "kappa"  # its values hold until they change
    after: Any = {"drawstyle": "steps-post"} if stepped else {}
    marker = "o" if len(steps) == 1 else ""
    (handles[name],) = ax.plot(steps, mean, marker=marker, ms=3, gid=group, **look, **after)
    if len(line.traces) > 1:
        band = ax.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.15,
                               lw=0, step="post" if stepped else None)  # fmt: skip
        band.set_gid(group)
        for trace in line.traces if len(panel.lines) <= FEW else ():
            thin = few_enough(trace.steps)
            values = held(trace, thin)
            ax.plot(thin, values, color=colour, lw=0.6, alpha=0.45, gid=group, **after)
    for step, value in line.published_inside().items():
        handles.setdefault("published", _draw_published(ax, step, value, colour, group))


def _draw_published(ax: Axes, step: int, value: Published, colour: str, group: str) -> Any:
    dot = ax.errorbar(step, value.mean, value.error, fmt="D", ms=4, color=colour, clip_on=False)
    for artist in dot.get_children():
        artist.set_gid(group)
    return dot


def panel_grid(
    count: int,
    columns: int,
    size: tuple[float, float],
    margin: tuple[float, float] = (0.0, 0.0),
    layout: Literal["constrained"] | None = "constrained",
) -> tuple[Figure, list[Axes]]:
    """A figure with axes for so many panels in rows; size: of a panel, in inches."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figsize = (size[0] * columns + margin[0], size[1] * rows + margin[1])
    figure = Figure(figsize=figsize, layout=layout)
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax in axes[count:]:
        ax.set_axis_off()
    return figure, list(axes[:count])


def panels_figure(panels: Sequence[Panel]) -> Figure:
    """All panels of one quantity in one picture, with one legend."""
    figure, axes = panel_grid(len(panels), 2, (4.4, 2.8), (0, 0.5))
    entries: dict[str, Any] = {}
    looks = looks_by_name(panels)
    for ax, panel in zip(axes, panels, strict=True):
        entries = {**draw_panel(ax, panel, looks), **entries}
    _legend(figure, entries)
    return figure


def curves_figure(studies: Sequence[Mapping[str, Sequence[Panel]]]) -> Figure:
    """All panels of some studies: a row for each setting, a column for each quantity."""
    every = [panel for study in studies for some in study.values() for panel in some]
    quantities = list(dict.fromkeys(panel.quantity for panel in every))
    rows = _rows_of(every)
    figure = Figure(figsize=(3.5 * len(quantities), 2.7 * len(rows) + 0.5), layout="constrained")
    axes = figure.subplots(len(rows), len(quantities), squeeze=False)
    looks = looks_by_name(every)
    entries: dict[str, Any] = {}
    counts: dict[str, set[int]] = {}
    for line, row in zip(axes, rows, strict=True):
        for ax, name in zip(line, quantities, strict=True):
            ax.set_visible(name in row)
            if name in row:
                entries = {**draw_panel(ax, row[name], looks), **entries}
                for line_name, drawn in zip(line_names(row[name]), row[name].lines, strict=True):
                    counts.setdefault(line_name, set()).add(len(drawn.traces))
    named = {
        f"{name} ({_seeds(counts[name])})" if name in counts else name: entries[name]
        for name in (*looks, "published")
        if name in entries
    }
    _legend(figure, named)
    return figure


def _rows_of(panels: Sequence[Panel]) -> list[dict[str, Panel]]:
    """Panels of one setting by quantity; of two studies' the one that has more lines."""
    rows: dict[tuple[str, str], dict[str, Panel]] = {}
    for panel in panels:
        row = rows.setdefault((panel.task, panel_title(panel)), {})
        known = row.get(panel.quantity)
        if known is None or len(known.lines) < len(panel.lines):
            row[panel.quantity] = panel
    return list(rows.values())


def _seeds(counts: set[int]) -> str:
    low = min(counts)
    high = max(counts)
    return "1 seed" if high == 1 else f"{low if low == high else f'{low} – {high}'} seeds"


def _legend(figure: Figure, entries: dict[str, Any]) -> None:
    known = entries.pop("published", None)
    entries |= {} if known is None else {"published": known}
    wide = max(map(len, entries), default=0) >= 30
    drawn = figure.legend(
        list(entries.values()), list(entries), loc="outside lower center",
        ncols=min(2 if wide else 4, max(1, len(entries))), fontsize=8,
    )  # fmt: skip
    for text in drawn.get_texts():
        text.set_parse_math(False)
