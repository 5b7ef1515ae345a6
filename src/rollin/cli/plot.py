"""`rollin plot RUN...`: learning curves of runs of ROLLIN, with the published values marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from rollin.cli._common import make_console, parse
from rollin.errors import RollinError
from rollin.report.learning import LearningCurve, learning_figure
from rollin.report.style import check_picture, save_picture, styled
from rollin.runs.sweep import find_runs


@dataclass(frozen=True)
class PlotOptions:
    """κ, return and measures against environment steps: the mean over seeds, by task and method.

    Runs that are still going are shown as far as they have come. Diamonds are the paper's values.
    """

    directories: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories, or directories with runs below them."""
    out: Path = Path("curves.png")
    """The picture to write, .png or .svg."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(PlotOptions, arguments, "plot")
    check_picture("--out", options.out)
    console = make_console()
    curves: list[LearningCurve] = []
    passed: list[str] = []
    for run in [run for directory in options.directories for run in find_runs(directory)]:
        try:
            curves.append(LearningCurve.read(run))
        except (RollinError, ValueError, KeyError) as error:
            passed.append(f"{run.path}: {error}")
    for note in passed:
        console.print(f"Passed over {note}", style="yellow", soft_wrap=True)
    if not curves:
        raise RollinError(
            "No run of ROLLIN with metrics below "
            f"{', '.join(map(str, options.directories)) or 'nothing'}: give directories that "
            "rollin train has written."
        )
    with styled():
        save_picture(options.out, learning_figure(curves))
    console.print(f"Curves of {len(curves)} runs: {options.out}", soft_wrap=True)
    return 0
