"""Verdict, table and figure of docs/results/standard.md, from the records in results/standard."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from rollin.analysis.sheets import Sheet, sheet, sheet_markdown
from rollin.analysis.statistics import summarise
from rollin.paper.standard import CURRICULA, FAMILY, SOLVED, TASKS
from rollin.report.labels import summary_text
from rollin.report.style import ADAPTIVE, BASELINE, SCRATCH, SPARE
from rollin.runs.records import Record
from studies.shared import RESULTS as ROOT
from studies.shared import committed, finished
from studies.standard_alternatives import METHODS, rows_of

RESULTS = ROOT / FAMILY
NONE = "–"
NAMES = {
    "adaptive": "`--adaptive`",
    "relabel": "`--adaptive --relabel`",
    "hand": "hand-set curriculum",
    "scratch": "scratch",
    "sac": "SB3 SAC",
    "sac-her": "SB3 SAC + HER",
}
"""Methods in the order of the table."""
COLOURS = dict(zip(NAMES, (ADAPTIVE, SPARE[4], SPARE[0], SCRATCH, BASELINE, SPARE[3]), strict=True))
PUBLISHED = {
    "fetch-push": ("TQC + HER (RL Zoo), 1M steps", NONE, "-8.8"),
    "fetch-pick-and-place": ("TQC + HER (RL Zoo), 1M steps", NONE, "-9.3"),
    "sparse-goals": ("CURROT, 0.6M and 4M steps", "0.75; 0.8 – 0.95", NONE),
}
"""Published method, success and return."""


class Learning(NamedTuple):
    """Evaluations of one seed on the full task; minutes: that the run had taken by then."""

    steps: Sequence[float]
    successes: Sequence[float]
    returns: Sequence[float]
    minutes: Sequence[float]

    @property
    def solved(self) -> int | None:
        """Return the first evaluation with at least 90 % success; None if there is none."""
        return next((i for i, share in enumerate(self.successes) if share >= SOLVED), None)


Runs = dict[tuple[str, str], list[Learning]]
"""Seeds by task and method."""


def runs() -> Runs:
    """Return all committed runs of the held-out seeds; none where there are none."""
    ours = finished([r for r in committed(RESULTS) if r.family == FAMILY], "task", "curriculum")
    found: Runs = {(task, method): [] for task in TASKS for method in methods(task)}
    found |= {(task, name): [_ours(r) for r in seeds] for (task, name), seeds in ours.items()}
    for (task, method, _), rows in rows_of(RESULTS / "alternatives.csv").items():
        names = ("step", "success", "return", "cpu_seconds")
        steps, successes, returns, spent = ([float(row[n]) for row in rows] for n in names)
        minutes = [seconds / 60 for seconds in spent]
        found[task, method].append(Learning(steps, successes, returns, minutes))
    return found


def methods(task: str) -> list[str]:
    """Return the methods of a task, in the order of the table."""
    used = {*METHODS[task], *CURRICULA} - (set() if TASKS[task].relabels else {"relabel"})
    return [name for name in NAMES if name in used]


def _ours(record: Record) -> Learning:
    """Return the evaluations of a run of ours, whose time is spread evenly over its steps."""
    curve = record.curve
    columns = (curve.steps, *(curve.quantities[name] for name in ("success_final", "return_final")))
    rows = [row for row in zip(*columns, strict=True) if all(map(math.isfinite, row))]
    per_step = (record.costs.seconds or math.nan) / record.step / 60
    steps, successes, returns = zip(*rows, strict=True)
    return Learning(steps, successes, returns, [per_step * step for step in steps])


def _median(values: Sequence[float | None]) -> float:
    """Return the median, where a seed without a value counts as infinity."""
    return statistics.median([math.inf if value is None else value for value in values])


def table() -> Sheet:
    """Return each method on each task: success at the end, and what 90 % of it took."""
    rows = []
    for (task, method), seeds in runs().items():
        cells = [NONE] * 5
        if seeds:
            solved = [(seed, seed.solved) for seed in seeds]
            at = [i for _, i in solved]
            steps = _median([None if i is None else seed.steps[i] for seed, i in solved])
            minutes = _median([None if i is None else seed.minutes[i] for seed, i in solved])
            cells = [
                summary_text(summarise([seed.successes[-1] for seed in seeds]), 2),
                summary_text(summarise([seed.returns[-1] for seed in seeds]), 1),
                f"{sum(i is not None for i in at)} of {len(seeds)}",
                f"{steps:,.0f}" if math.isfinite(steps) else NONE,
                f"{minutes:.1f}" if math.isfinite(minutes) else NONE,
            ]
        rows.append([task, NAMES[method], str(len(seeds)), *cells])
    rows += [[task, name, NONE, *known, *[NONE] * 3] for task, (name, *known) in PUBLISHED.items()]
    rows.sort(key=lambda row: list(TASKS).index(row[0]))
    columns = (
        "task | method | seeds | success at the end | return at the end | "
        "seeds that reached 90 % | median steps to 90 % | median minutes to 90 %"
    )
    return sheet("standard", "Standard tasks", columns, rows)


def verdict() -> str:
    """Return the claim that the records support: seeds that reach 90 % on the full task."""
    found = runs()
    kinds: Mapping[str, Callable[[str], Sequence[str]]] = {
        "the adaptive curriculum": lambda task: ("adaptive",),
        "learning from scratch": lambda task: ("scratch",),
        "Stable-Baselines3": lambda task: METHODS[task],
    }
    done = [t for t in TASKS if all(found[t, m] for kind in kinds.values() for m in kind(t))]
    if not done:
        return "**Not known yet: the plan is fixed, the runs are not complete.**"
    parts = []
    for kind, of in kinds.items():
        best = [max((_reached(found[task, m]) for m in of(task)), default=(0, 0)) for task in done]
        parts.append(f"{kind} in {sum(n for n, _ in best)} of {sum(n for _, n in best)}")
    tasks = "1 task" if len(done) == 1 else f"{len(done)} tasks"
    return (
        f"**On {tasks}, {parts[0]} seeds reaches 90 % success on the full task, {parts[1]}, "
        f"{parts[2]}** (the better of its methods on each task)."
    )


def _reached(seeds: Sequence[Learning]) -> tuple[int, int]:
    """Return how many seeds reached 90 % success, of how many."""
    return sum(seed.solved is not None for seed in seeds), len(seeds)


def figure() -> str:
    """Return the reference to the figure, which is drawn once there are records."""
    if not PICTURES:
        return "The figure is drawn from the first committed runs."
    return "![Success on the full task against steps](../images/standard-success.png)"


def draw() -> Figure:
    """Draw success on the full task against steps, a panel for each task: means over seeds."""
    found = runs()
    drawn = [task for task in TASKS if any(found[task, name] for name in methods(task))]
    columns = min(len(drawn), 3)
    rows = math.ceil(len(drawn) / 3)
    figure = Figure(figsize=(max(3 * columns, 5.5), 2.8 * rows), layout="constrained")
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    for axis in panels.flat[len(drawn) :]:
        axis.set_axis_off()
    lines = {}
    for axis, task in zip(panels.flat, drawn, strict=False):
        for method in methods(task):
            if seeds := found[task, method]:
                shortest = min(len(seed.steps) for seed in seeds)
                mean = np.mean([seed.successes[:shortest] for seed in seeds], 0)
                steps = np.array(seeds[0].steps[:shortest]) / 1000
                lines[method] = axis.plot(steps, mean, color=COLOURS[method], lw=1.4)[0]
        axis.set(title=task, ylim=(-0.02, 1.02), xlabel="thousands of steps")
    figure.supylabel("success on the full task", fontsize=9)
    labels = [NAMES[name].replace("`", "") for name in NAMES if name in lines]
    handles = [lines[name] for name in NAMES if name in lines]
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


PICTURES: Mapping[str, Callable[[], Figure]] = (
    {"standard-success": draw} if any(runs().values()) else {}
)
"""The figure, once there are runs."""


def texts() -> dict[str, str]:
    """Return the parts of the page by the name of their markers."""
    return {
        "standard verdict": verdict(),
        "standard figure": figure(),
        "standard": sheet_markdown(table()),
    }
