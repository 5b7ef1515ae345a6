"""The runs of a study: on all cores or a cluster, with progress and a report at the end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console

from rollin.checks import at_least, positive
from rollin.cli.console import SweepProgress, live, make_console, stop_on_signal
from rollin.errors import RollinError
from rollin.runs.spec import RETRIES, Job
from rollin.sac.config import LearnerName
from rollin.sweeps.local import executor
from rollin.sweeps.queue import Executor, run_jobs
from rollin.sweeps.study import Study
from rollin.sweeps.sweep import Backlog, Sweep

if TYPE_CHECKING:
    from rollin.analysis.results import StudyResults


WIDE = 140  # columns of tables where the output is not a terminal


@dataclass(frozen=True)
class PlaceOptions:
    """Where runs are done, and how many at a time."""

    jobs: int | None = None
    """Number of parallel runs. Default: one per core, or as many as the cluster has room for."""
    backend: Literal["local", "ray"] = "local"
    """local: processes on this machine; ray: a Ray cluster (needs the extra ray)."""
    address: str | None = None
    """Address of a running Ray cluster: auto or host:port. Default: RAY_ADDRESS, or a new cluster
    on this machine if that is not set."""
    storage: Literal["auto", "shared", "fetch"] = "auto"
    """Where runs on a cluster write: to --out, if all machines can see it (shared), or to a local
    disk from which the files are fetched (fetch); auto: each run finds out."""
    learner: LearnerName = "cpu"
    """cpu, or jax for GPUs (needs the extra jax)."""
    gpus: float = 1.0
    """Fraction of a GPU for each run with --learner jax, on a cluster with GPUs."""
    retries: int = RETRIES
    """How often a failed run is retried."""
    until: int | None = None
    """Stop every run at this step, with a checkpoint. The same command with a later step, or
    without one, resumes the runs."""


def check_place(options: PlaceOptions) -> None:
    """Refuse options that do not go together."""
    at_least(0, "--retries", options.retries)
    positive("--gpus", options.gpus)
    if options.until is not None:
        at_least(1, "--until", options.until)
    if options.jobs is not None:
        at_least(1, "--jobs", options.jobs)
    if options.backend == "local":
        for name in ("address", "storage", "gpus"):
            if getattr(options, name) != getattr(PlaceOptions, name):
                raise RollinError(f"--{name} belongs to --backend ray.")


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
    show: Callable[["StudyResults", Console], None] | None = None,
) -> int:
    """Run a study's sweep, and write its report.

    known: studies that runs there may also belong to; show: prints the results. Default: tables.
    """
    from rollin.analysis.collect import collect  # these load all that draws
    from rollin.report.page import make_report

    sweep = study.sweep(out, seeds, scale, place.until, learner=place.learner)
    console = make_console()
    for note in notes:
        console.print(f"Note: {note}", style="yellow", soft_wrap=True)
    end = run_sweep(sweep, executor_of(place, out, command), command, console, place.retries)
    if end.complete and end.finished:
        page = out / "report.html"
        collection = collect([out], known, unfinished=place.until is not None)
        for results in make_report(collection, page, known, title, only=study.name):
            (show or show_tables)(results, console)
        console.print(f"Report: {page.resolve()}", soft_wrap=True)
    end.check()
    return end.code


def show_tables(results: "StudyResults", console: Console) -> None:
    """Print the tables of a study."""
    from rollin.report.exports import terminal_tables

    for table in terminal_tables(results):
        console.print(table)


def length_notes(study: Study, seeds: int, scale: float) -> list[str]:
    """Return the text of how the runs differ from the study's."""
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
    """Return what makes the place where runs are done."""
    if place.backend == "local":
        return executor(out, command, place.jobs)
    where = {"address": place.address, "gpus": place.gpus, "storage": place.storage}
    return executor(out, command, place.jobs, place.backend, **where)


@dataclass(frozen=True)
class SweepEnd:
    """How a sweep ended: whether all that could be done is done, and what could not.

    code: the exit code that goes with it, if nothing went wrong.
    """

    complete: bool
    finished: int
    problem: str | None
    code: int = 0

    def check(self) -> None:
        """Raise what went wrong, once all else is done."""
        if self.problem is not None:
            raise RollinError(self.problem)


def run_sweep(
    sweep: Sweep,
    make_executor: Callable[[], Executor],
    command: str,
    console: Console,
    retries: int = RETRIES,
) -> SweepEnd:
    """Run the jobs that are not finished."""
    executor = make_executor()  # first: a cluster that does not answer leaves nothing behind
    backlog = sweep.plan(command)
    for job, why in backlog.broken:
        console.print(f"Skipped {job.name}: {why}", style="yellow", soft_wrap=True)
    total = len(sweep.jobs) - len(backlog.broken)
    progress = SweepProgress(total, len(backlog.done), console, sweep.title)
    with stop_on_signal() as should_stop, live(progress):
        failed = run_jobs(
            backlog.todo, executor, retries=retries, on_event=progress.take, should_stop=should_stop
        )
    complete = progress.done + len(failed) == total
    if not complete:
        console.print(
            f"Stopped at {progress.done} of {total} runs. Resume with: {command}", soft_wrap=True
        )
    problem = _problem(sweep, backlog, failed, progress, retries)
    return SweepEnd(complete, progress.done, problem, 0 if complete else should_stop.code)


def _problem(
    sweep: Sweep, backlog: Backlog, failed: list[Job], progress: SweepProgress, retries: int
) -> str | None:
    parts: list[str] = []
    if failed:
        name = failed[0].name
        parts.append(
            f"{len(failed)} of {len(sweep.jobs)} runs failed, each after up to {retries + 1} "
            f"attempts, the first being {name} ({progress.overview.failed[name].rstrip('.')}); the "
            "same command tries them again."
        )
    if backlog.broken:
        job, why = backlog.broken[0]
        parts.append(f"Skipped run directories: {len(backlog.broken)}, the first {job.out}: {why}")
    return " ".join(parts) or None
