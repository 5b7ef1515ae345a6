"""`rollin reproduce complexity`: cost against the size of an MDP, resumable, with its figures."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from rollin.analysis.collect import collect
from rollin.analysis.gains import FIT_FROM, CostCurve, curves_of, fits_csv
from rollin.cli import study_runs
from rollin.cli.arguments import make_console
from rollin.cli.sweep_options import ReproduceOptions
from rollin.cli.sweeping import run_sweep
from rollin.paper.complexity_gains import NAME, SETTINGS, study
from rollin.report.growth import families_figure, main_figure, terminal_table
from rollin.report.style import PICTURES, save_picture, styled
from rollin.runs.files import write_atomically
from rollin.runs.records import Record, write_records
from rollin.sweeps.select import select
from rollin.sweeps.sweep import Sweep, jobs_of

WIDE = 165  # columns of the table of fits


def reproduce_complexity(options: ReproduceOptions, command: str) -> int:
    """Run what is missing, then fit and draw."""
    scale = 1.0 if options.scale is None else options.scale
    chosen = study(scale)
    if options.cells is not None:
        chosen = chosen.only(select(chosen.conditions, options.cells))
    short = "" if scale == 1 else f"-scale-{scale:g}"
    out = options.out or Path("runs") / f"{NAME}{short}"
    console = make_console(WIDE)
    if scale != 1:
        console.print(
            f"Note: the maximum numbers of steps are {scale:g} of the full study's. Each curve "
            "stops at the square root of that share of its largest size (but has four sizes).",
            style="yellow", soft_wrap=True,
        )  # fmt: skip
    jobs = jobs_of(chosen, out, options.seeds or chosen.seeds, scale)
    sweep = Sweep(chosen, scale, out, tuple(jobs))
    place = options.place
    end = run_sweep(
        sweep, study_runs.executor_of(place, out, command), command, console, place.retries
    )
    if end.complete and end.finished:
        wanted = {job.out for job in jobs}
        found = collect([out], [chosen]).records
        write_results(out, [record for record in found if record.path in wanted], console)
    end.check()
    return 0


def write_results(out: Path, records: Sequence[Record], console: Console) -> None:
    """Records and fits as CSV, figures, and the table on the terminal."""
    curves = ordered_curves(records)
    files = {**write_records(records), f"{NAME}.csv": fits_csv(curves).encode()}
    for name, data in files.items():
        write_atomically(out / name, data)
    pictures = draw(curves, out)
    console.print(terminal_table(curves, {s.name: s.title for s in SETTINGS}))
    console.print(
        f"\nFits to medians at sizes of {FIT_FROM} states and more; * marks the better law. "
        "In brackets: 95 % intervals, over seeds where anything is random, otherwise of the "
        "regression slope. Sizes whose median run was cut off are left out.",
        soft_wrap=True,
    )
    for path in (*(out / name for name in files), *pictures):
        console.print(f"Written: {path}", soft_wrap=True)


def ordered_curves(records: Sequence[Record]) -> list[CostCurve]:
    """The curves in the order of the settings."""
    order = {setting.name: i for i, setting in enumerate(SETTINGS)}
    return sorted(curves_of(records), key=lambda curve: order[curve.name.setting])


def draw(curves: Sequence[CostCurve], out: Path) -> list[Path]:
    """Both figures, as PNG and SVG."""
    paths: list[Path] = []
    with styled():
        for name, figure in (
            (NAME, main_figure(curves)),
            (f"{NAME}-families", families_figure(curves)),
        ):
            for suffix in PICTURES:
                paths.append(out / f"{name}{suffix}")
                save_picture(paths[-1], figure)
    return paths
