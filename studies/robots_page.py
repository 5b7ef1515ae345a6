"""Tables and pictures of docs/results/robots.md, from the records in results/robots."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from rollin.analysis.collect import group
from rollin.analysis.findings import ENOUGH
from rollin.analysis.results import StudyResults, panels, solved_by
from rollin.analysis.sheets import Sheet, sheet
from rollin.analysis.statistics import improvement_interval, summarise
from rollin.curriculum.contexts import polyline
from rollin.envs.point_umaze import PATH, UMAZE
from rollin.paper import velocity
from rollin.paper.antmaze import PROGRESS, STEP
from rollin.report.charts import curves_figure
from rollin.report.labels import method_text, quantity_text, summary_text
from rollin.report.style import own_colour
from rollin.runs.records import MetricAt, Record
from rollin.sweeps.condition import Condition, Published
from studies.robots import (
    CELL,
    CONDITIONS,
    RESULTS,
    SEEDS,
    STUDY,
    UNTIL,
    read,
)
from studies.shared import committed, key_of

DIGITS = {"kappa": 2, "x_velocity": 2, "return": 0}
RATE = 150  # training steps a second and core, for core-hours
MAZE_CLAIMS = (
    ("vanilla", "uniform", 12, 0.9),
    ("vanilla", "uniform", 12, 0.5),
    ("vanilla", "geometric", 12, 0.75),
    ("vanilla", "geometric", 24, 0.1),
    ("relabel", "uniform", 12, 0.1),
)
"""Setting, sampling, 1/Δ and β."""
TASKS = ("hopper", "ant", "antmaze-umaze", "humanoid", "walker")
METHODS = ("scratch", "baseline", "rollin")


@cache
def results() -> StudyResults:
    """The committed runs, condition by condition."""
    grouping = group(committed(RESULTS), [STUDY])
    runs = {condition: by_scale[1.0] for condition, by_scale in grouping.runs.items()}
    return StudyResults(STUDY, 1.0, runs)


def runs(reading: str, task: str | None = None) -> list[tuple[Condition, list[Record]]]:
    """Runs of each condition of a reading, in our order."""
    found = [
        (condition, records)
        for condition, records in results().runs.items()
        if condition.labels["reading"] == reading and task in (None, condition.task)
    ]

    def order(pair: tuple[Condition, list[Record]]) -> tuple[int, int]:
        return TASKS.index(pair[0].task), METHODS.index(pair[0].labels["method"])

    return sorted(found, key=order)


def k_at(record: Record, step: int) -> str:
    """The context after a step."""
    kappa = record.value(MetricAt("kappa", step))
    return "–" if kappa is None or record.K is None else str(round(kappa * record.K))


def shown(record: Record, quantity: str) -> str:
    """A quantity at the end of a run, as the tables show it."""
    value = record.value(MetricAt(quantity))
    return "–" if value is None else f"{value:.{DIGITS[quantity]}f}"


def at_step(step: int, reading: str, task: str) -> Sheet:
    """Published and our quantities at a step, over the seeds that have reached it."""
    rows = []
    for condition, records in runs(reading, task):
        here = [r for r in records if r.value(MetricAt("return", step)) is not None]
        if here:
            rows.append(_row(step, condition, here))
    return sheet(
        f"{reading} {task}",
        f"{task} at {step:,} steps",
        "method | seeds | κ | x-velocity | return | k of each seed | master the last context",
        rows,
    )


def _row(step: int, condition: Condition, records: Sequence[Record]) -> list[str]:
    cells = [method_text(condition.labels), str(len(records))]
    for quantity, digits in DIGITS.items():
        reading = MetricAt(quantity, step)
        values = [value for r in records if (value := r.value(reading)) is not None]
        if not values:
            cells.append("–")
            continue
        text = summary_text(summarise(values), digits)
        cells.append(f"{condition.published.get(reading) or '–'} → **{text}**")
    walked = condition.labels["method"] != "scratch"
    solved = solved_by(records, step)
    cells.append(", ".join(k_at(r, step) for r in records) if walked else "–")
    return [*cells, "–" if solved is None else f"{solved[0]} of {solved[1]}"]


def values_at(step: int, task: str, method: str, quantity: str) -> list[float]:
    """What the seeds of a method have at a step, those that have reached it."""
    reading = MetricAt(quantity, step)
    return [
        value
        for condition, records in runs("tables", task)
        if condition.labels["method"] == method
        for record in records
        if (value := record.value(reading)) is not None
    ]


def seeds_at(step: int, task: str, method: str) -> int:
    """How many seeds of a method have reached a step."""
    return len(values_at(step, task, method, "return"))


def compared(step: int = UNTIL) -> Sheet:
    """ROLLIN against the baseline where both have seeds enough, and what is missing elsewhere."""
    rows = []
    for task in dict.fromkeys(condition.task for condition in CONDITIONS):
        counts = {m: seeds_at(step, task, m) for m in ("baseline", "rollin")}
        told = [task, *(f"{count} of {SEEDS}" for count in counts.values())]
        missing = sum(max(ENOUGH - count, 0) for count in counts.values())
        if missing:
            runs_are = "run is" if missing == 1 else "runs are"
            rows.append([*told, *["–"] * len(DIGITS), f"{missing} {runs_are} missing"])
            continue
        rows.append([*told, *(_chance(step, task, quantity) for quantity in DIGITS), "–"])
    columns = (
        "task | seeds of the baseline | of ROLLIN | κ | x-velocity | return | before it counts"
    )
    return sheet("tables compared", "ROLLIN against the baseline", columns, rows)


def _chance(step: int, task: str, quantity: str) -> str:
    """Probability that a seed of ROLLIN has more than one of the baseline, with its interval."""
    ours, base = (values_at(step, task, method, quantity) for method in ("rollin", "baseline"))
    found = improvement_interval([ours], [base])
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def needed() -> Sheet:
    """Seeds and core-hours that the paper's claims would take, by its own means and errors."""
    rows = []
    for setting, sampling, parts, beta in MAZE_CLAIMS:
        base, other = (PROGRESS[setting, 0.0, sampling, parts, b] for b in (0.0, beta))
        what = f"antmaze-umaze, {setting}, Δ = 1/{parts}, {sampling}, β = {beta:g}"
        rows.append([what, *_power(base, other, STEP)])
    for robot in ("ant", "hopper", "walker", "humanoid"):
        for step in velocity.STEPS:
            base, other = (
                velocity.PUBLISHED[robot, method, beta, step]["kappa"]
                for method, beta in (("baseline", 0.0), ("rollin", 0.1))
            )
            what = f"{robot}, {step / 1e6:g}M steps, β = 0.1"
            rows.append([what, *_power(base, other, step)])
    columns = "claim | published κ: baseline → ROLLIN | seeds of each | core-hours"
    return sheet("tables power", "Seeds that the paper's claims would take", columns, rows)


