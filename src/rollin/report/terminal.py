"""Results in the terminal: published | ours, laid out as in the paper."""

from rich.table import Table
from rich.text import Text

from rollin.report.grids import Grid, Place, grids
from rollin.report.results import TableResults
from rollin.report.words import percent


def terminal_tables(results: TableResults) -> list[Table]:
    """One table for each reading; purple where our ROLLIN is above our baseline."""
    return [_table(grid, results) for grid in grids(results)]


def _table(grid: Grid, results: TableResults) -> Table:
    title = f"{grid.title}: published | ours"
    if grid.published_at:
        title += f" ({percent(results.scale)} of the paper's {grid.published_at})"
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    shown.add_column("")
    for column in grid.columns:
        shown.add_column(column.removeprefix("ROLLIN "), justify="right")
    digits = min(2, results.digits(grid.reading))
    for name, places in grid.rows:
        shown.add_row(name, *(_place(place, digits) for place in places))
    return shown


def _place(place: Place | None, digits: int) -> Text:
    if place is None:
        return Text("–")
    known = place.cell.published
    published = known.get(place.result.reading) if place.result else None
    left = f"{published.mean:.{digits}f}" if published else "–"
    right = f"{place.result.summary.mean:.{digits}f}" if place.result else "–"
    return Text.assemble(f"{left}|", (right, "bold magenta" if place.beats else ""))
