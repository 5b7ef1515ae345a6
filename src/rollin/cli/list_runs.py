"""`rollin list [DIR]`: the runs below a directory and their states, also while they run."""

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rollin.cli.console import Overview, make_console, run_table
from rollin.cli.options import Arg, parse
from rollin.errors import LONGEST, RollinError, one_line
from rollin.runs.directory import RunDirectory
from rollin.runs.systems import LARGEST_PID, is_alive, process_began
from rollin.sweeps.sweep import SWEEP_FILE, find_runs, read_sweep

MANY = 40  # runs, above which those that are done or wait are only counted
WIDE = 400  # columns where the output is not a terminal, so that nothing is cut off
SILENT_SECONDS = 300.0  # after which a run on another machine is taken for lost


@dataclass(frozen=True)
class ListOptions:
    """List the runs below a directory and their status."""

    directory: Annotated[Path, Arg("DIR", positional=True)] = Path("runs")
    """Where to look for runs."""
    all: bool = False
    """Show a row for every run, however many there are."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ListOptions, arguments, "list")
    runs = find_runs(options.directory)
    sweeps = sorted(options.directory.rglob(SWEEP_FILE))
    if not runs and not sweeps:
        raise RollinError(f"No runs below {options.directory}.")
    for run in runs:
        run.remove_leftovers()
    states = {run.path: describe(run) for run in runs}
    console = make_console(WIDE)
    for path in sweeps:
        title, overview = sweep_standing(path, options.directory, states)
        console.print(title, soft_wrap=True)
        if overview is not None:
            console.print(overview.summary, soft_wrap=True)
    rows = {str(path.relative_to(options.directory)): state for path, state in states.items()}
    if len(rows) > MANY and not options.all:
        quiet = ("finished", "waiting", "interrupted")
        rows = {name: row for name, row in rows.items() if row[0] not in quiet}
        console.print(
            f"{len(states) - len(rows)} more runs are finished or waiting: --all shows them."
        )
    if rows:
        console.print(run_table(rows, console.width, states=True))
    return 0


def describe(run: RunDirectory) -> tuple[str, dict[str, Any]]:
    """Return a run's state, and its last status if that can be shown; nothing is changed."""
    try:
        status = run.status()
    except RollinError as error:
        return _broken(f"status.json holds other values than expected: {error}")
    try:
        run.recorded_hash()  # reads config.json, which must be whole, whatever its engine
        if run.finished:
            run.check_files()
            status["state"] = "finished"
        state = status.get("state", "waiting")
        if state == "running" and not _alive(status):
            state = "killed"
    except RollinError as error:
        return _broken(error)
    if not {"step", "steps", "shown"} <= status.keys():
        return one_line(f"{state}: {status['error']}" if "error" in status else state, LONGEST), {}
    return state, {"steps_per_second": 0.0, "eta_seconds": None, **status}


def _broken(why: object) -> tuple[str, dict[str, Any]]:
    return one_line(f"broken: {why}", LONGEST), {}


def _alive(status: dict[str, Any]) -> bool:
    """Return whether a running run's process exists; on another machine, whether it reports."""
    if status.get("host", socket.gethostname()) != socket.gethostname():
        return time.time() - status.get("updated", 0.0) < SILENT_SECONDS
    pid = status.get("pid", 0)
    began = status.get("began")
    if not (0 < pid <= LARGEST_PID and is_alive(pid)):
        return False
    return began is None or process_began(pid) in (None, began)


# ------------------------------------------------------------------ the sweep as a whole


def sweep_standing(
    path: Path, directory: Path, states: dict[Path, tuple[str, dict[str, Any]]]
) -> tuple[str, Overview | None]:
    """Return a sweep's title and overview; None for the latter if its file cannot be read."""
    where = path.parent if path.parent == directory else path.parent.relative_to(directory)
    try:
        sweep = read_sweep(path)
    except RollinError as error:
        return one_line(f"{where}: {error}", LONGEST), None
    planned = [path.parent / name for name in sweep.runs]
    names = ", ".join([entry.name for entry in sweep.studies] or sweep.tables)
    length = "" if sweep.scale == 1 else f" at {sweep.scale:g} of the full length"
    return one_line(f"{where}: {names}{length}", LONGEST), overview_of(planned, states)


def overview_of(planned: list[Path], states: dict[Path, tuple[str, dict[str, Any]]]) -> Overview:
    """Return the states of planned runs, from what is on disk."""
    overview = Overview(len(planned))
    seconds: list[float] = []  # that finished runs took
    for path in planned:
        state, status = states.get(path, ("waiting", {}))
        if state == "finished":
            overview.done += 1
            seconds.append(RunDirectory(path).result().get("seconds", 0.0))
        elif state == "running":
            overview.running[str(path)] = status
        elif state.startswith(("failed", "broken")):
            overview.failed[str(path)] = state
    overview.seconds_left = _seconds_left(overview, seconds)
    return overview


def _seconds_left(overview: Overview, seconds: list[float]) -> float | None:
    """Return the time left, if as many runs as now run at a time and take as long as others did."""
    running = [s for s in overview.running.values() if s.get("eta_seconds") is not None]
    if not running:
        return None
    under_way = sum(s["eta_seconds"] for s in running)
    steady = [s for s in running if s["steps_per_second"]]
    lengths = seconds or [s["steps"] / s["steps_per_second"] for s in steady]
    if not lengths:
        return None
    return (under_way + overview.waiting * sum(lengths) / len(lengths)) / len(running)
