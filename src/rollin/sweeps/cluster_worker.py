"""The far end of a cluster: does one run at a time, tells how it stands, sends its files."""

import os
import shutil
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from rollin import __version__
from rollin.runs.spec import Membership, RunSpec
from rollin.runs.systems import is_alive
from rollin.sweeps.attempt import attempt
from rollin.sweeps.transfer import Piece, Sender, receive

SCRATCH = "rollin-run-"  # how directories of runs begin whose files are sent
FETCH_SECONDS = 120.0  # between two times that a run's files are sent

Assignment = tuple[RunSpec[Any], str, str, str, Membership | None, int | None]
"""A spec, the sweep's directory for it, the command, the version that sends it, its condition, and
the step at which it stops for now."""


@dataclass(frozen=True)
class News:
    """What is new of a run: its status, and files if they are fetched."""

    status: dict[str, Any] | None
    pieces: list[Piece]
    fetched: bool
    host: str


@dataclass(frozen=True)
class End:
    """How a run ended: finished, stopped, failed or busy; `files` if it has to have them first."""

    kind: str
    status: dict[str, Any] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)


class RunWorker:
    """An actor: `run` is called with a job, `news` and `stop` from other threads meanwhile.

    every: seconds between two news.
    """

    def __init__(self, every: float, fetch_seconds: float) -> None:
        self._every, self._fetch_seconds = every, fetch_seconds
        self._news = threading.Condition()
        self._status: dict[str, Any] | None = None
        self._pieces: list[Piece] = []
        self._ended = False
        self._stop = False
        self._sender: Sender | None = None
        self._sent = 0.0

    def run(
        self, task: Assignment, files: list[Any] | None, storage: str, mark: tuple[str, str]
    ) -> End:
        """Do a run where its directory is, or beside, and send its files.

        files: what the sweep has of the run; None if it is not known whether they are needed.
        """
        with self._news:
            self._status, self._pieces, self._ended = None, [], False
        try:
            if storage == "shared" or (storage == "auto" and _sees(*mark)):
                self._sender = None
                return self._train(task, Path(task[1]))
            return End("files") if files is None else self._run_beside(task, files)
        finally:
            with self._news:
                self._ended = True
                self._news.notify_all()

    def _run_beside(self, task: Assignment, files: list[Any]) -> End:
        _tidy_scratch()
        scratch = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-"))
        try:
            directory = scratch / "run"
            _unpack(directory, files)
            self._sender, self._sent = Sender(directory, same=True), time.monotonic()
            end = self._train(task, directory)
            return End(end.kind, end.status, list(self._sender.pieces()))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _train(self, task: Assignment, directory: Path) -> End:
        spec, _, command, version, of, until = task
        if version != __version__:
            where = socket.gethostname()
            error = f"rollin {__version__} is installed on {where}, the sweep is of {version}"
            return End("failed", {"error": error})
        with threadpool_limits(1):
            kind, status = attempt(
                spec, directory, command, self._tell, lambda: self._stop, of, until
            )
        status.pop("final", None)  # another machine may have what this one lacks
        return End(kind, status)

    def _tell(self, status: dict[str, Any]) -> None:
        """Called by the run between two steps, when all its files are whole."""
        pieces: list[Piece] = []
        if self._sender is not None and time.monotonic() - self._sent > self._fetch_seconds:
            pieces, self._sent = list(self._sender.pieces()), time.monotonic()
        with self._news:
            self._status = status
            self._pieces += pieces
            self._news.notify_all()

    def news(self) -> News:
        """What is new, not too often; at once when the run has ended."""
        with self._news:
            self._news.wait_for(lambda: self._ended, timeout=self._every)
            self._news.wait_for(lambda: self._ended or self._status is not None, timeout=60.0)
            found = News(self._status, self._pieces, self._sender is not None, socket.gethostname())
            self._status, self._pieces = None, []
            return found

    def stop(self) -> None:
        """Have the run save and leave."""
        self._stop = True


def _sees(path: str, token: str) -> bool:
    """Whether the sweep's directory is the one that is seen from here."""
    try:
        return Path(path).read_text() == token
    except OSError:
        return False


def _tidy_scratch() -> None:
    """Delete what runs have left whose process was killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        owner = path.name.removeprefix(SCRATCH).partition("-")[0]
        if owner.isdigit() and not is_alive(int(owner)):
            shutil.rmtree(path, ignore_errors=True)


def _unpack(directory: Path, files: list[Any]) -> None:
    """The files that the sweep has of a run, which are read one by one."""
    if not files:
        return
    import ray

    receive(directory, (ray.get(file) for file in files))
