"""Live progress of one or many runs: a dashboard on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rollin.sweeps.jobs import JobEvent

LINE_SECONDS = 15.0  # between two plain lines of the same run
MOST_LINES = 4  # plain lines of running jobs in that time: a cluster would say too much
OTHER_LINES = 8  # of a terminal, that the dashboard needs besides its running jobs
BAR = 20  # columns of a progress bar
SHORTEST = 24  # columns that a run's name has at the least
LEFT_OUT = ("roll-ins", "training mean / threshold", "success", "k", "left", "last mastered")
"""Columns that a narrow terminal does without, in this order."""
COMPILING = "compiling, once per machine"
SOON = 0.02  # runs' worth of work before which no time left can be told
FAILURES = 3  # of the last ones that the dashboard shows

Status = dict[str, Any]


def duration(seconds: float | None) -> str:
    """Seconds as 2:03, 1:02:03 or 3 d 04:05."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shown_titles(statuses: Iterable[Status]) -> list[str]:
    """Titles of what the statuses of some runs show, in their order."""
    return list(dict.fromkeys(title for s in statuses for title in s.get("shown", {})))


@dataclass
class Overview:
    """How many runs stand where, what the running ones do, and when all will be done."""

    total: int
    done: int = 0
    running: dict[str, Status] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    seconds_left: float | None = None

    @property
    def waiting(self) -> int:
        """Runs that are not begun, or to be gone on with."""
        return self.total - self.done - len(self.failed) - len(self.running)

    @property
    def summary(self) -> str:
        """All of it in a line."""
        parts = [f"{self.done} of {self.total} done"]
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        parts += [f"{len(self.running)} running", f"{self.waiting} waiting"]
        return f"{', '.join(parts)}, {duration(self.seconds_left)} left"

    @property
    def share(self) -> float:
        """Share of all the work that is done, a run in part counting in part."""
        parts = sum(s["step"] / s["steps"] for s in self.running.values() if "step" in s)
        return (self.done + parts) / max(self.total, 1)


Columns = dict[str, dict[str, str]]
"""Texts by column and run."""


def run_table(rows: Mapping[str, tuple[str, Status]], width: int, *, states: bool = False) -> Table:
    """Runs by name with their state and status, a row each.

    Where they do not fit the width, columns are left out, the least telling first; names are cut.
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
    """What there is to show of runs, by title and name; states: their states among it."""
    titles = shown_titles(status for _, status in rows.values())
    found: Columns = {t: {} for t in ("state", "step", *titles, "steps/s", "left")}
    for name, (state, status) in rows.items():
        found["state"][name] = state
        if "step" not in status:
            found["step"][name] = "" if states else "starting"
            continue
        if status.get("compiling") and state == "running":
            found["step"][name] = COMPILING
            continue
        found["step"][name] = f"{status['step']:,}/{status['steps']:,}"
        for title, text in status["shown"].items():
            found[title][name] = str(text)
        if state == "running":
            found["steps/s"][name] = f"{status['steps_per_second']:,.0f}"
            found["left"][name] = duration(status["eta_seconds"])
    if not states:
        del found["state"]
    return found


class SweepProgress:
    """Takes the reports of a sweep, and shows how it stands."""

    def __init__(self, total: int, done: int, console: Console, title: str = "") -> None:
        self.overview = Overview(total, done)
        self.console = console
        self.title = title
        self.began = time.monotonic()
        self._fresh = 0.0  # runs' worth of work done since we began
        self._first: dict[str, int] = {}  # step at which each run was first heard of
        self._spoken: dict[str, float] = {}
        self._lines: list[float] = []  # when the last plain lines of running jobs were said
        self._last = ""
        self._compiling: float | None = None  # since when
        self._told_compiling = False

    @property
    def done(self) -> int:
        """Runs that are finished."""
        return self.overview.done

    def take(self, report: JobEvent) -> None:
        """Note a report; off a terminal, say the important ones."""
        name, overview = report.job.name, self.overview
        if report.kind == "progress":
            overview.running[name] = report.status
            self._leave_out_compiling(begins=bool(report.status.get("compiling")))
            if report.status.get("compiling"):
                return
            self._first.setdefault(name, report.status["step"])
            self._say_now_and_then(name, report.status)
        elif report.kind == "started":
            overview.running[name] = {}
        else:
            overview.running.pop(name, None)
            self._end(report)
        overview.seconds_left = self._seconds_left()

    def _end(self, report: JobEvent) -> None:
        name, overview = report.job.name, self.overview
        if report.kind == "finished":
            self._fresh += 1 - self._done_before(name, report.job.spec.config.steps)
            overview.done += 1
            self._last = f"finished {name}"
            left = duration(self._seconds_left())
            self._say(f"{self._last} ({overview.done}/{overview.total}, {left} left)")
        elif report.kind == "failed":
            overview.failed[name] = report.status["error"]
            self._say_always(f"failed {name}: {report.status['error']}", "red")
        elif report.kind == "again":
            seconds, error = report.status["seconds"], report.status["error"]
            self._say_always(f"again in {seconds:.0f} s: {name}: {error}", "yellow")

    def _leave_out_compiling(self, *, begins: bool) -> None:
        """Say it once for all runs, and take it out of the time that work has taken."""
        now = time.monotonic()
        if begins and self._compiling is None:
            self._compiling = now
            if not self._told_compiling:
                self._told_compiling = True
                self._say(f"{COMPILING.capitalize()} …")
        elif not begins and self._compiling is not None:
            self.began += now - self._compiling
            self._compiling = None

    def _say_now_and_then(self, name: str, status: Status) -> None:
        now = time.monotonic()
        if now - self._spoken.setdefault(name, now) <= LINE_SECONDS:
            return
        self._lines = [line for line in self._lines if now - line <= LINE_SECONDS]
        if len(self._lines) >= MOST_LINES:
            return
        self._lines.append(now)
        self._spoken[name] = now
        shown = " ".join(f"{title} {text}" for title, text in status["shown"].items())
        self._say(
            f"{name} step {status['step']}/{status['steps']} {shown} "
            f"{status['steps_per_second']:.0f} steps/s {duration(status['eta_seconds'])} left"
        )

    def _say(self, line: str) -> None:
        if not self.console.is_terminal:
            self.console.print(line, soft_wrap=True)

    def _say_always(self, line: str, style: str) -> None:
        self.console.print(line, style=style, soft_wrap=True)

    def _done_before(self, name: str, steps: int) -> float:
        """Share of a run that was done when it was first heard of: not work of this sweep."""
        first = self._first.get(name, 0)
        return first / steps if first > 1 else 0.0

    def _seconds_left(self) -> float | None:
        """Time until all runs are done, from the work done since we began."""
        overview = self.overview
        shares = {n: s["step"] / s["steps"] for n, s in overview.running.items() if s}
        worked = self._fresh + sum(
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
