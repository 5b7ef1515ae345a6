"""`rollin reproduce TABLE`: all cells of a table, on all cores, resumable."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from rollin.checks import at_least, did_you_mean
from rollin.cli._common import make_console, parse, typed_command
from rollin.cli._sweeps import run_sweep
from rollin.errors import RollinError
from rollin.paper import four_rooms
from rollin.report.collect import collect
from rollin.report.page import make_report
from rollin.report.terminal import terminal_tables
from rollin.runs.backend import Job

TABLES = ("four-rooms",)


@dataclass(frozen=True)
class ReproduceOptions:
    """Run all cells of a table of the paper. Interrupted, it goes on where it stopped."""

    table: tyro.conf.Positional[str]
    """four-rooms: curriculum progress and final return, 28 cells."""
    seeds: int = four_rooms.SEEDS
    """Seeds 0 … N-1 of every cell."""
    steps: int = four_rooms.STEPS
    """Gradient steps of every run; the paper's tables are read at 50,000."""
    jobs: int = os.cpu_count() or 1
    """Runs at the same time, one core each."""
    out: Path = Path("runs/reproduce-four-rooms")
    """Directory of the sweep."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ReproduceOptions, arguments, "reproduce")
    if options.table not in TABLES:
        hint = did_you_mean(options.table, TABLES)
        raise RollinError(f"Unknown table {options.table!r}: expected {', '.join(TABLES)}.{hint}")
    at_least(1, "--seeds", options.seeds)
    at_least(1, "--jobs", options.jobs)
    command = typed_command("reproduce", arguments)
    return run_four_rooms(options.out, options.seeds, options.steps, options.jobs, command)


def run_four_rooms(out: Path, seeds: int, steps: int, workers: int, command: str) -> int:
    """Run the sweep and write its report; seeds outermost, so that every cell fills evenly."""
    jobs = [
        Job(
            f"{cell.name} seed={seed}",
            cell.spec(seed, steps / four_rooms.STEPS),
            out / cell.name / f"seed={seed}",
        )
        for seed in range(seeds)
        for cell in four_rooms.cells()
    ]
    console = make_console()
    if not run_sweep("four-rooms", out, jobs, workers, command, console):
        return 0
    page = out / "report.html"
    title = "ROLLIN on four rooms: all 28 cells"
    for results in make_report(collect([out]), page, title, table="four-rooms"):
        for table in terminal_tables(results):
            console.print(table)
    console.print(f"Report: {page}", soft_wrap=True)
    return 0
