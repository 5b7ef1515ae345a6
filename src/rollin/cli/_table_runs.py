"""The runs of a table or figure: on all cores or a cluster, with a report at the end."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console

from rollin.analysis.collect import collect
from rollin.cli._table_options import WIDE, ReproduceOptions, scale_of
from rollin.cli.arguments import make_console
from rollin.cli.sweeping import run_sweep
from rollin.paper.tables import Table
from rollin.report.maps import goal_path, reward_maps
from rollin.report.page import make_report
from rollin.report.style import PICTURES, save_picture, styled
from rollin.report.terminal import terminal_tables
from rollin.runs.files import make_directory
from rollin.runs.spec import RollinConfig, RunSpec
from rollin.sac.learner import LearnerName
from rollin.sweeps.jobs import Executor, Job
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.machine import cores
from rollin.sweeps.study import differing
from rollin.sweeps.sweep import Sweep

PICTURES_OF: dict[str, Callable[[], Figure]] = {"reward-maps": reward_maps, "goal-path": goal_path}


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
    from rollin.sweeps.cluster import RayExecutor

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
