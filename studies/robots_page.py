"""Tables and pictures of docs/results/robots.md, from the CSVs in results/robots.

python -m studies.robots_page      # draws docs/images/robots-*.png; docs/pages.py has the tables
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from rollin.analysis.sheet import Sheet, sheet
from rollin.analysis.statistics import summarise
from rollin.curriculum.contexts import polyline
from rollin.envs.umaze import PATH, draw_maze
from rollin.paper.robots import published_for
from rollin.report.learning import learning_figure
from rollin.report.learning_curve import LearningCurve, method_of
from rollin.report.style import styled, to_png
from rollin.report.words import summary_text
from rollin.runs.spec import RollinConfig, RunSpec
from studies.robots import CELL, KEY, READINGS, UNTIL, Key, Row, key_of, printed_as, read, spec_of

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DIGITS = {"kappa": 2, "kappa_mean_last": 2, "x_velocity_mean_last": 2, "return_mean_last": 0}
TASKS = ("hopper", "ant", "antmaze-umaze", "humanoid", "walker")
METHODS = ("scratch", "baseline", "rollin")


def runs(name: str, reading: str, task: str | None = None) -> dict[Key, list[Row]]:
    """Rows of a CSV by run, in our order."""
    at = {part: KEY.index(part) for part in KEY}
    found = {
        key: rows
        for key, rows in read(name).items()
        if key[at["reading"]] == reading and task in (None, key[at["task"]])
    }

    def order(key: Key) -> tuple[int, int, int]:
        method = METHODS.index(key[at["method"]])
        return TASKS.index(key[at["task"]]), method, int(key[at["seed"]])

    return {key: found[key] for key in sorted(found, key=order)}


def spec(key: Key) -> RunSpec[RollinConfig]:
    """The run that a key stands for, as its condition is without the printed reading."""
    told = dict(zip(KEY, key, strict=True))
    for condition in READINGS[told["reading"]]:
        if key_of(spec_of(condition, int(told["seed"]))) == key:
            return spec_of(printed_as(condition), int(told["seed"]))
    raise KeyError(key)


def method(key: Key) -> str:
    """What a run is called."""
    return method_of(spec(key).config.algorithm)


def ours(row: Row, name: str) -> str:
    """A figure, as the tables show it."""
    return f"{float(row[name]):.{DIGITS[name]}f}" if row[name] else "–"


def at_step(step: int, reading: str, task: str) -> Sheet:
    """Published and our figures at a step, over the seeds that have reached it."""
    groups: dict[str, list[tuple[Key, Row]]] = {}
    for key, figures in runs("figures.csv", reading, task).items():
        here = [row for row in figures if int(row["step"]) == step]
        if here:
            groups.setdefault(method(key), []).append((key, here[0]))
    return sheet(
        f"{reading} {task}",
        f"{task} at {step:,} steps",
        "method | seeds | κ | x-velocity | return | k of each seed",
        [_row(step, name, seeds) for name, seeds in groups.items()],
    )


def _row(step: int, name: str, seeds: list[tuple[Key, Row]]) -> list[str]:
    printed = published_for(spec(seeds[0][0])).get(step, {})
    cells = [name, str(len(seeds))]
    for figure in ("kappa", "x_velocity_mean_last", "return_mean_last"):
        if figure == "kappa" and name == "scratch":
            cells.append("–")
            continue
        found = summarise([float(row[figure]) for _, row in seeds])
        text = summary_text(found, DIGITS[figure])
        cells.append(f"{printed.get(figure) or '–'} → **{text}**")
    ks = "–" if name == "scratch" else ", ".join(row["k"] for _, row in seeds)
    return [*cells, ks]


def as_far_as_they_came(reading: str) -> Sheet:
    """The last figures of every run."""
    titles = "task | method | seed | steps | κ | x-velocity | return | steps a second"
    return sheet(f"{reading} reached", "How far runs have come", titles, [*_last_rows(reading)])


def _last_rows(reading: str) -> Iterator[list[str]]:
    for key, figures in runs("figures.csv", reading).items():
        last, found = figures[-1], spec(key)
        kappa = "–" if found.config.algorithm.method == "scratch" else ours(last, "kappa")
        cells = [found.task, method(key), str(found.config.seed), f"{int(last['step']):,}", kappa]
        cells += [ours(last, "x_velocity_mean_last"), ours(last, "return_mean_last")]
        yield [*cells, f"{int(last['step']) / float(last['seconds']):.0f}"]


def by_context(reading: str, task: str) -> Sheet:
    """Return and x-velocity of each run's policy under every context."""
    found = runs("evaluation.csv", reading, task)
    names = [f"{method(key)}, seed {key[-1]}" for key in found]
    rows = []
    for cells in zip(*found.values(), strict=True):
        shown = [f"{float(row['return']):.0f} at {float(row['x_velocity']):.2f}" for row in cells]
        rows.append([cells[0]["level"], cells[0]["threshold"], *shown])
    title = f"{task}: return at x-velocity under every context"
    return sheet(f"{reading} contexts", title, " | ".join(["level", "R", *names]), rows)


def tables() -> list[Sheet]:
    """Every table of the page."""
    return [
        at_step(UNTIL, "tables", "hopper"),
        at_step(UNTIL, "tables", "ant"),
        as_far_as_they_came("tables"),
        at_step(UNTIL, "printed", "hopper"),
        by_context("printed", "hopper"),
        as_far_as_they_came("printed"),
    ]


# ------------------------------------------------------------------ pictures


def curves(reading: str, tasks: set[str]) -> list[LearningCurve]:
    """Learning curves from the records."""
    found = []
    for key, rows in runs("curves.csv", reading).items():
        if spec(key).task in tasks:
            steps = np.array([float(row["step"]) for row in rows])
            names = [n for n in ("kappa", "x_velocity", "return") if rows[0][n]]
            values = {n: np.array([float(row[n] or "nan") for row in rows]) for n in names}
            found.append(LearningCurve(spec(key), steps, values))
    return found


def draw_curves(reading: str, *tasks: str) -> bytes:
    """Learning curves of some tasks as a picture."""
    with styled():
        return to_png(learning_figure(curves(reading, set(tasks))))


def draw_visits() -> bytes:
    """Where training steps ended, from above, on a logarithmic scale."""
    with styled():
        found = runs("visits.csv", "printed")
        figure = Figure(figsize=(4.2 * len(found) + 0.6, 4.2), layout="constrained")
        axes: Any = figure.subplots(1, len(found), squeeze=False)[0]
        mesh = None
        most = max(int(row["steps"]) for rows in found.values() for row in rows)
        for ax, (key, rows) in zip(axes, found.items(), strict=True):
            reached = read("figures.csv")[key][-1]
            # the printed reading has a context at the start, so that κ is the position, too
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
            ax.set_title(f"{method(key)}: {int(reached['step']) / 1000:.0f}k steps")
        if mesh is not None:
            figure.colorbar(mesh, ax=list(axes), label="steps that ended in a cell of 0.25 m")
        return to_png(figure)


def main() -> None:
    """Draw the page's pictures."""
    (IMAGES / "robots-seeds.png").write_bytes(draw_curves("tables", "hopper", "ant"))
    (IMAGES / "robots-hopper.png").write_bytes(draw_curves("printed", "hopper"))
    others = ("antmaze-umaze", "humanoid", "walker", "ant")
    (IMAGES / "robots-others.png").write_bytes(draw_curves("printed", *others))
    (IMAGES / "robots-visits.png").write_bytes(draw_visits())


if __name__ == "__main__":
    main()
