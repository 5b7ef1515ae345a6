"""Learning curves in the paper's form: κ, measures and return against environment steps.

A row of panels per task, a line per condition: the mean over seeds, with the standard error as a
band. Published values stand where the paper reads them, as diamonds with their error.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollin.deep.options import RollinOptions
from rollin.envs.registry import TASKS
from rollin.errors import RollinError
from rollin.paper.cells import FREE
from rollin.paper.published import Published
from rollin.paper.robots import VARIED, parts_of, published_for
from rollin.report.checks import check_order
from rollin.report.lines import Array, Line, Trace, draw_lines
from rollin.report.style import BASELINE, BETA_COLOURS, SCRATCH, SPARE
from rollin.report.words import trace_text
from rollin.runs.figures import means_at
from rollin.runs.rollin import EPISODE_COLUMNS
from rollin.runs.spec import RollinConfig, RunSpec, rollin_config
from rollin.runs.store import RunDirectory, read_metrics

COLOURS = {"scratch": SCRATCH, "baseline": BASELINE}
NOTHING = 0.1  # what a panel shows at least, of a quantity that stays near 0
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
        """From a run's metrics.csv and episodes.csv."""
        spec = run.spec()
        if spec.config.engine != "rollin":
            raise RollinError(f"a run of the engine {spec.config.engine}")
        metrics, episodes = _columns(run.path / "metrics.csv"), read_episodes(run)
        if not (metrics.get("step") and episodes.get("step")):
            raise RollinError("no metrics yet")
        if not all(0 <= kappa <= 1 for kappa in metrics["kappa"]):
            raise RollinError("metrics.csv has a κ that is not between 0 and 1")
        check_order(metrics["step"], "metrics.csv")
        measures = measures_of(episodes)
        arrays: Any = {name: np.array(column) for name, column in episodes.items()}
        means = [means_at(int(s), arrays, measures, spec.config.last) for s in metrics["step"]]
        values = {"kappa": np.array(metrics["kappa"])}
        for name in (*measures, "return"):
            values[name] = np.array([mean[name] for mean in means], np.float64)  # None is NaN
        return cls(spec, np.array(metrics["step"]), values)

    def trace(self, name: str) -> Trace:
        """One of its quantities."""
        return Trace(self.steps, self.values[name])

    @property
    def label(self) -> str:
        """What tells the run from others of its task but for the seed."""
        return ", ".join(filter(None, (method_of(self.options), setting_of(self.spec))))

    @property
    def options(self) -> RollinOptions:
        """Of the algorithm."""
        return self.spec.config.algorithm


def read_episodes(run: RunDirectory) -> dict[str, list[float]]:
    """Columns of a run's episodes.csv, none if there is no such file yet."""
    episodes = _columns(run.path / "episodes.csv")
    if any(not length > 0 for length in episodes.get("length", ())):
        raise RollinError("episodes.csv has an episode without length")
    check_order(episodes.get("step", ()), "episodes.csv")
    return episodes


def measures_of(episodes: Iterable[str]) -> list[str]:
    """What the environment itself measures, among the columns of an episodes.csv."""
    return [name for name in episodes if name not in EPISODE_COLUMNS]


def _columns(path: Path) -> dict[str, list[float]]:
    return read_metrics(path) if path.exists() else {}


# ------------------------------------------------------------------ what a run is called


def method_of(options: RollinOptions) -> str:
    """The method in words."""
    if options.method == "scratch":
        return "scratch"
    if options.rolls_in == 0:
        return "baseline"
    return f"{'ROLLIN' if options.method == 'rollin' else 'fresh explorer'} β = {options.beta:g}"


def setting_of(spec: RunSpec[RollinConfig]) -> str:
    """Whatever else differs from the task's own options, in words."""
    options = spec.config.algorithm
    words = ["geometric"] * (options.sampling == "geometric")
    words += ["relabelling"] * options.relabel
    words += [f"noise {options.go_explore:g}"] * (options.go_explore > 0)
    parts = parts_of(spec)
    if parts is not None:
        words.append(f"Δ = 1/{parts}" if parts else f"Δ = {spec.config.delta:.4g}")
    defaults = TASKS[spec.task].defaults if spec.task in TASKS else {}
    return ", ".join(words + _differences(spec.config, rollin_config(**defaults)))


def _differences(one: Any, other: Any) -> list[str]:
    """Options that differ, as `name value`, but for those that have words or say nothing."""
    found: list[str] = []
    for field in fields(one):
        mine, own = getattr(one, field.name), getattr(other, field.name)
        if is_dataclass(mine):
            found += _differences(mine, own)
        elif mine != own and field.name not in (*FREE, *VARIED, "delta"):
            shown = f"{mine:.4g}" if isinstance(mine, float) else mine
            shown = " ".join(map(str, mine)) if isinstance(mine, tuple) else shown
            found.append(f"{field.name} {shown}")
    return found


