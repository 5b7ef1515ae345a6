"""What every run does around its loop: restore, log, report, checkpoint, stop, finish.

Killed at any moment and started again, a run ends in the same metrics, parameters and result as one
that was never interrupted (same machine, versions and threads).
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic

import numpy as np

from rollin import compile_time
from rollin.checks import seconds_from
from rollin.curriculum.progress import Advance
from rollin.errors import RollinError, sentence
from rollin.regular import check_regular
from rollin.runs.checkpoint import (
    Checkpoint,
    join_state,
    read_checkpoint,
    remove_checkpoint,
    split_state,
    write_checkpoint,
)
from rollin.runs.directory import RunDirectory
from rollin.runs.files import check_own, remove_temporaries
from rollin.runs.loggers import Loggers, check_installed
from rollin.runs.rows import MetricsWriter
from rollin.runs.spec import Config, RunSpec
from rollin.runs.tensorboard import TensorBoardLogger

CHECKPOINT_SECONDS = seconds_from("ROLLIN_CHECKPOINT_SECONDS", 20.0)
STATUS_SECONDS = 1.0
HEAR_SECONDS = 0.2  # between two questions whether to stop
STOP_SECONDS = 1.0  # that a run which is to stop may go on, until it can save

_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What values of another form lead to."""

OnStatus = Callable[[dict[str, Any]], None]
ShouldStop = Callable[[], bool]


def working_time() -> float:
    """A clock that stands while functions are compiled, which is done once per machine."""
    return time.perf_counter() - compile_time.seconds()


class LeaveError(Exception):
    """The run is to stop, and has waited long enough for a moment at which it can save."""


