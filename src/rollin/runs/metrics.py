"""What a run measures: an engine declares each of its metrics once, as a `Metric`.

Their values are rows of metrics.csv, to which a run appends and which it cuts back when it resumes,
and events for TensorBoard. visits.csv holds where the steps of some tasks ended.
"""

import csv
import hashlib
import math
import os
import socket
import struct
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollin.errors import RollinError, reason
from rollin.runs.files import MOST, RowsCounted, converted, own_directory, write_atomically
from rollin.untrusted import LARGEST_TABLE, csv_rows, csv_text, open_bounded, open_regular


def _always(run: Any) -> bool:
    return True


@dataclass(frozen=True)
class Metric:
    """A quantity of runs, by one name in metrics.csv, result.json, records and readings.

    value: its value now, of the engine's run; label: in tables and on axes; meaning: what it is,
    where the label is not enough; result: whether records and reports have it; headline: whether it
    is shown of runs that no study describes; less_is_better: whether it is a cost; when: which runs
    have it.
    """

    name: str
    value: Callable[[Any], float] = lambda run: math.nan
    label: str = ""
    meaning: str = ""
    result: bool = False
    headline: bool = True
    less_is_better: bool = False
    when: Callable[[Any], bool] = _always

    @property
    def text(self) -> str:
        """Return the label, or the name with spaces."""
        return self.label or self.name.replace("_", " ")


def plain(value: float) -> float | str | None:
    """Return a value as result.json holds it: JSON has neither NaN nor infinity."""
    if math.isnan(value):
        return None
    return str(float(value)) if math.isinf(value) else value


# ------------------------------------------------------------------ CSV files

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
        """Cut the file back to the rows that a checkpoint counted (0: start over)."""
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
    if counted.rows and counted.sha256 != sum_.hexdigest():
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
    steps: NDArray[np.float64], end: int, at: Sequence[int], most: int | None = CURVE_POINTS
) -> NDArray[np.int64]:
    """Rows of a curve up to a step: evenly spaced ones, those at some steps, and the last.

    most: of the evenly spaced ones; None for all.
    """
    count = int(np.searchsorted(steps, end, "right"))
    stride = max(1, math.ceil(count / (most or count or 1)))
    asked = np.flatnonzero(np.isin(steps[:count], at))
    last = [count - 1] if count else []
    return np.unique(
        np.concatenate([np.arange(stride - 1, count, stride), asked, last]).astype(int)
    )


# ------------------------------------------------------------------ where steps ended
#
# Counts of square cells, context by context, for tasks whose contexts are places in the plane. They
# take a few kilobytes where the file of all transitions takes hundreds of megabytes; `rollin plot
# --visits` draws them.

VISITS = "visits.csv"
VISIT_COLUMNS = ("k", "x", "y", "steps")
PARTS = 32  # cells along the longer side of the box that holds all contexts

Counts = dict[tuple[int, int, int], int]
"""Steps by context and cell."""


def cell_size(contexts: ArrayLike) -> float:
    """The side of a cell, for a curriculum of contexts (K + 1, 2); 0 if they all coincide."""
    return float(np.ptp(np.asarray(contexts, np.float64), axis=0).max()) / PARTS


