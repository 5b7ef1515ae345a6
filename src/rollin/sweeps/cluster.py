"""Runs jobs on a Ray cluster: one actor for each, with the cores, GPUs and memory that it takes.

A run writes into the sweep's directory if its machine sees it; otherwise into a local one, whose
files are fetched at intervals. A run whose machine is lost resumes on another from its checkpoint.
"""

import os
import re
import secrets
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rollin import __version__
from rollin.checks import at_least, positive
from rollin.errors import RollinError, install_hint, reason
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import Demands, engine_of
from rollin.runs.files import TEMPORARY, make_directory, write_atomically
from rollin.runs.spec import EventKind, Job, JobEvent
from rollin.sweeps.cluster_worker import FETCH_SECONDS, News, RunWorker, Sender, receive
from rollin.sweeps.machine import cores

Storage = Literal["auto", "shared", "fetch"]

ANSWER_SECONDS = 5.0  # that a cluster may take to answer at its address
GRACE_SECONDS = 60.0  # that stopped runs may take to save and to be fetched
LOOK_SECONDS = 2.0  # between two looks at what machines there are
NEWS_A_SECOND = 200  # that this process receives of all runs together
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The first bytes of a client of Ray's protocol; a server answers with a frame of type 4."""


@dataclass
class _Running:
    """A run on the cluster: its actor, and the references to its result and its next news."""

    actor: Any
    demands: Demands
    job: Job
    result: Any
    news: Any
    reported: bool = False