class Pace:
    """The clock of a run: when to report, when to save, how fast it goes, whether to stop."""

    def __init__(self, on_status: OnStatus, should_stop: ShouldStop) -> None:
        self.on_status, self.should_stop = on_status, should_stop
        self._asked: float | None = None  # when it was first seen that the run is to stop
        self._began = self._now = self._saved = working_time()
        self._reported = self._heard = -float("inf")
        self._step = 0
        self._warm: tuple[int, float] | None = None  # after the first step, which may compile

    def tick(self, step: int) -> float:
        """Note that a step is done; returns the seconds since the run was begun or resumed."""
        self._now, self._step = working_time(), step
        self._warm = self._warm or (step, self._now)
        return self._now - self._began

    @property
    def stopped(self) -> bool:
        """Whether the run is to stop."""
        now = time.perf_counter()
        if self._asked is None and now - self._heard >= min(STATUS_SECONDS, HEAR_SECONDS):
            self._heard = now
            self._asked = now if self.should_stop() else None
        return self._asked is not None

    def check(self) -> None:
        """Leave if the run is to stop and cannot save for too long: inside a long episode."""
        if self.stopped and time.perf_counter() - (self._asked or 0.0) > STOP_SECONDS:
            raise LeaveError

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
    """A run of one engine; what differs between engines is abstract.

    seconds: spent so far, over all its lives; writers: its CSV files by name; pause: called at
    every step of an evaluation, which may be a long one.
    """

    columns: ClassVar[tuple[str, ...]]
    files: ClassVar[tuple[str, ...]] = ()
    """Files that it opens besides its CSVs."""

    def __init__(self, spec: RunSpec[Config], directory: RunDirectory) -> None:
        check_installed(spec.config.log)
        self.spec, self.directory = spec, directory
        self.seconds = 0.0
        self.pause: Callable[[], None] = lambda: None
        self.metrics = MetricsWriter(directory.path / "metrics.csv", self.columns)
        self.writers = {"metrics": self.metrics}

    @property
    def config(self) -> Config:
        """The run's options."""
        return self.spec.config

    @property
    @abstractmethod
    def step(self) -> int:
        """Steps so far, of `config.steps`."""

    @property
    def at_end(self) -> bool:
        """Whether the last step is done."""
        return self.step >= self.config.steps

    @property
    def advances(self) -> Sequence[Advance]:
        """Switches of context so far, if it walks a curriculum."""
        return ()

    def fingerprint(self) -> str:
        """Tells the task from another of the same name, if there can be one."""
        return self.spec.task

    def beside(self) -> dict[str, Any]:
        """What config.json tells beside the spec, for whoever looks at it."""
        return {}

    @abstractmethod
    def events(self) -> Iterator[Any]:
        """The algorithm's events, one a step, from where the run stands."""

    def take(self, event: Any) -> bool:
        """Count an event; returns whether a checkpoint may be written after it."""
        return True

    @abstractmethod
    def row(self) -> dict[str, Any]:
        """A row of metrics."""

    @abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on: arrays and values by part."""

    @abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""

    def status(self) -> dict[str, Any]:
        """Where the run stands; `shown`: what to show of it, as text by title."""
        return {"shown": {}}

    def finish(self) -> None:
        """Write what a finished run leaves, the result last: the last row, if there is no more."""
        self.directory.write_result({**self.row(), "seconds": self.seconds})

    def check_result(self) -> None:
        """Refuse what a finished run left if it is not what it wrote."""
        self.directory.check_files()

    def tidy(self) -> None:
        """Delete what only an unfinished run needs, once what it left is seen to be whole."""
        self.check_result()
        remove_checkpoint(self.directory.checkpoint)

    def close(self) -> None:
        """Release what the run holds."""

    def execute(
        self, on_status: OnStatus, should_stop: ShouldStop, until: int | None = None
    ) -> bool:
        """Run to the end, until `should_stop`, or until a step; return whether it finished."""
        pace = Pace(on_status, should_stop)
        try:
            with compile_time.heard_by(lambda: self._report(pace, compiling=True)):
                return self._execute(pace, until)
        except (KeyboardInterrupt, BrokenPipeError):  # or nobody hears of the run any more
            self.directory.write_status("interrupted", **self._full_status(None))
            raise
        except BaseException as error:
            self.directory.write_status("failed", error=sentence(error))
            raise

    def _execute(self, pace: Pace, until: int | None) -> bool:
        check_own(self.directory.checkpoint)
        for directory in (self.directory.path, self.directory.checkpoint):
            remove_temporaries(directory)
        self._restore()
        # the first step may end the process: whose it was is known by then
        self.directory.write_status("running", **self._full_status(None))
        board = TensorBoardLogger(self.directory.path, self.step)
        others = Loggers(self.config.log, self.directory, self.spec)
        self.pause = pace.check
        finished = False
        try:
            finished = self._loop(board, others, pace, until)
        except LeaveError:  # the last checkpoint is what it goes on from
            pass
        finally:
            try:
                board.close()
            finally:
                others.close(finished=finished)
        if not finished:
            self.directory.write_status("interrupted", **self._full_status(None))
            return False
        self._flush()
        self.finish()
        self.directory.write_status("finished", **self._full_status(None))
        self.tidy()
        return True

    def _loop(
        self, board: TensorBoardLogger, others: Loggers, pace: Pace, until: int | None
    ) -> bool:
        """Run to the last step (True), or until a stop, with a checkpoint (False).

        until: stop at the first checkpoint that can be written at this step or later.
        """
        config, spent_before = self.config, self.seconds
        save_soon = False
        for event in () if self.at_end else self.events():
            may_save = self.take(event)
            if self.step % config.log_every == 0 or self.at_end:
                row = self.row()
                self.metrics.write(row)
                told = {**row, "steps_per_second": pace.rate}
                board.write(told)
                others.write(told, self.advances)
            self.seconds = spent_before + pace.tick(self.step)
            if pace.status_due():
                self._report(pace)
            if self.at_end:
                break
            far_enough = until is not None and self.step >= until
            save_soon = save_soon or far_enough or pace.stopped or pace.checkpoint_due()
            if save_soon and may_save:
                self._save()
                save_soon = False
                if far_enough or pace.stopped:
                    return False
            pace.check()
        return True

    @property
    def _hash(self) -> str:
        """What a checkpoint is told apart by: as config.json has it, whose spec is this one."""
        return self.directory.recorded_hash() or self.spec.hash

    def _save(self) -> None:
        self._flush()
        state = {
            **self.get_state(),
            "seconds": self.seconds,
            "writers": {name: writer.get_state() for name, writer in self.writers.items()},
        }
        arrays, values = split_state(state)
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise RollinError(
                    f"The learner diverged: {name} is no longer finite at step {self.step}. The "
                    "last good checkpoint is kept; a smaller --learning-rate may help."
                )
        saved = Checkpoint(self.step, self._hash, arrays, values)
        write_checkpoint(self.directory.checkpoint, saved)

    def _restore(self) -> None:
        """Go back to the last checkpoint, or to the beginning if there is none."""
        for name in self.files:
            check_regular(self.directory.path / name)
        saved = read_checkpoint(self.directory.checkpoint, self._hash)
        if saved is None:
            for writer in self.writers.values():
                writer.set_state({"rows": 0})
            return
        try:
            state = join_state(saved.arrays, saved.values)
            for name, writer in self.writers.items():
                # older checkpoints lack the files that came later
                writer.set_state(state["writers"].get(name, {"rows": 0}))
            self.set_state(state)
            self.seconds = _seconds(state["seconds"])
            self._check_step(saved.step)
        except _DAMAGE as error:
            raise RollinError(
                f"The checkpoint in {self.directory.checkpoint} does not hold what this run "
                f"keeps ({type(error).__name__}: {error}): it is damaged or from another version. "
                "Delete the checkpoint directory to start this run over."
            ) from error

    def _check_step(self, saved: int) -> None:
        if not self.step == saved <= self.config.steps:
            raise ValueError(f"step {self.step}, not {saved} of {self.config.steps}")

    def _flush(self) -> None:
        for writer in self.writers.values():
            writer.flush()

    def _report(self, pace: Pace, *, compiling: bool = False) -> None:
        """Tell the world outside where the run stands, and hear whether it is to stop.

        compiling: whether that begins now, once per machine; the next report is that it is done.
        """
        status = self._full_status(pace) | ({"compiling": True} if compiling else {})
        self.directory.write_status("running", **status)
        pace.on_status(status)

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


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"seconds must be a number of at least 0, got {value!r}")
    return float(value)
