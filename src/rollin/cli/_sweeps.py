"""Running a sweep from the command line: progress, Ctrl-C, what to say at the end."""

from pathlib import Path

from rich.console import Console

from rollin.cli._common import stop_on_signal
from rollin.cli._progress import SweepProgress, live
from rollin.errors import RollinError
from rollin.runs.backend import Job, run_jobs
from rollin.runs.sweep import Sweep


def run_sweep(
    table: str, out: Path, jobs: list[Job], workers: int, command: str, console: Console
) -> bool:
    """Run the jobs that are not finished; returns whether all are now."""
    todo = Sweep(table, out, tuple(jobs)).prepare(command)
    progress = SweepProgress(len(jobs), len(jobs) - len(todo), console)
    with stop_on_signal() as should_stop, live(progress):
        failed = run_jobs(todo, workers, command, progress.take, should_stop)
    if failed:
        raise RollinError(
            f"{len(failed)} of {len(jobs)} runs failed, the first being {failed[0].name}: "
            "its status.json says why; the same command tries them again."
        )
    if progress.done < len(jobs):
        console.print(
            f"Stopped at {progress.done} of {len(jobs)} runs. Go on with: {command}",
            soft_wrap=True,
        )
        return False
    return True
