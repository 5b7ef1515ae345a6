"""`rollin demo`: four rooms, baseline against ROLLIN, a report to open."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from rollin.analysis.results import StudyResults
from rollin.analysis.statistics import outcomes
from rollin.checks import at_least
from rollin.cli.arguments import make_console, parse, typed_command
from rollin.cli.study_runs import run_and_report
from rollin.cli.sweep_options import PlaceOptions
from rollin.paper.four_rooms import HEADLINE_BETA, STEPS, condition
from rollin.paper.tables import find_table
from rollin.report.words import solved_text, summary_text
from rollin.sweeps.machine import cores

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
    """Number of parallel runs, one core each."""


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
    pair = [condition(REWARD, ALPHA, beta) for beta in (0.0, HEADLINE_BETA)]
    study = replace(
        find_table("four-rooms-summary").only(pair),
        name="demo",
        family="demo",
        title="Four rooms: baseline against ROLLIN",
    )
    return run_and_report(
        study,
        options.out,
        PlaceOptions(jobs=options.jobs),
        typed_command("demo", arguments),
        seeds=options.seeds,
        scale=options.steps / STEPS,
        known=[study],
        title=study.title,
        show=tell,
    )


def tell(results: StudyResults, console: Console) -> None:
    """A line for each method: κ, the last contexts of the seeds and who mastered it, the return."""
    kappa, final = results.study.readings
    top = max((run.K or 0 for runs in results.runs.values() for run in runs), default=0)
    for one, runs in results.runs.items():
        progress, total = results.at(one, kappa), results.at(one, final)
        if progress is None or total is None:
            continue
        name = "baseline" if results.study.is_baseline(one) else "ROLLIN  "
        reached = outcomes(run.k for run in runs if run.k is not None)
        solved = results.solved(one, kappa)
        mastered = "" if solved is None else solved_text(solved)
        console.print(
            f"{name}  κ = {summary_text(progress.summary, 3)}   last context per seed (of {top}): "
            f"{reached}   {mastered}   return on it {total.summary.mean:.3f}",
            soft_wrap=True,
        )
