"""The runs of a study: on all cores or a cluster, with a report at the end."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console

from rollin.analysis.collect import collect
from rollin.analysis.results import StudyResults
from rollin.cli.arguments import make_console
from rollin.cli.sweep_options import WIDE, PlaceOptions
from rollin.cli.sweeping import run_sweep
from rollin.report.maps import goal_path, reward_maps
from rollin.report.page import make_report
from rollin.report.style import PICTURES, save_picture, styled
from rollin.report.terminal import terminal_tables
from rollin.runs.files import make_directory
from rollin.sweeps.jobs import Executor
from rollin.sweeps.run import executor
from rollin.sweeps.study import Study
from rollin.sweeps.sweep import Sweep, jobs_of

PICTURES_OF: dict[str, Callable[[], Figure]] = {"reward-maps": reward_maps, "goal-path": goal_path}


def run_and_report(
    study: Study,
    out: Path,
    place: PlaceOptions,
    command: str,
    *,
    seeds: int,
    scale: float = 1.0,
    known: Sequence[Study] = (),
    notes: Sequence[str] = (),
    title: str | None = None,
    show: Callable[[StudyResults, Console], None] | None = None,
) -> int:
    """Run a study's sweep, and write its report.

    known: studies that runs there may belong to, too; show: what the terminal shows of the results,
    their tables if not given.
    """
    jobs = jobs_of(study, out, seeds, scale, place.until, learner=place.learner)
    sweep = Sweep(study, scale, out, tuple(jobs))
    console = make_console()
    for note in notes:
        console.print(f"Note: {note}", style="yellow", soft_wrap=True)
    end = run_sweep(sweep, executor_of(place, out, command), command, console, place.retries)
    if end.complete and end.finished:
        page = out / "report.html"
        found = collect([out], known, unfinished=place.until is not None)
        for results in make_report(found, page, known, title, only=study.name):
            (show or show_tables)(results, console)
        console.print(f"Report: {page.resolve()}", soft_wrap=True)
    end.check()
    return end.code


def show_tables(results: StudyResults, console: Console) -> None:
    """The tables of a study, on the terminal."""
    for shown in terminal_tables(results):
        console.print(shown)


def length_notes(study: Study, seeds: int, scale: float) -> list[str]:
    """In what the runs differ from the study's, in words."""
    whose = "the paper's" if study.printed else "the study's"
    notes: list[str] = []
    if scale != 1:
        notes.append(
            f"training is {'shortened' if scale < 1 else 'lengthened'} to {scale:.3g} of {whose} "
            f"({round(scale * study.steps):,} steps, not {study.steps:,})"
            + (": the published values are of the full length." if study.printed else ".")
        )
    if seeds != study.seeds:
        has = "the paper" if study.printed else "the study"
        notes.append(f"seeds of each condition: {seeds}; {has} has {study.seeds}.")
    return notes


def executor_of(place: PlaceOptions, out: Path, command: str) -> Callable[[], Executor]:
    """What makes the place where the runs are done."""
    if place.backend == "local":
        return executor(out, command, place.jobs)
    where = {"address": place.address, "gpus": place.gpus, "storage": place.storage}
    return executor(out, command, place.jobs, place.backend, **where)


def draw(study: Study, out: Path | None) -> int:
    """A figure that needs no runs, as PNG and SVG."""
    directory = out or Path("runs") / study.name
    make_directory(directory)
    console = make_console(WIDE)
    with styled():
        figure = PICTURES_OF[study.name]()
        for suffix in PICTURES:
            path = directory / f"{study.name}{suffix}"
            save_picture(path, figure)
            console.print(f"Picture: {path}", soft_wrap=True)
    return 0
