"""Runs many jobs wherever there is room: each once, tried again where that helps, none forgotten.

What runs a job may be this machine or a cluster (`Executor`); what is decided here is the order,
what happens after a failure, and when all is done.
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from rollin.checks import at_least
from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.sweeps.jobs import Executor, Job, JobEvent, OnJobEvent

POLL = 0.2  # seconds between two looks at whether to stop
LONGEST_DELAY = 60.0  # seconds before another attempt
UNBEGUN = 10  # losses of a run before its first step that are forgiven in a row

RETRIES = 2


@dataclass
class _Attempts:
    """What is known of a job that was begun: failures that count, and the farthest step seen."""

    failures: int = 0
    in_vain: int = 0  # attempts in a row that came to nothing, whosever fault that was
    farthest: int = -1
    before: int = -1  # the farthest step when it was last started
    heard: bool = False  # of the attempt under way

    def count(self, kind: str) -> None:
        """Take note of an end that is not the run's last."""
        gained = self.farthest > self.before
        self.in_vain = 0 if gained else self.in_vain + 1
        its_own = self.heard or self.in_vain > UNBEGUN
        if kind == "failed" or (kind == "lost" and not gained and its_own):
            self.failures += 1


class Queue:
    """The jobs that wait, run, have ended or failed.

    A job whose run raised an error is tried again `retries` times, unless that was final. One that
    was lost with its worker or machine is tried again as long as it gets farther each time; a loss
    without progress counts as a failure, so that a run that kills its machine comes to an end, too.
    One that another process has is looked at again until that is done with it.
    """

    def __init__(self, jobs: Iterable[Job], retries: int = RETRIES) -> None:
        self.retries = at_least(0, "--retries", retries)
        self.running: dict[str, Job] = {}
        self.failed: list[Job] = []
        self._waiting = deque(jobs)
        self._delayed: list[tuple[float, int, Job]] = []  # until when, number, job
        self._attempts: dict[str, _Attempts] = {}
        self._delays = 0
        names = [str(job.out) for job in self._waiting]
        if len(set(names)) < len(names):
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
        attempts.before, attempts.heard = attempts.farthest, False
        self.running[key] = job
        return job

    def take(self, report: JobEvent, now: float) -> JobEvent:
        """Note the news of a job; a failure that is tried again comes back as `again`."""
        job, key = report.job, str(report.job.out)
        if key not in self.running:
            raise ValueError(f"{report.kind}: {job.name} is not running")
        attempts = self._attempts[key]
        if report.kind == "progress":
            attempts.heard = True
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
                    _note(taken)
                on_event(taken)
    finally:
        for report in executor.stop():
            queue.take(report, clock())
            on_event(JobEvent("stopped", report.job, {}) if report.kind == "lost" else report)
    return queue.failed


def _note(report: JobEvent) -> None:
    """Write what was decided on a run that failed, for whoever looks from outside."""
    if report.kind in ("again", "failed") and RunDirectory(report.job.out).exists:
        state = "failed" if report.kind == "failed" else "waiting"
        with suppress(RollinError):  # a directory that cannot be written may be why it failed
            RunDirectory(report.job.out).write_status(state, error=report.status.get("error", ""))
