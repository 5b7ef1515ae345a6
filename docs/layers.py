"""Draw the packages and the files that they write, for docs/architecture.md.

python -m docs.layers
"""

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from rollin.report.style import BASELINE, INK, PAPER, ROLLIN, save_picture, styled

OUT = Path(__file__).parent / "images" / "layers.svg"
LEFT, RIGHT, FILES, END = 0.6, 9.1, 9.35, 13.0  # of the boxes, and of the column of files
HEIGHT, GAP = 0.82, 0.2


class Package(NamedTuple):
    """A box: a package, what it holds, and a package inside of it."""

    name: str
    text: str
    inner: "Package | None" = None


ENGINES = Package("engines", "tabular, rollin, sac, …: a task to a run")
LAYERS: list[tuple[list[Package], str]] = [
    ([Package("cli", "one module for each command")], ""),
    (
        [
            Package("paper", "conditions with published numbers"),
            Package("report", "words, colours, charts, the HTML page"),
        ],
        "report.html, table-*.csv, *.tex\nruns.csv, curves.csv, switches.csv",
    ),
    (
        [Package("analysis", "directories and CSVs → records → tables, findings, curves")],
        "",
    ),
    (
        [
            Package("sweeps", "studies, queue, Ray"),
            Package("api, evaluation", "train, evaluate"),
            Package("sb3", "callback for SB3"),
        ],
        "sweep.json",
    ),
    (
        [Package("runs", "directories, checkpoints, records", ENGINES)],
        "config.json, metrics.csv, …,\nresult.json",
    ),
    (
        [Package("agents", "ROLLIN around any agent")],
        "",
    ),
    (
        [Package("deep", "ROLLIN in practice: two SAC agents")],
        "",
    ),
    (
        [
            Package("tabular", "MDPs, ROLLIN in theory"),
            Package("sac", "SAC learners, replay"),
            Package("envs", "contextual environments"),
        ],
        "",
    ),
    ([Package("curriculum", "contexts, κ, rules, progress")], ""),
    (
        [
            Package(
                "base modules", "errors, checks, untrusted input, random streams, trained policy"
            )
        ],
        "",
    ),
]
"""From the top down: packages side by side, and the files that they leave."""


def draw() -> Figure:
    """Draw the layers, an arrow for the direction of imports, and the files at the right."""
    top = len(LAYERS) * (HEIGHT + GAP)
    figure = Figure(figsize=(8.4, 6.4))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, END), ylim=(0, top + 0.45))
    ax.axis("off")
    heading = {"fontsize": 8.5, "color": BASELINE, "va": "center"}
    ax.text(LEFT, top + 0.25, "packages of rollin", **heading)
    ax.text(FILES, top + 0.25, "files they leave", **heading)
    for row, (packages, files) in enumerate(LAYERS):
        y = top - (row + 1) * (HEIGHT + GAP) + GAP
        width = (RIGHT - LEFT - GAP * (len(packages) - 1)) / len(packages)
        for column, package in enumerate(packages):
            _box(ax, package, LEFT + column * (width + GAP), y, width, HEIGHT)
        ax.text(FILES, y + HEIGHT / 2, files, fontsize=7.5, va="center",
                family="DejaVu Sans Mono", linespacing=1.6)  # fmt: skip
    arrow = {"arrowstyle": "-|>", "color": BASELINE, "lw": 1.2}
    ax.annotate("", (0.36, GAP), (0.36, top), arrowprops=arrow)
    ax.text(0.15, top / 2, "imports", rotation=90, ha="center", **heading)
    return figure


def _box(ax: Axes, package: Package, x: float, y: float, width: float, height: float) -> None:
    """Draw a package: its name over what it holds, and its inner package at the right."""
    shape = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((x, y), width, height, shape, ec=ROLLIN, fc=PAPER, lw=1.1))
    middle = y + height / 2
    name = {"fontsize": 9.5, "weight": "bold", "color": ROLLIN, "va": "bottom"}
    ax.text(x + 0.15, middle, package.name, **name)
    ax.text(x + 0.15, middle - 0.06, package.text, fontsize=8, color=INK, va="top")
    if package.inner is not None:
        part = 0.5 * width
        _box(ax, package.inner, x + width - part - 0.09, y + 0.09, part, height - 0.18)


def main() -> None:
    """Write the picture."""
    with styled(), mpl.rc_context({"svg.fonttype": "path"}):  # the same on every machine
        save_picture(OUT, draw())


if __name__ == "__main__":
    main()
