"""Learning curves of a table's runs: a panel for each setting, a line for each method and β."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollin.analysis.results import TableResults
from rollin.report.conditions import conditions
from rollin.report.learning import lines_of, looks_of, set_axes
from rollin.report.learning_curve import LearningCurve, one_per_seed
from rollin.report.lines import Line, draw_lines
from rollin.report.records import RollinRecord, RunRecord, TabularRecord
from rollin.report.style import BASELINE, SCRATCH, SPARE, beta_colour
from rollin.report.words import TRACES, label_text, method_text, trace_text
from rollin.sweeps.study import Condition, differing

FEW = 3  # lines of a panel that leave room for those of the seeds
COLUMNS = 2


@dataclass(frozen=True)
class Panel:
    """One quantity in one setting."""

    title: str
    name: str
    lines: list[Line]
    steps: str

    def figure(self) -> Figure:
        """The panel alone."""
        figure = Figure(figsize=(3.5, 2.5), layout="constrained")
        self.draw(figure.subplots())
        return figure

    def draw(self, ax: Axes) -> dict[str, Any]:
        """Draw it; returns what a legend shows."""
        few = len(self.lines) <= FEW
        shown = draw_lines(ax, self.lines, stepped=self.name == "kappa", seeds=few)
        ax.set_title(self.title, parse_math=False)  # a task may be called anything
        ax.set_ylabel(trace_text(self.name))
        set_axes(ax, self.name, self.steps)
        return shown


def colour_of(cell: Condition) -> str:
    """Colour of a condition's line."""
    method = cell.labels["method"]
    if method == "rollin":
        return beta_colour(float(cell.labels["beta"]))
    return SCRATCH if method == "scratch" else BASELINE


def panels(results: TableResults) -> dict[str, list[Panel]]:
    """Panels by quantity: those that the table reads, or that were published of its cells."""
    read = [r.figure for r in results.table.readings]
    read = read or [r.figure for cell in results.runs for r in cell.published]
    names = dict.fromkeys(TRACES[figure] for figure in read)
    settings: dict[str, list[Condition]] = {}
    shown = _names(results)
    for cell in results.runs:
        settings.setdefault(label_text(cell.labels, shown), []).append(cell)
    found = {
        name: [
            _panel(results, title, name, lines)
            for title, cells in settings.items()
            if (lines := _lines(results, name, cells))
        ]
        for name in names
    }
    return {name: some for name, some in found.items() if some}


def _names(results: TableResults) -> list[str]:
    """Labels that a panel is called by: those that lay out the table, and those that differ."""
    cells = list(results.runs)
    names = list(cells[0].setting)
    shown = (*differing(cells), *results.table.rows)
    return [name for name in names if name in shown] or names


def _panel(results: TableResults, title: str, name: str, lines: list[Line]) -> Panel:
    tabular = next(iter(results.runs)).config.engine == "tabular"
    return Panel(title, name, lines, "gradient steps" if tabular else "environment steps")


def _lines(results: TableResults, name: str, cells: Sequence[Condition]) -> list[Line]:
    lines = []
    for cell in cells:
        if name == "kappa" and not cell.walks:
            continue
        traces = [t for run in results.runs[cell] if (t := run.trace(name)) is not None]
        known = {r.step: p for r, p in cell.published.items() if TRACES.get(r.figure) == name}
        if traces:
            look = {"color": colour_of(cell), "linewidth": 1.6}
            lines.append(Line(method_text(cell.labels), look, traces, known))
    return lines


def other_panels(records: Sequence[RunRecord]) -> dict[str, list[Panel]]:
    """Panels of runs that are no cell of the paper, a line for each set of options."""
    found: dict[str, list[Panel]] = {}
    for task in dict.fromkeys(r.spec.task for r in records):
        some = [r for r in records if r.spec.task == task]
        for panel in (*_tabular_panels(some), *_rollin_panels(some)):
            found.setdefault(panel.name, []).append(panel)
    return found


def _tabular_panels(records: Sequence[RunRecord]) -> list[Panel]:
    found = []
    groups = conditions([r for r in records if isinstance(r, TabularRecord)])
    for name in ("kappa", "return") if groups else ():
        lines = [
            Line(group.options or "all runs", {"color": colour}, traces)
            for group, colour in zip(groups, SPARE * len(groups), strict=False)
            if (traces := [t for r in group.records if (t := r.trace(name)) is not None])
        ]
        found.append(Panel(groups[0].task, name, lines, "gradient steps"))
    return found


def _rollin_panels(records: Sequence[RunRecord]) -> list[Panel]:
    tasks: dict[int, list[LearningCurve]] = {}
    for group in conditions([r for r in records if isinstance(r, RollinRecord)]):
        known = [r.curve for r in group.records if isinstance(r, RollinRecord) and r.curve]
        tasks.setdefault(group.nth, []).extend(known)
    found = []
    for nth, curves in tasks.items():
        curves = one_per_seed(curves)
        looks = looks_of(curves)
        title = records[0].spec.task + (f", task {nth} of that name" if nth > 1 else "")
        found += [
            Panel(title, name, lines, "environment steps")
            for name in dict.fromkeys(name for curve in curves for name in curve.values)
            if (lines := lines_of(curves, name, looks))
        ]
    return found


def panels_figure(found: Sequence[Panel]) -> Figure:
    """All panels of one quantity in one picture, with one legend."""
    columns = min(COLUMNS, len(found))
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(4.4 * columns, 2.8 * rows + 0.5), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    shown: dict[str, Any] = {}
    for ax, panel in zip(axes, found, strict=False):
        shown = {**panel.draw(ax), **shown}
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    known = shown.pop("published", None)
    shown |= {} if known is None else {"published": known}
    figure.legend(
        list(shown.values()), list(shown), loc="outside lower center", ncols=min(4, len(shown)),
        fontsize=8,
    )  # fmt: skip
    return figure
