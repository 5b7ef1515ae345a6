"""A picture of episodes, context by context, each drawn by its environment."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

COLUMNS = 5

Array = NDArray[Any]
Draw = Callable[[Any, Array, Sequence[Array]], None]
"""Draws on axes the episodes under a context, from their outcomes (T, U)."""


def episodes_figure(panels: Sequence[tuple[str, Array, Sequence[Array]]], draw: Draw) -> Figure:
    """One panel each: title, context, outcomes of its episodes."""
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.1 * columns + 0.4, 2.7 * rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax, (title, context, outcomes) in zip(axes, panels, strict=False):
        draw(ax, context, outcomes)
        ax.set_title(title)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    return figure
