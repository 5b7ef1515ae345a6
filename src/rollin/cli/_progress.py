"""Live progress of one or many runs: a table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rollin.runs.backend import Report

LINE_SECONDS = 15.0  # between two plain lines of the same run


def duration(seconds: float | None) -> str:
    """Seconds as 1:02:03 or 2:03."""
    if seconds is None:
        return "–"
    whole = int(seconds + 0.5)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def figure_titles(statuses: Iterable[dict[str, Any]]) -> list[str]:
    """Titles of the figures that some runs' statuses show, in their order."""
    return list(dict.fromkeys(title for s in statuses for title in s.get("figures", {})))


class SweepProgress:
    """What is running, done and failed, and when the whole will be done."""

    def __init__(self, total: int, done: int, console: Console) -> None:
        self.total, self.done = total, done
        self.console = console
        self.failed = 0
        self.running: dict[str, dict[str, Any]] = {}
        self.began = time.monotonic()
        self.fresh = 0.0  # runs' worth of work done since we began
        self._first: dict[str, int] = {}  # step at which each run was first heard of
        self._spoken: dict[str, float] = {}

    def take(self, report: Report) -> None:
        """Note a report; off a terminal, say the important ones."""
        name = report.job.name
        if report.kind == "started":
            self.running[name] = {}
        elif report.kind == "progress":
            self.running[name] = report.status
            self._first.setdefault(name, report.status["step"])
            self._say_now_and_then(name, report.status)
        else:
            self.running.pop(name, None)
            if report.kind == "finished":
                self.fresh += 1 - self._done_before(name, report.job.spec.config.steps)
                self.done += 1
                self._say(f"finished {name} ({self.done}/{self.total}, {self.eta()} left)")
            elif report.kind == "failed":
                self.failed += 1
                self.console.print(
                    f"failed {name}: {report.status['error']}", style="red", soft_wrap=True
                )

    def _say_now_and_then(self, name: str, status: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._spoken.setdefault(name, now) > LINE_SECONDS:
            self._spoken[name] = now
            figures = " ".join(f"{title} {text}" for title, text in status["figures"].items())
            self._say(
                f"{name} step {status['step']}/{status['steps']} {figures} "
                f"{status['steps_per_second']:.0f} steps/s {duration(status['eta_seconds'])} left"
            )

    def _say(self, line: str) -> None:
        if not self.console.is_terminal:
            self.console.print(line, soft_wrap=True)

    def _done_before(self, name: str, steps: int) -> float:
        """Share of a run that was done when it was first heard of: not work of this sweep."""
        first = self._first.get(name, 0)
        return first / steps if first > 1 else 0.0

    def eta(self) -> str:
        """Time until all runs are done, from the work done since we began."""
        shares = {n: s["step"] / s["steps"] for n, s in self.running.items() if s}
        worked = self.fresh + sum(
            share - self._done_before(name, self.running[name]["steps"])
            for name, share in shares.items()
        )
        if worked <= 0:
            return "–"
        left = self.total - self.done - self.failed - sum(shares.values())
        return duration(left * (time.monotonic() - self.began) / worked)

    def __rich__(self) -> Group:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        titles = figure_titles(self.running.values())
        for title in ("run", "step", "", *titles, "steps/s", "left"):
            table.add_column(title, justify="left" if title in ("run", "") else "right")
        for name, status in sorted(self.running.items()):
            if not status:
                table.add_row(Text(name), "starting")
                continue
            table.add_row(
                Text(name),
                f"{status['step']:,}",
                ProgressBar(total=status["steps"], completed=status["step"], width=20),
                *(status["figures"].get(title, "") for title in titles),
                f"{status['steps_per_second']:,.0f}",
                duration(status["eta_seconds"]),
            )
        if self.total == 1:
            return Group(table)
        failed = f", {self.failed} failed" if self.failed else ""
        waiting = self.total - self.done - self.failed - len(self.running)
        summary = f"{self.done} of {self.total} done{failed}, {waiting} waiting, {self.eta()} left"
        return Group(table, Text(summary, style="bold"))


@contextmanager
def live(progress: SweepProgress) -> Iterator[None]:
    """Show the progress on a terminal while inside."""
    if not progress.console.is_terminal:
        yield
        return
    with Live(progress, console=progress.console, refresh_per_second=4, transient=True):
        yield
