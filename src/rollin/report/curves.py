"""Curves of runs: contexts and returns against gradient steps, and the success of first batches."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from rollin.report.collect import RunRecord
from rollin.report.style import BASELINE, ROLLIN, beta_colour

Panel = tuple[str, list[RunRecord]]
Draw = Callable[[Axes, RunRecord], None]


def panels(records: list[RunRecord]) -> list[Panel]:
    """Runs by task, reward and entropy coefficient, one panel each."""
    found: dict[str, list[RunRecord]] = {}
    for record in sorted(records, key=lambda r: (r.config.reward != "hard", -r.config.alpha)):
        config = record.config
        name = f"{config.reward}, α = {config.alpha:g}"
        if record.spec.task != "four-rooms":
            name = f"{record.spec.task}, α = {config.alpha:g}"
        found.setdefault(name, []).append(record)
    return list(found.items())


def progress_figure(records: list[RunRecord]) -> Figure:
    """k against gradient steps, one thin line per seed."""
    return _figure(panels(records), _draw_progress, "context k")


def return_figure(records: list[RunRecord]) -> Figure:
    """Return on the last context against gradient steps, one thin line per seed."""
    return _figure(panels(records), _draw_return, "return on the last context")


def _figure(found: list[Panel], draw: Draw, label: str) -> Figure:
    columns = min(2, len(found))
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(4.4 * columns + 0.6, 2.9 * rows + 0.5))
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    for ax, (name, records) in zip(axes, found, strict=False):
        for record in records:
            draw(ax, record)
        ax.set_title(name)
        ax.set_xlabel("gradient steps")
        ax.set_ylabel(label)
        ax.set_xlim(0, max(r.config.steps for r in records))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k"))
    betas = sorted({r.config.beta for _, records in found for r in records})
    handles = [
        Line2D([], [], color=beta_colour(b), label="baseline" if b == 0 else f"β = {b:g}")
        for b in betas
    ]
    figure.legend(handles=handles, loc="upper center", ncol=len(handles), fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.95 if rows > 1 else 0.91))
    return figure


def _draw_progress(ax: Axes, record: RunRecord) -> None:
    steps = [0.0, *record.switch_steps, float(record.config.steps)]
    ks = [*range(len(record.switch_steps) + 1), len(record.switch_steps)]
    # a small shift per seed keeps lines apart that stand on the same context
    shift = 0.04 * (record.config.seed % 10)
    colour = beta_colour(record.config.beta)
    ax.step(steps, np.asarray(ks) + shift, where="post", color=colour, linewidth=0.9, alpha=0.75)
    ax.set_ylim(-0.5, record.figures["K"] + 1)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=9))


def _draw_return(ax: Axes, record: RunRecord) -> None:
    colour = beta_colour(record.config.beta)
    ax.plot(record.curve_steps, record.curve_returns, color=colour, linewidth=0.9, alpha=0.75)
    ax.set_ylim(bottom=-0.02, top=max(0.1, ax.get_ylim()[1], 1.08 * max(record.curve_returns)))


def first_batch_figure(records: list[RunRecord]) -> Figure:
    """Probability that a trajectory succeeds right after a switch, from ρ and from μ_k.

    Over the runs with roll-in of each panel: median, and the range over seeds.
    """
    rolled = [(name, [r for r in rs if r.config.beta > 0]) for name, rs in panels(records)]
    rolled = [(name, rs) for name, rs in rolled if any(r.success_mu for r in rs)]
    columns = max(1, min(2, len(rolled)))
    rows = max(1, -(-len(rolled) // columns))
    figure = Figure(figsize=(4.4 * columns + 0.6, 2.7 * rows + 0.4))
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax in axes[len(rolled) :]:
        ax.set_axis_off()
    for ax, (name, runs) in zip(axes, rolled, strict=False):
        beta = 0.75 if any(r.config.beta == 0.75 for r in runs) else runs[0].config.beta
        runs = [r for r in runs if r.config.beta == beta]
        for attribute, colour, label in (
            ("success_rho", BASELINE, "from ρ"),
            ("success_mu", ROLLIN, "from μₖ"),
        ):
            _draw_range(ax, [getattr(r, attribute) for r in runs], colour, label)
        ax.set_title(f"{name}, β = {beta:g}")
        ax.set_xlabel("context k")
        ax.set_ylabel("first-batch success")
        ax.set_yscale("log")
        ax.axhline(0.5, color="#9ca3af", linewidth=0.8, linestyle=":")
        ax.legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    return figure


def _draw_range(ax: Axes, curves: list[list[float]], colour: str, label: str) -> None:
    longest = max(len(curve) for curve in curves)
    at = [[c[i] for c in curves if len(c) > i] for i in range(longest)]
    ks = np.arange(1, longest + 1)
    low, middle, high = (np.array([f(v) for v in at]) for f in (np.min, np.median, np.max))
    ax.fill_between(ks, np.maximum(low, 1e-12), high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(ks, np.maximum(middle, 1e-12), color=colour, marker="o", markersize=3, label=label)
