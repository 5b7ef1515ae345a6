"""Runs jobs on the cores of this machine: persistent worker processes, one run each at a time.

Workers are spawned, use one BLAS thread, and report over a pipe. A worker that dies takes only its
current run with it. A run is begun only if its memory is free.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from rollin.checks import at_least, one_of
from rollin.errors import RollinError
from rollin.runs.engines import engine_of
from rollin.runs.spec import Job, JobEvent
from rollin.runs.systems import CAN_ASK_TO_LEAVE, STOPS
from rollin.sweeps.machine import cores, free_memory, one_thread_each
from rollin.sweeps.queue import Executor, attempt

Backend = Literal["local", "ray"]
GRACE_SECONDS = 60.0  # that a stopped worker may take to end its episode and save


@dataclass
class _Worker:
    process: BaseProcess
    pipe: "Connection[Any, Any]"
    job: Job | None = None


def executor(
    out: Path, command: str, jobs: int | None, backend: Backend = "local", **where: Any
) -> Callable[[], Executor]:
    """Return a function that makes the place where runs are done.

    jobs: runs at the same time (default: all cores, or all that a cluster has room for). where:
    address, storage and gpus of a Ray cluster.
    """
    one_of("backend", backend, ("local", "ray"))
    if backend == "local":
        if where:
            raise RollinError(f"{', '.join(where)} belong to the backend ray.")
        return lambda: LocalExecutor(jobs or cores(), command)
    from rollin.sweeps.cluster import RayExecutor

    return lambda: RayExecutor(out, command, where.pop("address", None), jobs, **where)


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
        """Give a job to a free worker, or to a new one."""
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
            self._receive(worker)
            for worker in busy
            if worker.pipe.poll() or not worker.process.is_alive()
        ]

    def _receive(self, worker: _Worker) -> JobEvent:
        """The next news of a worker; one that is gone, or left unasked, has lost its job."""
        job = worker.job
        assert job is not None
        try:
            kind, status = worker.pipe.recv() if worker.pipe.poll() else ("lost", {})
        except (EOFError, OSError):
            kind, status = "lost", {}
        if kind == "stopped":
            kind, status = "lost", {"error": "the worker process received a signal to end"}
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
                news.append(_last_event(worker, worker.job))
        self._pool.clear()
        return news

    def _new_worker(self) -> _Worker:
        pipe, far_end = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(far_end, self.command), daemon=True)
        with one_thread_each(), ignore_interrupts():
            process.start()
        far_end.close()
        return _Worker(process, pipe)


def _memory(job: Job) -> int:
    return engine_of(job.spec).demands(job.spec).memory


def _last_event(worker: _Worker, job: Job) -> JobEvent:
    """How a job ended whose worker was stopped: it may have finished or failed just then."""
    last = JobEvent("stopped", job, {})
    with suppress(EOFError, OSError):
        while worker.pipe.poll():
            kind, status = worker.pipe.recv()
            last = JobEvent(kind, job, status)
    return last if last.is_end else JobEvent("stopped", job, last.status)


@contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Processes that are started inside ignore Ctrl-C, also while they still import."""
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
    """A worker: do jobs from the pipe until it closes or sends None, or until SIGTERM."""
    stop = False

    def ask_to_stop(signum: int, frame: Any) -> None:
        nonlocal stop
        stop = True
        if idle:
            raise SystemExit(0)

    def report(status: dict[str, Any]) -> None:
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
            pipe.send(attempt(job, command, report, lambda: stop))
            idle = True
