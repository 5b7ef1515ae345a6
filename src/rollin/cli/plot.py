"""`rollin plot RUN...`: learning curves of runs, or maps of where their steps ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console

from rollin.analysis.collect import collect, group
from rollin.analysis.results import panels, results_of
from rollin.cli.console import check_file, make_console
from rollin.cli.options import Arg, parse
from rollin.errors import RollinError
from rollin.paper.tables import tables
from rollin.report.charts import curves_figure
from rollin.report.maps import has_visits, visit_maps, visits_figure
from rollin.report.style import PICTURES, save_picture, styled
from rollin.runs.records import Record

MOST_MAPS = 16  # runs on one picture


@dataclass(frozen=True)
class PlotOptions:
    """Draw κ, return and measures against steps: the mean over seeds, by task and method.

    Unfinished runs are included: a line ends at the last step that all its seeds have reached.
    Diamonds are the paper's values, where a run is near their step.
    """

    directories: Annotated[tuple[Path, ...], Arg("DIR", positional=True)]
    """Run directories, or directories with runs below them."""
    out: Path | None = None
    """The picture to write, .png or .svg. Default: curves.png, or visits.png with --visits."""
    visits: bool = False
    """Draw maps of where training steps ended, a panel for each context, instead of curves; for
    runs whose contexts are places in the plane, such as antmaze-umaze's."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(PlotOptions, arguments, "plot")
    out = options.out or Path("visits.png" if options.visits else "curves.png")
    check_file("--out", out, PICTURES)
    console = make_console()
    known = list(tables().values())
    collection = collect(options.directories, known, unfinished=True)
    studies = [*known, *collection.studies]
    grouping = group(collection.records, studies)
    for note in (*collection.skipped, *grouping.skipped):
        console.print(f"Skipped {note}", style="yellow", soft_wrap=True)
    if options.visits:
        return _draw_visits(collection.records, out, console)
    named = list(dict.fromkeys(name for sweep in collection.sweeps for name in sweep.studies))
    drawn = [panels(results) for results in results_of(grouping, studies, named)]
    drawn = [study for study in drawn if study]
    if not drawn:
        raise RollinError("These runs record none of the quantities that their studies read.")
    with styled():
        save_picture(out, curves_figure(drawn))
    count = len(collection.records)
    runs = "1 run" if count == 1 else f"{count} runs"
    console.print(f"Curves of {runs}: {out}", soft_wrap=True)
    return 0


def _draw_visits(records: Sequence[Record], out: Path, console: Console) -> int:
    """Draw where the steps of runs ended."""
    maps = [visit_maps(record) for record in records if has_visits(record)]
    if not maps:
        raise RollinError(
            "None of these runs recorded where its steps ended: runs of this version do whose "
            "contexts are places in the plane, such as antmaze-umaze's."
        )
    if len(maps) > MOST_MAPS:
        raise RollinError(
            f"--visits draws at most {MOST_MAPS} runs, got {len(maps)}: name some of them."
        )
    with styled():
        save_picture(out, visits_figure(maps))
    runs = "1 run" if len(maps) == 1 else f"{len(maps)} runs"
    console.print(f"Maps of {runs}: {out}", soft_wrap=True)
    return 0
