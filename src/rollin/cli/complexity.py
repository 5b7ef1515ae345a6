"""`rollin reproduce complexity`: cost against the size of an MDP, resumable, with its figures."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from rollin.analysis.gains import FIT_COLUMNS, FIT_FROM, Curve, curves_of, fit_rows
from rollin.checks import at_least, positive
from rollin.cli.arguments import make_console, stop_on_signal
from rollin.cli.dashboard import duration
from rollin.paper import complexity_gains as study
from rollin.paper.complexity_gains import Case
from rollin.report.growth import families_figure, main_figure, terminal_table
from rollin.report.style import PICTURES, save_picture, styled
from rollin.runs.files import write_atomically
from rollin.sweeps.machine import cores
from rollin.sweeps.pool import run_in_pool
from rollin.sweeps.row_store import RowStore, rows_text

NAME = "complexity"
LINE_EVERY = 50  # runs between two lines of progress


def reproduce_complexity(
    command: str, out: Path | None, seeds: int | None, scale: float | None, jobs: int | None
) -> int:
    """Run what is missing, then fit and draw."""
    scale = positive("--scale", 1.0 if scale is None else scale)
    seeds = at_least(1, "--seeds", study.SEEDS if seeds is None else seeds)
    short = "" if scale == 1 else f"-scale-{scale:g}"
    directory = out or Path("runs") / f"{NAME}{short}"
    console = make_console(165)
    store = RowStore(directory, study.COLUMNS, study.KEY)
    cases = study.cases(seeds, scale)
    with store.open(NAME, {"scale": scale, "settings": study.digest(scale)}, command):
        if scale != 1:
            console.print(
                f"Note: caps are {scale:g} of the full study's, and of every curve only the sizes "
                "up to the square root of that are run (at least four).",
                style="yellow", soft_wrap=True,
            )  # fmt: skip
        if not run_missing(store, cases, jobs or cores(), console):
            console.print(f"Go on with: {command}", soft_wrap=True)
            return 0
        wanted = {store.identity_of(_spelled(case)) for case in cases}
        write_results(store, [r for r in store.rows if store.identity_of(r) in wanted], console)
    return 0


def _spelled(case: Case) -> dict[str, str]:
    return {name: str(getattr(case, name)) for name in study.KEY}


def run_missing(store: RowStore, cases: list[Case], jobs: int, console: Console) -> bool:
    """Do the runs that have no row; whether all have one in the end."""
    done = store.done
    todo = [case for case in cases if store.identity_of(_spelled(case)) not in done]
    console.print(f"{len(cases)} runs, {len(cases) - len(todo)} of them done.")
    finished, seconds = 0, 0.0
    with stop_on_signal() as should_stop:
        for _, row in run_in_pool(study.measure, todo, jobs, should_stop):
            store.add(row)
            finished += 1
            seconds += row["seconds"]
            if finished % LINE_EVERY == 0:
                console.print(
                    f"{finished} of {len(todo)} done, {duration(seconds)} of computing",
                    soft_wrap=True,
                )
    if todo:
        store.save()
    if finished < len(todo):
        console.print(f"Stopped with {len(todo) - finished} runs to do.")
        return False
    return True


def write_results(store: RowStore, rows: list[dict[str, str]], console: Console) -> None:
    """Fits as CSV, figures, and the table on the terminal."""
    order = {setting.name: i for i, setting in enumerate(study.SETTINGS)}
    curves = sorted(curves_of(rows), key=lambda curve: order[curve.name.setting])
    fits = store.out / f"{NAME}.csv"
    write_atomically(fits, rows_text(FIT_COLUMNS, fit_rows(curves)).encode())
    paths = draw(curves, store.out)
    console.print(terminal_table(curves, {s.name: s.title for s in study.SETTINGS}))
    console.print(
        f"\nFits to medians at sizes of {FIT_FROM} states and more; * the better of the two laws. "
        "In brackets: 95 % intervals, over seeds where anything is random, else of the regression "
        "slope. Sizes whose median run was cut off take no part.",
        soft_wrap=True,
    )
    for path in (store.out / "runs.csv", fits, *paths):
        console.print(f"Written: {path}", soft_wrap=True)


def draw(curves: list[Curve], out: Path) -> Iterable[Path]:
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
