"""An actor on a cluster: does one run at a time, and sends its status and its files.

Only what is new of a run directory is sent. Files that grow (rows of a CSV, of the replay, of
events) are sent from where the copy ends; all others whole. The order lets a run resume from a copy
that is cut off at any moment: config.json, rows, a checkpoint's data, its manifest, the result.
"""

import os
import shutil
import socket
import tempfile
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from rollin import __version__
from rollin.errors import RollinError, reason
from rollin.runs.directory import LOCK
from rollin.runs.files import TEMPORARY, make_directory, remove_file, write_atomically
from rollin.runs.spec import Job
from rollin.runs.systems import is_alive
from rollin.sweeps.queue import attempt
from rollin.untrusted import open_regular

GROWING = (".csv", ".f32")
EVENTS = "events.out"
OVERLAP = 1 << 16  # bytes sent again: the last row of a replay may be rewritten
CHUNK = 32 << 20  # bytes of a piece at the most
ORDER = ("state-", "manifest.json", "policy.safetensors", "result.json")
"""Beginnings of the names that come last, in this order."""


@dataclass(frozen=True)
class Piece:
    """Bytes of a file from an offset on; the file ends at `end`. No data: the file is gone."""

    name: str
    offset: int = 0
    end: int = 0
    data: bytes | None = None


@dataclass(frozen=True)
class _Known:
    """A file in the copy: its size, the time of its last change here, its checksum."""

    size: int
    changed: int
    crc: int | None = None


class Sender:
    """Finds what a copy lacks.

    same: whether the copy equals the directory now, because the one was just made from the other.
    """

    def __init__(self, directory: Path, *, same: bool = False) -> None:
        self.directory = directory
        self._known: dict[str, _Known] = {}
        if same:
            for name, path in self._files().items():
                about = path.stat()
                # a resumed run cuts its rows back and may write others in their place
                crc = _checksum(path, about.st_size) if _grows(name) else None
                self._known[name] = _Known(about.st_size, about.st_mtime_ns, crc)

    def pieces(self) -> Iterator[Piece]:
        """What is new since the last call; to be read to the end while the run writes nothing."""
        files = self._files()
        for name in sorted(files, key=_place):
            path = files[name]
            about = path.stat()
            known = self._known.get(name)
            if known and (known.size, known.changed) == (about.st_size, about.st_mtime_ns):
                continue
            begin = self._begin(path, about.st_size, known) if _grows(name) else 0
            yield from _read(path, name, begin, about.st_size)
            self._known[name] = _Known(about.st_size, about.st_mtime_ns)
        for name in self._known.keys() - files.keys():
            del self._known[name]
            yield Piece(name)

    def _begin(self, path: Path, size: int, known: _Known | None) -> int:
        """Where a file that grows differs from its copy, at the earliest."""
        if known is None or size < known.size:
            return 0
        if known.crc is not None and _checksum(path, known.size) != known.crc:
            return 0
        return max(0, known.size - OVERLAP)

    def _files(self) -> dict[str, Path]:
        return {
            path.relative_to(self.directory).as_posix(): path
            for path in self.directory.rglob("*")
            if path.is_file() and path.name != LOCK and not path.name.startswith(TEMPORARY)
        }


def receive(directory: Path, pieces: Iterable[Piece]) -> None:
    """Bring a copy up to date."""
    for piece in pieces:
        path = directory / piece.name
        if piece.data is None:
            remove_file(path)
            if path.parent != directory and not any(path.parent.iterdir()):
                path.parent.rmdir()
            continue
        make_directory(path.parent)
        if not _grows(piece.name) and len(piece.data) == piece.end:
            write_atomically(path, piece.data)
            continue
        try:
            with open(open_regular(path, os.O_RDWR | os.O_CREAT), "r+b") as file:
                file.seek(piece.offset)
                file.write(piece.data)
                file.truncate()
                if piece.offset + len(piece.data) == piece.end:
                    file.flush()
                    os.fsync(file.fileno())  # a manifest that counts these rows comes after them
        except OSError as error:
            raise RollinError(f"{path} could not be written: {reason(error)}.") from error


