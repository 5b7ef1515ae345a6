"""Results in the terminal: published over ours, laid out as in the paper."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rollin.analysis.results import TableResults
from rollin.analysis.tables import Place, ReadingTable, grids
from rollin.report.words import percent
from rollin.sweeps.study import Reading


def terminal_tables(results: TableResults) -> list[Group]:
    """One table for each reading; purple where our ROLLIN is above our baseline."""
    return [_table(grid, results) for grid in grids(results)]


def _table(grid: ReadingTable, results: TableResults) -> Group:
    title = f"{grid.title}: published over ours"
    if grid.published_at:
        title += f" ({percent(results.scale)} of the paper's {grid.published_at})"
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("")
    for column in grid.columns:  # what does not fit folds the names of rows, never a number
        name = column.removeprefix("ROLLIN ").replace(" = ", "=")
        shown.add_column(name, justify="right", no_wrap=True)
    digits = results.digits(grid.reading)
    for name, places in grid.rows:
        shown.add_row(name, *(_place(place, grid.reading, digits) for place in places))
    return Group(Text(title, style="italic"), shown)  # a table's own title is as narrow as it


def _place(place: Place | None, reading: Reading, digits: int) -> Text:
    if place is None:
        return Text("–")
    known = place.cell.published.get(reading)
    above = f"{known.mean:.{digits}f}" if known else "–"
    below = f"{place.result.summary.mean:.{digits}f}" if place.result else "–"
    return Text.assemble(f"{above}\n", (below, "bold magenta" if place.beats else ""))
