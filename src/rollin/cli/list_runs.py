"""`rollin list [DIR]`: the runs below a directory and how they stand."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.table import Table
from rich.text import Text

from rollin.cli._common import make_console, parse
from rollin.cli._progress import duration, figure_titles
from rollin.errors import RollinError
from rollin.runs.store import RunDirectory
from rollin.runs.sweep import find_runs


@dataclass(frozen=True)
class ListOptions:
    """The runs below a directory and how they stand."""

    directory: tyro.conf.Positional[Path] = Path("runs")
    """Where to look."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ListOptions, arguments, "list")
    runs = find_runs(options.directory)
    if not runs:
        raise RollinError(f"No runs below {options.directory}.")
    rows = [(run, *describe(run)) for run in runs]
    titles = figure_titles(status for _, _, status in rows)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("run", "state", "step", *titles, "left"):
        table.add_column(title, justify="left" if title in ("run", "state") else "right")
    for run, state, status in rows:
        cells = [str(run.path.relative_to(options.directory)), state]
        if "figures" in status:
            left = duration(status.get("eta_seconds")) if state == "running" else "–"
            figures = [str(status["figures"].get(title, "")) for title in titles]
            cells += [f"{status['step']:,}/{status['steps']:,}", *figures, left]
        table.add_row(*(Text(cell) for cell in cells))
    make_console(160).print(table)
    return 0


def describe(run: RunDirectory) -> tuple[str, dict[str, Any]]:
    """A run's state in words, and its last status if that can be shown."""
    try:
        return _describe(run, run.status())
    except (RollinError, TypeError, ValueError) as error:
        return f"broken: {error}", {}


def _describe(run: RunDirectory, status: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if run.finished:
        status["state"] = "finished"
    state = str(status.get("state", "waiting"))
    if state == "running" and not _alive(int(status.get("pid", 0))):
        state = "killed"
    if not {"step", "steps", "figures"} <= status.keys():
        return (f"{state}: {status['error']}" if "error" in status else state), {}
    if not (isinstance(status["figures"], dict) and isinstance(status["step"], int)):
        raise TypeError("status.json holds other values than expected")
    return state, status


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
