"""Maps of training: where steps ended, from above, a panel for each context."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure

from rollin.analysis.visits import VisitMaps, VisitPanel
from rollin.envs.dead_end import DeadEnd
from rollin.envs.umaze import UMAZE
from rollin.report.words import label_text, steps_text

MAZES = {"antmaze-umaze": UMAZE, "point-umaze": UMAZE, "dead-end": DeadEnd.maze}
"""Walls to draw, by task; others are drawn without."""
GOAL = "#059669"
SHADES = ListedColormap(colormaps["Purples"](np.linspace(0.2, 1, 256)))  # without white
COLUMNS = 6  # panels beside each other
SIDE = 2.1  # inches of a panel


def visits_figure(found: Sequence[VisitMaps]) -> Figure:
    """Rows of panels for each run, on one logarithmic scale."""
    columns = min(COLUMNS, max(len(maps.panels) for maps in found))
    heights = [-(-len(maps.panels) // columns) for maps in found]
    size = (SIDE * columns + 0.9, SIDE * sum(heights) + 0.35 * len(found))
    figure = Figure(figsize=size, layout="constrained")
    parts = np.atleast_1d(figure.subfigures(len(found), 1, height_ratios=heights, squeeze=False))
    norm = LogNorm(1, max(2.0, *(p.steps.max() for maps in found for p in maps.panels)))
    for part, maps, rows in zip(parts.ravel(), found, heights, strict=True):
        part.suptitle(_title(maps), fontsize=9, parse_math=False)
        axes = part.subplots(rows, columns, squeeze=False).ravel()
        for axis in axes[len(maps.panels) :]:
            axis.set_axis_off()
        for axis, panel in zip(axes, maps.panels, strict=False):
            _draw(axis, maps, panel, norm)
        label = f"steps in a cell of {maps.cell:g} × {maps.cell:g}"
        part.colorbar(ScalarMappable(norm, SHADES), ax=list(axes), label=label)
    return figure


def _title(maps: VisitMaps) -> str:
    record = maps.record
    name = label_text(record.labels) or (record.path.name if record.path else record.task)
    return f"{record.task}, {name}, seed {record.seed}: {steps_text(record.step)} steps"


def _draw(axis: Any, maps: VisitMaps, panel: VisitPanel, norm: LogNorm) -> None:
    maze = MAZES.get(maps.record.task)
    if maze is not None:
        maze.draw(axis, panel.goals[-1], [])
    else:
        axis.plot(*panel.goals[-1], marker="o", color=GOAL, fillstyle="none")
        axis.set_aspect("equal")
    for goal in panel.goals[:-1]:
        axis.plot(*goal, marker=".", color=GOAL, markersize=3)
    low = panel.places.min(0)
    cells = np.round((panel.places - low) / maps.cell).astype(int)
    counts = np.full(cells.max(0) + 1, np.nan)
    counts[tuple(cells.T)] = panel.steps
    edges = [low[i] - maps.cell / 2 + maps.cell * np.arange(counts.shape[i] + 1) for i in range(2)]
    axis.pcolormesh(*edges, counts.T, norm=norm, cmap=SHADES, zorder=0.5)
    axis.set(xticks=[], yticks=[])
    ks = f"{panel.ks[0]} – {panel.ks[-1]}" if len(panel.ks) > 1 else f"{panel.ks[0]}"
    axis.set_title(f"k = {ks}", fontsize=8)
