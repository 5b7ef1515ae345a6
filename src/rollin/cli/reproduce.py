"""`rollin reproduce TABLE`: all cells of a table, on all cores or a cluster, resumable.

What only some of its forms need is imported there: the list of all tables is printed at once.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console

from rollin.checks import MOST_STEPS, at_least, positive
from rollin.cli.console import make_console, plain_table, typed_command
from rollin.cli.options import Arg, make, option_groups, read
from rollin.cli.study_runs import WIDE, PlaceOptions, check_place, length_notes, run_and_report
from rollin.errors import RollinError
from rollin.paper.tables import EXTRAS, all_conditions, find_table, tables
from rollin.sweeps.condition import Condition, select
from rollin.sweeps.machine import (
    cache_rates,
    cached_rates,
    core_seconds,
    cores,
    measure_side_by_side,
    sample_specs,
)
from rollin.sweeps.study import Study

UNKNOWN = "–"


@dataclass(frozen=True)
class ReproduceOptions:
    """Run all cells of a table or figure of the paper, and write a report.

    If interrupted, the same command resumes the sweep.
    """

    table: Annotated[str | None, Arg("TABLE", positional=True)] = None
    """Name of a table, a figure or a computed result, as --list shows them."""
    list: bool = False
    """List all tables and figures with their runs, and with their hours on this machine once its
    speed has been measured. With a name: list the conditions of that table."""
    only: Annotated[str | None, Arg(aliases=("cells",))] = None
    """Run only some cells: "env=hopper,beta=0,beta=0.1" (a label given twice matches either
    value)."""
    seeds: int | None = None
    """Seeds 0 … N-1 of every cell. Default: the paper's number."""
    scale: float | None = None
    """Shorten training, and the steps at which it is read, by this factor."""
    steps: int | None = None
    """Steps of every run, instead of --scale."""
    measure: bool = False
    """With --list: measure this machine's speed (half a minute), even if it was measured
    before."""
    out: Path | None = None
    """Directory of the sweep, where tables of the same family share their runs. Default:
    runs/FAMILY, with the scale if that is not 1."""
    place: PlaceOptions = field(default_factory=PlaceOptions)


def check_options(options: ReproduceOptions) -> None:
    """Raise if options contradict each other."""
    check_place(options.place)
    if options.scale is not None:
        positive("--scale", options.scale)
    if options.scale is not None and options.steps is not None:
        raise RollinError("--scale and --steps both say how long a run is: give one of them.")
    if options.measure and not options.list:
        raise RollinError("--measure belongs to --list.")
    if options.list and options.table is None and options.only is not None:
        raise RollinError("--only belongs to one table: name it, or leave out --only.")


def check_taken(table: str, given: Iterable[str], takes: Sequence[str]) -> None:
    """Raise if an option means nothing to a table, which takes only some."""
    for name in given:
        if name not in ("table", *takes):
            known = ", ".join(f"--{taken}" for taken in takes)
            raise RollinError(f"--{name} does not apply to {table}: it takes {known}.")


def scale_asked(study: Study, options: ReproduceOptions) -> float:
    """Return the factor that shortens training to a whole number of steps."""
    steps = options.steps or max(1, round((options.scale or 1.0) * study.steps))
    return steps / study.steps


@dataclass(frozen=True)
class Computed:
    """A result of this project that is no table of the paper.

    run: takes the options and the command as typed; takes: options that mean something to it.
    """

    about: str
    title: str
    run: Callable[[ReproduceOptions, str], int]
    takes: tuple[str, ...] = ("out",)


def _paper_numbers(options: ReproduceOptions, _: str) -> int:
    from rollin.cli.computed import paper_numbers  # loads the robots

    return paper_numbers(options.out or Path("runs") / "paper-numbers")


def _complexity(options: ReproduceOptions, command: str) -> int:
    from rollin.cli.computed import reproduce_complexity

    return reproduce_complexity(
        command, options.out, options.place, options.seeds, options.scale or 1.0, options.only
    )


def _swept(options: ReproduceOptions, command: str) -> int:
    assert options.table is not None
    found = EXTRAS[options.table].family()
    return _sweep(found[options.table], options, command, list(found.values()))


SWEPT = ("only", "seeds", "scale", "steps", "out", "jobs", "backend", "address", "storage",
         "retries", "learner", "gpus", "until")  # fmt: skip