def _grows(name: str) -> bool:
    return name.endswith(GROWING) or EVENTS in name


def _place(name: str) -> tuple[int, str]:
    """A key for the order of sending."""
    last = Path(name).name
    if last == "config.json":
        return -2, name
    if _grows(name):
        return -1, name
    return next((i + 1 for i, start in enumerate(ORDER) if last.startswith(start)), 0), name


def _read(path: Path, name: str, begin: int, end: int) -> Iterator[Piece]:
    with path.open("rb") as file:
        file.seek(begin)
        at = begin
        while True:
            data = file.read(min(CHUNK, end - at))
            yield Piece(name, at, end, data)
            at += len(data)
            if at >= end or not data:
                return


def _checksum(path: Path, size: int) -> int:
    crc = 0
    with path.open("rb") as file:
        while size > 0 and (data := file.read(min(CHUNK, size))):
            crc = zlib.crc32(data, crc)
            size -= len(data)
    return crc


# ------------------------------------------------------------------ the actor


SCRATCH = "rollin-run-"  # how directories of runs begin whose files are sent
FETCH_SECONDS = 120.0  # between two times that a run's files are sent

Assignment = tuple[Job, str, str]
"""A job, the command, and the version of rollin that sends it."""


@dataclass(frozen=True)
class News:
    """News of a run: its status, and files if they are fetched."""

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
        self._every = every
        self._fetch_seconds = fetch_seconds
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
        """Do a run in its directory, or in a local one whose files are sent.

        files: the run's files so far; None if it is not known whether they are needed.
        """
        with self._news:
            self._status, self._pieces, self._ended = None, [], False
        try:
            if storage == "shared" or (storage == "auto" and _sees(*mark)):
                self._sender = None
                return self._train(task, task[0].out)
            return End("files") if files is None else self._run_locally(task, files)
        finally:
            with self._news:
                self._ended = True
                self._news.notify_all()

    def _run_locally(self, task: Assignment, files: list[Any]) -> End:
        _tidy_scratch()
        scratch = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-"))
        try:
            directory = scratch / "run"
            _unpack(directory, files)
            self._sender = Sender(directory, same=True)
            self._sent = time.monotonic()
            end = self._train(task, directory)
            return End(end.kind, end.status, list(self._sender.pieces()))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _train(self, task: Assignment, directory: Path) -> End:
        job, command, version = task
        if version != __version__:
            where = socket.gethostname()
            error = f"rollin {__version__} is installed on {where}, the sweep is of {version}"
            return End("failed", {"error": error})
        with threadpool_limits(1):
            job = replace(job, out=directory)
            kind, status = attempt(job, command, self._report, lambda: self._stop)
        status.pop("final", None)  # another machine may have what this one lacks
        return End(kind, status)

    def _report(self, status: dict[str, Any]) -> None:
        """Called by the run between two steps, when all its files are complete."""
        pieces: list[Piece] = []
        if self._sender is not None and time.monotonic() - self._sent > self._fetch_seconds:
            pieces = list(self._sender.pieces())
            self._sent = time.monotonic()
        with self._news:
            self._status = status
            self._pieces += pieces
            self._news.notify_all()

    def news(self) -> News:
        """Wait for news and return them; at once when the run has ended."""
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
    """Whether the sweep's directory is visible here."""
    try:
        return Path(path).read_text() == token
    except OSError:
        return False


def _tidy_scratch() -> None:
    """Delete directories of runs whose process was killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        owner = path.name.removeprefix(SCRATCH).partition("-")[0]
        if owner.isdigit() and not is_alive(int(owner)):
            shutil.rmtree(path, ignore_errors=True)


def _unpack(directory: Path, files: list[Any]) -> None:
    """Write the run's files so far, which are read one by one."""
    if not files:
        return
    import ray

    receive(directory, (ray.get(file) for file in files))
