"""Measurements as rows of a CSV file, those of several machines side by side."""

import csv
import io
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollin.runs.files import write_atomically

Row = dict[str, Any]
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


def read(path: Path) -> list[Row]:
    """A file's rows, numbers as numbers and empty cells as None; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{n: _value(v) for n, v in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> str | float | int | None:
    if not NUMBER.fullmatch(text):
        return text or None
    return int(text) if text.lstrip("-").isdigit() else float(text)


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write a file whole."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, out.getvalue().encode())


def replaced(old: Iterable[Row], new: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """The old rows that no new one shares its keys with, and the new ones.

    >>> replaced([{"cpu": 1, "rate": 5}, {"cpu": 2, "rate": 7}], [{"cpu": 2, "rate": 8}], ["cpu"])
    [{'cpu': 1, 'rate': 5}, {'cpu': 2, 'rate': 8}]
    """
    measured = {_key(row, keys) for row in new}
    return [row for row in old if _key(row, keys) not in measured] + list(new)


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[key] for key in keys)


def grouped(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their keys, in the order of their first appearance."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(_key(row, keys), []).append(row)
    return found


def versions_of(rows: Iterable[Row]) -> str:
    """Every library that some row names, once."""
    names = (name for row in rows for name in str(row["version"]).split(", "))
    return ", ".join(dict.fromkeys(names))


def shares(found: Sequence[float]) -> str:
    """A sentence on how much of their one core contestants had: how quiet the machine was.

    >>> shares([0.5, 0.99, 0.98]).split(" of it")[0]
    'On one core a contestant had 98 %'
    """
    if not found:
        return "CPU time was not recorded."
    middle, least = 100 * statistics.median(found), 100 * min(found)
    return (
        f"On one core a contestant had {middle:.0f} % of it in the median and {least:.0f} % at the "
        "least; the rest went to other work of the machine, which CPU time leaves out."
    )


def shown(value: float | None) -> str:
    """A rate for a table, whole unless it is small.

    >>> shown(12345.6), shown(123.4), shown(7.44), shown(None)
    ('12,346', '123', '7.4', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}"
