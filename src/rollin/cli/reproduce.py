"""`rollin reproduce TABLE`: all cells of a table, on all cores or a cluster, resumable."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

import tyro
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table as RichTable

from rollin.checks import at_least, positive
from rollin.cli._common import make_console, parse, typed_command
from rollin.cli._sheets import show_findings
from rollin.cli._sweeps import run_sweep
from rollin.errors import RollinError
from rollin.paper.cells import differing
from rollin.paper.choose import choose
from rollin.paper.cost import core_seconds, sample_specs
from rollin.paper.tables import Table, find_table, tables
from rollin.report.collect import collect
from rollin.report.maps import goal_path, reward_maps
from rollin.report.page import make_report
from rollin.report.style import PICTURES, save_picture, styled
from rollin.report.terminal import terminal_tables
from rollin.runs.files import make_directory
from rollin.runs.jobs import Executor, Job
from rollin.runs.local import LocalExecutor
from rollin.runs.memory import cores
from rollin.runs.rates import rates
from rollin.runs.schedule import RETRIES
from rollin.runs.spec import RollinConfig, RunSpec
from rollin.runs.sweep import Sweep
from rollin.sac.learner import LearnerName

PICTURES_OF: dict[str, Callable[[], Figure]] = {"reward-maps": reward_maps, "goal-path": goal_path}


WIDE = 140  # columns of tables where the output is not a terminal


@dataclass(frozen=True)
class Computed:
    """A result of ours that is no table of the paper.

    run: takes the options and the command as typed; takes: options that mean something to it.
    """

    about: str
    title: str
    run: "Callable[[ReproduceOptions, str], int]"
    takes: tuple[str, ...] = ("out",)


def _paper_numbers(options: "ReproduceOptions", _: str) -> int:
    from rollin.paper.numbers import numbers  # loads the robots, which the other tables do not need

    show_findings(numbers(), options.out or Path("runs") / "paper-numbers", make_console(WIDE))
    return 0


def _complexity(options: "ReproduceOptions", command: str) -> int:
    from rollin.cli.complexity import reproduce_complexity

    return reproduce_complexity(command, options.out, options.seeds, options.scale, options.jobs)


COMPUTED: dict[str, Computed] = {
    "paper-numbers": Computed(
        "Tables 1–13", "What the printed numbers say of their seeds", _paper_numbers
    ),
    "complexity": Computed(
        "Theorems 4.1, 4.3", "Complexity gains, measured: cost against the size of an MDP",
        _complexity, ("seeds", "scale", "jobs", "out"),
    ),
}  # fmt: skip
"""What is computed beside the paper's tables, by name."""


