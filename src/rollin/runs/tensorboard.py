"""TensorBoard events of a run, beside the metrics.csv that is always written."""

import math
import time
from pathlib import Path
from typing import Any

from rollin.errors import RollinError, reason
from rollin.runs.events import EventsFile
from rollin.runs.files import own_directory

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
