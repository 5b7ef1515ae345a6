"""Runs many jobs: one attempt at each, their order, and what happens after a failure.

What runs a job may be this machine or a cluster (`Executor`).
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from rollin.checks import at_least
from rollin.errors import MissingExtraError, RollinError, debug_hint, describe, show_traceback
from rollin.runs.directory import RunBusyError, RunDirectory
from rollin.runs.spec import RETRIES, EventKind, Job, JobEvent, OnJobEvent


class Executor(Protocol):
    """Where jobs run."""

    def room(self, job: Job) -> bool:
        """Whether there is room for a job now."""
        ...

    def start(self, job: Job) -> None:
        """Begin or resume a job."""
        ...

    def wait(self, seconds: float) -> list[JobEvent]:
        """News, as soon as there are any, or none after so many seconds."""
        ...

    def stop(self) -> list[JobEvent]:
        """Have all running jobs save and leave; their last news. Nothing can be started after."""
        ...


def attempt(
    job: Job,
    command: str,
    on_status: Callable[[dict[str, Any]], None],
    should_stop: Callable[[], bool],
) -> tuple[EventKind, dict[str, Any]]:
    """Begin or resume a job: finished, stopped, failed, or busy if another process has it.

    The status of a failure that would recur on this machine says that it is `final`.
    """
    from rollin.runs.engines import run  # loads what computes

    try:
        done = run(job.spec, job.out, command, on_status, should_stop, job.of, job.until)
        done = done or (job.until is not None and RunDirectory(job.out).has_reached(job.until))
    except RunBusyError as error:
        return "busy", {"error": str(error)}
    except MissingExtraError as error:
        return "failed", {"error": str(error), "final": True}
    except RollinError as error:
        show_traceback(error)
        return "failed", {"error": f"{error}{debug_hint(error)}"}
    except BrokenPipeError:  # the process that receives the news is gone
        raise
    except Exception as error:  # one bad run must not end the sweep
        show_traceback(error)
        return "failed", {"error": describe(error)}
    return ("finished" if done else "stopped"), {}


# ------------------------------------------------------------------ the order of jobs


POLL = 0.2  # seconds between two looks at whether to stop
LONGEST_DELAY = 60.0  # seconds before another attempt
UNBEGUN = 10  # losses of a run before its first step that are forgiven in a row


@dataclass
class _Attempts:
    """The attempts at a job: failures that count, and the farthest step."""

    failures: int = 0
    in_vain: int = 0  # attempts in a row without progress, for whatever reason
    farthest: int = -1
    before: int = -1  # the farthest step when it was last started
    reported: bool = False  # whether the current attempt has sent any news

    def count(self, kind: str) -> None:
        """Count an end that is not the run's last."""
        gained = self.farthest > self.before
        self.in_vain = 0 if gained else self.in_vain + 1
        own_fault = self.reported or self.in_vain > UNBEGUN
        if kind == "failed" or (kind == "lost" and not gained and own_fault):
            self.failures += 1


class Queue:
    """The jobs that wait, run, have ended or failed.

    A job whose run raised an error is tried again `retries` times, unless that was final. One that
    was lost with its worker or machine is tried again as long as it gets farther each time; a loss
    without progress counts as a failure, so that a run that kills its machine ends. A job that
    another process has is tried again until that is done with it.
    """

    def __init__(self, jobs: Iterable[Job], retries: int = RETRIES) -> None:
        self.retries = at_least(0, "--retries", retries)
        self.running: dict[str, Job] = {}
        self.failed: list[Job] = []
        self._waiting = deque(jobs)
        self._delayed: list[tuple[float, int, Job]] = []  # until when, number, job
        self._attempts: dict[str, _Attempts] = {}
        self._delays = 0
        if len({str(job.out) for job in self._waiting}) < len(self._waiting):
            raise ValueError("two jobs have the same directory")

    @property
    def unfinished(self) -> bool:
        """Whether anything is running or waiting."""
        return bool(self.running or self._waiting or self._delayed)

    def next(self, now: float) -> Job | None:
        """The job that is to start next; it stays here until it is started."""
        while self._delayed and self._delayed[0][0] <= now:
            self._waiting.append(heapq.heappop(self._delayed)[2])
        return self._waiting[0] if self._waiting else None

    def start(self) -> Job:
        """Take the next job out, to be run."""
        job = self._waiting.popleft()
        key = str(job.out)
        attempts = self._attempts.setdefault(key, _Attempts())
        attempts.before = attempts.farthest
        attempts.reported = False
        self.running[key] = job
        return job

    def take(self, report: JobEvent, now: float) -> JobEvent:
        """Take the news of a job; return `again` for a failure that is tried again."""
        job = report.job
        key = str(job.out)
        if key not in self.running:
            raise ValueError(f"{report.kind}: {job.name} is not running")
        attempts = self._attempts[key]
        if report.kind == "progress":
            attempts.reported = True
            attempts.farthest = max(attempts.farthest, int(report.status.get("step", -1)))
        if not report.is_end:
            return report
        del self.running[key]
        if report.kind not in ("failed", "lost", "busy"):
            return report
        attempts.count(report.kind)
        if attempts.failures > self.retries or report.status.get("final"):
            self.failed.append(job)
            return JobEvent("failed", job, report.status)
        self._delays += 1
        delay = min(2.0 ** max(attempts.failures, attempts.in_vain), LONGEST_DELAY)
        heapq.heappush(self._delayed, (now + delay, self._delays, job))
        return JobEvent("again", job, {**report.status, "seconds": delay})


def run_jobs(
    jobs: Iterable[Job],
    executor: Executor,
    *,
    retries: int = RETRIES,
    on_event: OnJobEvent = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> list[Job]:
    """Run all jobs and return those that failed; `should_stop` lets the running ones save."""
    queue = Queue(jobs, retries)
    try:
        while queue.unfinished and not should_stop():
            while (job := queue.next(clock())) is not None and executor.room(job):
                executor.start(queue.start())
                on_event(JobEvent("started", job, {}))
            for report in executor.wait(POLL):
                taken = queue.take(report, clock())
                if report.kind != "busy":  # another process writes there
                    _write_failure(taken)
                on_event(taken)
    finally:
        for report in executor.stop():
            queue.take(report, clock())
            on_event(JobEvent("stopped", report.job, {}) if report.kind == "lost" else report)
    return queue.failed


def _write_failure(report: JobEvent) -> None:
    """Write the decision about a failed run to its status.json."""
    run = RunDirectory(report.job.out)
    if report.kind in ("again", "failed") and run.exists:
        state = "failed" if report.kind == "failed" else "waiting"
        with suppress(RollinError):  # a directory that cannot be written may be why it failed
            run.write_status(state, error=report.status.get("error", ""))