@dataclass(frozen=True)
class ReproduceOptions:
    """Run all cells of a table or figure of the paper. Interrupted, it goes on where it stopped."""

    table: tyro.conf.Positional[str | None] = None
    """Name of a table, a figure or a computed result, as --list shows them."""
    list: bool = False
    """Show all tables and figures, their runs, and the hours that they take on this machine."""
    cells: str | None = None
    """Only some cells: "env=hopper,beta=0,beta=0.1" (a label given twice may be either)."""
    seeds: int | None = None
    """Seeds 0 … N-1 of every cell; the paper's number if not given."""
    scale: float | None = None
    """Shorten training, and the steps at which it is read, by this factor."""
    steps: int | None = None
    """Steps of every run, instead of --scale."""
    jobs: int | None = None
    """Runs at the same time: all cores, or all that the cluster has room for, if not given."""
    backend: Literal["local", "ray"] = "local"
    """local: processes on this machine; ray: a Ray cluster (needs the extra rollin[ray])."""
    address: str | None = None
    """Of a running Ray cluster: auto, or host:port; RAY_ADDRESS if not given, or else one is
    started on this machine."""
    storage: Literal["auto", "shared", "fetch"] = "auto"
    """Where runs on a cluster write: into --out, if all machines see it (shared), or where they
    run, from where their files are fetched (fetch); auto: each finds out."""
    learner: LearnerName = "cpu"
    """cpu, or jax for GPUs (needs the extra rollin[jax])."""
    gpus: float = 1.0
    """Share of a GPU for each run with --learner jax on a cluster that has any."""
    retries: int = RETRIES
    """How often a run that failed is tried again."""
    measure: bool = False
    """With --list: measure this machine's speed anew."""
    out: Path | None = None
    """Directory of the sweep; tables of the same family share their runs there. runs/FAMILY if not
    given, with the scale if that is not 1."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ReproduceOptions, arguments, "reproduce")
    for name in ("seeds", "steps", "jobs"):
        if (value := getattr(options, name)) is not None:
            at_least(1, f"--{name}", value)
    check(options)
    if options.list:
        return show_list(options)
    if options.table is None:
        raise RollinError("Which table? rollin reproduce --list shows their names.")
    command = typed_command("reproduce", arguments)
    if options.table in COMPUTED:
        computed = COMPUTED[options.table]
        check_taken(options, computed.takes)
        return computed.run(options, command)
    table = find_table(options.table, others=COMPUTED)
    if table.kind == "picture":
        check_taken(options, ("out",))
        return draw(table, options.out)
    if options.cells is not None:
        table = table.only(choose(table.cells, options.cells))
    return reproduce(table, options, command)


def check(options: ReproduceOptions) -> None:
    """Refuse options that cannot be meant."""
    at_least(0, "--retries", options.retries)
    positive("--gpus", options.gpus)
    if options.scale is not None:
        positive("--scale", options.scale)
    if options.scale is not None and options.steps is not None:
        raise RollinError("--scale and --steps both say how long a run is: give one of them.")
    if options.measure and not options.list:
        raise RollinError("--measure belongs to --list.")
    if options.list and (options.table is not None or options.cells is not None):
        raise RollinError("--list shows all tables: leave out the table and --cells.")
    if options.backend == "local":
        for name in ("address", "storage", "gpus"):
            if getattr(options, name) != getattr(ReproduceOptions, name):
                raise RollinError(f"--{name} belongs to --backend ray.")


def check_taken(options: ReproduceOptions, takes: Sequence[str]) -> None:
    """Refuse options that mean nothing to what has no cells."""
    for field in fields(options):
        if field.name in ("table", "list", *takes):
            continue
        if getattr(options, field.name) != field.default:
            known = ", ".join(f"--{name}" for name in takes)
            raise RollinError(f"--{field.name} means nothing to {options.table}: it takes {known}.")


def scale_of(table: Table, options: ReproduceOptions) -> float:
    """The factor by which training is shortened, so that it is a whole number of steps."""
    steps = options.steps or max(1, round((options.scale or 1.0) * table.steps))
    return steps / table.steps


def jobs_of(table: Table, options: ReproduceOptions, out: Path, scale: float) -> list[Job]:
    """All runs of a table; seeds outermost, so that every cell fills evenly.

    A job is called by the labels in which the cells differ.
    """
    varying = differing(table.cells)
    return [
        Job(
            " ".join([*(f"{name}={cell.labels[name]}" for name in varying), f"seed={seed}"]),
            _with_learner(cell.spec(seed, scale), options.learner),
            out / cell.name / f"seed={seed}",
        )
        for seed in range(options.seeds or table.seeds)
        for cell in table.cells
    ]


def _with_learner(spec: RunSpec, learner: LearnerName) -> RunSpec:
    config = spec.config
    return (
        replace(spec, config=replace(config, learner=learner))
        if isinstance(config, RollinConfig)
        else spec
    )


def reproduce(table: Table, options: ReproduceOptions, command: str) -> int:
    """Run a table's sweep, and write its report."""
    scale = scale_of(table, options)
    short = "" if scale == 1 else f"-scale-{scale:g}"
    out = options.out or Path("runs") / f"{table.family}{short}"
    jobs = jobs_of(table, options, out, scale)
    sweep = Sweep(table.name, table.family, scale, out, tuple(jobs))
    console = make_console()
    for note in warnings(table, options, scale):
        console.print(f"Note: {note}", style="yellow", soft_wrap=True)
    outcome = run_sweep(
        sweep, executor_of(options, out, command), command, console, retries=options.retries
    )
    if outcome.complete and outcome.finished:
        show_report(out, table, console)
    outcome.check()
    return 0


