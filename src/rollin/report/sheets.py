"""Sheets laid out: Markdown for the docs, CSV for programs, the terminal."""

from collections.abc import Iterable, Mapping

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rollin.analysis.sheet import Sheet
from rollin.errors import RollinError
from rollin.texts import csv_text


def marks(name: str) -> tuple[str, str]:
    """What stands in a page before and behind what is made from records."""
    return f"<!-- begin: {name} -->", f"<!-- end: {name} -->"


def sheet_markdown(sheet: Sheet) -> str:
    """A table of Markdown."""
    rows = [sheet.columns, ("---",) * len(sheet.columns), *sheet.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


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
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in sheet.columns:
        shown.add_column(column)
    for row in sheet.rows:
        shown.add_row(*(_bold(value) for value in row))
    return Group(Text(sheet.title, style="italic"), shown, Text())


def _bold(value: str) -> Text:
    plain = value.removeprefix("**").removesuffix("**")
    return Text(plain, style="bold" if plain != value else "")
