"""The terminal: what commands print, live progress of runs, stopping by a signal.

Progress is a dashboard on a terminal, and plain lines elsewhere.

A run notices the wish to stop between two steps. For an environment that does not return from a
step there are a hint and a Ctrl-C that still works.
"""

import _thread
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from rollin.errors import RollinError, visible
from rollin.runs.systems import STOPS
from rollin.untrusted import CALLS

if TYPE_CHECKING:
    from rollin.runs.spec import JobEvent

SILENT_SECONDS = 30.0  # in one call, after which there is a hint
BLOCKED_SECONDS = 2.0  # in one call, after which a wish to stop interrupts it


def check_file(flag: str, path: Path | None, suffixes: Iterable[str] = ()) -> None:
    """Raise before anything is run if a file could not be written in the end."""
    if path is None:
        return
    known = tuple(suffixes)
    if known and path.suffix not in known:
        raise RollinError(f"{flag} must end in {' or '.join(known)}, got {path}.")
    if not path.parent.is_dir():
        raise RollinError(f"{flag}: the directory {path.parent} does not exist.")


def make_console(width: int | None = None) -> Console:
    """Return a console that prints text as it is: a path with brackets is not markup.

    width: of tables where the output is not a terminal.
    """
    console = _Console(markup=False, highlight=False)
    if width is not None and not console.is_terminal:
        return _Console(markup=False, highlight=False, width=width)
    return console


def plain_table(titles: Iterable[str], right: Container[str], *, no_wrap: bool = False) -> Table:
    """Return a table without lines and rows; right: the titles of columns of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", no_wrap=no_wrap)
    return table


class _Console(Console):
    """Shows control characters in names and texts of files, instead of obeying them."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for part in super().render(renderable, options):
            yield part if part.control else Segment(visible(part.text), part.style)

    def on_broken_pipe(self) -> None:
        raise  # it is called where the error is handled; `main` says what it means


def typed_command(command: str, arguments: Sequence[str]) -> str:
    """Return the command line, to be recorded with results."""
    return shlex.join(["rollin", command, *arguments])


class Stop:
    """Whether a signal has asked to stop, and the exit code that says so: 130 after Ctrl-C.

    left: set once what was to stop has ended.
    """

    signal: int | None = None

    def __init__(self) -> None:
        self.left = threading.Event()

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.signal is not None

    @property
    def code(self) -> int:
        """The exit code as in shells: 128 and the number of the signal; 0 without one."""
        return 0 if self.signal is None else 128 + self.signal


@contextmanager
def stop_on_signal(saying: str = "Stopping: writing a checkpoint …") -> Iterator[Stop]:
    """While inside, Ctrl-C, kill and a closed terminal set a flag instead of ending the program.

    If the environment does not return from a call, the run cannot see the flag: it is interrupted.
    """
    stop = Stop()

    def ask_to_stop(signum: int, frame: Any) -> None:
        if stop():  # a second Ctrl-C means it
            raise KeyboardInterrupt
        stop.signal = signum
        with suppress(OSError):  # the terminal may be gone; print is not for signal handlers
            os.write(2, f"\n{saying}\n".encode())
        _thread.start_new_thread(interrupt_blocked, (signum, stop.left))

    before = {s: signal.signal(s, ask_to_stop) for s in STOPS}
    try:
        yield stop
    finally:
        stop.left.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupt_blocked(signum: int, left: threading.Event) -> None:
    """Send a signal again if a call of the environment does not return, until the run is left."""
    call = CALLS.count
    while not left.wait(BLOCKED_SECONDS):
        if call % 2 and CALLS.count == call:
            if hasattr(signal, "pthread_kill"):  # which also ends what the thread waits for
                signal.pthread_kill(threading.main_thread().ident or 0, signum)
            else:
                _thread.interrupt_main(signal.Signals(signum))
            return
        call = CALLS.count


