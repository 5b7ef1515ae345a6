"""What `rollin watch` shows: the report so far and the progress of runs, made anew as files change.

Runs are only looked at: no lock is taken and nothing is written.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollin.analysis.collect import Collection, gather
from rollin.cli.dashboard import run_columns
from rollin.cli.list_runs import describe, sweep_standing
from rollin.errors import RollinError, sentence
from rollin.report.live import (
    RunStanding,
    Standing,
    SweepStanding,
    live_report,
    progress_part,
    with_progress,
)
from rollin.runs.directory import CONFIG, KEPT, RESULT, RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.records import RUNS, Record
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
    """What tells whether files have changed: times, sizes and numbers; None of one that is not."""
    return tuple(_stamp(directory / name) for name in names)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass
class Reader:
    """Reads runs, and those that have not changed only once."""

    _records: dict[Path, tuple[Stamp, tuple[int, ...], Record]] = field(default_factory=dict)
    _finished: dict[Path, tuple[Stamp, State]] = field(default_factory=dict)

    def record(self, run: RunDirectory, at: Sequence[int] = ()) -> Record:
        """A run as its directory has it, with rows of its curve at some steps.

        One that goes on may replace its checkpoint, or end, while it is read: then once more.
        """
        for attempt in range(1, ATTEMPTS + 1):
            before = stamp_of(run.path)
            known = self._records.get(run.path)
            if known is not None and known[:2] == (before, tuple(at)):
                return known[2]
            try:
                found = read_record(RunDirectory(run.path), at)
            except RollinError:
                if attempt == ATTEMPTS or stamp_of(run.path) == before:
                    raise
                continue
            if stamp_of(run.path) == before:
                break
        else:
            raise RollinError("it changed while it was read")
        self._records[run.path] = before, tuple(at), found
        return found

    def state(self, run: RunDirectory) -> State:
        """A run's state in words and its status; checksums of a finished one are made once."""
        before = stamp_of(run.path)
        known = self._finished.get(run.path)
        if known is not None and known[0] == before:
            return known[1]
        found = describe(RunDirectory(run.path))
        if found[0] == "finished":
            self._finished[run.path] = before, found
        return found


@dataclass(frozen=True)
class Page:
    """What is served: the whole page, its part about progress, and when either last changed."""

    report: str
    progress: str
    changed: float

    @property
    def whole(self) -> str:
        """The page."""
        return with_progress(self.report, self.progress)

    @property
    def version(self) -> dict[str, Any]:
        """By what a browser sees that there is something new."""
        return {
            "report": _digest(self.report),
            "progress": _digest(self.progress),
            "changed": round(self.changed, 1),
        }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


class Watched:
    """The page of some directories; `refresh` brings it up to date, `page` is the last good one.

    every: seconds between two looks; clock: tells seconds, for tests.
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
        self.directories, self.studies = tuple(directories), tuple(studies)
        self.every, self.title, self.only, self.clock = every, title, only, clock
        self._reader = Reader()
        self._seen: object = None  # stamps that the report was made of
        self._due = -float("inf")  # when the next report may be made
        self._problem = ""
        self._stop = threading.Event()
        found = Collection(notes=["The runs are being read …"])
        report = live_report(found, (), title)
        self.page = Page(report, self._progress(), time.time())

    def refresh(self) -> None:
        """Look at the runs once, and make what has changed; what goes wrong is told on the page."""
        report = self.page.report
        try:
            stamps = self._stamps()
            if stamps == self._seen:
                self._problem = ""
            elif self.clock() >= self._due:
                report = self._report()
                self._seen, self._problem = stamps, ""
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
        """Of all that the report is made of."""
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
            found = gather(
                self.directories, self.studies, unfinished=True, read=self._reader.record
            )
            return live_report(found, self.studies, self.title, self.only)
        finally:
            ended = self.clock()
            self._due = ended + SHARE * (ended - began)

    # -------------------------------------------------------------- what is going on

    def _progress(self) -> str:
        try:
            return progress_part(self._standing())
        except Exception as error:  # such as a directory that is moved away
            return progress_part(Standing(problem=sentence(error)))

    def _standing(self) -> Standing:
        sweeps: list[SweepStanding] = []
        rows: dict[str, State] = {}
        for directory in self.directories:
            found = {run.path: self._reader.state(run) for run in find_runs(directory)}
            for path in sorted(directory.rglob(SWEEP_FILE)):
                title, overview = sweep_standing(path, directory, found)
                if overview is None:
                    sweeps.append(SweepStanding(title))
                else:
                    sweeps.append(SweepStanding(title, overview.summary, overview.share))
            rows |= {self._name(path, directory): state for path, state in found.items()}
        shown = {name: row for name, row in rows.items() if row[0] not in QUIET}
        columns = run_columns(shown, states=True)
        runs = [
            RunStanding(
                name,
                {title: cells.get(name, "") for title, cells in columns.items()},
                status["step"] / status["steps"] if "step" in status else None,
            )
            for name, (_, status) in shown.items()
        ]
        quiet = _counted(rows, [str(directory) for directory in self.directories])
        return Standing(sweeps, runs, list(columns), quiet, self._problem)

    def _name(self, path: Path, directory: Path) -> str:
        """A run as it is called: below its directory, if there is one."""
        inside = len(self.directories) == 1 and path != directory
        return str(path.relative_to(directory) if inside else path)


def _counted(rows: dict[str, State], names: list[str]) -> str:
    """How many runs there are besides those that are shown."""
    if not rows:
        return f"There are no runs below {', '.join(names)} yet."
    counts = {state: sum(row[0] == state for row in rows.values()) for state in QUIET}
    told = [f"{count:,} {state}" for state, count in counts.items() if count]
    if not told:
        return ""
    rest = "Runs" if sum(counts.values()) == len(rows) else "Other runs"
    return f"{rest}: {', '.join(told)}."
