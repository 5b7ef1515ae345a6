"""`rollin reproduce --list`: all tables and figures at once, with hours where speed is known."""

import math
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table as RichTable

from rollin.checks import MOST_STEPS
from rollin.cli.arguments import make_console
from rollin.cli.sweep_options import WIDE, ReproduceOptions, scale_asked
from rollin.errors import RollinError
from rollin.paper.tables import all_conditions, tables
from rollin.sweeps.cost import core_seconds, sample_specs
from rollin.sweeps.machine import cores
from rollin.sweeps.rates import keep_rates, kept_rates, measure_side_by_side
from rollin.sweeps.select import select
from rollin.sweeps.study import Condition, Study

UNKNOWN = "–"


def show_list(options: ReproduceOptions, computed: Iterable[tuple[str, str, str]]) -> int:
    """All tables and figures with their runs and hours.

    computed: name, what of the paper it is about and title of what is computed beside them.
    """
    console = make_console(WIDE)
    workers = options.place.jobs or cores()
    tasks = dict.fromkeys(condition.task for condition in all_conditions())
    speed = measured(workers, console) if options.measure else kept_rates(tasks, workers)
    shown = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("name", "paper", "what", "cells", "runs", "hours"):
        right = title in ("cells", "runs", "hours")
        shown.add_column(title, justify="right" if right else "left", no_wrap=True)
    for study in tables().values():
        numbers = numbers_of(study, options, speed, workers)
        shown.add_row(study.name, study.printed, study.title, *numbers)
    for row in computed:
        shown.add_row(*row, UNKNOWN, UNKNOWN, UNKNOWN)
    console.print(shown)
    console.print(
        "\nTables of one family (four-rooms, antmaze, velocity) share their runs in one directory."
    )
    if speed:
        rates_here = ", ".join(f"{task} {rate:,.0f}" for task, rate in speed.items())
        console.print(
            f"Hours on this machine with {workers} runs side by side, from the steps per second "
            f"that were measured: {rates_here}; evaluations come on top.",
            soft_wrap=True,
        )
    if len(speed) < len(tasks):
        jobs = "" if options.place.jobs is None else f" --jobs {options.place.jobs}"
        console.print(
            f"To see hours, measure for half a minute: rollin reproduce --list --measure{jobs}"
        )
    return 0


def show_conditions(study: Study, options: ReproduceOptions) -> int:
    """The conditions of a study with their seeds, steps and hours."""
    console = make_console(WIDE)
    workers = options.place.jobs or cores()
    if options.cells is not None:
        study = study.only(select(study.conditions, options.cells))
    tasks = list(dict.fromkeys(condition.task for condition in study.conditions))
    speed = (
        measured(workers, console, study.conditions)
        if options.measure
        else kept_rates(tasks, workers)
    )
    scale, until = scale_asked(study, options), options.place.until
    shown = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("condition", "seeds", "steps", "hours"):
        right = title in ("steps", "hours")
        shown.add_column(title, justify="right" if right else "left", no_wrap=True)
    total = 0.0
    for condition in study.conditions:
        seeds = condition.seeds(options.seeds or study.seeds)
        steps = min(round(scale * condition.steps), until or MOST_STEPS)
        seconds = len(seeds) * steps / speed.get(condition.task, math.nan) / workers
        total += seconds
        names = f"{seeds[0]} – {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
        hours = UNKNOWN if math.isnan(seconds) else _hours(seconds)
        shown.add_row(condition.name, names, f"{steps:,}", hours)
    console.print(f"{study.name}: {study.heading}\n")
    console.print(shown)
    if math.isnan(total):
        console.print(
            "\nTo see hours, measure for a few seconds: "
            f"rollin reproduce {study.name} --list --measure"
        )
    else:
        console.print(f"\n{_hours(total)} hours on this machine with {workers} runs side by side.")
    return 0


def measured(
    workers: int, console: Console, conditions: Sequence[Condition] = ()
) -> dict[str, float]:
    """Return the steps per second of each task; each is shown and kept as soon as it is known.

    conditions: whose tasks; the paper's if empty.
    """
    found: dict[str, float] = {}
    problem: RollinError | None = None
    console.print(f"Steps per second of a run, {workers} side by side, here and now:")
    for task, rate in measure_side_by_side(sample_specs(conditions or all_conditions()), workers):
        console.print(f"  {task:<14} {rate:>7,.0f}")
        found[task] = rate
        try:
            keep_rates(found, workers)
        except RollinError as error:
            problem = error
    console.print()
    if problem is not None:
        console.print(f"Note: the rates are not kept. {problem}", style="yellow", soft_wrap=True)
    return found


def numbers_of(
    study: Study, options: ReproduceOptions, speed: Mapping[str, float], workers: int
) -> tuple[str, str, str]:
    """Cells, runs and hours of a table; a figure that is only drawn has none."""
    if not study.conditions:
        return UNKNOWN, UNKNOWN, "0"
    seeds = options.seeds or study.seeds
    hours = UNKNOWN
    if all(condition.task in speed for condition in study.conditions):
        seconds = (
            core_seconds(study.conditions, seeds, speed, scale_asked(study, options)) / workers
        )
        hours = _hours(seconds)
    return str(len(study.conditions)), f"{len(study.conditions) * seeds:,}", hours


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.1f}" if hours >= 1 else f"{hours:.2f}"
