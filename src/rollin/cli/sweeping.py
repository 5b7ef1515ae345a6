"""Running a sweep from the command line: progress, Ctrl-C, what to say at the end."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console

from rollin.cli.arguments import stop_on_signal
from rollin.cli.dashboard import SweepProgress, live
from rollin.errors import RollinError
from rollin.sweeps.jobs import Executor, Job
from rollin.sweeps.queue import RETRIES, run_jobs
from rollin.sweeps.sweep import Backlog, Sweep


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
