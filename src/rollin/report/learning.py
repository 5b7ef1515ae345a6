"""Learning curves in the paper's form: κ, measures and return against environment steps.

A row of panels per task, a line per method: the mean over seeds, with the standard error as a band.
Published values stand where the paper reads them, as dots with their error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rollin.deep.options import RollinOptions
from rollin.errors import RollinError
from rollin.paper.robots import published_for
from rollin.report.statistics import summarise
from rollin.report.style import beta_colour
from rollin.runs.rollin import COLUMNS
from rollin.runs.spec import RollinConfig, RunSpec
from rollin.runs.store import RunDirectory, read_metrics

SCRATCH, FRESH = "#d97706", "#db2777"
TITLES = {"kappa": "κ", "return": "return", "x_velocity": "x-velocity (m/s)"}

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LearningCurve:
    """One run, finished or not: steps, and at each of them κ, the return and measures.

    Return and measures are of training, averaged over the steps before, as in the paper's tables.
    """

    spec: RunSpec[RollinConfig]
    steps: Array
    values: dict[str, Array]

    @classmethod
    def read(cls, run: RunDirectory) -> "LearningCurve":
        """From a run's metrics.csv."""
        spec = run.spec()
        if spec.config.engine != "rollin":
            raise RollinError(f"a run of the engine {spec.config.engine}")
        path = run.path / "metrics.csv"
        metrics = read_metrics(path) if path.exists() else {}
        if not metrics.get("step"):
            raise RollinError("no metrics yet")
        columns = {name: np.array(column) for name, column in metrics.items()}
        width = max(1, spec.config.last // spec.config.log_every)
        measures = [name for name in columns if name not in COLUMNS]
        values = {"kappa": columns["kappa"]}
        for name in (*measures, "train_return"):
            values[name.removeprefix("train_")] = trailing_mean(columns[name], width)
        return cls(spec, columns["step"], values)

    @property
    def label(self) -> str:
        """What tells the run from others of its task but for the seed."""
        return label(self.spec.config.algorithm)


def trailing_mean(values: Array, width: int) -> Array:
    """The mean of each value and those before it, `width` in all; rows that say nothing are NaN."""
    known = np.isfinite(values)
    sums, counts = np.cumsum(np.where(known, values, 0.0)), np.cumsum(known)
    sums[width:] -= sums[:-width].copy()
    counts[width:] -= counts[:-width].copy()
    return np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)


def label(options: RollinOptions) -> str:
    """A method and its settings in words."""
    names = {
        "rollin": f"ROLLIN β = {options.beta:g}",
        "baseline": "baseline",
        "scratch": "scratch",
        "fresh": f"fresh explorer β = {options.beta:g}",
    }
    words = [names["baseline" if options.rolls_in == 0 else options.method]]
    if options.method == "scratch":
        words = [names["scratch"]]
    words += ["geometric"] * (options.sampling == "geometric")
    words += ["relabelling"] * options.relabel
    words += [f"noise {options.go_explore:g}"] * (options.go_explore > 0)
    return ", ".join(words)


def colour(options: RollinOptions) -> str:
    """Of a method's line."""
    return {"scratch": SCRATCH, "fresh": FRESH}.get(options.method) or beta_colour(options.rolls_in)


def learning_figure(curves: Sequence[LearningCurve]) -> Figure:
    """All curves, by task and method."""
    tasks = list(dict.fromkeys(curve.spec.task for curve in curves))
    names = list(dict.fromkeys(name for curve in curves for name in curve.values))
    figure = Figure(figsize=(3.5 * len(names), 2.7 * len(tasks) + 0.5), layout="constrained")
    axes = np.atleast_2d(figure.subplots(len(tasks), len(names), squeeze=False))
    shown: dict[str, Any] = {}
    for row, task in zip(axes, tasks, strict=True):
        here = [curve for curve in curves if curve.spec.task == task]
        for ax, name in zip(row, names, strict=True):
            lines = _draw(ax, name, [curve for curve in here if name in curve.values])
            shown |= {text: line for text, line in lines.items() if text not in shown}
            ax.set_title(f"{task}: {TITLES.get(name, name.replace('_', ' '))}")
            ax.set_xlabel("environment steps")
            ax.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k")
            ax.set_xlim(left=0)
    figure.legend(
        list(shown.values()), list(shown), fontsize=8, loc="outside lower center", ncols=4
    )
    return figure


def _draw(ax: Any, name: str, curves: Sequence[LearningCurve]) -> dict[str, Any]:
    """One panel; returns its lines by label."""
    lines: dict[str, Any] = {}
    for text in dict.fromkeys(curve.label for curve in curves):
        same = [curve for curve in curves if curve.label == text]
        options = same[0].spec.config.algorithm
        if name == "kappa" and options.method == "scratch":
            continue  # it stands at the last context by definition
        tint = colour(options)
        steps, mean, error = _over_seeds(same, name)
        (lines[f"{text} ({len(same)})"],) = ax.plot(steps, mean, color=tint)
        ax.fill_between(steps, mean - error, mean + error, color=tint, alpha=0.15, lw=0)
        for step, figures in published_for(same[0].spec).items():
            found = figures.get(name if name == "kappa" else f"{name}_mean_last")
            if found is not None and step <= 1.05 * steps[-1]:
                dot = ax.errorbar(step, found.mean, found.error, fmt="D", ms=4, color=tint)
                lines.setdefault("published", dot)
    if name == "kappa":
        ax.set_ylim(0, 1.05)
    return lines


def _over_seeds(curves: Sequence[LearningCurve], name: str) -> tuple[Array, Array, Array]:
    """Mean and standard error at the steps that all seeds have reached."""
    steps = curves[0].steps
    for curve in curves[1:]:
        steps = np.intersect1d(steps, curve.steps)
    values = [curve.values[name][np.isin(curve.steps, steps)] for curve in curves]
    found = [summarise(column) for column in zip(*values, strict=True)]
    return steps, np.array([s.mean for s in found]), np.array([s.error for s in found])
