"""Tables and pictures of docs/results/robots.md, from the records in results/robots."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from rollin.analysis.curves import panels
from rollin.analysis.group import group
from rollin.analysis.results import StudyResults
from rollin.analysis.sheet import Sheet, sheet
from rollin.analysis.statistics import summarise
from rollin.curriculum.contexts import polyline
from rollin.envs.umaze import PATH, draw_maze
from rollin.report.charts import curves_figure
from rollin.report.words import method_text, summary_text
from rollin.runs.records import Reading, Record
from rollin.sweeps.study import Condition
from studies.robots import CELL, CONDITIONS, FIRST_LOOK, STUDY, UNTIL, committed, key_of, read

DIGITS = {"kappa": 2, "x_velocity": 2, "return": 0}
TASKS = ("hopper", "ant", "antmaze-umaze", "humanoid", "walker")
METHODS = ("scratch", "baseline", "rollin")


@cache
def results() -> StudyResults:
    """The committed runs, condition by condition."""
    grouping = group(committed(), [STUDY])
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
    kappa = record.value(Reading("kappa", step))
    return "–" if kappa is None or record.K is None else str(round(kappa * record.K))


def shown(record: Record, quantity: str) -> str:
    """A quantity at the end of a run, as the tables show it."""
    value = record.value(Reading(quantity))
    return "–" if value is None else f"{value:.{DIGITS[quantity]}f}"


def at_step(step: int, reading: str, task: str) -> Sheet:
    """Published and our quantities at a step, over the seeds that have reached it."""
    rows = []
    for condition, records in runs(reading, task):
        here = [r for r in records if r.value(Reading("return", step)) is not None]
        if here:
            rows.append(_row(step, condition, here))
    return sheet(
        f"{reading} {task}",
        f"{task} at {step:,} steps",
        "method | seeds | κ | x-velocity | return | k of each seed",
        rows,
    )


def _row(step: int, condition: Condition, records: Sequence[Record]) -> list[str]:
    cells = [method_text(condition.labels), str(len(records))]
    for quantity, digits in DIGITS.items():
        reading = Reading(quantity, step)
        values = [value for r in records if (value := r.value(reading)) is not None]
        if not values:
            cells.append("–")
            continue
        text = summary_text(summarise(values), digits)
        cells.append(f"{condition.published.get(reading) or '–'} → **{text}**")
    walked = condition.labels["method"] != "scratch"
    return [*cells, ", ".join(k_at(r, step) for r in records) if walked else "–"]


def as_far_as_they_came(reading: str) -> Sheet:
    """The last quantities of every run."""
    titles = "task | method | seed | steps | κ | x-velocity | return | steps per second"
    return sheet(f"{reading} reached", "How far runs have come", titles, [*_last_rows(reading)])


def _last_rows(reading: str) -> Iterator[list[str]]:
    for condition, records in runs(reading):
        for record in records:
            cells = [condition.task, method_text(condition.labels), str(record.seed)]
            cells += [f"{record.step:,}", *(shown(record, name) for name in DIGITS)]
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
        as_far_as_they_came("tables"),
        at_step(UNTIL, "printed", "hopper"),
        by_context("printed", "hopper"),
        as_far_as_they_came("printed"),
    ]


# ------------------------------------------------------------------ pictures


def draw_curves(conditions: Sequence[Condition], *tasks: str) -> Figure:
    """Learning curves of some tasks."""
    known = results()
    chosen = [c for c in conditions if c.task in tasks and c in known.runs]
    study = replace(STUDY.only(chosen), rows=("env",))  # all of one reading
    some = StudyResults(study, 1.0, {c: known.runs[c] for c in chosen})
    return curves_figure([panels(some)])


def draw_visits() -> Figure:
    """Where training steps ended, from above, on a logarithmic scale."""
    found = read("visits.csv")
    records = {key_of(record): record for record in committed()}
    figure = Figure(figsize=(4.2 * len(found) + 0.6, 4.2), layout="constrained")
    axes: Any = figure.subplots(1, len(found), squeeze=False)[0]
    mesh = None
    most = max(int(row["steps"]) for rows in found.values() for row in rows)
    for ax, (key, rows) in zip(axes, found.items(), strict=True):
        record = records[key]
        # the printed reading has a context at the start, so that κ is the position, too
        draw_maze(ax, polyline(PATH)(record.value(Reading("kappa")) or 0.0), [])
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
    "robots-seeds": lambda: draw_curves(CONDITIONS, "hopper", "ant"),
    "robots-hopper": lambda: draw_curves(FIRST_LOOK, "hopper"),
    "robots-others": lambda: draw_curves(FIRST_LOOK, "antmaze-umaze", "humanoid", "walker", "ant"),
    "robots-visits": draw_visits,
}
