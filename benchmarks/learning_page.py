"""The page and the picture of return against CPU time, from results/sac/learning.csv alone."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.records import Row, grouped, read, versions_of
from rollin.analysis.sheets import markdown
from rollin.report.style import BASELINE, ROLLIN, SPARE, styled, to_png
from rollin.runs.files import write_atomically

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results" / "sac" / "learning.csv"
PAGE = ROOT / "results" / "sac" / "learning.md"
PICTURE = ROOT / "docs" / "images" / "learning-speed.png"

CONTESTANTS = ("rollin cpu", "RLtools", "SBX SAC", "SB3", "SBX CrossQ")
COLOURS: dict[str, str] = dict(
    zip(CONTESTANTS, (ROLLIN, SPARE[0], SPARE[3], BASELINE, SPARE[1]), strict=True)
)


@dataclass(frozen=True)
class Task:
    """What is learned, and when it counts as learned."""

    env: str
    every: int
    episodes: int
    target: float
    seconds: float


TASKS = {
    "Pendulum": Task("Pendulum-v1", 250, 10, -200.0, 100.0),
    "InvertedDoublePendulum": Task("InvertedDoublePendulum-v5", 500, 5, 9_000.0, 200.0),
}


def reached(rows: Sequence[Row], target: float) -> float | None:
    """CPU seconds at the first of two evaluations in a row with that mean return, if any."""
    rows = sorted(rows, key=lambda row: row["step"])
    for now, following in pairwise(rows):
        if min(now["return"], following["return"]) >= target:
            return now["cpu_seconds"]
    return None


def cell(seeds: Sequence[Sequence[Row]], target: float, seconds: float) -> list[str]:
    """Steps per CPU second, CPU seconds of each seed, and their median."""
    rates = [(rows[-1]["step"] - rows[0]["step"]) / spent(rows) for rows in seeds if len(rows) > 1]
    found = [reached(rows, target) for rows in seeds]
    listed = ", ".join(f"> {seconds:.0f}" if used is None else f"{used:.0f}" for used in found)
    middle = statistics.median(float("inf") if used is None else used for used in found)
    rate = f"{statistics.median(rates):,.0f}" if rates else "–"
    return [rate, listed, f"**{middle:.0f}**" if middle < float("inf") else f"> {seconds:.0f}"]


def spent(rows: Sequence[Row]) -> float:
    """CPU seconds from the first evaluation to the last."""
    return rows[-1]["cpu_seconds"] - rows[0]["cpu_seconds"]


def table(rows: Sequence[Row]) -> str:
    """A line per task and contestant."""
    lines = []
    by = grouped(rows, ("task", "contestant"))
    for title, task in TASKS.items():
        for name in CONTESTANTS:
            seeds = list(grouped(by.get((title, name), []), ("seed",)).values())
            if seeds:
                line = cell(seeds, task.target, task.seconds)
                lines.append([f"{title} to {task.target:,.0f}", name, *line])
    head = ["task", "learner", "steps per CPU second", "CPU seconds, by seed", "median"]
    return markdown(head, lines)


def picture(rows: Sequence[Row]) -> bytes:
    """Returns against CPU seconds, a panel per task."""
    with styled():
        figure = Figure(figsize=(10, 4), layout="constrained")
        for axis, (title, task) in zip(figure.subplots(1, len(TASKS)), TASKS.items(), strict=True):
            for name in CONTESTANTS:
                of = [r for r in rows if r["task"] == title and r["contestant"] == name]
                curves(axis, list(grouped(of, ("seed",)).values()), name)
            axis.axhline(task.target, color=BASELINE, lw=0.8, ls=":")
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.set_xlabel("CPU seconds of training")
            axis.set_ylabel(f"return ({task.episodes} deterministic episodes)")
            axis.set_title(title)
        figure.axes[-1].legend(fontsize=8)
        return to_png(figure)


def curves(axis: Any, seeds: Sequence[Sequence[Row]], name: str) -> None:
    """A thin line per seed, and the median at each step that all seeds have."""
    colour = COLOURS[name]
    for rows in seeds:
        used = [row["cpu_seconds"] for row in rows]
        axis.plot(used, [row["return"] for row in rows], color=colour, lw=0.7, alpha=0.45)
    common = set.intersection(*({row["step"] for row in rows} for rows in seeds)) if seeds else ()
    points = []
    for step in sorted(common):
        at = [row for rows in seeds for row in rows if row["step"] == step]
        middle = [statistics.median(row[key] for row in at) for key in ("cpu_seconds", "return")]
        points.append(middle)
    if points:
        axis.plot(*zip(*points, strict=True), color=colour, lw=2, label=name)


TEXT = """# Return against CPU time

*Written by `make bench-learning` from `results/sac/learning.csv`.*

What a user buys is return, not updates. Each learner trains with its own settings, but for networks
of (256, 256), batches of 256 and 1,000 random steps at first, which all of them share; SBX CrossQ
keeps the networks that it comes with (critics of (1024, 1024)). One process on one core. The clock
counts the CPU time of training after the first update: neither starting and compiling
([how long that takes](README.md)) nor evaluation. A trial ends when two evaluations in a row
reach the target, or after {budgets}.
The packages' settings differ (step sizes, first temperature, target entropy): this compares them as
they come, not the algorithms. What an earlier version did on a Zen 3 is at the end of the
[page of speeds](README.md).

{sections}
"""
SHOWN = """![Mean return against CPU seconds](../../docs/images/learning-speed.png)

Thin lines are seeds, the thick one is their median where all of them still trained; the dotted line
is the target."""


def page(rows: Sequence[Row]) -> str:
    """The page's text."""
    parts = [SHOWN] if rows else ["Nothing has been measured yet."]
    for (processor,), found in grouped(rows, ("processor",)).items():
        text = f"## {processor}\n\n{table(found)}\n\nVersions: {versions_of(found)}."
        parts.append(text)
    budgets = " and ".join(
        f"{task.seconds:.0f} CPU seconds ({title})" for title, task in TASKS.items()
    )
    return TEXT.format(sections="\n\n".join(parts), budgets=budgets)


def write_page() -> None:
    """The page, and the picture of the CPU that was measured last."""
    rows = read(RECORDS)
    write_atomically(PAGE, page(rows).encode())
    if rows:
        write_atomically(PICTURE, picture(list(grouped(rows, ("processor",)).values())[-1]))
