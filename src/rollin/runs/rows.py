"""CSV files of a run, such as metrics.csv: rows are appended, and cut back on resume."""

import csv
import hashlib
import math
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rollin.errors import RollinError, reason
from rollin.regular import LARGEST_TABLE, open_bounded, open_regular
from rollin.runs.formats import MOST, RowsCounted, converted
from rollin.texts import csv_rows, csv_text

CURVE_POINTS = 50  # of a curve that is thinned
LONGEST_LINE = 1 << 20  # bytes of a CSV's line


class MetricsWriter:
    """A CSV file of a run, such as metrics.csv: rows are appended, and cut back on resume."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = tuple(columns)
        self.rows = 0
        self._buffer: list[str] = []
        self._sum = hashlib.sha256()  # of what is on disk

    def write(self, row: dict[str, Any]) -> None:
        """Keep a row until the next `flush`."""
        self._buffer.append(csv_text([[row[name] for name in self.columns]]))
        self.rows += 1

    def flush(self) -> None:
        """Append the kept rows and sync, so that a checkpoint may count on them."""
        new = not os.path.lexists(self.path)
        data = "".join([*([csv_text([self.columns])] if new else []), *self._buffer]).encode()
        try:
            handle = open_regular(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with open(handle, "ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RollinError(f"{self.path} could not be written: {reason(error)}.") from error
        self._sum.update(data)
        self._buffer.clear()

    def get_state(self) -> dict[str, Any]:
        """Number of rows on disk, and the file's checksum."""
        return {"rows": self.rows, "sha256": self._sum.hexdigest()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Cut the file back to the rows that a checkpoint counted (0: start anew)."""
        counted: RowsCounted = converted(state, RowsCounted, self.path)
        size, self._sum = counted_part(self.path, counted)
        self.rows = counted.rows
        self._buffer.clear()
        if size:
            os.truncate(self.path, size)
        else:
            self.path.unlink(missing_ok=True)


def counted_part(path: Path, counted: RowsCounted) -> tuple[int, "hashlib._Hash"]:
    """Size and checksum of what a CSV held when a checkpoint counted its rows."""
    size, sum_ = 0, hashlib.sha256()
    if not os.path.lexists(path):
        if counted.rows:
            raise RollinError(f"{path} is missing, but a checkpoint counts {counted.rows} rows.")
        return size, sum_
    with open_bounded(path, LARGEST_TABLE) as file:
        for row in range(counted.rows + 1 if counted.rows else 0):
            line = file.readline(LONGEST_LINE)
            if not line.endswith(b"\n"):
                raise RollinError(
                    f"{path} has {max(row - 1, 0)} rows, its checkpoint counts {counted.rows}: "
                    "the file was cut off. Delete the run directory to start over."
                )
            size += len(line)
            sum_.update(line)
    if counted.rows and counted.sha256 not in (None, sum_.hexdigest()):
        raise RollinError(
            f"{path} does not match its checksum: rows were changed. Restore them, or delete the "
            "run directory to start over."
        )
    return size, sum_


def read_metrics(path: Path) -> dict[str, list[float]]:
    """Columns of a metrics.csv; a half-written last line is left out."""
    return {name: column.tolist() for name, column in _columns(path)[0].items()}


def _columns(path: Path) -> tuple[dict[str, "array[float]"], str]:
    """Columns of a CSV of numbers by name, and the checksum of the whole file.

    A half-written last line is left out. The file is read line by line: as text its cells would
    take many times the memory of their numbers.
    """
    sum_ = hashlib.sha256()
    try:
        with open_bounded(path, LARGEST_TABLE) as file:
            columns = _numbers(csv_rows(_lines(file, sum_)))
            return columns, sum_.hexdigest()
    except (ValueError, csv.Error) as error:
        raise RollinError(f"{path} cannot be read: {error}. Restore the original.") from error


def _numbers(rows: Iterator[list[str]]) -> dict[str, "array[float]"]:
    header = next(rows, [])
    if len(set(header)) < len(header):
        raise ValueError("two of its columns have the same name")
    columns = {name: array("d") for name in header}
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} of {len(header)} columns")
        for column, cell in zip(columns.values(), row, strict=True):
            column.append(float(cell))
    return columns


def _lines(file: BinaryIO, sum_: "hashlib._Hash") -> Iterator[str]:
    """The complete lines of a CSV; all that is read goes into the checksum."""
    while line := file.readline(LONGEST_LINE):
        sum_.update(line)
        if line.endswith(b"\n"):
            yield line.decode()
        elif len(line) == LONGEST_LINE:
            raise ValueError(f"a line has more than {LONGEST_LINE:,} bytes")


def read_columns(
    path: Path, needed: Mapping[str, str], checksum: str | None = None
) -> dict[str, NDArray[np.float64]]:
    """Columns of a run's CSV as arrays, `step` among them; those that are needed must be there.

    checksum: of the whole file, if that is known.
    """
    if not os.path.lexists(path):
        raise RollinError(f"{path.name} is missing")
    columns, sum_ = _columns(path)
    if checksum not in (None, sum_):
        raise RollinError(f"{path.name} does not match its checksum: it was changed or cut off")
    if missing := [name for name in ("step", *needed.values()) if name not in columns]:
        raise RollinError(f"{path.name} lacks {', '.join(missing)}")
    steps = columns["step"]
    if not steps:
        raise RollinError(f"{path.name} has no rows")
    whole = all(0 <= step <= MOST and step.is_integer() for step in steps)
    if not whole or any(b <= a for a, b in pairwise(steps)):
        raise RollinError(f"the steps of {path.name} must be whole numbers that rise from 0")
    return {name: np.array(column) for name, column in columns.items()}


def thinned(
    steps: NDArray[np.float64], end: int, at: Sequence[int], most: int = CURVE_POINTS
) -> NDArray[np.int64]:
    """Rows of a curve up to a step: evenly spaced ones, those that are asked for, and the last."""
    count = int(np.searchsorted(steps, end, "right"))
    if count == 0:
        raise RollinError("it has no metrics yet")
    stride = max(1, math.ceil(count / most))
    asked = np.flatnonzero(np.isin(steps[:count], at))
    return np.unique(np.concatenate([np.arange(stride - 1, count, stride), asked, [count - 1]]))
