"""Results in the terminal: published over ours, laid out as in the paper."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rollin.analysis.results import StudyResults
from rollin.analysis.tables import Place, ReadingTable, reading_tables
from rollin.report.words import NONE, label_text, percent, published_at, table_title


def terminal_tables(results: StudyResults) -> list[Group]:
    """One table for each reading; purple where ours is better than our baseline."""
    return [_table(table, results) for table in reading_tables(results)]


def _table(table: ReadingTable, results: StudyResults) -> Group:
    title = table_title(table) + ": published over ours" * results.of_the_paper
    if any(place and place.solved for _, places in table.rows for place in places):
        title += "; below: seeds that master the last context"
    if at := published_at(table):
        title += f" ({percent(results.scale)} of the paper's {at})"
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("")
    for column in table.columns:  # what does not fit folds the names of rows, never a number
        name = label_text(column).removeprefix("ROLLIN ").replace(" = ", "=")
        shown.add_column(name, justify="right", no_wrap=True)
    for labels, places in table.rows:
        cells = (_place(place, of_the_paper=results.of_the_paper) for place in places)
        shown.add_row(label_text(labels), *cells)
    return Group(Text(title, style="italic"), shown)  # a table's own title is as narrow as it


def _place(place: Place | None, *, of_the_paper: bool) -> Text:
    if place is None:
        return Text(NONE)
    digits = place.digits
    below = f"{place.result.summary.mean:.{digits}f}" if place.result else NONE
    above = f"{place.published.mean:.{digits}f}" if place.published else NONE
    told: list[tuple[str, str]] = [(f"{above}\n", "")] if of_the_paper else []
    told.append((below, "bold magenta" if place.beats else ""))
    if place.solved is not None:
        told.append((f"\n{place.solved[0]}/{place.solved[1]}", "dim"))
    return Text.assemble(*told)
