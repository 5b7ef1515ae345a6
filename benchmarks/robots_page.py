"""Tables and pictures of the robots' runs, from the CSVs in results/robots.

python -m benchmarks.robots_page      # prints the tables, writes docs/images/robots-*.png
"""

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from benchmarks.robots import CELL, KEY, RESULTS, conditions, key_of, spec_of
from rollin.curriculum import polyline
from rollin.envs.umaze import PATH, draw_maze
from rollin.paper.robots import published_for
from rollin.report.learning import learning_figure
from rollin.report.learning_curve import LearningCurve, method_of
from rollin.report.style import styled, to_png
from rollin.runs.spec import RollinConfig, RunSpec

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DIGITS = {"kappa": 2, "kappa_mean_last": 2, "x_velocity_mean_last": 2, "return_mean_last": 0}
ORDER = ("hopper", "antmaze-umaze", "humanoid", "walker", "ant")

Key = tuple[str, ...]
Row = dict[str, str]


def read(name: str) -> dict[Key, list[Row]]:
    """Rows of a CSV by run, tasks in our order."""
    found: dict[Key, list[Row]] = defaultdict(list)
    with (RESULTS / name).open(newline="") as file:
        for row in csv.DictReader(file):
            found[tuple(row[part] for part in KEY)].append(row)
    methods = ("scratch", "baseline", "rollin")
    ordered = sorted(found, key=lambda k: (ORDER.index(k[0]), methods.index(k[1]), int(k[4])))
    return {key: found[key] for key in ordered}


def spec(key: Key) -> RunSpec[RollinConfig]:
    """The run that a key stands for."""
    for task, options, _ in conditions():
        found = spec_of(task, **options, seed=int(key[4]))
        if tuple(map(str, key_of(found))) == key:
            return found
    raise KeyError(key)


def ours(row: Row, name: str) -> str:
    return f"{float(row[name]):.{DIGITS[name]}f}" if row[name] else "–"


def at_step(step: int, task: str) -> list[str]:
    """Markdown rows: published and our figures at a step, for runs that have reached it."""
    rows = []
    for key, figures in read("figures.csv").items():
        here = [row for row in figures if int(row["step"]) == step]
        if key[0] != task or not here:
            continue
        printed = published_for(spec(key)).get(step, {})
        cells = [method_of(spec(key).config.algorithm), key[4]]
        for name in ("kappa", "x_velocity_mean_last", "return_mean_last"):
            known = printed.get(name)
            if name == "kappa" and key[1] == "scratch":
                cells.append("–")
            else:
                cells.append(f"{known or '–'} → **{ours(here[0], name)}**")
        mean = "–" if key[1] == "scratch" else ours(here[0], "kappa_mean_last")
        rows.append(f"| {' | '.join([*cells, mean])} |")
    return rows


def as_far_as_they_came() -> list[str]:
    """Markdown rows: the last figures of every run."""
    rows = []
    for key, figures in read("figures.csv").items():
        last = figures[-1]
        cells = [key[0], method_of(spec(key).config.algorithm), key[4], f"{int(last['step']):,}"]
        kappa = "–" if key[1] == "scratch" else ours(last, "kappa")
        cells += [kappa, ours(last, "x_velocity_mean_last"), ours(last, "return_mean_last")]
        cells.append(f"{int(last['step']) / float(last['seconds']):.0f}")
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def by_context(task: str) -> list[str]:
    """A Markdown table: return and x-velocity of each run's policy under every context."""
    found = {key: rows for key, rows in read("evaluation.csv").items() if key[0] == task}
    names = [method_of(spec(key).config.algorithm) for key in found]
    rows = [f"| κ | R(κ) | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
    for cells in zip(*found.values(), strict=True):
        shown = [f"{float(row['return']):.0f} at {float(row['x_velocity']):.2f}" for row in cells]
        first = cells[0]
        rows.append(f"| {first['kappa']} | {first['threshold']} | {' | '.join(shown)} |")
    return rows


# ------------------------------------------------------------------ pictures


def curves() -> list[LearningCurve]:
    found = []
    for key, rows in read("curves.csv").items():
        steps = np.array([float(row["step"]) for row in rows])
        names = [n for n in ("kappa", "x_velocity", "return") if rows[0][n]]
        values = {n: np.array([float(row[n]) for row in rows]) for n in names}
        found.append(LearningCurve(spec(key), steps, values))
    return found


def draw_curves(tasks: set[str]) -> bytes:
    with styled():
        return to_png(learning_figure([c for c in curves() if c.spec.task in tasks]))


def draw_visits() -> bytes:
    """Where training steps ended, from above, on a logarithmic scale."""
    with styled():
        found = read("visits.csv")
        figure = Figure(figsize=(4.2 * len(found) + 0.6, 4.2), layout="constrained")
        axes: Any = figure.subplots(1, len(found), squeeze=False)[0]
        mesh = None
        most = max(int(row["steps"]) for rows in found.values() for row in rows)
        for ax, (key, rows) in zip(axes, found.items(), strict=True):
            reached = read("figures.csv")[key][-1]
            draw_maze(ax, polyline(PATH)(float(reached["kappa"])), [])
            edges = np.arange(-2, 10 + CELL / 2, CELL)
            counts = np.zeros((len(edges) - 1, len(edges) - 1))
            for row in rows:
                i, j = (round((float(row[part]) + 2) / CELL) for part in ("x", "y"))
                if 0 <= i < len(counts) and 0 <= j < len(counts):
                    counts[j, i] = int(row["steps"])
            shown = np.ma.masked_equal(counts, 0)
            norm = LogNorm(1, most)
            mesh = ax.pcolormesh(edges, edges, shown, norm=norm, cmap="Purples", zorder=0.5)
            steps = int(reached["step"])
            ax.set_title(f"{method_of(spec(key).config.algorithm)}: {steps / 1000:.0f}k steps")
        if mesh is not None:
            figure.colorbar(mesh, ax=list(axes), label="steps that ended in a cell of 0.25 m")
        return to_png(figure)


def main() -> None:
    print("\n".join(at_step(500_000, "hopper")))
    print()
    print("\n".join(by_context("hopper")))
    print()
    print("\n".join(as_far_as_they_came()))
    (IMAGES / "robots-hopper.png").write_bytes(draw_curves({"hopper"}))
    others = {"antmaze-umaze", "humanoid", "walker", "ant"}
    (IMAGES / "robots-others.png").write_bytes(draw_curves(others))
    (IMAGES / "robots-visits.png").write_bytes(draw_visits())


if __name__ == "__main__":
    main()
