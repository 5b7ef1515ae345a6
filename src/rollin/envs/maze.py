"""Mazes from above: walls, the path of goals, the reward of the paper's U-maze, a drawing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollin.envs.picture import FLOOR, STONE

RADIUS, SHARPNESS = 0.5, 5.0  # reward exp(-5 D) within 0.5 m of the goal, else 0

Place = tuple[float, float]
Block = tuple[float, float, float, float]
"""x from, to, y from, to."""


@dataclass(frozen=True)
class Maze:
    """A square with blocks in it; path: corners of the curriculum, the first is the start.

    bounds: the outer walls; blocks that touch one must reach beyond it, or a point slips through.
    """

    path: tuple[Place, ...]
    bounds: Block
    blocks: tuple[Block, ...]

    def draw(self, axes: Any, goal: ArrayLike, visited: Sequence[NDArray[Any]]) -> None:
        """The maze from above: path and goal, and where episodes went, (T, 2) each.

        Places of an episode are dots that darken with time.
        """
        left, right, bottom, top = self.bounds
        axes.set_facecolor(STONE)
        axes.fill_between([left, right], bottom, top, color=FLOOR, lw=0, zorder=0)
        for x0, x1, y0, y1 in self.blocks:  # which may reach beyond the bounds
            wide, low, high = [max(x0, left), min(x1, right)], max(y0, bottom), min(y1, top)
            axes.fill_between(wide, low, high, color=STONE, lw=0, zorder=0)
        axes.plot(*np.transpose(self.path), ":", color="#059669", lw=1.5, zorder=1)
        for places in visited:
            x, y = np.asarray(places).T
            axes.scatter(x, y, c=np.linspace(0.25, 1, len(x)), cmap="Purples", vmin=0, vmax=1, s=3)
        turn = np.linspace(0, 2 * np.pi, 60)
        x, y = np.asarray(goal, np.float64)
        axes.plot(x + RADIUS * np.cos(turn), y + RADIUS * np.sin(turn), color="#059669", lw=1.5)
        axes.set(xlim=(left - 0.5, right + 0.5), ylim=(bottom - 0.5, top + 0.5), aspect="equal")
        axes.grid(visible=False)


def goal_reward(outcome: ArrayLike, context: ArrayLike) -> NDArray[Any]:
    """exp(-5 D) within 0.5 m of the goal, else 0; batched over leading axes."""
    apart = np.asarray(outcome, np.float64) - np.asarray(context, np.float64)
    distance = np.sqrt(apart[..., 0] ** 2 + apart[..., 1] ** 2)
    return np.where(distance <= RADIUS, np.exp(-SHARPNESS * distance), 0.0)


def reward_at(place: NDArray[Any], goal: NDArray[Any]) -> float:
    """`goal_reward` of one place, to the bit: arrays of one number cost a step 10 µs."""
    (x, y), (goal_x, goal_y) = place.tolist(), goal.tolist()
    x, y = x - goal_x, y - goal_y
    # neither x ** 2 nor math.exp: Python's may round otherwise than NumPy's
    distance = math.sqrt(x * x + y * y)
    return float(np.exp(-SHARPNESS * distance)) if distance <= RADIUS else 0.0
