"""CSV files of a run, such as metrics.csv: rows are appended, and cut back on resume."""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollin.errors import RollinError, reason


class MetricsWriter:
    """A CSV file of a run, such as metrics.csv: rows are appended, and cut back on resume."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = tuple(columns)
        self.rows = 0
        self._buffer: list[str] = []

    def write(self, row: dict[str, Any]) -> None:
        """Keep a row until the next `flush`."""
        self._buffer.append(_csv_line([row[name] for name in self.columns]))
        self.rows += 1

    def flush(self) -> None:
        """Append the kept rows and sync, so that a checkpoint may count on them."""
        try:
            new = not self.path.exists()
            with self.path.open("a", encoding="utf-8", newline="") as file:
                if new:
                    file.write(_csv_line(self.columns))
                file.write("".join(self._buffer))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RollinError(f"{self.path} could not be written: {reason(error)}.") from error
        self._buffer.clear()

    def get_state(self) -> dict[str, Any]:
        """Number of rows on disk."""
        return {"rows": self.rows}

    def set_state(self, state: dict[str, Any]) -> None:
        """Cut the file back to the rows that a checkpoint counted (0: start anew)."""
        self.rows = int(state["rows"])
        self._buffer.clear()
        if not self.path.exists():
            if self.rows:
                raise RollinError(
                    f"{self.path} is missing, but a checkpoint counts {self.rows} rows."
                )
            return
        lines = self.path.read_bytes().splitlines(keepends=True)
        if len(lines) < self.rows + 1 and self.rows:
            raise RollinError(
                f"{self.path} has {len(lines) - 1} rows, its checkpoint counts {self.rows}: "
                "the file was cut off. Delete the run directory to start anew."
            )
        keep = sum(len(line) for line in lines[: self.rows + 1]) if self.rows else 0
        os.truncate(self.path, keep)
        if not keep:
            self.path.unlink()


def _csv_line(values: Sequence[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)
    return out.getvalue()


def read_metrics(path: Path) -> dict[str, list[float]]:
    """Columns of a metrics.csv; a half-written last line is left out."""
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    rows = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1])))
    if not rows:
        return {}
    header, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    return {name: [float(row[i]) for row in body] for i, name in enumerate(header)}
