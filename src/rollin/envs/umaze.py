"""What point-umaze and antmaze-umaze share: the U-maze, the path of goals, the reward."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollin.envs.picture import FLOOR, STONE

PATH = ((0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0))  # corners of the curriculum, 24 m
LOW, HIGH = -2.0, 10.0  # outer walls, on both axes
WALL = (-2.0, 6.0, 2.0, 6.0)  # the block between the arms: x from, to, y from, to
RADIUS, SHARPNESS = 0.5, 5.0  # reward exp(-5 D) within 0.5 m of the goal, else 0


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


def draw_maze(axes: Any, goal: ArrayLike, visited: Sequence[NDArray[Any]]) -> None:
    """The maze from above: path and goal of the curriculum, and where episodes went, (T, 2) each.

    Places of an episode are dots that darken with time.
    """
    axes.set_facecolor(STONE)
    axes.fill_between([LOW, HIGH], LOW, HIGH, color=FLOOR, lw=0, zorder=0)
    axes.fill_between(WALL[:2], WALL[2], WALL[3], color=STONE, lw=0, zorder=0)
    axes.plot(*np.transpose(PATH), ":", color="#059669", lw=1.5, zorder=1)
    for places in visited:
        x, y = np.asarray(places).T
        axes.scatter(x, y, c=np.linspace(0.25, 1, len(x)), cmap="Purples", vmin=0, vmax=1, s=3)
    turn = np.linspace(0, 2 * np.pi, 60)
    x, y = np.asarray(goal, np.float64)
    axes.plot(x + RADIUS * np.cos(turn), y + RADIUS * np.sin(turn), color="#059669", lw=1.5)
    axes.set(xlim=(LOW - 0.5, HIGH + 0.5), ylim=(LOW - 0.5, HIGH + 0.5), aspect="equal")
    axes.grid(visible=False)