def _power(base: Published, other: Published, steps: int) -> list[str]:
    """Published values, seeds of each for a power of 80 % (two-sided 5 %), core-hours at RATE."""
    shown = f"{base} → {other}"
    seeds = seeds_needed(base, other)
    if seeds is None:
        return [shown, "–", "–"]
    hours = 2 * seeds * steps / RATE / 3600
    return [shown, f"{seeds:,}", f"{hours:,.0f}"]


def seeds_needed(base: Published, other: Published) -> int | None:
    """Seeds of each for a power of 80 %, if the deviations are the published ones; None: no gap.

    n = 2 (z₀.₉₇₅ + z₀.₈)² σ² / δ², and at least 4, the fewest with which an exact test can reach
    5 %.
    """
    gap = other.mean - base.mean
    if not gap:
        return None
    variance = velocity.SEEDS * (base.error**2 + other.error**2) / 2
    normal = NormalDist()
    quantiles = normal.inv_cdf(0.975) + normal.inv_cdf(0.8)
    return max(4, math.ceil(2 * quantiles**2 * variance / gap**2))


def as_far_as_they_came(reading: str) -> Sheet:
    """The last quantities of every run."""
    titles = (
        "task | method | seed | steps | κ | masters the last context | x-velocity | return | "
        "steps per second"
    )
    return sheet(f"{reading} reached", "How far runs have come", titles, [*_last_rows(reading)])


def _last_rows(reading: str) -> Iterator[list[str]]:
    for condition, records in runs(reading):
        for record in records:
            cells = [condition.task, method_text(condition.labels), str(record.seed)]
            kappa, *others = (shown(record, name) for name in DIGITS)
            solved = "yes" if solved_by([record]) == (1, 1) else "no"
            cells += [f"{record.step:,}", kappa, solved, *others]
            yield [*cells, f"{record.step / (record.costs.seconds or 1):.0f}"]


def by_context(reading: str, task: str) -> Sheet:
    """Return and x-velocity of each run's policy under every context."""
    found, names = [], []
    for condition, records in runs(reading, task):
        for record in records:
            rows = read("evaluation.csv").get(key_of(record))
            if rows:
                found.append(rows)
                names.append(f"{method_text(condition.labels)}, seed {record.seed}")
    body = []
    for cells in zip(*found, strict=True):
        told = [f"{float(row['return']):.0f} at {float(row['x_velocity']):.2f}" for row in cells]
        body.append([cells[0]["level"], cells[0]["threshold"], *told])
    title = f"{task}: return at x-velocity under every context"
    return sheet(f"{reading} contexts", title, " | ".join(["level", "R", *names]), body)


