"""`rollin report DIR...`: an HTML page from directories of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rollin.analysis.collect import collect
from rollin.checks import did_you_mean
from rollin.cli.console import make_console
from rollin.cli.options import Arg, parse
from rollin.errors import RollinError
from rollin.paper.tables import tables
from rollin.report.page import make_report


@dataclass(frozen=True)
class ReportOptions:
    """Write one self-contained HTML page, and LaTeX and CSV tables, about directories of runs."""

    directories: Annotated[tuple[Path, ...], Arg("DIR", positional=True)]
    """Run directories, sweeps, or directories with a runs.csv."""
    out: Path | None = None
    """The page to write. Default: report.html in the first directory."""
    title: str | None = None
    """Title of the page. Default: the names of the tasks."""
    study: str | None = None
    """Show only this study or table of the paper. Default: those that the runs belong to."""
    images: bool = False
    """Also write every figure as PNG into figures/ beside the page."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ReportOptions, arguments, "report")
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