class RayExecutor:
    """As many runs at a time as the cluster has room for, or `limit`."""

    def __init__(
        self,
        out: Path,
        command: str = "",
        address: str | None = None,
        limit: int | None = None,
        *,
        gpus: float = 1.0,
        storage: Storage = "auto",
        fetch_seconds: float = FETCH_SECONDS,
    ) -> None:
        self.out = out.resolve()
        self.command = command
        self.limit = None if limit is None else at_least(1, "--jobs", limit)
        self.storage = storage
        self.fetch_seconds = fetch_seconds
        self._ray = _import_ray()
        self._own = not self._ray.is_initialized()
        connect(self._ray, address or os.environ.get("RAY_ADDRESS"), limit)
        self._gpus = positive("--gpus", gpus) if self._total("GPU") else 0.0
        self._running: list[_Running] = []
        self._idle: list[tuple[Demands, Any]] = []
        self._fitted: set[Demands] = set()  # what a machine was ever large enough for
        self._unsent: list[JobEvent] = []  # failures of jobs that could not be sent
        self._token = secrets.token_hex(8)
        self._mark = self.out / f"{TEMPORARY}storage-{self._token}"
        self._looked = -float("inf")
        self._nodes: list[dict[str, float]] = []

    # -------------------------------------------------------------- what the schedule asks for

    def room(self, job: Job) -> bool:
        """Whether the cluster can take one more.

        A job that no machine was ever large enough for is let in and fails; if there was one, it
        may come back.
        """
        if self.limit is not None:
            return len(self._running) < self.limit
        demands = engine_of(job.spec).demands(job.spec, self._gpus)
        slots = self._slots(demands)
        if slots:
            self._fitted.add(demands)
        return len(self._running) < slots or not (slots or demands in self._fitted)

    def start(self, job: Job) -> None:
        """Send a job to an actor, with its files if they are fetched."""
        demands = engine_of(job.spec).demands(job.spec, self._gpus)
        if self.limit is None and not self._slots(demands):
            error = (
                f"no machine of the Ray cluster has room for a run of {job.spec.task}, which takes "
                f"{demands}: add a larger one, or give --jobs to wait for it"
            )
            self._unsent.append(JobEvent("failed", job, {"error": error}))
            return
        try:
            if not self._mark.exists():
                make_directory(self.out)
                write_atomically(self._mark, self._token.encode())
            actor = self._actor(demands)
            result = self._send(actor, job, with_files=self.storage == "fetch")
        except (RollinError, OSError) as error:
            self._unsent.append(JobEvent("failed", job, {"error": str(error)}))
            return
        self._running.append(_Running(actor, demands, job, result, actor.news.remote()))

    def _send(self, actor: Any, job: Job, *, with_files: bool) -> Any:
        """Have an actor do a job; return the reference to its end."""
        files: list[Any] | None = None
        if with_files:
            pieces = Sender(job.out).pieces() if job.out.is_dir() else ()
            files = [self._ray.put(piece) for piece in pieces]
        task = (replace(job, out=job.out.resolve()), self.command, __version__)
        return actor.run.remote(task, files, self.storage, (str(self._mark), self._token))

    def wait(self, seconds: float) -> list[JobEvent]:
        """News of all runs."""
        self._end_idle()
        reports, self._unsent = self._unsent, []
        if not self._running:
            time.sleep(0 if reports else seconds)
            return reports
        awaited = [ref for r in self._running for ref in (r.news, r.result)]
        ready, _ = self._ray.wait(awaited, num_returns=len(awaited), timeout=0)
        if not ready:
            ready, _ = self._ray.wait(awaited, num_returns=1, timeout=0 if reports else seconds)
        ready = set(ready)
        for running in list(self._running):
            if running.news in ready or running.result in ready:
                reports += self._receive(running, ended=running.result in ready)
        return reports

    def stop(self) -> list[JobEvent]:
        """Have all runs save, fetch what they have, and leave the cluster."""
        reports: list[JobEvent] = []
        for running in list(self._running):
            running.actor.stop.remote()
            if not running.reported:  # it may be waiting for a machine, and has nothing to save
                reports.append(self._give_up(running, "stopped", {}))
        deadline = time.monotonic() + GRACE_SECONDS
        try:
            while self._running and time.monotonic() < deadline:
                reports += [report for report in self.wait(0.2) if report.is_end]
        finally:
            reports += [self._give_up(running, "stopped", {}) for running in list(self._running)]
            self._end_idle()
            self._mark.unlink(missing_ok=True)
            if self._own:
                self._ray.shutdown()
        return [*reports, *self._unsent]

    # -------------------------------------------------------------- actors

    def _actor(self, demands: Demands) -> Any:
        """An idle actor with these demands, or a new one."""
        for i, (theirs, actor) in enumerate(self._idle):
            if theirs == demands:
                del self._idle[i]
                return actor
        self._end_idle()
        every = max(1.0, self._slots(demands) / NEWS_A_SECOND)
        make = self._ray.remote(RunWorker).options(
            num_cpus=demands.cpus,
            num_gpus=demands.gpus,
            memory=demands.memory,
            max_concurrency=3,  # the run, its news, and the request to stop
            max_restarts=0,
        )
        return make.remote(every, self.fetch_seconds)

    def _end_idle(self) -> None:
        """End idle actors, whose cores another may be waiting for."""
        for _, actor in self._idle:
            self._ray.kill(actor)
        self._idle.clear()

    def _receive(self, running: _Running, *, ended: bool) -> list[JobEvent]:
        """Take the news of an actor, and its end if it has ended."""
        try:
            news = self._ray.get(running.news)
            result = self._ray.get(running.result) if ended else None
        except self._ray.exceptions.RayError as error:
            return [self._give_up(running, "lost", {"error": _lost(error)})]
        try:
            reports = self._take_news(running, news)
            if result is None:
                running.news = running.actor.news.remote()
                return reports
            if result.kind == "files":  # it does not see the sweep's directory
                running.result = self._send(running.actor, running.job, with_files=True)
                running.news = running.actor.news.remote()
                return reports
            receive(running.job.out, result.pieces)
        except (RollinError, OSError) as error:  # of this run's files; the others continue
            return [self._give_up(running, "failed", {"error": str(error)})]
        self._running.remove(running)
        self._idle.append((running.demands, running.actor))
        return [*reports, JobEvent(result.kind, running.job, result.status)]

    def _take_news(self, running: _Running, news: News) -> list[JobEvent]:
        receive(running.job.out, news.pieces)
        if news.status is None:
            return []
        running.reported = True
        run = RunDirectory(running.job.out)
        if news.fetched and run.exists:
            run.write_status("running", **{**news.status, "host": news.host})
        return [JobEvent("progress", running.job, news.status)]

    def _give_up(self, running: _Running, kind: EventKind, status: dict[str, Any]) -> JobEvent:
        """End an actor in any state, and return the end of its job."""
        self._running.remove(running)
        with suppress(Exception):  # it may be gone already
            self._ray.kill(running.actor)
        return JobEvent(kind, running.job, status)

    # -------------------------------------------------------------- machines

    def _slots(self, demands: Demands) -> int:
        """Runs of one kind that all machines have room for together."""
        self._update_nodes()
        wanted = {"CPU": demands.cpus, "GPU": demands.gpus, "memory": demands.memory}
        return sum(
            int(min(node.get(name, 0) / amount for name, amount in wanted.items() if amount))
            for node in self._nodes
        )

    def _update_nodes(self) -> None:
        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS:
            self._looked = now
            self._nodes = [n["Resources"] for n in self._ray.nodes() if n["Alive"]]

    def _total(self, name: str) -> float:
        return float(self._ray.cluster_resources().get(name, 0))