"""Options of what is swept like a table."""
COMPUTED: dict[str, Computed] = {
    "paper-numbers": Computed(
        "Tables 1–13", "What the printed numbers say of their seeds", _paper_numbers
    ),
    "complexity": Computed(
        "Theorems 4.1, 4.3", "Complexity gains, measured: cost against the size of an MDP",
        _complexity,
        ("only", "seeds", "scale", "out", "jobs", "backend", "address", "storage", "retries"),
    ),
    **{name: Computed(extra.about, extra.title, _swept, SWEPT) for name, extra in EXTRAS.items()},
}  # fmt: skip
"""What is computed beside the paper's tables, by name."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    groups = option_groups(ReproduceOptions)
    given = read(groups, arguments, "reproduce", ReproduceOptions.__doc__ or "")
    options = make(ReproduceOptions, given)
    for name in ("seeds", "steps"):
        if (value := getattr(options, name)) is not None:
            at_least(1, f"--{name}", value)
    check_options(options)
    if options.list:
        if options.table is not None:
            return show_conditions(_study(options.table), options)
        return show_list(options, [(name, c.about, c.title) for name, c in COMPUTED.items()])
    if options.table is None:
        raise RollinError("Which table? rollin reproduce --list shows their names.")
    command = typed_command("reproduce", arguments)
    if options.table in COMPUTED:
        computed = COMPUTED[options.table]
        check_taken(options.table, given, computed.takes)
        return computed.run(options, command)
    study = find_table(options.table, others=COMPUTED)
    if study.kind == "picture":
        from rollin.cli.computed import draw  # loads all that draws

        check_taken(study.name, given, ("out",))
        return draw(study.name, options.out or Path("runs") / study.name)
    return _sweep(study, options, command, list(tables().values()))


def _study(name: str) -> Study:
    """Return the study of a name, of the paper or beside it."""
    study = EXTRAS[name].family()[name] if name in EXTRAS else find_table(name, others=COMPUTED)
    if not study.conditions:
        raise RollinError(f"{name} has no runs: leave out --list to draw it.")
    return study


def _sweep(study: Study, options: ReproduceOptions, command: str, known: Sequence[Study]) -> int:
    """Run what is missing of a study, and write its report."""
    if options.only is not None:
        study = study.only(select(study.conditions, options.only))
    scale = scale_asked(study, options)
    seeds = options.seeds or study.seeds
    short = "" if scale == 1 else f"-scale-{scale:g}"
    return run_and_report(
        study,
        options.out or Path("runs") / f"{study.shared}{short}",
        options.place,
        command,
        seeds=seeds,
        scale=scale,
        known=known,
        notes=length_notes(study, seeds, scale),
    )


# ------------------------------------------------------------------ the list of tables


def show_list(options: ReproduceOptions, computed: Iterable[tuple[str, str, str]]) -> int:
    """Print all tables and figures with their runs and hours.

    computed: name, what of the paper it is about and title of what is computed beside them.
    """
    console = make_console(WIDE)
    workers = options.place.jobs or cores()
    tasks = dict.fromkeys(condition.task for condition in all_conditions())
    speed = measured(workers, console) if options.measure else cached_rates(tasks, workers)
    titles = ("name", "paper", "what", "cells", "runs", "hours")
    table = plain_table(titles, titles[3:], no_wrap=True)
    for study in tables().values():
        numbers = numbers_of(study, options, speed, workers)
        table.add_row(study.name, study.printed, study.title, *numbers)
    for row in computed:
        table.add_row(*row, UNKNOWN, UNKNOWN, UNKNOWN)
    console.print(table)
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
    """Print the conditions of a study with their seeds, steps and hours."""
    console = make_console(WIDE)
    workers = options.place.jobs or cores()
    if options.only is not None:
        study = study.only(select(study.conditions, options.only))
    tasks = list(dict.fromkeys(condition.task for condition in study.conditions))
    speed = (
        measured(workers, console, study.conditions)
        if options.measure
        else cached_rates(tasks, workers)
    )
    scale = scale_asked(study, options)
    titles = ("condition", "seeds", "steps", "hours")
    table = plain_table(titles, titles[2:], no_wrap=True)
    total = 0.0
    for condition in study.conditions:
        seeds = condition.seeds(options.seeds or study.seeds)
        steps = min(round(scale * condition.steps), options.place.until or MOST_STEPS)
        seconds = len(seeds) * steps / speed.get(condition.task, math.nan) / workers
        total += seconds
        names = f"{seeds[0]} – {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
        hours = UNKNOWN if math.isnan(seconds) else _hours(seconds)
        table.add_row(condition.name, names, f"{steps:,}", hours)
    console.print(f"{study.name}: {study.heading}\n")
    console.print(table)
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
    rates: dict[str, float] = {}
    problem: RollinError | None = None
    console.print(f"Steps per second of a run, {workers} side by side, here and now:")
    for task, rate in measure_side_by_side(sample_specs(conditions or all_conditions()), workers):
        console.print(f"  {task:<14} {rate:>7,.0f}")
        rates[task] = rate
        try:
            cache_rates(rates, workers)
        except RollinError as error:
            problem = error
    console.print()
    if problem is not None:
        console.print(f"Note: the rates are not kept. {problem}", style="yellow", soft_wrap=True)
    return rates


def numbers_of(
    study: Study, options: ReproduceOptions, speed: Mapping[str, float], workers: int
) -> tuple[str, str, str]:
    """Return cells, runs and hours of a table; a figure that is only drawn has none."""
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
