"""Runs jobs on the cores of this machine: persistent worker processes, one run each at a time.

Workers are spawned, use one BLAS thread, and report over a pipe. A worker that dies takes only its
current run with it. A run is begun only if the memory that it will take is there.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from rollin.checks import at_least
from rollin.runs.engines import engine_of
from rollin.runs.systems import CAN_ASK_TO_LEAVE, STOPS
from rollin.sweeps.jobs import Job, JobEvent
from rollin.sweeps.machine import free_memory

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
GRACE_SECONDS = 60.0  # that a stopped worker may take to end its episode and save


@dataclass
class _Worker:
    process: BaseProcess
    pipe: "Connection[Any, Any]"
    job: Job | None = None


class LocalExecutor:
    """`workers` runs at a time, fewer if they would take more than `memory` bytes together."""

    def __init__(self, workers: int, command: str = "", memory: int | None = None) -> None:
        self.workers = at_least(1, "--jobs", workers)
        self.command = command
        self.memory = free_memory() if memory is None else memory
        self._context = multiprocessing.get_context("spawn")
        self._pool: list[_Worker] = []

    def room(self, job: Job) -> bool:
        """Whether a worker is free, and memory; one run is always let in."""
        busy = [worker.job for worker in self._pool if worker.job is not None]
        taken = sum(_memory(other) for other in busy)
        fits = taken + _memory(job) <= self.memory
        return not busy or (len(busy) < self.workers and fits)

    def start(self, job: Job) -> None:
        """Hand a job to a free worker, or to a new one in the place of a dead one."""
        self._pool = [w for w in self._pool if w.job is not None or w.process.is_alive()]
        worker = next((w for w in self._pool if w.job is None), None)
        if worker is None:
            worker = self._new_worker()
            self._pool.append(worker)
        worker.job = job
        with suppress(OSError):  # a worker that died meanwhile is noticed by its pipe
            worker.pipe.send(job)

    def wait(self, seconds: float) -> list[JobEvent]:
        """News of the workers."""
        busy = [worker for worker in self._pool if worker.job is not None]
        if not busy:
            time.sleep(seconds)
            return []
        # a process that is gone may have left its pipe open to a child of its own
        wait([w for worker in busy for w in (worker.pipe, worker.process.sentinel)], seconds)
        return [
            self._hear(worker)
            for worker in busy
            if worker.pipe.poll() or not worker.process.is_alive()
        ]

    def _hear(self, worker: _Worker) -> JobEvent:
        """The next news of a worker; one that is gone, or leaves unasked, has lost its job."""
        job = worker.job
        assert job is not None
        try:
            kind, status = worker.pipe.recv() if worker.pipe.poll() else ("lost", {})
        except (EOFError, OSError):
            kind, status = "lost", {}
        if kind == "stopped":
            kind, status = "lost", {"error": "the worker process was told to leave"}
        if kind == "lost":
            self._pool.remove(worker)
            worker.process.join(0 if status else None)
            code = worker.process.exitcode
            status = status or {"error": f"the worker process died (exit code {code})"}
        report = JobEvent(kind, job, status)
        if report.is_end:
            worker.job = None
        return report

    def stop(self) -> list[JobEvent]:
        """Have all workers save and leave."""
        for worker in self._pool:
            if CAN_ASK_TO_LEAVE and worker.process.is_alive():
                worker.process.terminate()  # SIGTERM: checkpoint and leave
            elif worker.process.is_alive():
                with suppress(OSError):  # it has just left
                    worker.pipe.send(None)
        deadline = time.monotonic() + GRACE_SECONDS
        news: list[JobEvent] = []
        for worker in self._pool:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
            if worker.job is not None:
                news.append(_last_word(worker, worker.job))
        self._pool.clear()
        return news

    def _new_worker(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self.command), daemon=True)
        with one_thread_each(), ignore_interrupts():
            process.start()
        theirs.close()
        return _Worker(process, ours)


def _memory(job: Job) -> int:
    return engine_of(job.spec).demands(job.spec).memory


def _last_word(worker: _Worker, job: Job) -> JobEvent:
    """How a job ended whose worker was stopped: it may have finished or failed just then."""
    last = JobEvent("stopped", job, {})
    with suppress(EOFError, OSError):
        while worker.pipe.poll():
            kind, status = worker.pipe.recv()
            last = JobEvent(kind, job, status)
    return last if last.is_end else JobEvent("stopped", job, last.status)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes that are started inside use one BLAS thread each."""
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
def ignore_interrupts() -> Iterator[None]:
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


def _serve(pipe: "Connection[Any, Any]", command: str) -> None:
    """A worker: take jobs from the pipe until it closes, None or SIGTERM comes."""
    from rollin.sweeps.attempt import attempt

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
            stop = stop or pipe.poll()  # nothing but the wish to stop comes while a run is on
        except OSError:  # the parent is gone: save what there is and leave
            stop = True

    idle = True
    for number in STOPS:  # the parent decides what the others mean
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, ask_to_stop)
    with suppress(EOFError, OSError):  # the parent is gone
        while not stop:
            job: Job | None = pipe.recv()
            if job is None:
                return
            idle = False
            pipe.send(attempt(job.spec, job.out, command, tell, lambda: stop, job.of, job.until))
            idle = True
