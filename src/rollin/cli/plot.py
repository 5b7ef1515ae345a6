"""`rollin plot RUN...`: learning curves of runs of ROLLIN, with the published values marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from rollin.cli.arguments import check_file, make_console, parse
from rollin.errors import RollinError
from rollin.report.learning import learning_figure
from rollin.report.learning_curve import LearningCurve, one_per_seed
from rollin.report.style import PICTURES, save_picture, styled
from rollin.runs.files import read_json
from rollin.sweeps.sweep import find_runs


@dataclass(frozen=True)
class PlotOptions:
    """κ, return and measures against environment steps: the mean over seeds, by task and method.

    Runs that are still going are shown as far as they have come; a line ends where the slowest of
    its seeds stands. Diamonds are the paper's values, where a run has come near their step.
    """

    directories: tyro.conf.Positional[tuple[Path, ...]]
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
    curves, passed = read_curves(options.directories)
    for note in passed:
        console.print(f"Passed over {note}", style="yellow", soft_wrap=True)
    if not curves:
        names = ", ".join(map(str, options.directories))
        raise RollinError(
            f"No run of ROLLIN with metrics below {names}: give directories that rollin train has "
            "written."
        )
    with styled():
        save_picture(options.out, learning_figure(curves))
    runs = "1 run" if len(curves) == 1 else f"{len(curves)} runs"
    console.print(f"Curves of {runs}: {options.out}", soft_wrap=True)
    return 0


def read_curves(directories: Sequence[Path]) -> tuple[list[LearningCurve], list[str]]:
    """Every run once, and what was passed over with the reason."""
    runs = {run.path.resolve(): run for path in directories for run in find_runs(path)}
    found: dict[tuple[str, str], LearningCurve] = {}
    passed: list[str] = []
    for run in runs.values():
        try:
            curve = LearningCurve.read(run)
            # an environment and a curriculum that were given in Python have no part in the hash
            key = (curve.spec.hash, str(read_json(run.path / "config.json").get("fingerprint")))
        except (RollinError, ValueError, KeyError, TypeError) as error:
            passed.append(f"{run.path}: {error}")
            continue
        if key in found:
            passed.append(f"{run.path}: the same run as another")
        found.setdefault(key, curve)
    curves = list(found.values())
    shorter = len(curves) - len(one_per_seed(curves))
    if shorter:
        passed.append(f"{shorter} runs of a seed that has a longer one under the same condition")
    return curves, passed