# ------------------------------------------------------------------ the figure


def learning_figure(curves: Sequence[LearningCurve]) -> Figure:
    """All curves, by task and condition; of two runs of one seed the longer one counts."""
    curves = one_per_seed(curves)
    tasks = list(dict.fromkeys(curve.spec.task for curve in curves))
    measures = dict.fromkeys(name for curve in curves for name in curve.values)
    names = ["kappa", *(name for name in measures if name not in ("kappa", "return")), "return"]
    looks = looks_of(curves)
    figure = Figure(figsize=(3.5 * len(names), 2.7 * len(tasks) + 0.5), layout="constrained")
    axes = figure.subplots(len(tasks), len(names), squeeze=False)
    shown: dict[str, Any] = {}
    counts: dict[str, set[int]] = {}
    for row, task in zip(axes, tasks, strict=True):
        here = [curve for curve in curves if curve.spec.task == task]
        for text in dict.fromkeys(curve.label for curve in here):
            counts.setdefault(text, set()).add(sum(curve.label == text for curve in here))
        for ax, name in zip(row, names, strict=True):
            lines = _draw(ax, name, here, looks)
            shown = {**lines, **shown}
            ax.set_title(f"{task}: {trace_text(name)}")
            ax.set_visible(bool(lines))
    handles = {f"{text} ({_seeds(counts[text])})": shown[text] for text in looks if text in shown}
    handles |= {"published": shown["published"]} if "published" in shown else {}
    columns = 4 if max(map(len, handles), default=0) < 30 else 2
    place = "outside lower center"
    figure.legend(list(handles.values()), list(handles), fontsize=8, loc=place, ncols=columns)
    return figure


def one_per_seed(curves: Sequence[LearningCurve]) -> list[LearningCurve]:
    """The longest curve of every task, condition and seed."""
    longest: dict[tuple[str, str, int], LearningCurve] = {}
    for curve in curves:
        key = (curve.spec.task, curve.label, curve.spec.config.seed)
        if key not in longest or curve.steps[-1] > longest[key].steps[-1]:
            longest[key] = curve
    return list(longest.values())


def looks_of(curves: Sequence[LearningCurve]) -> dict[str, dict[str, Any]]:
    """Colour by method and line by setting, so that no two labels look alike."""
    methods = dict.fromkeys(method_of(curve.options) for curve in curves)
    spare = iter(SPARE * len(methods))
    colours = dict(COLOURS)
    for curve in curves:
        options, method = curve.options, method_of(curve.options)
        known = BETA_COLOURS.get(round(options.beta, 4)) if options.method == "rollin" else None
        if method not in colours:
            colours[method] = known or next(spare)
    settings = list(dict.fromkeys(["", *(setting_of(curve.spec) for curve in curves)]))
    styles = {setting: STYLES[i % len(STYLES)] for i, setting in enumerate(settings)}
    return {
        curve.label: {
            "color": colours[method_of(curve.options)],
            "linestyle": styles[setting_of(curve.spec)],
        }
        for curve in curves
    }


def _seeds(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return "1 seed" if high == 1 else f"{low if low == high else f'{low} – {high}'} seeds"


def _draw(
    ax: Axes, name: str, curves: Sequence[LearningCurve], looks: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """One panel; returns its lines by label."""
    handles = draw_lines(ax, lines_of(curves, name, looks), stepped=name == "kappa")
    set_axes(ax, name)
    return handles


def lines_of(
    curves: Sequence[LearningCurve], name: str, looks: dict[str, dict[str, Any]]
) -> list[Line]:
    """A line for each condition."""
    lines: list[Line] = []
    for text in dict.fromkeys(curve.label for curve in curves):
        same = [curve for curve in curves if curve.label == text]
        if name not in same[0].values:
            continue
        if name == "kappa" and same[0].options.method == "scratch":
            continue  # it stands at the last context by definition
        lines.append(Line(text, looks[text], [curve.trace(name) for curve in same],
                          _published(same[0].spec, name)))  # fmt: skip
    return lines


def _published(spec: RunSpec[RollinConfig], name: str) -> dict[int, Published]:
    figure = name if name == "kappa" else f"{name}_mean_last"
    return {step: found[figure] for step, found in published_for(spec).items() if figure in found}


def set_axes(ax: Axes, name: str, what: str = "environment steps") -> None:
    """Axes of a panel: steps in thousands, κ from 0 to 1, no magnified zero."""
    ax.set_xlabel(what)
    ax.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}k" if x else "0")
    ax.set_xlim(left=0)
    low, high = ax.get_ylim()
    if name == "kappa":
        ax.set_ylim(-0.03, 1.05)
    elif max(-low, high) < NOTHING:
        ax.set_ylim(-NOTHING / 5, NOTHING)
