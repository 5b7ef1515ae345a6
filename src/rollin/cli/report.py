"""`rollin report DIR...`: an HTML page from directories of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from rollin.cli._common import make_console, parse
from rollin.errors import RollinError
from rollin.report.collect import Collection, collect, write_runs_csv
from rollin.report.html import write_report
from rollin.report.tables import paper_table, write_table_csv


@dataclass(frozen=True)
class ReportOptions:
    """One self-contained HTML page, and CSV tables, from directories of runs."""

    directories: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories, sweeps, or directories with a runs.csv."""
    out: Path | None = None
    """The page to write; DIR/report.html of the first directory if not given."""
    title: str | None = None
    """Headline of the page; names the tasks if not given."""
    images: bool = False
    """Also write every figure as PNG into figures/ beside the page."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ReportOptions, arguments, "report")
    if not options.directories:
        raise RollinError("rollin report needs at least one directory of runs.")
    out = options.out or options.directories[0] / "report.html"
    collection = collect(list(options.directories))
    console = make_console()
    for note in collection.skipped:
        console.print(f"Passed over {note}", style="yellow", soft_wrap=True)
    tasks = sorted({record.spec.task for record in collection.records})
    title = options.title or f"ROLLIN on {', '.join(tasks)}"
    make_report(collection, out, title, images=options.images)
    console.print(f"Report: {out}", soft_wrap=True)
    return 0


def make_report(collection: Collection, out: Path, title: str, *, images: bool = False) -> None:
    """The page, and beside it runs.csv and, for cells of the paper's tables, table.csv."""
    write_report(collection, out, title, images=images)
    table = paper_table(collection.records)
    if table is not None:
        write_runs_csv(out.parent / "runs.csv", collection.records)
        write_table_csv(out.parent / "table.csv", table)
