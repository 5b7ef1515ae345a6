"""The paper's layout: for each reading a grid of rows and columns of conditions."""

from collections.abc import Sequence
from dataclasses import dataclass

from rollin.analysis.results import CellResult, TableResults, is_above
from rollin.report.words import label_text, reading_text, signed, steps_text, summary_text
from rollin.sweeps.study import Condition, Reading


@dataclass(frozen=True, eq=False)
class Place:
    """One place of a grid, as it is printed."""

    cell: Condition
    result: CellResult | None
    published: str
    ours: str
    difference: str
    beats: bool
    published_beats: bool
    best: bool
    published_best: bool


@dataclass(frozen=True)
class ReadingTable:
    """One reading of a table; None where the paper has no such condition.

    published_at: where the paper reads it, if our runs are of another length.
    """

    reading: Reading
    title: str
    published_at: str
    columns: list[str]
    rows: list[tuple[str, list[Place | None]]]


def grids(results: TableResults) -> list[ReadingTable]:
    """One grid for each reading, of the rows and columns that have runs."""
    return [
        grid for reading in results.table.readings if (grid := _grid(results, reading)) is not None
    ]


def _grid(results: TableResults, reading: Reading) -> ReadingTable | None:
    table = results.table
    run = [r.cell for r in results.results if r.reading == reading]
    if not run:
        return None
    rows = dict.fromkeys(label_text(cell.labels, table.rows) for cell in run)
    columns = dict.fromkeys(
        label_text(cell.labels, table.columns)
        for cell in table.cells
        if any(_key(cell, table.columns) == _key(other, table.columns) for other in run)
    )
    cells = {
        (label_text(c.labels, table.rows), label_text(c.labels, table.columns)): c
        for c in table.cells
    }
    body: list[tuple[str, list[Place | None]]] = []
    for row in rows:
        here = [cells.get((row, column)) for column in columns]
        body.append((row, _row(results, reading, here)))
    title = reading_text(reading, results.scale)
    published_at = "" if results.scale == 1 else f"{steps_text(reading.step)} steps"
    return ReadingTable(reading, title, published_at, list(columns), body)


def _key(cell: Condition, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(cell.labels[name] for name in names)


def _row(
    results: TableResults, reading: Reading, cells: Sequence[Condition | None]
) -> list[Place | None]:
    found = [cell and results.at(cell, reading) for cell in cells]
    known = [cell and cell.published.get(reading) for cell in cells]
    top = max((r.summary.mean for r in found if r), default=0.0)
    published_top = max((p.mean for p in known if p), default=0.0)
    digits = results.digits(reading)
    places: list[Place | None] = []
    for cell, result, published in zip(cells, found, known, strict=True):
        if cell is None or (result is None and published is None):
            places.append(None)
            continue
        difference = result and result.difference
        places.append(
            Place(
                cell,
                result,
                published=str(published) if published else "–",
                ours=summary_text(result.summary, digits) if result else "–",
                difference="–" if difference is None else signed(difference, digits),
                beats=result is not None and results.beats_baseline(result),
                published_beats=results.published_beats(cell, reading),
                best=result is not None and not is_above(top, result.summary.mean, digits),
                published_best=published is not None
                and not is_above(published_top, published.mean, digits),
            )
        )
    return places
