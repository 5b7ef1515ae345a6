"""A table of text: rows under named columns, before anybody has laid it out."""

from collections.abc import Sequence
from typing import NamedTuple


class Sheet(NamedTuple):
    """name: of its file or marker; title: what it shows, in one line; bold: **so**."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Findings(NamedTuple):
    """What a study found: tables to be shown, and the records from which they follow."""

    tables: tuple[Sheet, ...]
    records: tuple[Sheet, ...]


def sheet(name: str, title: str, columns: str, rows: Sequence[Sequence[object]]) -> Sheet:
    """A sheet whose columns are given in one text, with | between them."""
    head = tuple(column.strip() for column in columns.split("|"))
    text = tuple(tuple(str(value) for value in row) for row in rows)
    if any(len(row) != len(head) for row in text):
        raise ValueError(f"{name}: every row must have {len(head)} entries.")
    return Sheet(name, title, head, text)
