"""Tables of text: rows under named columns, and as Markdown, CSV and for the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rollin.errors import RollinError
from rollin.untrusted import csv_text


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


def marks(name: str) -> tuple[str, str]:
    """The marks before and after a part of a page that is made from records."""
    return f"<!-- begin: {name} -->", f"<!-- end: {name} -->"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def sheet_markdown(sheet: Sheet) -> str:
    """A sheet as a table of Markdown."""
    return markdown(sheet.columns, sheet.rows)


def sheets_markdown(sheets: Iterable[Sheet]) -> str:
    """Several, each under its title and between its marks."""
    parts: list[str] = []
    for sheet in sheets:
        begin, end = marks(sheet.name)
        parts.append(f"**{sheet.title}**\n\n{begin}\n{sheet_markdown(sheet)}\n{end}\n")
    return "\n".join(parts)


def filled(page: str, texts: Mapping[str, str]) -> str:
    """A page with texts between the marks of their names, in place of what stood there."""
    for name, text in texts.items():
        begin, end = marks(name)
        if page.count(begin) != 1 or page.count(end) != 1:
            raise RollinError(f"A page must have {begin} and {end} once each.")
        before, _, rest = page.partition(f"{begin}\n")
        page = f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}"
    return page


def texts_of(sheets: Iterable[Sheet]) -> dict[str, str]:
    """Sheets as Markdown by name."""
    return {sheet.name: sheet_markdown(sheet) for sheet in sheets}


def sheet_csv(sheet: Sheet) -> str:
    """A row of names, then the rows."""
    return csv_text([sheet.columns, *sheet.rows])


def sheet_terminal(sheet: Sheet) -> Group:
    """For the screen: what is **bold** in Markdown is so here."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in sheet.columns:
        table.add_column(column)
    for row in sheet.rows:
        table.add_row(*(_bold(value) for value in row))
    return Group(Text(sheet.title, style="italic"), table, Text())


def _bold(value: str) -> Text:
    plain = value.removeprefix("**").removesuffix("**")
    return Text(plain, style="bold" if plain != value else "")