def tables() -> list[Sheet]:
    """Every table of the page."""
    return [
        at_step(UNTIL, "tables", "hopper"),
        at_step(UNTIL, "tables", "ant"),
        compared(),
        needed(),
        as_far_as_they_came("tables"),
        by_context("tables", "hopper"),
        at_step(UNTIL, "printed", "hopper"),
        by_context("printed", "hopper"),
        as_far_as_they_came("printed"),
    ]


# ------------------------------------------------------------------ pictures


def draw_curves() -> Figure:
    """Learning curves of hopper and ant."""
    known = results()
    chosen = [c for c in CONDITIONS if c in known.runs]
    study = replace(STUDY.only(chosen), rows=("env",))  # all of one reading
    some = StudyResults(study, 1.0, {c: known.runs[c] for c in chosen})
    return curves_figure([panels(some)])


def draw_dots() -> Figure:
    """Every seed as a dot, a row for each method, with the published mean and standard error."""
    tasks = list(dict.fromkeys(condition.task for condition in CONDITIONS))
    figure = Figure(figsize=(11, 1.9 * len(tasks)), layout="constrained")
    axes: Any = figure.subplots(len(tasks), len(DIGITS), squeeze=False)
    for row, task in zip(axes, tasks, strict=True):
        found = runs("tables", task)
        names = [method_text(condition.labels) for condition, _ in found]
        for axis, quantity in zip(row, DIGITS, strict=True):
            reading = MetricAt(quantity, UNTIL)
            for height, (condition, records) in enumerate(found):
                if quantity == "kappa" and condition.labels["method"] == "scratch":
                    continue  # it has one context
                _draw_dots(axis, height, condition, records, reading)
            axis.set_yticks(range(len(names)), names if axis is row[0] else [""] * len(names))
            axis.set_ylim(len(names) - 0.5, -0.5)
            axis.set_xlim(left=0.0, right=1.05 if quantity == "kappa" else None)
            axis.set_xlabel(f"{quantity_text(quantity, 'rollin')}, {task}")
    return figure


def _draw_dots(
    axis: Any, height: int, condition: Condition, records: Sequence[Record], reading: MetricAt
) -> None:
    values = [value for r in records if (value := r.value(reading)) is not None]
    tint = own_colour(condition.labels) or "0.3"
    axis.plot(values, [height] * len(values), "o", ms=6, alpha=0.8, color=tint, mew=0)
    if known := condition.published.get(reading):
        axis.errorbar(
            known.mean, height + 0.28, xerr=known.error, fmt="d", ms=4, color="0.45", lw=1
        )


def draw_visits() -> Figure:
    """Where training steps ended, from above, on a logarithmic scale."""
    found = read("visits.csv")
    records = {key_of(record): record for record in committed(RESULTS)}
    figure = Figure(figsize=(4.2 * len(found) + 0.6, 4.2), layout="constrained")
    axes: Any = figure.subplots(1, len(found), squeeze=False)[0]
    mesh = None
    most = max(int(row["steps"]) for rows in found.values() for row in rows)
    for ax, (key, rows) in zip(axes, found.items(), strict=True):
        record = records[key]
        # the printed reading has a context at the start, so that κ is the position, too
        UMAZE.draw(ax, polyline(PATH)(record.value(MetricAt("kappa")) or 0.0), [])
        edges = np.arange(-2, 10 + CELL / 2, CELL)
        counts = np.zeros((len(edges) - 1, len(edges) - 1))
        for row in rows:
            i, j = (round((float(row[part]) + 2) / CELL) for part in ("x", "y"))
            if 0 <= i < len(counts) and 0 <= j < len(counts):
                counts[j, i] = int(row["steps"])
        masked = np.ma.masked_equal(counts, 0)
        norm = LogNorm(1, most)
        mesh = ax.pcolormesh(edges, edges, masked, norm=norm, cmap="Purples", zorder=0.5)
        ax.set_title(f"{method_text(record.labels)}: {record.step / 1000:.0f}k steps")
    if mesh is not None:
        figure.colorbar(mesh, ax=list(axes), label="steps that ended in a cell of 0.25 m")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "robots-seeds": draw_curves,
    "robots-dots": draw_dots,
    "robots-visits": draw_visits,
}
