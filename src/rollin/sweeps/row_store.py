"""A directory of a study of many small runs: study.json says what it is, runs.csv what came out.

A run's row is appended when it ends, so that a kill at any moment leaves all rows of the runs that
had ended; half a row at the end is cut off. The same study goes on where it stopped; anything else
is refused.
"""

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rollin import __version__
from rollin.errors import RollinError, reason
from rollin.regular import LARGEST_TABLE, open_regular, read_bounded
from rollin.runs.directory import LOCK, RunDirectory
from rollin.runs.files import (
    is_occupied,
    make_directory,
    read_json,
    remove_temporaries,
    write_atomically,
    write_json,
)
from rollin.runs.systems import processor
from rollin.runs.versions import versions

Row = dict[str, str]
STUDY, RUNS = "study.json", "runs.csv"


def rows_text(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV with a header."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Rows of a CSV with exactly these columns."""
    try:
        text = read_bounded(path, LARGEST_TABLE).decode()
        reader = csv.DictReader(io.StringIO(text, newline=""))
        rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise RollinError(f"{path} could not be read: {error}.") from error
    if tuple(reader.fieldnames or ()) != tuple(columns):
        raise RollinError(
            f"{path} has other columns than this version of rollin writes: use another --out."
        )
    if any(None in row or None in row.values() for row in rows):
        raise RollinError(f"{path} has rows with too few or too many entries: use another --out.")
    return rows


class RowStore:
    """The rows of a study that are there; `key` are the columns that tell its runs apart."""

    def __init__(self, out: Path, columns: Sequence[str], key: Sequence[str]) -> None:
        self.out = out
        self.columns = tuple(columns)
        self.key = tuple(key)
        self.rows: list[Row] = []

    @contextmanager
    def open(self, study: str, identity: Mapping[str, Any], command: str) -> Iterator[None]:
        """Hold a new directory, or one with the same study of the same identity, and its rows.

        What the directory is gets read and written under its lock: of two processes that begin at
        the same moment one is refused.
        """
        path = self.out / STUDY
        if not path.exists() and is_occupied(self.out, LOCK):
            raise RollinError(
                f"{self.out} exists and holds no study (no {STUDY}): choose another --out."
            )
        make_directory(self.out)
        with RunDirectory(self.out).lock():
            if path.exists():
                self._compare(read_json(path), study, identity)
            else:
                self._begin(path, study, identity, command)
            self._load()
            yield

    def _begin(self, path: Path, study: str, identity: Mapping[str, Any], command: str) -> None:
        write_json(
            path,
            {
                "study": study,
                **identity,
                "version": __version__,
                "versions": versions(),
                "processor": processor(),
                "command": command,
            },
        )

    def _load(self) -> None:
        """Read the rows that are there."""
        remove_temporaries(self.out)
        path = self.out / RUNS
        if os.path.lexists(path):
            data = read_bounded(path, LARGEST_TABLE)
            if not data.endswith(b"\n"):  # a kill in the middle of a row
                write_atomically(path, data[: data.rfind(b"\n") + 1])
            self.rows = read_rows(path, self.columns) if path.stat().st_size else []

    def _compare(self, found: dict[str, Any], study: str, identity: Mapping[str, Any]) -> None:
        wanted = {"study": study, **identity, "version": __version__}
        for name, value in wanted.items():
            if found.get(name) != value:
                raise RollinError(
                    f"{self.out} holds another study ({name} {found.get(name)} there, {value} "
                    "asked for): use the same options to go on with it, or another --out."
                )

    def identity_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """What tells a run from others, as the file spells it."""
        return tuple(str(row[name]) for name in self.key)

    @property
    def done(self) -> set[tuple[str, ...]]:
        """Runs that have their row."""
        return {self.identity_of(row) for row in self.rows}

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row; it is in the file when this returns."""
        self.rows.append({name: str(row[name]) for name in self.columns})
        text = rows_text(self.columns, self.rows[-1:])
        path = self.out / RUNS
        new = not path.exists() or path.stat().st_size == 0
        try:
            handle = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with open(handle, "a", encoding="utf-8", newline="") as file:
                file.write(text if new else text.partition("\n")[2])
        except OSError as error:
            raise RollinError(f"{path} could not be written: {reason(error)}.") from error

    def save(self) -> None:
        """Write all rows anew in the order of their keys, so that the file tells no history."""
        ordered = sorted(self.rows, key=self._order)
        write_atomically(self.out / RUNS, rows_text(self.columns, ordered).encode())

    def _order(self, row: Row) -> list[tuple[int, float, str]]:
        """Numbers by their size, words by the alphabet."""
        return [_sort_key(row[name]) for name in self.key]


def _sort_key(text: str) -> tuple[int, float, str]:
    try:
        return 0, float(text), ""
    except ValueError:
        return 1, 0.0, text
