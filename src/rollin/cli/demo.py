"""`rollin demo`: four rooms, baseline against ROLLIN, a report to open."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rollin.analysis.collect import collect
from rollin.analysis.results import TableResults
from rollin.analysis.statistics import outcomes
from rollin.checks import at_least
from rollin.cli.arguments import make_console, parse, typed_command
from rollin.cli.sweeping import run_sweep
from rollin.paper.four_rooms import STEPS, cell
from rollin.report.page import make_report
from rollin.report.words import summary_text
from rollin.sweeps.jobs import Job
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.machine import cores
from rollin.sweeps.sweep import Sweep

REWARD, ALPHA = "hard", 0.001  # the row of the paper's table where ROLLIN's gain shows soonest


@dataclass(frozen=True)
class DemoOptions:
    """Four rooms with the hard reward: the baseline against ROLLIN, and a report to open."""

    out: Path = Path("runs/demo")
    """Directory of the runs and the report."""
    seeds: int = 3
    """Seeds per condition."""
    steps: int = 20_000
    """Gradient steps per run."""
    jobs: int = cores()
    """Runs at the same time, one core each."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(DemoOptions, arguments, "demo")
    at_least(1, "--seeds", options.seeds)
    at_least(1, "--jobs", options.jobs)
    at_least(1, "--steps", options.steps)
    console = make_console()
    console.print(
        "Four rooms: 17 goals on a path through two doors, 5 real and 100 dummy actions.\n"
        "Baseline (β = 0) against ROLLIN (β = 0.75): who gets farther along the curriculum?",
        soft_wrap=True,
    )
    jobs = [
        Job(f"β={found.labels['beta']} seed={seed}", found.spec(seed, options.steps / STEPS),
            options.out / found.name / f"seed={seed}")
        for seed in range(options.seeds)
        for found in (cell(REWARD, ALPHA, 0.0), cell(REWARD, ALPHA, 0.75))
    ]  # fmt: skip
    command = typed_command("demo", arguments)
    sweep = Sweep("demo", "demo", options.steps / STEPS, options.out, tuple(jobs))
    outcome = run_sweep(sweep, lambda: LocalExecutor(options.jobs, command), command, console)
    outcome.check()
    if not outcome.complete:
        return 0
    collection = collect([options.out])
    page = options.out / "report.html"
    title = "Four rooms: baseline against ROLLIN"
    for results in make_report(collection, page, title, table="four-rooms-summary"):
        tell(results, console)
    console.print(f"Report: {page.resolve()}", soft_wrap=True)
    return 0


def tell(results: TableResults, console: Console) -> None:
    """A line for each method: κ, the last context of each seed, and the return."""
    kappa, final = results.table.readings
    for cell_, runs in results.runs.items():
        progress, total = results.at(cell_, kappa), results.at(cell_, final)
        if progress is None or total is None:
            continue
        name = "baseline" if cell_.is_baseline else "ROLLIN  "
        reached = outcomes(int(run.figures["k"]) for run in runs)
        console.print(
            f"{name}  κ = {summary_text(progress.summary, 3)}   last context per seed (of 16): "
            f"{reached}   return {total.summary.mean:.3f}",
            soft_wrap=True,
        )
