"""`rollin watch DIR...`: serves the report of runs as a page that follows them.

It serves this machine only: three answers from memory, to GET and HEAD. The address holds a secret,
because every user of a machine can reach its loopback. No path of a request is ever looked up in
the file system. Runs are only looked at: no lock is taken and nothing is written.
"""

import hashlib
import json
import os
import re
import secrets
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

from rollin.analysis.collect import Collection, gather
from rollin.cli.console import make_console, run_columns, stop_on_signal
from rollin.cli.list_runs import describe, sweep_standing
from rollin.cli.options import Arg, parse
from rollin.errors import RollinError, reason, sentence
from rollin.paper.tables import tables
from rollin.report.page import (
    LiveProgress,
    RunProgress,
    SweepProgress,
    live_policy,
    live_report,
    progress_part,
    with_progress,
)
from rollin.runs.directory import CONFIG, KEPT, RESULT, RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.records import RUNS, Record
from rollin.runs.systems import REUSES_ADDRESS
from rollin.sweeps.study import Study
from rollin.sweeps.sweep import SWEEP_FILE, find_runs

SAVED = (CONFIG, RESULT, *KEPT, "checkpoint/manifest.json")
"""Files of a run that its record is read from."""
SHARE = 4.0  # times that a report took until the next one: watching takes a fifth of a core
ATTEMPTS = 4  # to read a run that saves at that very moment
QUIET = ("finished", "waiting")
"""States of runs that are only counted."""

Stamp = tuple[tuple[int, int, int] | None, ...]
State = tuple[str, dict[str, Any]]


def stamp_of(directory: Path, names: Sequence[str] = SAVED) -> Stamp:
    """Return times, sizes and numbers of files, which show changes; None of a missing one."""
    return tuple(_stamp(directory / name) for name in names)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


@dataclass
class Reader:
    """Reads runs, and those that have not changed only once."""

    _records: dict[Path, tuple[Stamp, tuple[int, ...], Record]] = field(default_factory=dict)
    _finished: dict[Path, tuple[Stamp, State]] = field(default_factory=dict)

    def record(self, run: RunDirectory, at: Sequence[int] = ()) -> Record:
        """Return the record of a run, with rows of its curve at some steps.

        One that continues may replace its checkpoint, or end, while it is read: then once more.
        """
        for attempt in range(1, ATTEMPTS + 1):
            before = stamp_of(run.path)
            known = self._records.get(run.path)
            if known is not None and known[:2] == (before, tuple(at)):
                return known[2]
            try:
                record = read_record(RunDirectory(run.path), at)
            except RollinError:
                if attempt == ATTEMPTS or stamp_of(run.path) == before:
                    raise
                continue
            if stamp_of(run.path) == before:
                break
        else:
            raise RollinError("it changed while it was read")
        self._records[run.path] = before, tuple(at), record
        return record

    def state(self, run: RunDirectory) -> State:
        """Return a run's state and its status; checksums of a finished one are made once."""
        before = stamp_of(run.path)
        known = self._finished.get(run.path)
        if known is not None and known[0] == before:
            return known[1]
        state = describe(RunDirectory(run.path))
        if state[0] == "finished":
            self._finished[run.path] = before, state
        return state


@dataclass(frozen=True)
class Page:
    """What is served: the whole page, its part about progress, and when either last changed."""

    report: str
    progress: str
    changed: float

    @property
    def whole(self) -> str:
        """The report with the progress in it."""
        return with_progress(self.report, self.progress)

    @property
    def version(self) -> dict[str, Any]:
        """What a browser compares to notice changes."""
        return {
            "report": _digest(self.report),
            "progress": _digest(self.progress),
            "changed": round(self.changed, 1),
        }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


