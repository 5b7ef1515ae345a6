"""The page and the picture of how cost grows, from results/sac/scaling.csv alone."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from benchmarks.records import Row, grouped, read, shares, versions_of
from rollin.analysis.sheets import markdown
from rollin.report.style import BASELINE, ROLLIN, SPARE, styled, to_png
from rollin.runs.files import write_atomically

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results" / "sac" / "scaling.csv"
PAGE = ROOT / "results" / "sac" / "scaling.md"
PICTURE = ROOT / "docs" / "images" / "scaling.png"

AXES = {
    ("SAC", "width"): "units of a hidden layer (batch 256)",
    ("SAC", "batch"): "batch (layers of 256)",
    ("tabular", "states"): "states",
    ("tabular", "actions"): "actions",
    ("tabular", "batch"): "trajectories",
    ("tabular", "horizon"): "steps of a trajectory",
}
COLOURS = {"rollin cpu": ROLLIN, "rollin": ROLLIN, "RLtools": SPARE[0]}
UPPER = 3  # points that an exponent is fitted to

Line = dict[float, float]
"""Microseconds by the value on the axis."""


def lines_of(rows: Sequence[Row]) -> dict[str, Line]:
    """What a panel shows, by contestant and number of threads."""
    found: dict[str, Line] = {}
    for (name, threads), of in grouped(rows, ("contestant", "threads")).items():
        label = name if threads == 1 else f"{name}, {threads} threads"
        found[label] = {row["value"]: cost(row) for row in sorted(of, key=lambda r: r["value"])}
    return found


def cost(row: Row) -> float:
    """Microseconds of a step: CPU time on one thread, which other work of the machine leaves alone.

    With two threads it is the time that passes, since they also wait for each other.
    """
    return row["cpu_microseconds"] if row["threads"] == 1 else row["microseconds"]


def exponent(line: Mapping[float, float]) -> float | None:
    """k of cost ~ size^k over the largest sizes, by least squares; None for fewer than two.

    >>> round(exponent({1: 9.0, 10: 2.0, 20: 8.0, 40: 32.0}), 6)
    2.0
    """
    points = sorted(line.items())[-UPPER:]
    if len(points) < 2:
        return None
    x, y = (np.log([pair[i] for pair in points]) for i in (0, 1))
    return float(np.polyfit(x, y, 1)[0])


def time_of(microseconds: float | None) -> str:
    """For a table."""
    if microseconds is None:
        return "–"
    if microseconds >= 1000:
        return f"{microseconds / 1000:.{1 if microseconds >= 10_000 else 2}f} ms"
    return f"{microseconds:.0f} µs"


def table(rows: Sequence[Row], title: str) -> str:
    """A line per contestant, a column per size, and the exponent."""
    found = lines_of(rows)
    sizes = sorted({value for line in found.values() for value in line})
    lines = []
    for label, line in found.items():
        k = exponent(line)
        cells = [time_of(line.get(size)) for size in sizes]
        lines.append([label, *cells, "–" if k is None else f"{k:.2f}"])
    return markdown([title, *(f"{size:,.0f}" for size in sizes), "exponent"], lines)


def picture(rows: Sequence[Row]) -> bytes:
    """A log-log panel per axis."""
    by = grouped(rows, ("part", "axis"))
    with styled():
        figure = Figure(figsize=(11, 6.5), layout="constrained")
        axes = figure.subplots(2, math.ceil(len(AXES) / 2)).ravel()
        for axis, ((part, name), title) in zip(axes, AXES.items(), strict=True):
            panel(axis, lines_of(by.get((part, name), [])))
            axis.set_title(f"{part}: {title}", fontsize=9)
            axis.set_ylabel("microseconds of a step")
        return to_png(figure)


def panel(axis: Any, lines: Mapping[str, Line]) -> None:
    """Its lines; dashed with two threads."""
    for label, line in lines.items():
        name, _, threads = label.partition(", ")
        colour = COLOURS.get(name, BASELINE)
        style = "--" if threads else "-"
        axis.plot(list(line), list(line.values()), f"o{style}", ms=3, color=colour, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    sizes = sorted({value for line in lines.values() for value in line})
    axis.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    axis.minorticks_off()
    axis.legend(fontsize=7, handlelength=3)


TEXT = """# How cost grows

*Written by `make bench-scaling` from `results/sac/scaling.csv`.*

Time of one step: CPU time on one thread, by the wall clock on two; contestants take turns on the
same cores. The exponent k of cost ∝ sizeᵏ is fitted to the three largest sizes that were measured.

- **SAC**: whole training steps with two hidden layers of equal width, on an environment of 5 µs a
  step with Hopper's sizes. Products of a hidden layer grow with the square of its width. With two
  threads rollin splits an update where it is worth a thread. jaxrl is its structure rewritten by
  us; RLtools is the package, at fewer sizes, since each is compiled.
- **Tabular**: a gradient step of Appendix F.3 on a random MDP from a uniform policy, every state as
  likely at first. Where not on the axis: 144 states, 105 actions, 2,000 trajectories of 50 steps.

{sections}
"""
SHOWN = "![Microseconds of a step against sizes](../../docs/images/scaling.png)"


def page(rows: Sequence[Row]) -> str:
    """The page's text."""
    parts = [SHOWN] if rows else ["Nothing has been measured yet."]
    for (processor, lanes), found in grouped(rows, ("processor", "lanes")).items():
        by = grouped(found, ("part", "axis"))
        tables = [table(by[key], f"{key[0]}: {title}") for key, title in AXES.items() if key in by]
        alone = [row for row in found if row["threads"] == 1 and row["part"] == "SAC"]
        quiet = shares([row["cpu_microseconds"] / row["microseconds"] for row in alone])
        versions = f"Vectors of {lanes} numbers. Medians of {found[0]['rounds']} rounds; the run "
        versions += f"took {found[0]['minutes']:.0f} minutes. {quiet}"
        versions += f" Versions: {versions_of(found)}."
        parts.append("\n\n".join([f"## {processor}", *tables, versions]))
    return TEXT.format(sections="\n\n".join(parts))


def write_page() -> None:
    """The page, and the picture of the CPU that was measured last."""
    rows = read(RECORDS)
    write_atomically(PAGE, page(rows).encode())
    if rows:
        last = list(grouped(rows, ("processor", "lanes")).values())[-1]
        write_atomically(PICTURE, picture(last))