def show_report(out: Path, table: Table, console: Console) -> None:
    """Write the page, and show its tables on the terminal."""
    page = out / "report.html"
    for results in make_report(collect([out]), page, table=table.name):
        for shown in terminal_tables(results):
            console.print(shown)
    console.print(f"Report: {page}", soft_wrap=True)


def warnings(table: Table, options: ReproduceOptions, scale: float) -> list[str]:
    """In what the runs differ from the paper's, in words."""
    notes: list[str] = []
    if scale != 1:
        notes.append(
            f"training is {'shortened' if scale < 1 else 'lengthened'} to {scale:.3g} of the "
            f"paper's ({round(scale * table.steps):,} steps, not {table.steps:,}): the published "
            "values are of the full length."
        )
    seeds = options.seeds or table.seeds
    if seeds != table.seeds:
        notes.append(f"seeds of each cell: {seeds}; the paper has {table.seeds}.")
    return notes


def executor_of(options: ReproduceOptions, out: Path, command: str) -> Callable[[], Executor]:
    """What makes the place where the runs are done."""
    if options.backend == "local":
        return lambda: LocalExecutor(options.jobs or cores(), command)
    from rollin.runs.cluster import RayExecutor

    return lambda: RayExecutor(
        out, command, options.address, options.jobs, gpus=options.gpus, storage=options.storage
    )


def draw(table: Table, out: Path | None) -> int:
    """A figure that needs no runs, as PNG and SVG."""
    directory = out or Path("runs") / table.name
    make_directory(directory)
    console = make_console(WIDE)
    with styled():
        figure = PICTURES_OF[table.name]()
        for suffix in PICTURES:
            path = directory / f"{table.name}{suffix}"
            save_picture(path, figure)
            console.print(f"Picture: {path}", soft_wrap=True)
    return 0


# ------------------------------------------------------------------ what there is, and its cost


def show_list(options: ReproduceOptions) -> int:
    """All tables and figures with their runs and hours."""
    console = make_console(WIDE)
    workers = options.jobs or cores()
    speed = rates(
        sample_specs(),
        workers,
        anew=options.measure,
        on_task=lambda task: console.print(f"Measuring how fast {task} is here …"),
    )
    shown = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("name", "paper", "what", "cells", "runs", "hours"):
        right = title in ("cells", "runs", "hours")
        shown.add_column(title, justify="right" if right else "left", no_wrap=True)
    for table in tables().values():
        numbers = ["–", "–", "0"]
        if table.cells:
            seeds = options.seeds or table.seeds
            needed = core_seconds(table.cells, seeds, speed, scale_of(table, options)) / workers
            numbers = [str(len(table.cells)), f"{len(table.cells) * seeds:,}", _hours(needed)]
        shown.add_row(table.name, table.printed, table.title, *numbers)
    for name, computed in COMPUTED.items():
        shown.add_row(name, computed.about, computed.title, "–", "–", "–")
    console.print(shown)
    rates_here = ", ".join(f"{task} {rate:,.0f}" for task, rate in speed.items())
    console.print(
        f"\nHours on this machine with {workers} runs side by side, from the steps a second that "
        f"were measured: {rates_here}; evaluations come on top.\nTables of one family "
        "(four-rooms, antmaze, velocity) share their runs in one directory.",
        soft_wrap=True,
    )
    return 0


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.1f}" if hours >= 1 else f"{hours:.2f}"
