"""`rollin report DIR...`: an HTML page from directories of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rollin.analysis.collect import collect
from rollin.checks import did_you_mean
from rollin.cli.arguments import make_console, parse
from rollin.errors import RollinError
from rollin.paper.tables import tables
from rollin.report.page import make_report


@dataclass(frozen=True)
class ReportOptions:
    """One self-contained HTML page, and LaTeX and CSV tables, from directories of runs."""

    directories: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="DIR")]]
    """Run directories, sweeps, or directories with a runs.csv."""
    out: Path | None = None
    """The page to write; DIR/report.html of the first directory if not given."""
    title: str | None = None
    """Title of the page; by default it names the tasks."""
    study: str | None = None
    """Show only this study or table of the paper; by default those that the runs belong to."""
    images: bool = False
    """Also write every figure as PNG into figures/ beside the page."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ReportOptions, arguments, "report")
    if not options.directories:
        raise RollinError("rollin report needs at least one directory of runs.")
    out = options.out or options.directories[0] / "report.html"
    if out.suffix != ".html":
        raise RollinError(f"--out must end in .html, got {out}.")
    known = list(tables().values())
    collection = collect(options.directories, known)
    _check_study(options.study, [study.name for study in (*known, *collection.studies)])
    console = make_console()
    try:
        make_report(
            collection, out, known, options.title, only=options.study, images=options.images
        )
    finally:
        for note in (*collection.notes, *(f"Skipped {note}" for note in collection.skipped)):
            console.print(note, style="yellow", soft_wrap=True)
    console.print(f"Report: {out}", soft_wrap=True)
    if collection.broken:
        raise RollinError(
            f"{len(collection.broken)} of the runs could not be read and are not on the page, the "
            f"first being {collection.broken[0]}"
        )
    return 0


def _check_study(name: str | None, known: Sequence[str]) -> None:
    if name is not None and name not in known:
        raise RollinError(
            f"Unknown study {name!r}: rollin reproduce --list shows those of the paper."
            f"{did_you_mean(name, known)}"
        )
