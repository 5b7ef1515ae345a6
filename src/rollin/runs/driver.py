"""What every run does around its loop: restore, log, report, checkpoint, stop, finish.

Killed at any moment and started again, a run ends in the same metrics, parameters and result as one
that was never interrupted (same machine, versions and threads).
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import numpy as np

from rollin import compiling
from rollin.checks import seconds_from
from rollin.curriculum.progress import Advance, Progress
from rollin.errors import RollinError, sentence
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
from rollin.runs.metrics import Metric, MetricsWriter, TensorBoardLogger, plain
from rollin.runs.spec import Config, Membership, RunSpec
from rollin.runs.systems import versions
from rollin.untrusted import check_regular

if TYPE_CHECKING:
    from rollin.runs.loggers import Loggers

CHECKPOINT_SECONDS = seconds_from("ROLLIN_CHECKPOINT_SECONDS", 20.0)
STATUS_SECONDS = 1.0
HEAR_SECONDS = 0.2  # between two questions whether to stop
STOP_SECONDS = 1.0  # that a run which is to stop may continue, until it can save

_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What values of another form lead to."""

OnStatus = Callable[[dict[str, Any]], None]
ShouldStop = Callable[[], bool]


def working_time() -> float:
    """A clock that stands while functions are compiled, which is done once per machine."""
    return time.perf_counter() - compiling.seconds()


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

    columns: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ()
    """Files that it opens besides its CSVs."""

    def __init__(self, spec: RunSpec[Config], directory: RunDirectory) -> None:
        if spec.config.log:
            from rollin.runs.loggers import check_installed

            check_installed(spec.config.log)
        self.spec, self.directory = spec, directory
        self.seconds = 0.0
        self.pause: Callable[[], None] = lambda: None
        self.metrics = MetricsWriter(directory.path / "metrics.csv", self.columns)
        self.writers = {"metrics": self.metrics}
        self.declared: tuple[Metric, ...] = ()
        self._last: dict[str, Any] = {}

    def declare(self, metrics: Iterable[Metric]) -> None:
        """Have metrics.csv hold those of these metrics that the run has."""
        self.declared = tuple(metric for metric in metrics if metric.when(self))
        self.metrics.columns = ("step", *(metric.name for metric in self.declared))

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
    def progress(self) -> Progress | None:
        """The place on the curriculum, if the run has one."""
        return None

    @property
    def advances(self) -> Sequence[Advance]:
        """Switches of context so far."""
        return self.progress.advances if self.progress else ()

    @property
    def costs(self) -> dict[str, int]:
        """What the run took so far: env_steps, rollin_steps and updates, as far as it knows."""
        return {}

    def outcome(self) -> dict[str, Any]:
        """Return how far the run has come, as the `Outcome` of a checkpoint or a result."""
        found = {"step": self.step, "seconds": round(self.seconds, 3), **self.costs}
        if (progress := self.progress) is None:
            return found
        return found | {
            "k": progress.k,
            "K": progress.K,
            "advances": [asdict(advance) for advance in progress.advances],
            "completed": asdict(progress.completed) if progress.completed else None,
        }

    def fingerprint(self) -> str:
        """Distinguishes the task from another of the same name, if there can be one."""
        return self.spec.task

    def beside(self) -> dict[str, Any]:
        """What config.json records beside the spec, for readers."""
        return {}

    @abstractmethod
    def events(self) -> Iterator[Any]:
        """The algorithm's events, one a step, from where the run stands."""

    def take(self, event: Any) -> bool:
        """Count an event; returns whether a checkpoint may be written after it."""
        return True

    def measure(self) -> None:
        """Compute what the next row of metrics needs, such as an evaluation."""

    def forget(self) -> None:
        """Begin the sums between two rows of metrics again."""

    def row(self) -> dict[str, Any]:
        """A row of metrics."""
        self.measure()
        row = {"step": self.step, **{m.name: m.value(self) for m in self.declared}}
        self._last = {name: plain(value) for name, value in row.items()}
        self.forget()
        return row

    def row_due(self) -> bool:
        """Whether metrics.csv gets a row after this step."""
        return self.step % self.config.log_every == 0 or self.at_end

    @abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume: arrays and values by part."""

    @abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""

    def status(self) -> dict[str, Any]:
        """Where the run stands; `shown`: what to show of it, as text by title."""
        return {"shown": {}}

    def finish(self) -> None:
        """Write what a finished run leaves, the result last."""
        self.write_result()

    def write_result(self, **more: Any) -> None:
        """Write result.json: the last row of metrics.csv and the outcome; more: fields of it."""
        origin = {"spec_hash": self.spec.hash, "versions": versions()}
        self.directory.write_result({**self._last, **self.outcome(), **more, **origin})

    def check_result(self) -> None:
        """Refuse what a finished run left if it is not what it wrote."""
        self.directory.check_files()
        self.directory.outcome()

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
            with compiling.listening(lambda: self._report(pace, compiling=True)):
                return self._execute(pace, until)
        except (KeyboardInterrupt, BrokenPipeError):  # or the reader of the output is gone
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
        others = self._open_loggers()
        self.pause = pace.check
        finished = False
        try:
            finished = self._loop(board, others, pace, until)
        except LeaveError:  # it resumes from the last checkpoint
            pass
        finally:
            try:
                board.close()
            finally:
                if others is not None:
                    others.close(finished=finished)
        if not finished:
            self.directory.write_status("interrupted", **self._full_status(None))
            return False
        self._flush()
        self.finish()
        self.directory.write_status("finished", **self._full_status(None))
        self.tidy()
        return True

    def _open_loggers(self) -> "Loggers | None":
        """Open the loggers that were asked for, which few runs have."""
        if not self.config.log:
            return None
        from rollin.runs.loggers import Loggers

        return Loggers(self.config.log, self.directory, self.spec)

    def _loop(
        self, board: TensorBoardLogger, others: "Loggers | None", pace: Pace, until: int | None
    ) -> bool:
        """Run to the last step (True), or until a stop, with a checkpoint (False).

        until: stop at the first checkpoint that can be written at this step or later.
        """
        spent_before = self.seconds
        save_soon = False
        for event in () if self.at_end else self.events():
            may_save = self.take(event)
            if self.row_due():
                row = self.row()
                self.metrics.write(row)
                logged = {**row, "steps_per_second": pace.rate}
                board.write(logged)
                if others is not None:
                    others.write(logged, self.advances)
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
        """What identifies a checkpoint: the hash in config.json, whose spec is this one."""
        return self.directory.recorded_hash() or self.spec.hash

    def _save(self) -> None:
        self._flush()
        state = {
            **self.get_state(),
            "outcome": self.outcome(),
            "row": self._last,
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
                writer.set_state(state["writers"][name])
            self.set_state(state)
            self._last = {name: _plain_number(value) for name, value in state["row"].items()}
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
        """Write the run's status, and check whether it is to stop.

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


def _plain_number(value: Any) -> float | str | None:
    """Return a value of a row as `plain` makes it; raise ValueError if it is none."""
    if value is None or value in ("inf", "-inf") or type(value) in (int, float):
        return value
    raise ValueError(f"{value!r} is not a number")


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"seconds must be a number of at least 0, got {value!r}")
    return float(value)


def execute(
    prepared: Driver[Any],
    command: str = "",
    on_status: OnStatus = lambda status: None,
    should_stop: ShouldStop = lambda: False,
    of: Membership | None = None,
    until: int | None = None,
) -> bool:
    """Run what was prepared, or resume it, and close it."""
    directory = prepared.directory
    try:
        results = {metric.name: metric.text for metric in prepared.declared if metric.result}
        beside = {**prepared.beside(), "results": results}
        task = prepared.fingerprint()
        claim = partial(RunDirectory.claim, directory.path, prepared.spec, task, command, of)
        if directory.exists:
            claim(**beside)  # refuse another run, whichever process has it
        else:
            directory.make()
        with directory.lock():
            claim(**beside)  # one of several processes that begin at once
            if directory.finished:
                prepared.tidy()  # if a kill came just before that
                return True
            return prepared.execute(on_status, should_stop, until)
    finally:
        prepared.close()
