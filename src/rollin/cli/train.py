"""`rollin train TASK`: one run."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from rollin.cli._common import make_console, parse, stop_on_signal, typed_command
from rollin.cli._progress import SweepProgress, live
from rollin.runs.backend import Job, Report
from rollin.runs.spec import RunSpec, TabularConfig
from rollin.runs.store import RunDirectory
from rollin.runs.tabular import run


@dataclass(frozen=True)
class TrainOptions:
    """One run of a task. Interrupted, it goes on where it stopped when started again."""

    task: tyro.conf.Positional[str]
    """four-rooms, a FILE.npz with an MDP of yours, or module:factory that returns one."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Run directory; runs/TASK-HASH if not given."""
    config: TabularConfig = field(default_factory=TabularConfig)


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(TrainOptions, arguments, "train")
    spec = RunSpec(options.task, options.config)
    name = Path(options.task).name.removesuffix(".npz").replace(":", ".")
    out = options.out or Path("runs") / f"{name}-{spec.hash}"
    return run_with_progress(spec, out, typed_command("train", arguments))


def run_with_progress(spec: RunSpec, out: Path, command: str) -> int:
    """Run or go on, with live progress; say how it ended."""
    console = make_console()
    job = Job(str(out), spec, out)
    was_finished = RunDirectory(out).finished
    progress = SweepProgress(1, 0, console)
    progress.take(Report("started", job, {}))
    with stop_on_signal() as should_stop, live(progress):
        finished = run(
            spec,
            out,
            command,
            on_status=lambda status: progress.take(Report("progress", job, status)),
            should_stop=should_stop,
        )
    if not finished:
        console.print(f"Stopped. Go on with: rollin resume {shlex.quote(str(out))}")
        return 0
    if was_finished:
        console.print(f"{out} is already finished.", soft_wrap=True)
    result = RunDirectory.open(out).result()
    console.print(
        f"κ = {result['kappa']:.3f} (k = {result['k']} of {result['K']}), "
        f"final return {result['final_return']:.4g} after {result['gradient_steps']:,} gradient "
        f"steps in {result['seconds']:.1f} s: {out / 'result.json'}",
        soft_wrap=True,
    )
    return 0
