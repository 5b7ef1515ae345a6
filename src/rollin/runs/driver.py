"""What every run does around its loop: restore, log, report, checkpoint, stop, finish.

Killed at any moment and started again, a run ends in the same metrics, parameters and result as one
that was never interrupted (same machine, versions and threads).
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Generic

from rollin.runs.checkpoint import remove_checkpoint
from rollin.runs.files import remove_temporaries
from rollin.runs.loggers import TensorBoardLogger
from rollin.runs.spec import Config, RunSpec
from rollin.runs.store import MetricsWriter, RunDirectory

CHECKPOINT_SECONDS = 20.0
STATUS_SECONDS = 1.0

OnStatus = Callable[[dict[str, Any]], None]
ShouldStop = Callable[[], bool]


class Pace:
    """The clock of a run: when to report, when to save, how fast it goes, whether to stop."""

    def __init__(self, on_status: OnStatus, should_stop: ShouldStop) -> None:
        self.on_status, self.should_stop = on_status, should_stop
        self.stopped = False
        self._began = self._now = self._saved = time.perf_counter()
        self._reported = -float("inf")
        self._step = 0
        self._warm: tuple[int, float] | None = None  # after the first step, which may compile

    def tick(self, step: int) -> float:
        """Note that a step is done; returns the seconds since the run was begun or resumed."""
        self._now, self._step = time.perf_counter(), step
        self._warm = self._warm or (step, self._now)
        return self._now - self._began

    def status_due(self) -> bool:
        """Whether it is time to report."""
        if self._now - self._reported < STATUS_SECONDS:
            return False
        self._reported = self._now
        return True

    def checkpoint_due(self) -> bool:
        """Whether it is time to save."""
        if self._now - self._saved < CHECKPOINT_SECONDS:
            return False
        self._saved = self._now
        return True

    @property
    def rate(self) -> float:
        """Steps per second since the first one."""
        if self._warm is None or self._now <= self._warm[1]:
            return 0.0
        return (self._step - self._warm[0]) / (self._now - self._warm[1])


class Driver(ABC, Generic[Config]):
    """A run of one engine; what differs between engines is abstract."""

    columns: ClassVar[tuple[str, ...]]

    def __init__(self, spec: RunSpec[Config], directory: RunDirectory) -> None:
        self.spec, self.directory = spec, directory
        self.metrics = MetricsWriter(directory.path / "metrics.csv", self.columns)

    @property
    def config(self) -> Config:
        """The run's options."""
        return self.spec.config

    @property
    @abstractmethod
    def step(self) -> int:
        """Steps so far, of `config.steps`."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Tells the task from another of the same name."""

    @abstractmethod
    def restore(self) -> None:
        """Go back to the last checkpoint, or to the beginning if there is none."""

    @abstractmethod
    def loop(self, board: TensorBoardLogger, pace: Pace) -> bool:
        """Run to the last step (True) or until `pace.stopped`, with a checkpoint, (False)."""

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """Figures of the moment; `figures` are those to show, as text by title."""

    @abstractmethod
    def finish(self) -> None:
        """Write what a finished run leaves, the result last."""

    def tidy(self) -> None:
        """Delete what only an unfinished run needs."""
        remove_checkpoint(self.directory.checkpoint)

    def close(self) -> None:
        """Release what the run holds."""

    def execute(self, on_status: OnStatus, should_stop: ShouldStop) -> bool:
        """Run to the end, or until `should_stop`; returns whether it finished."""
        try:
            return self._execute(Pace(on_status, should_stop))
        except KeyboardInterrupt:
            self.directory.write_status("interrupted", **self._full_status(None))
            raise
        except BaseException as error:
            self.directory.write_status("failed", error=str(error) or type(error).__name__)
            raise

    def _execute(self, pace: Pace) -> bool:
        for directory in (self.directory.path, self.directory.checkpoint):
            remove_temporaries(directory)
        self.restore()
        board = TensorBoardLogger(self.directory.path, self.step)
        try:
            finished = self.loop(board, pace)
        finally:
            board.close()
        if not finished:
            self.directory.write_status("interrupted", **self._full_status(None))
            return False
        self.metrics.flush()
        self.finish()
        self.directory.write_status("finished", **self._full_status(None))
        self.tidy()
        return True

    def log(self, row: dict[str, Any], board: TensorBoardLogger) -> None:
        """One row of metrics, to the file and to TensorBoard."""
        self.metrics.write(row)
        board.write(row)

    def report(self, pace: Pace) -> None:
        """Tell the world outside where the run stands, and hear whether it is to stop."""
        status = self._full_status(pace)
        self.directory.write_status("running", **status)
        pace.on_status(status)
        pace.stopped = pace.stopped or pace.should_stop()

    def _full_status(self, pace: Pace | None) -> dict[str, Any]:
        rate = pace.rate if pace is not None else 0.0
        left = self.config.steps - self.step
        return {
            "step": self.step,
            "steps": self.config.steps,
            "steps_per_second": round(rate, 1),
            "eta_seconds": round(left / rate, 1) if rate else None,
            **self.status(),
        }


def make_run(spec: RunSpec[Any], directory: RunDirectory) -> Driver[Any]:
    """The run of a spec, by its engine."""
    if spec.config.engine == "sac":
        from rollin.runs.sac import SACRun

        return SACRun(spec, directory)
    from rollin.runs.tabular import TabularRun

    return TabularRun(spec, directory)


def run(
    spec: RunSpec[Any],
    out: Path,
    command: str = "",
    on_status: OnStatus = lambda status: None,
    should_stop: ShouldStop = lambda: False,
) -> bool:
    """Run a spec in a directory, or go on with it; a finished one is left as it is."""
    directory = RunDirectory(out)
    prepared = make_run(spec, directory)  # a bad task is refused before anything is written
    try:
        RunDirectory.prepare(out, spec, prepared.fingerprint(), command)
        with directory.lock():
            if directory.finished:
                prepared.tidy()  # if a kill came just before that
                return True
            return prepared.execute(on_status, should_stop)
    finally:
        prepared.close()
