"""`rollin demo`: four rooms, baseline against ROLLIN, a report to open."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from rollin.analysis.results import StudyResults
from rollin.analysis.statistics import outcomes
from rollin.checks import at_least
from rollin.cli.console import make_console, typed_command
from rollin.cli.options import parse
from rollin.cli.study_runs import PlaceOptions, check_place, run_and_report
from rollin.paper.four_rooms import HEADLINE_BETA, STEPS, condition
from rollin.paper.tables import find_table
from rollin.report.labels import solved_text, summary_text

REWARD = "hard"
ALPHA = 0.001  # with this reward, the row of the paper's table where ROLLIN's gain shows soonest


@dataclass(frozen=True)
class DemoOptions:
    """Compare ROLLIN with the baseline on four rooms with the hard reward, and write a report."""

    out: Path = Path("runs/demo")
    """Directory of the runs and the report."""
    seeds: int = 3
    """Seeds per condition."""
    steps: int = 20_000
    """Gradient steps per run."""
    jobs: int | None = None
    """Number of parallel runs, one core each. Default: the number of cores."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(DemoOptions, arguments, "demo")
    place = PlaceOptions(jobs=options.jobs)
    check_place(place)
    at_least(1, "--seeds", options.seeds)
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
        place,
        typed_command("demo", arguments),
        seeds=options.seeds,
        scale=options.steps / STEPS,
        known=[study],
        title=study.title,
        show=show_outcomes,
    )


def show_outcomes(results: StudyResults, console: Console) -> None:
    """Print a line for each method: κ, the last contexts of the seeds, the return on the final."""
    kappa, final = results.study.readings
    top = max((run.K or 0 for runs in results.runs.values() for run in runs), default=0)
    for one, runs in results.runs.items():
        progress = results.at(one, kappa)
        total = results.at(one, final)
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
