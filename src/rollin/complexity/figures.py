"""Cost against size: medians, seeds, laws, and runs that were cut off."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter
from rich.table import Table

from rollin.complexity.study import SETTINGS, CostCurve, CurveName, Growth, Slope
from rollin.report.style import SCRATCH, SPARE, beta_colour

NATURAL = SPARE[0]
WIDTH = 9.4, 10.5  # inches, of the main figure and of the other families
MAIN = (
    ("lock", "exact", "gradient_steps", "Combination lock, γ = 1 − 1/n"),
    ("lock-fixed", "exact", "gradient_steps", "Combination lock, γ = 0.9"),
    ("lock", "sampled", "env_steps", "γ = 1 − 1/n, sampled, B = 20"),
)
FAMILIES = (
    ("corridor", "Corridor"),
    ("grid", "Open grid"),
    ("random", "Random MDPs"),
    ("lock-uniform", "Lock, ρ uniform"),
)
Y_LABELS = {
    "gradient_steps": "gradient steps until solved",
    "env_steps": "environment steps until solved",
}


def method_label(name: CurveName) -> str:
    """Return the name of a curve's method."""
    text = short_label(name)
    if name.method != "scratch":
        text = f"{'curriculum,' if name.method == 'curriculum' else 'ROLLIN'} {text}"
    return f"natural gradient, {text}" if name.gradient == "natural" else text


def short_label(name: CurveName) -> str:
    """Return a curve's method for a narrow panel."""
    if name.method == "scratch":
        return "scratch"
    return f"β = {float(name.beta):g}" + (", recursive" if name.mu == "recursive" else "")


def law_text(growth: Growth) -> str:
    """Return the better law for Matplotlib; open: its interval has no upper end."""
    better = growth.power if growth.better == "power" else growth.exponential
    value = f"{better.value:.2f}"
    text = f"$n^{{{value}}}$" if growth.better == "power" else f"${value}^n$"
    return text if math.isfinite(better.high) else f"{text} (open)"


def slope_text(slope: Slope, digits: int) -> str:
    """Return a slope with its interval."""
    ends = (f"{end:.{digits}f}" if math.isfinite(end) else "∞" for end in (slope.low, slope.high))
    return f"{slope.value:.{digits}f} [{' – '.join(ends)}]"


def main_figure(curves: Sequence[CostCurve]) -> Figure:
    """Draw both settings of the lock with exact gradients, and the samples of the first."""
    figure = Figure(figsize=(WIDTH[0], 3.9), layout="constrained")
    for axes, (setting, gradient, quantity, title) in zip(figure.subplots(1, 3), MAIN, strict=True):
        available = [c for c in curves if (c.name.setting, c.quantity) == (setting, quantity)]
        drawn = [c for c in available if c.name.gradient == gradient]
        if setting == "lock":
            drawn = [c for c in drawn if c.name.mu != "recursive"]
            if gradient == "exact":  # the natural gradient from scratch beside it
                drawn += [c for c in available if c.name[1:3] == ("natural", "scratch")]
        _panel(axes, drawn, title, Y_LABELS[quantity])
    return figure


def families_figure(curves: Sequence[CostCurve]) -> Figure:
    """Draw the other families: exact gradients above, samples of sampled gradients below."""
    figure = Figure(figsize=(WIDTH[1], 6.4), layout="constrained")
    grid = figure.subplots(2, len(FAMILIES))
    rows = (("exact", "gradient_steps"), ("sampled", "env_steps"))
    for line, (gradient, quantity) in zip(grid, rows, strict=True):
        for axes, (setting, title) in zip(line, FAMILIES, strict=True):
            panel = (setting, gradient, quantity)
            drawn = [
                c
                for c in curves
                if (c.name.setting, c.name.gradient, c.quantity) == panel
                and float(c.name.beta) != 0.5
            ]
            label = Y_LABELS[quantity] if axes is line[0] else ""
            _panel(axes, drawn, f"{title}, {gradient}", label, short_label)
    return figure


def _panel(
    axes: Axes,
    curves: Sequence[CostCurve],
    title: str,
    label: str,
    label_of: Callable[[CurveName], str] = method_label,
) -> None:
    for number, curve in enumerate(curves):
        _draw(axes, curve, label_of(curve.name), 4 + 1.6 * (len(curves) - number))
    axes.set(xscale="log", yscale="log", title=title, xlabel="states n", ylabel=label)
    sizes = [cost.size for curve in curves for cost in curve.costs]
    if sizes:
        ticks = [2**power for power in range(2, 9) if min(sizes) <= 2**power <= max(sizes)]
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.legend(fontsize=7.5, handlelength=1.8, labelspacing=0.3, loc="upper left")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.35)  # room for the legend


def _draw(axes: Axes, curve: CostCurve, label: str, triangle: float) -> None:
    """Draw medians as a line, seeds as dots, the fitted law dotted, cut-off runs as triangles.

    triangle: their size, which differs by curve, as they meet at the cap.
    """
    style = _style(curve.name)
    known = [(cost.size, cost.median) for cost in curve.costs if math.isfinite(cost.median)]
    if curve.growth is not None:
        label += f": {law_text(curve.growth)}"
    axes.plot(*_columns(known), marker="o", markersize=3.2, linewidth=1.3, label=label, **style)
    if curve.random:
        dots = [(c.size, v) for c in curve.costs for v in c.values if math.isfinite(v)]
        axes.plot(*_columns(dots), "o", markersize=2, alpha=0.25, color=style["color"], mew=0)
    cut = sorted(curve.spent.items())
    axes.plot(
        *_columns(cut), "^", markersize=triangle, mfc="none", color=style["color"], linestyle="none"
    )
    if curve.growth is not None:
        x = np.geomspace(min(curve.growth.sizes), max(curve.growth.sizes), 50)
        y = [curve.growth.at(curve.growth.better, size) for size in x]
        axes.plot(x, y, linestyle=(0, (2, 2)), linewidth=0.8, color=style["color"], alpha=0.8)


def _style(name: CurveName) -> dict[str, Any]:
    if name.gradient == "natural":
        return {"color": NATURAL}
    colour = SCRATCH if name.method == "scratch" else beta_colour(float(name.beta))
    return {"color": colour, "linestyle": "--" if name.mu == "recursive" else "-"}


def _columns(pairs: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    rows = list(pairs)
    return [x for x, _ in rows], [y for _, y in rows]


def terminal_table(curves: Sequence[CostCurve]) -> Table:
    """Return a table of every curve with both laws; * marks the better one."""
    titles = {setting.name: setting.title for setting in SETTINGS}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("setting", "gradient", "method", "cost", "sizes", "n^p", "b^n", "cut off"):
        table.add_column(title, no_wrap=True)
    before = ""
    for curve in curves:
        setting = titles[curve.name.setting] if curve.name.setting != before else ""
        before = curve.name.setting
        growth = curve.growth
        laws = ["too few sizes", ""]
        if growth is not None:
            laws = [slope_text(growth.power, 2), slope_text(growth.exponential, 3)]
            laws[growth.better == "exponential"] += " *"
        sizes = curve.costs
        cut = sum(len(cost.values) - cost.solved for cost in sizes)
        runs = sum(len(cost.values) for cost in sizes)
        table.add_row(
            setting,
            curve.name.gradient,
            method_label(curve.name).removeprefix("natural gradient, "),
            "samples" if curve.quantity == "env_steps" else "steps",
            f"{sizes[0].size}–{sizes[-1].size}",
            *laws,
            f"{cut} of {runs}" if cut else "",
        )
    return table
