"""What `rollin reproduce` computes beside the paper's tables, and its figures without runs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console

from rollin.analysis.collect import collect
from rollin.analysis.sheets import sheet_csv, sheet_terminal, sheets_markdown
from rollin.cli import study_runs
from rollin.cli.console import make_console
from rollin.complexity.figures import families_figure, main_figure, terminal_table
from rollin.complexity.study import FIT_FROM, NAME, curves_of, fits_csv, study
from rollin.paper.numbers import numbers
from rollin.report.maps import goal_path, reward_maps
from rollin.report.style import PICTURES, save_picture, styled
from rollin.runs.files import make_directory, write_atomically
from rollin.runs.records import Record, write_records
from rollin.sweeps.condition import select

TABLES = "tables.md"
WIDEST = 165  # columns of the table of fits
DRAWN: dict[str, Callable[[], Figure]] = {"reward-maps": reward_maps, "goal-path": goal_path}


def draw(name: str, directory: Path) -> int:
    """Draw a figure that needs no runs."""
    make_directory(directory)
    console = make_console(study_runs.WIDE)
    for path in save_figures({name: DRAWN[name]}, directory):
        console.print(f"Picture: {path}", soft_wrap=True)
    return 0


def save_figures(figures: Mapping[str, Callable[[], Figure]], directory: Path) -> list[Path]:
    """Draw figures by name, each as PNG and SVG; return their files."""
    paths: list[Path] = []
    with styled():
        for name, make in figures.items():
            figure = make()
            for suffix in PICTURES:
                paths.append(directory / f"{name}{suffix}")
                save_picture(paths[-1], figure)
    return paths


def paper_numbers(directory: Path) -> int:
    """Print what the printed numbers imply; write tables.md and NAME.csv of every record."""
    console = make_console(study_runs.WIDE)
    findings = numbers()
    files = {TABLES: sheets_markdown(findings.tables)}
    files |= {f"{record.name}.csv": sheet_csv(record) for record in findings.records}
    make_directory(directory)
    for name, text in files.items():
        write_atomically(directory / name, text.encode())
    for sheet in findings.tables:
        console.print(sheet_terminal(sheet))
    for name in files:
        console.print(f"Written: {directory / name}", soft_wrap=True)
    return 0


def reproduce_complexity(
    command: str,
    out: Path | None,
    place: study_runs.PlaceOptions,
    seeds: int | None,
    scale: float,
    only: str | None,
) -> int:
    """Run what is missing, then fit and draw."""
    swept = study(scale)
    if only is not None:
        swept = swept.only(select(swept.conditions, only))
    short = "" if scale == 1 else f"-scale-{scale:g}"
    out = out or Path("runs") / f"{NAME}{short}"
    console = make_console(WIDEST)
    if scale != 1:
        console.print(
            f"Note: the maximum numbers of steps are {scale:g} of the full study's. Each curve "
            "stops at the square root of that share of its largest size (but has four sizes).",
            style="yellow", soft_wrap=True,
        )  # fmt: skip
    sweep = swept.sweep(out, seeds or swept.seeds, scale)
    executor = study_runs.executor_of(place, out, command)
    end = study_runs.run_sweep(sweep, executor, command, console, place.retries)
    if end.complete and end.finished:
        wanted = {job.out for job in sweep.jobs}
        records = collect([out], [swept]).records
        write_results(out, [record for record in records if record.path in wanted], console)
    end.check()
    return 0


def write_results(out: Path, records: Sequence[Record], console: Console) -> None:
    """Write records and fits as CSV and the figures; print the table."""
    curves = curves_of(records)
    files = {**write_records(records), f"{NAME}.csv": fits_csv(curves).encode()}
    for name, data in files.items():
        write_atomically(out / name, data)
    figures = {NAME: main_figure, f"{NAME}-families": families_figure}
    pictures = save_figures({name: partial(make, curves) for name, make in figures.items()}, out)
    console.print(terminal_table(curves))
    console.print(
        f"\nFits to medians at sizes of {FIT_FROM} states and more; * marks the better law. "
        "In brackets: 95 % intervals, over seeds where anything is random, otherwise of the "
        "regression slope. Sizes whose median run was cut off are left out.",
        soft_wrap=True,
    )
    for path in (*(out / name for name in files), *pictures):
        console.print(f"Written: {path}", soft_wrap=True)
