"""Learning curves in the paper's form: κ, measures and return against environment steps.

A row of panels per task, a line per condition: the mean over seeds, with the standard error as a
band. Published values stand where the paper reads them, as diamonds with their error.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollin.paper.robots import published_for
from rollin.report.learning_curve import LearningCurve, method_of, one_per_seed, setting_of
from rollin.report.lines import Line, draw_lines
from rollin.report.style import BASELINE, BETA_COLOURS, SCRATCH, SPARE
from rollin.report.words import trace_text
from rollin.runs.spec import RollinConfig, RunSpec
from rollin.sweeps.published import Published

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
