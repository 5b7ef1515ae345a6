"""`rollin plot RUN...`: learning curves of runs, with the published values marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rollin.analysis.collect import collect
from rollin.analysis.curves import panels
from rollin.analysis.group import group
from rollin.analysis.results import results_of
from rollin.cli.arguments import check_file, make_console, parse
from rollin.errors import RollinError
from rollin.paper.tables import tables
from rollin.report.charts import curves_figure
from rollin.report.style import PICTURES, save_picture, styled


@dataclass(frozen=True)
class PlotOptions:
    """κ, return and measures against steps: the mean over seeds, by task and method.

    Runs that are still going are shown as far as they have come; a line ends where the slowest of
    its seeds stands. Diamonds are the paper's values, where a run has come near their step.
    """

    directories: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="DIR")]]
    """Run directories, or directories with runs below them."""
    out: Path = Path("curves.png")
    """The picture to write, .png or .svg."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(PlotOptions, arguments, "plot")
    if not options.directories:
        raise RollinError("rollin plot needs at least one directory of runs.")
    check_file("--out", options.out, PICTURES)
    console = make_console()
    known = list(tables().values())
    collection = collect(options.directories, known, unfinished=True)
    studies = [*known, *collection.studies]
    grouping = group(collection.records, studies)
    for note in (*collection.skipped, *grouping.skipped):
        console.print(f"Skipped {note}", style="yellow", soft_wrap=True)
    named = list(dict.fromkeys(name for sweep in collection.sweeps for name in sweep.studies))
    found = [panels(results) for results in results_of(grouping, studies, named)]
    found = [study for study in found if study]
    if not found:
        raise RollinError("These runs record none of the quantities that their studies read.")
    with styled():
        save_picture(options.out, curves_figure(found))
    count = len(collection.records)
    runs = "1 run" if count == 1 else f"{count} runs"
    console.print(f"Curves of {runs}: {options.out}", soft_wrap=True)
    return 0