class Watched:
    """The page of some directories; `refresh` brings it up to date, `page` is the last good one.

    every: seconds between two looks; clock: returns seconds, for tests.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        studies: Sequence[Study],
        *,
        every: float = 5.0,
        title: str | None = None,
        only: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.directories = tuple(directories)
        self.studies = tuple(studies)
        self.every = every
        self.title = title
        self.only = only
        self.clock = clock
        self._reader = Reader()
        self._seen: object = None  # stamps that the report was made of
        self._due = -float("inf")  # when the next report may be made
        self._problem = ""
        self._stop = threading.Event()
        empty = Collection(notes=["The runs are being read …"])
        report = live_report(empty, (), title)
        self.page = Page(report, self._progress(), time.time())

    def refresh(self) -> None:
        """Look at the runs once, and make what has changed; the page shows what goes wrong."""
        report = self.page.report
        try:
            stamps = self._stamps()
            if stamps == self._seen:
                self._problem = ""
            elif self.clock() >= self._due:
                report = self._report()
                self._seen = stamps
                self._problem = ""
        except Exception as error:  # a page of a moment ago is better than none
            self._problem = f"This report is not up to date. {sentence(error)}"
        progress = self._progress()
        if (report, progress) != (self.page.report, self.page.progress):
            self.page = Page(report, progress, time.time())

    def follow(self) -> None:
        """Refresh until `stop`."""
        while not self._stop.is_set():
            self.refresh()
            self._stop.wait(self.every)

    def stop(self) -> None:
        """End `follow` after the look that it is at."""
        self._stop.set()

    def _stamps(self) -> object:
        """Return stamps of all files that the report is made of."""
        return [
            (
                [(run.path, stamp_of(run.path)) for run in find_runs(directory)],
                [(path, _stamp(path)) for path in sorted(directory.rglob(SWEEP_FILE))],
                _stamp(directory / RUNS),
            )
            for directory in self.directories
        ]

    def _report(self) -> str:
        began = self.clock()
        try:
            collection = gather(
                self.directories, self.studies, unfinished=True, read=self._reader.record
            )
            return live_report(collection, self.studies, self.title, self.only)
        finally:
            ended = self.clock()
            self._due = ended + SHARE * (ended - began)

    # -------------------------------------------------------------- progress

    def _progress(self) -> str:
        try:
            return progress_part(self._standing())
        except Exception as error:  # such as a directory that is moved away
            return progress_part(LiveProgress(problem=sentence(error)))

    def _standing(self) -> LiveProgress:
        sweeps: list[SweepProgress] = []
        rows: dict[str, State] = {}
        for directory in self.directories:
            states = {run.path: self._reader.state(run) for run in find_runs(directory)}
            for path in sorted(directory.rglob(SWEEP_FILE)):
                title, overview = sweep_standing(path, directory, states)
                if overview is None:
                    sweeps.append(SweepProgress(title))
                else:
                    sweeps.append(SweepProgress(title, overview.summary, overview.share))
            rows |= {self._name(path, directory): state for path, state in states.items()}
        active = {name: row for name, row in rows.items() if row[0] not in QUIET}
        columns = run_columns(active, states=True)
        runs = [
            RunProgress(
                name,
                {title: cells.get(name, "") for title, cells in columns.items()},
                status["step"] / status["steps"] if "step" in status else None,
            )
            for name, (_, status) in active.items()
        ]
        quiet = _counted(rows, [str(directory) for directory in self.directories])
        return LiveProgress(sweeps, runs, list(columns), quiet, self._problem)

    def _name(self, path: Path, directory: Path) -> str:
        """Return a run's name: below its directory, if there is only one."""
        inside = len(self.directories) == 1 and path != directory
        return str(path.relative_to(directory) if inside else path)


def _counted(rows: dict[str, State], names: list[str]) -> str:
    """Return how many runs there are besides those that are displayed."""
    if not rows:
        return f"There are no runs below {', '.join(names)} yet."
    counts = {state: sum(row[0] == state for row in rows.values()) for state in QUIET}
    parts = [f"{count:,} {state}" for state, count in counts.items() if count]
    if not parts:
        return ""
    rest = "Runs" if sum(counts.values()) == len(rows) else "Other runs"
    return f"{rest}: {', '.join(parts)}."


# ------------------------------------------------------------------ the command


LARGEST_PORT = 65_535
SHORTEST_WAIT = 0.5  # seconds between two looks
LONGEST_WAIT = 3600.0
STOP_SECONDS = 0.2  # between two checks whether to stop
LOOPBACK = "127.0.0.1"
HOSTS = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
"""Names that a request may call us by: that of another site leads here by a trick of its DNS. The
port may be another's, such as that of an ssh tunnel."""
METHODS = ("GET", "HEAD")
PATIENCE = 10.0  # seconds that a request may take to come in