@contextmanager
def hint_at_silence() -> Iterator[None]:
    """While inside, print one line if a call of the environment does not return for long."""
    left = threading.Event()
    thread = threading.Thread(target=_watch, args=(left,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def _watch(left: threading.Event) -> None:
    call = -1
    since = 0.0
    while not left.wait(min(1.0, SILENT_SECONDS / 4)):
        if CALLS.count != call:
            call = CALLS.count
            since = time.monotonic()
        elif call % 2 and time.monotonic() - since >= SILENT_SECONDS:
            print(
                f"rollin: no step for {SILENT_SECONDS:.0f} s: the environment has not returned. "
                "Ctrl-C stops the run.",
                file=sys.stderr,
            )
            return


# ------------------------------------------------------------------ live progress


LINE_SECONDS = 15.0  # between two plain lines of the same run
MOST_LINES = 4  # plain lines of running jobs in that time: a cluster would say too much
OTHER_LINES = 8  # of a terminal, that the dashboard needs besides its running jobs
BAR = 20  # columns of a progress bar
SHORTEST = 24  # columns that a run's name has at the least
LEFT_OUT = ("roll-ins", "training mean / threshold", "success", "k", "left", "last mastered")
"""Columns that a narrow terminal does without, in this order."""
COMPILING = "compiling, once per machine"
SOON = 0.02  # runs' worth of work before which the time left is unknown
FAILURES = 3  # of the last ones that the dashboard shows

Status = dict[str, Any]


def duration(seconds: float | None) -> str:
    """Return seconds as 2:03, 1:02:03 or 3 d 04:05."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shown_titles(statuses: Iterable[Status]) -> list[str]:
    """Return the titles that the statuses of some runs show, in their order."""
    return list(dict.fromkeys(title for s in statuses for title in s.get("shown", {})))


@dataclass
class Overview:
    """The states of all runs, the statuses of running ones, and the time until all are done."""

    total: int
    done: int = 0
    running: dict[str, Status] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    seconds_left: float | None = None

    @property
    def waiting(self) -> int:
        """Runs that have not started, or that are to be resumed."""
        return self.total - self.done - len(self.failed) - len(self.running)

    @property
    def summary(self) -> str:
        """The overview in a line."""
        parts = [f"{self.done} of {self.total} done"]
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        parts += [f"{len(self.running)} running", f"{self.waiting} waiting"]
        return f"{', '.join(parts)}, {duration(self.seconds_left)} left"

    @property
    def share(self) -> float:
        """The fraction of all work that is done; a run in part counts in part."""
        parts = sum(s["step"] / s["steps"] for s in self.running.values() if "step" in s)
        return (self.done + parts) / max(self.total, 1)


Columns = dict[str, dict[str, str]]
"""Texts by column and run."""


def run_table(rows: Mapping[str, tuple[str, Status]], width: int, *, states: bool = False) -> Table:
    """Return a table of runs by name, with their states and statuses.

    Where it does not fit the width, the least informative columns are left out; names are cut.
    """
    columns = run_columns(rows, states=states)
    sizes = {t: max(map(len, (t, *cells.values()))) for t, cells in columns.items()}
    longest = max(map(len, ("run", *rows)))
    for title in LEFT_OUT:
        if min(longest, SHORTEST) + sum(sizes.values()) + 2 * len(sizes) > width:
            sizes.pop(title, None)
    bars = not states and longest + sum(sizes.values()) + 2 * len(sizes) + BAR + 2 <= width
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run")
    for title, size in sizes.items():
        left = title == "state"  # which may be a whole sentence
        table.add_column(
            title, justify="left" if left else "right", no_wrap=not left, min_width=min(size, 30)
        )
    if bars:
        table.add_column("", min_width=BAR)
    for name, (_, status) in rows.items():
        cells: list[Any] = [Text(columns[title].get(name, "")) for title in sizes]
        if bars and "step" in status:
            cells.append(ProgressBar(status["steps"], status["step"], width=BAR))
        table.add_row(Text(name, no_wrap=True, overflow="ellipsis"), *cells)
    return table


def run_columns(rows: Mapping[str, tuple[str, Status]], *, states: bool = False) -> Columns:
    """Return the cells of a table of runs, by title and name; states: with their states."""
    titles = shown_titles(status for _, status in rows.values())
    columns: Columns = {t: {} for t in ("state", "step", *titles, "steps/s", "left")}
    for name, (state, status) in rows.items():
        columns["state"][name] = state
        if "step" not in status:
            columns["step"][name] = "" if states else "starting"
            continue
        if status.get("compiling") and state == "running":
            columns["step"][name] = COMPILING
            continue
        columns["step"][name] = f"{status['step']:,}/{status['steps']:,}"
        for title, text in status["shown"].items():
            columns[title][name] = str(text)
        if state == "running":
            columns["steps/s"][name] = f"{status['steps_per_second']:,.0f}"
            columns["left"][name] = duration(status["eta_seconds"])
    if not states:
        del columns["state"]
    return columns


class SweepProgress:
    """Collects the reports of a sweep; prints as a dashboard, or as plain lines off a terminal."""

    def __init__(self, total: int, done: int, console: Console, title: str = "") -> None:
        self.overview = Overview(total, done)
        self.console = console
        self.title = title
        self.began = time.monotonic()
        self._finished_here = 0.0  # runs' worth of work that runs finished since then
        self._first_step: dict[str, int] = {}  # in the first report of each run
        self._printed: dict[str, float] = {}  # when the last plain line of each run was printed
        self._recent: list[float] = []  # when plain lines of running jobs were printed
        self._last = ""
        self._compiling: float | None = None  # since when
        self._compiled = False

    @property
    def done(self) -> int:
        """Runs that are finished."""
        return self.overview.done

    def take(self, report: "JobEvent") -> None:
        """Record a report; off a terminal, print the important ones."""
        name = report.job.name
        overview = self.overview
        status = report.status
        if report.kind == "progress":
            overview.running[name] = status
            self._exclude_compiling(begins=bool(status.get("compiling")))
            if status.get("compiling"):
                return
            self._first_step.setdefault(name, status["step"])
            self._print_now_and_then(name, status)
        elif report.kind == "started":
            overview.running[name] = {}
        else:
            overview.running.pop(name, None)
        if report.kind == "finished":
            self._finished_here += 1 - self._done_before(name, report.job.spec.config.steps)
            overview.done += 1
            self._last = f"finished {name}"
            left = duration(self._seconds_left())
            self._print(f"{self._last} ({overview.done}/{overview.total}, {left} left)")
        elif report.kind == "failed":
            overview.failed[name] = status["error"]
            self._print(f"failed {name}: {status['error']}", "red")
        elif report.kind == "again":
            self._print(f"again in {status['seconds']:.0f} s: {name}: {status['error']}", "yellow")
        overview.seconds_left = self._seconds_left()

    def _exclude_compiling(self, *, begins: bool) -> None:
        """Exclude the time that compiling takes from timings; print it once for all runs."""
        now = time.monotonic()
        if begins and self._compiling is None:
            self._compiling = now
            if not self._compiled:
                self._compiled = True
                self._print(f"{COMPILING.capitalize()} …")
        elif not begins and self._compiling is not None:
            self.began += now - self._compiling
            self._compiling = None

    def _print_now_and_then(self, name: str, status: Status) -> None:
        now = time.monotonic()
        self._recent = [at for at in self._recent if now - at <= LINE_SECONDS]
        due = now - self._printed.setdefault(name, now) > LINE_SECONDS
        if not due or len(self._recent) >= MOST_LINES:
            return
        self._recent.append(now)
        self._printed[name] = now
        shown = " ".join(f"{title} {text}" for title, text in status["shown"].items())
        self._print(
            f"{name} step {status['step']}/{status['steps']} {shown} "
            f"{status['steps_per_second']:.0f} steps/s {duration(status['eta_seconds'])} left"
        )

    def _print(self, line: str, style: str = "") -> None:
        """Print a line; on a terminal, which has the dashboard, only one in colour."""
        if style or not self.console.is_terminal:
            self.console.print(line, style=style, soft_wrap=True)

    def _done_before(self, name: str, steps: int) -> float:
        """Return the fraction of a run that was done in its first report, before this sweep."""
        first = self._first_step.get(name, 0)
        return first / steps if first > 1 else 0.0

    def _seconds_left(self) -> float | None:
        """Return the time until all runs are done, from the work done since the sweep began."""
        overview = self.overview
        shares = {n: s["step"] / s["steps"] for n, s in overview.running.items() if s}
        worked = self._finished_here + sum(
            share - self._done_before(name, overview.running[name]["steps"])
            for name, share in shares.items()
        )
        if worked < SOON:
            return None
        left = overview.total - overview.done - len(overview.failed) - sum(shares.values())
        return left * (time.monotonic() - self.began) / worked

    def __rich__(self) -> Group:
        running = {n: ("running", s) for n, s in sorted(self.overview.running.items())}
        if self.overview.total == 1:
            return Group(run_table(running, self.console.width))
        room = max(3, self.console.height - OTHER_LINES)
        table = run_table(dict(list(running.items())[:room]), self.console.width)
        lines: list[Any] = [Text(self.title, style="bold")] if self.title else []
        whole = Table.grid(padding=(0, 2))
        bar = ProgressBar(1.0, self.overview.share, width=BAR)
        whole.add_row(bar, Text(self.overview.summary, style="bold"))
        lines += [whole, table] if running else [whole]
        if len(running) > room:
            lines.append(Text(f"… and {len(running) - room} more running"))
        for name, error in list(self.overview.failed.items())[-FAILURES:]:
            lines.append(Text(f"failed {name}: {error}", style="red", overflow="ellipsis",
                              no_wrap=True))  # fmt: skip
        if self._last:
            lines.append(Text(self._last, style="green", overflow="ellipsis", no_wrap=True))
        return Group(*lines)


@contextmanager
def live(progress: SweepProgress) -> Iterator[None]:
    """Show the progress on a terminal while inside."""
    if not progress.console.is_terminal:
        yield
        return
    with Live(progress, console=progress.console, refresh_per_second=4, transient=True):
        yield