def connect(ray: Any, address: str | None, limit: int | None) -> None:
    """Join the cluster at an address, or start one on this machine if there is none."""
    if ray.is_initialized():
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        # address: one that is here already would be joined, and knows its own cores
        ray.init(address="local", num_cpus=limit or cores(), include_dashboard=False, **quiet)
        return
    _probe(address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, TimeoutError, ValueError) as error:
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise _silent(address, first.partition(". ")[0].rstrip(".")) from error


def _probe(address: str) -> None:
    """Refuse an address where nothing listens, instead of trying for minutes."""
    if address == "auto":
        return
    host, colon, port = address.rpartition("/")[2].rpartition(":")
    if not (host and colon and port.isdigit()):
        raise RollinError(f"--address must be auto, host:port or ray://host:port, got {address!r}.")
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS) as connection:
            connection.sendall(HTTP2)
            answer = connection.recv(9)
    except (OSError, OverflowError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise _silent(address, why) from error
    if len(answer) < 9 or answer[3] != 4:
        raise _silent(address, "something else than Ray listens there")


def _silent(address: str, why: str) -> RollinError:
    return RollinError(
        f"The Ray cluster at the address {address} does not answer ({why}): is its head node "
        "running (`ray start --head`), and can it be reached from here?"
    )


def _lost(error: Exception) -> str:
    """Why an actor is gone, in a line: Ray's reason, and an error of the actor if there is one."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines()]
    why = [line for line in lines if line.startswith("The actor")] or [type(error).__name__]
    own = [line for line in lines if re.match(r"[A-Za-z.]*(Error|Exception): ", line)]
    found = "; ".join(part.rstrip(".:") for part in (why[-1].partition(", ray::")[0], *own[-1:]))
    return f"its machine or process was lost: {found}"


def _import_ray() -> Any:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    tokens = ("RAY_AUTH_TOKEN" in os.environ, "RAY_AUTH_TOKEN_PATH" in os.environ,
              (Path.home() / ".ray" / "auth_token").exists())  # fmt: skip
    if any(tokens) and "ray" not in sys.modules:  # it is read when Ray is imported
        os.environ.setdefault(
            "RAY_AUTH_MODE", "token"
        )  # else a cluster at an address does not receive it
    try:
        import ray
    except ImportError as error:
        raise RollinError(
            f"--backend ray needs Ray, which is not installed: {install_hint('ray')}."
        ) from error
    return ray