@dataclass(frozen=True)
class WatchOptions:
    """Serve the report of runs as a live page in the browser, on this machine only.

    Tables show finished runs; curves show what a run has saved, which it does every 20 seconds.
    The runs are only read. Ctrl-C stops the server.
    """

    directories: Annotated[tuple[Path, ...], Arg("DIR", positional=True)]
    """Run directories, sweeps, or directories with runs below them, now or later."""
    port: int = 0
    """Where to serve the page on 127.0.0.1; 0 takes a free port."""
    every: float = 5.0
    """Seconds between two looks at the runs; a report that takes long is made less often."""
    title: str | None = None
    """Title of the page. Default: the names of the tasks."""
    study: str | None = None
    """Show only this study or table of the paper. Default: those that the runs belong to."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(WatchOptions, arguments, "watch")
    _check(options)
    known = list(tables().values())
    watched = Watched(
        options.directories, known, every=options.every, title=options.title, only=options.study
    )
    console = make_console()
    with Server(lambda: watched.page, options.port) as server, stop_on_signal("Stopped.") as stop:
        for work in (watched.follow, server.serve_forever):
            threading.Thread(target=work, daemon=True).start()
        console.print(f"Live page: {server.address}", soft_wrap=True)
        console.print("Ctrl-C stops it.")
        console.file.flush()
        while not stop():
            time.sleep(STOP_SECONDS)
        watched.stop()
        server.shutdown()
    return stop.code


def _check(options: WatchOptions) -> None:
    if not 0 <= options.port <= LARGEST_PORT:
        raise RollinError(f"--port must be from 0 to {LARGEST_PORT}, got {options.port}.")
    if not SHORTEST_WAIT <= options.every <= LONGEST_WAIT:
        raise RollinError(f"--every must be from 0.5 to 3600 s, got {options.every:g}.")
    for directory in options.directories:
        find_runs(directory)  # refuses what is no directory


# ------------------------------------------------------------------ the server


class Server(ThreadingHTTPServer):
    """Answers with what `page` gives at that moment."""

    daemon_threads = True
    allow_reuse_address = REUSES_ADDRESS

    def __init__(self, page: Callable[[], Page], port: int = 0) -> None:
        self.page = page
        self.secret = secrets.token_urlsafe(12)
        self.policy = live_policy()
        try:
            super().__init__((LOOPBACK, port), Handler)
        except OSError as error:
            raise RollinError(
                f"--port {port} cannot be opened: {reason(error)}. Give another, or 0 for a free "
                "one."
            ) from error

    def server_bind(self) -> None:
        """Bind without HTTPServer's look-up of the host name in the network."""
        socketserver.TCPServer.server_bind(self)
        self.server_name = LOOPBACK
        self.server_port = self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that closed the connection in the middle of an answer."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.secret}/"

    def answer(self, path: str) -> tuple[str, str] | None:
        """Return kind and text of the answer at a path, or None."""
        page = self.page()
        if path == f"/{self.secret}/":
            return "text/html", page.whole
        if path == f"/{self.secret}/progress":
            return "text/html", page.progress
        if path == f"/{self.secret}/version":
            return "application/json", json.dumps(page.version)
        return None


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = PATIENCE

    def parse_request(self) -> bool:
        """Refuse what is not for us before anything else is done with it."""
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not HOSTS.fullmatch(hosts[0].strip()):
            self._refuse(HTTPStatus.FORBIDDEN, "This page answers to 127.0.0.1 and localhost.")
        elif self.command not in METHODS:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "This page can only be read.")
        else:
            return True
        return False

    def do_GET(self) -> None:
        """Answer from memory."""
        answer = self.server.answer(self.path.partition("?")[0])
        if answer is None:
            self._refuse(HTTPStatus.NOT_FOUND, "Open the address that rollin watch has printed.")
        else:
            self._send(HTTPStatus.OK, *answer)

    def do_HEAD(self) -> None:
        """Answer as for GET, without the text."""
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what the parser of requests does not understand."""
        self._refuse(HTTPStatus(code), "This is no request that rollin watch understands.")

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._send(status, "text/plain", f"{sentence}\n")

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        data = text.encode(errors="replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", ", ".join(METHODS))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def version_string(self) -> str:
        """Return the name of the server, without versions."""
        return "rollin"

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
