"""TensorBoard events of a run, beside the metrics.csv that is always written.

tensorboardX's own SummaryWriter writes in a thread behind a queue: on a full disk the thread dies
and the queue then blocks the run for ever. Here events are written where they arise.
"""

import math
import time
from pathlib import Path
from typing import Any

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2
from tensorboardX.summary import scalar

from rollin.errors import RollinError, reason
from rollin.runs.files import own_directory

FLUSH_SECONDS = 10.0

proto: Any = event_pb2  # protobuf makes its classes at import, out of a type checker's sight


class TensorBoardLogger:
    """Writes every number of a metrics row as a scalar; a resume replaces later points."""

    def __init__(self, directory: Path, step: int) -> None:
        self.folder = directory / "tensorboard"
        own_directory(self.folder)
        self._flushed = time.monotonic()
        try:
            self._writer = EventsWriter(str(self.folder / "events"), f".{step}")
            if step > 0:  # tell TensorBoard to forget what an interrupted run wrote beyond
                restart = proto.SessionLog(status=proto.SessionLog.START)
                self._writer.write_event(
                    proto.Event(wall_time=time.time(), step=step + 1, session_log=restart)
                )
        except OSError as error:
            raise self._failure(error) from error

    def write(self, row: dict[str, Any]) -> None:
        """One row of metrics; its `step` is the x axis."""
        now = time.time()
        try:
            for name, value in row.items():
                if name != "step" and math.isfinite(value):  # NaN: nothing to show
                    summary = scalar(name, value)
                    event = proto.Event(wall_time=now, step=row["step"], summary=summary)
                    self._writer.write_event(event)
            if time.monotonic() - self._flushed > FLUSH_SECONDS:
                self._flushed = time.monotonic()
                self._writer.flush()
        except OSError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Write what is left."""
        try:
            self._writer.close()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> RollinError:
        return RollinError(f"{self.folder} could not be written: {reason(error)}.")