class Visits:
    """Counts of the steps that ended in each cell, by context.

    Steps farther from all contexts than these are from each other count in the outermost cells.

    >>> import numpy as np
    >>> visits = Visits([[0.0, 0.0], [8.0, 0.0]])
    >>> visits.take(1, np.array([[0.1, 0.1], [0.2, 0.1], [0.3, -0.1]]))
    >>> visits.rows()
    [(1, 0.125, 0.125, 2), (1, 0.375, -0.125, 1)]
    """

    def __init__(self, contexts: ArrayLike) -> None:
        self.cell = cell_size(contexts)
        corners = np.floor(np.asarray(contexts, np.float64) / self.cell)
        self._low, self._high = corners.min(0) - PARTS, corners.max(0) + PARTS
        self._counts: Counts = {}

    def take(self, k: int, places: NDArray[Any]) -> None:
        """Count the places (T, 2) of steps under context k."""
        inside = np.clip(np.floor(places / self.cell), self._low, self._high)
        cells, counts = np.unique(inside, axis=0, return_counts=True)
        for (i, j), count in zip(cells.astype(int).tolist(), counts.tolist(), strict=True):
            self._counts[k, i, j] = self._counts.get((k, i, j), 0) + count

    def rows(self) -> list[tuple[int, float, float, int]]:
        """Rows of visits.csv: context, centre of a cell, steps."""
        return [
            (k, (i + 0.5) * self.cell, (j + 0.5) * self.cell, count)
            for (k, i, j), count in sorted(self._counts.items())
        ]

    def write(self, directory: Path) -> None:
        """Write visits.csv."""
        rows = [(k, f"{x:.9g}", f"{y:.9g}", count) for k, x, y, count in self.rows()]
        write_atomically(directory / VISITS, csv_text([VISIT_COLUMNS, *rows]).encode())

    def get_state(self) -> NDArray[np.int64]:
        """All counts (n, 4): context, cell, steps."""
        found = [(*cell, count) for cell, count in sorted(self._counts.items())]
        return np.array(found, np.int64).reshape(-1, 4)

    def set_state(self, state: NDArray[Any]) -> None:
        """Take back what `get_state` gave."""
        if state.ndim != 2 or state.shape[1] != 4 or (state[:, 3] < 1).any():
            raise RollinError("The visits of a checkpoint are damaged.")
        self._counts = {(k, i, j): count for k, i, j, count in state.tolist()}


# ------------------------------------------------------------------ TensorBoard
#
# A file of events is records of small protobuf messages: length, data, and a masked CRC-32C of
# each. A message is made of the few fields of TensorBoard's `Event` that scalars need. Written
# here, they cost no import of another library.

FLUSH_SECONDS = 10.0


class TensorBoardLogger:
    """Writes every number of a metrics row as a scalar; a resume replaces later points."""

    def __init__(self, directory: Path, step: int) -> None:
        self.folder = directory / "tensorboard"
        own_directory(self.folder)
        self._flushed = time.monotonic()
        try:
            self._events = EventsFile(self.folder, step)
            self._events.restart(step + 1)  # an interrupted run may have written beyond
        except OSError as error:
            raise self._failure(error) from error

    def write(self, row: dict[str, Any]) -> None:
        """One row of metrics; its `step` is the x axis."""
        scalars = {
            name: float(value)
            for name, value in row.items()
            if name != "step" and math.isfinite(value)  # NaN: nothing to show
        }
        try:
            self._events.write_scalars(int(row["step"]), scalars)
            if time.monotonic() - self._flushed > FLUSH_SECONDS:
                self._flushed = time.monotonic()
                self._events.flush()
        except OSError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Write what is left."""
        try:
            self._events.close()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> RollinError:
        return RollinError(f"{self.folder} could not be written: {reason(error)}.")


VERSION = b"brain.Event:2"  # the first event of a file
LARGEST = float.fromhex("0x1.fffffep127")  # of float32, the type of scalars


class EventsFile:
    """A new file of events in a directory, whose name contains time, host and first step.

    OSError passes through.
    """

    def __init__(self, directory: Path, step: int) -> None:
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{step}"
        self._file = (directory / name).open("wb")
        self._write(_bytes(3, VERSION))

    def write_scalars(self, step: int, scalars: Mapping[str, float]) -> None:
        """The values of some quantities at a step."""
        values = b"".join(
            _bytes(1, _bytes(1, name.encode()) + _float(2, value))
            for name, value in scalars.items()
        )
        self._write(_number(2, step) + _bytes(5, values))

    def restart(self, step: int) -> None:
        """Have TensorBoard forget what an earlier file holds of this step and later ones."""
        self._write(_number(2, step) + _bytes(7, _number(1, 1)))

    def flush(self) -> None:
        """Let others see what was written."""
        self._file.flush()

    def close(self) -> None:
        """Write what is left."""
        self._file.close()

    def _write(self, fields: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + fields  # field 1: when
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))


# ------------------------------------------------------------------ fields of messages


def _varint(value: int) -> bytes:
    """A natural number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", min(max(value, -LARGEST), LARGEST))


# ------------------------------------------------------------------ checksums


def _remainders() -> list[int]:
    """CRC-32C of every byte: remainders by the polynomial 0x1EDC6F41, its bits in reverse."""
    table = []
    for remainder in range(256):
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
        table.append(remainder)
    return table


_TABLE = _remainders()


def _checksum(data: bytes) -> bytes:
    """CRC-32C, rotated and shifted, so that it may be part of data that has one itself."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
