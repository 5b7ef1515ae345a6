"""The far end of a cluster: does one run at a time, tells how it stands, sends its files."""

import shutil
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollin import __version__
from rollin.errors import RollinError, told
from rollin.runs.spec import RunSpec
from rollin.runs.transfer import Piece, Sender, receive

FETCH_SECONDS = 120.0  # between two times that a run's files are sent

Task = tuple[RunSpec[Any], str, str, str]
"""A spec, the sweep's directory for it, the command, and the version that sends it."""


@dataclass(frozen=True)
class News:
    """What is new of a run: its status, and files if they are fetched."""

    status: dict[str, Any] | None
    pieces: list[Piece]
    fetched: bool
    host: str


@dataclass(frozen=True)
class End:
    """How a run ended: finished, stopped or failed."""

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

    def run(self, task: Task, files: list[Any], storage: str, mark: tuple[str, str]) -> End:
        """Do a run where its directory is, or beside and send its files."""
        with self._news:
            self._status, self._pieces, self._ended = None, [], False
        try:
            return self._run(task, files, storage, mark)
        finally:
            with self._news:
                self._ended = True
                self._news.notify_all()

    def _run(self, task: Task, files: list[Any], storage: str, mark: tuple[str, str]) -> End:
        shared = storage == "shared" or (storage == "auto" and _sees(*mark))
        if shared:
            self._sender = None
            return self._train(task, Path(task[1]))
        scratch = Path(tempfile.mkdtemp(prefix="rollin-run-"))
        try:
            directory = scratch / "run"
            _unpack(directory, files)
            self._sender, self._sent = Sender(directory, same=True), time.monotonic()
            end = self._train(task, directory)
            return End(end.kind, end.status, list(self._sender.pieces()))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _train(self, task: Task, directory: Path) -> End:
        from threadpoolctl import threadpool_limits

        from rollin.runs.driver import run

        spec, _, command, version = task
        if version != __version__:
            where = socket.gethostname()
            error = f"rollin {__version__} is installed on {where}, the sweep is of {version}"
            return End("failed", {"error": error})
        try:
            with threadpool_limits(1):
                done = run(spec, directory, command, self._tell, lambda: self._stop)
        except Exception as error:  # one bad run must not end the sweep
            text = str(error) if isinstance(error, RollinError) else told(error)
            return End("failed", {"error": text})
        return End("finished" if done else "stopped")

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


def _unpack(directory: Path, files: list[Any]) -> None:
    """The files that the sweep has of a run, which are read one by one."""
    if not files:
        return
    import ray

    receive(directory, (ray.get(file) for file in files))
