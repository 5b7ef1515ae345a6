"""Learning curves: the mean over seeds, its standard error as a band, published values on top."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollin.analysis.results import Line, Panel, few_enough, held, over_seeds
from rollin.report.labels import label_text, quantity_text, shown
from rollin.report.style import GROUP, Look, looks_of
from rollin.runs.engines import engine
from rollin.sweeps.condition import Published

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
