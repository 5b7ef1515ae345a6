"""Runs many specs on the cores of one machine: persistent worker processes, one run each at a time.

Workers are spawned, use one BLAS thread, and report over a pipe. A worker that dies takes only its
current run with it: the run is reported as failed and a new worker takes the next one.
"""

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from rollin.checks import at_least
from rollin.errors import RollinError
from rollin.runs.spec import RunSpec
from rollin.runs.store import RunDirectory

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
GRACE_SECONDS = 15.0  # how long a stopped worker may take to write its checkpoint


@dataclass(frozen=True)
class Job:
    """A spec and the directory it runs in."""

    name: str
    spec: RunSpec[Any]
    out: Path


@dataclass(frozen=True)
class Report:
    """News of a job: kind is started, progress, finished, stopped or failed."""

    kind: str
    job: Job
    status: dict[str, Any]


OnReport = Callable[[Report], None]


@dataclass
class _Worker:
    process: BaseProcess
    pipe: "Connection[Any, Any]"
    job: Job | None = None


def run_jobs(
    jobs: list[Job],
    workers: int,
    command: str = "",
    on_report: OnReport = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Job]:
    """Run all jobs and return those that failed; `should_stop` lets the running ones checkpoint."""
    at_least(1, "The number of jobs", workers)
    queue = deque(jobs)
    failed: list[Job] = []
    context = multiprocessing.get_context("spawn")
    pool = [_start(context, command) for _ in range(min(workers, len(jobs)))]
    try:
        while not should_stop():
            for worker in pool:
                if worker.job is None and queue:
                    worker.job = queue.popleft()
                    with suppress(OSError):  # a worker that died meanwhile is noticed below
                        worker.pipe.send(worker.job)
                    on_report(Report("started", worker.job, {}))
            busy = [worker for worker in pool if worker.job is not None]
            if not busy:
                break
            ready = wait([worker.pipe for worker in busy], timeout=0.2)
            for i, worker in enumerate(pool):
                if worker.pipe not in ready or worker.job is None:
                    continue
                report = _receive(worker)
                if report.kind == "failed":
                    failed.append(worker.job)
                if report.kind != "progress":
                    worker.job = None
                on_report(report)
                if not worker.process.is_alive():
                    pool[i] = _start(context, command)
    finally:
        _shut_down(pool, on_report)
    return failed


def _receive(worker: _Worker) -> Report:
    assert worker.job is not None
    try:
        kind, status = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join()
        error = f"the worker process died (exit code {worker.process.exitcode})"
        if RunDirectory(worker.job.out).exists:
            RunDirectory(worker.job.out).write_status("failed", error=error)
        return Report("failed", worker.job, {"error": error})
    return Report(kind, worker.job, status)


def _start(context: Any, command: str) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, command), daemon=True)
    with _one_thread_each(), _ignore_interrupts():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """A child inherits that it ignores Ctrl-C, so that none can hit it while it still imports."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not in the main thread: nothing to shield
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _shut_down(pool: list[_Worker], on_report: OnReport) -> None:
    for worker in pool:
        if worker.process.is_alive():
            worker.process.terminate()  # SIGTERM: checkpoint and leave
    deadline = time.monotonic() + GRACE_SECONDS
    for worker in pool:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
        if worker.job is not None:
            on_report(Report("stopped", worker.job, {}))


def _serve(pipe: "Connection[Any, Any]", command: str) -> None:
    """A worker: take jobs from the pipe until it closes or SIGTERM comes."""
    from rollin.runs.driver import run

    stop = False

    def ask_to_stop(signum: int, frame: Any) -> None:
        nonlocal stop
        stop = True
        if idle:
            raise SystemExit(0)

    def tell(status: dict[str, Any]) -> None:
        nonlocal stop
        try:
            pipe.send(("progress", status))
        except OSError:  # the parent is gone: save what there is and leave
            stop = True

    idle = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    signal.signal(signal.SIGTERM, ask_to_stop)
    while not stop:
        try:
            job: Job = pipe.recv()
        except EOFError:
            return
        idle = False
        try:
            done = run(
                job.spec,
                job.out,
                command,
                on_status=tell,
                should_stop=lambda: stop,
            )
            pipe.send(("finished" if done else "stopped", {}))
        except BrokenPipeError:
            return
        except Exception as error:  # one bad run must not end the sweep
            text = (
                str(error) if isinstance(error, RollinError) else f"{type(error).__name__}: {error}"
            )
            pipe.send(("failed", {"error": text}))
        idle = True
