"""key-door: a point that must fetch a key before a door lets it through to the goal.

A wall separates two rooms. The start is (0, 0), the key is at (0, 8), the door at (4.5, 4), the
final goal behind it at (8, 0): 22 m by the key. Within 0.5 m of the key the point takes it, and the
door is open until the episode ends. A goal right of x = 1, where the path from the key to the door
runs, pays only with the key.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollin.envs.point_umaze import Array, Canvas, Maze, PointMaze, goal_reward

KEY = (0.0, 8.0)
REACH = 0.5  # distance within which the key is taken
LINE = 1.0  # goals right of it pay only with the key
DOOR = (4.0, 5.0, 3.0, 5.0)
WALL = ((4.0, 5.0, -3.0, 3.0), (4.0, 5.0, 5.0, 11.0))  # below and above the door
OPEN = np.array(WALL)
SHUT = np.array([*WALL, DOOR])
GOLD = "#f59e0b"


class KeyDoor(PointMaze):
    """Observation (x, y, v_x, v_y, key), context the goal, outcome (x, y, key); key is 0 or 1.

    Rewards are a function of outcome and context, but there is no relabelling: a place right of the
    line that was reached without the key fulfils no context. Options as `PointMaze`.
    """

    maze = Maze(
        path=((0.0, 0.0), KEY, (4.5, 4.0), (8.0, 4.0), (8.0, 0.0)),
        bounds=(-2.0, 10.0, -2.0, 10.0),
        blocks=WALL,
    )
    more = 1
    takes_start = False  # a place does not determine whether the key was fetched

    def _first_state(self, start: Any) -> Any:
        self._blocks = SHUT
        return super()._first_state(start)

    def _move(self, action: Array) -> float:
        self._blocks = OPEN if self._state[4] else SHUT
        reward = super()._move(action)
        x = self._state[0] - KEY[0]
        y = self._state[1] - KEY[1]
        if x * x + y * y <= REACH * REACH:
            self._state[4] = 1.0
        return reward if self._state[4] or self.context[0] <= LINE else 0.0

    def _outcome(self) -> Array:
        return self._state[[0, 1, 4]]

    def context_reward(self, outcome: ArrayLike, context: ArrayLike) -> Array:
        """Return exp(-5 D) within 0.5 m of the goal, right of the line with the key, else 0."""
        outcome = np.asarray(outcome, np.float64)
        context = np.asarray(context, np.float64)
        counts = (outcome[..., 2] > 0) | (context[..., 0] <= LINE)
        return np.where(counts, goal_reward(outcome[..., :2], context), 0.0)

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw the rooms from above, with key and door."""
        super().draw(axes, context, outcomes)
        axes.fill_between(DOOR[:2], DOOR[2], DOOR[3], color=GOLD, alpha=0.4, lw=0, zorder=0)
        axes.plot(*KEY, marker="*", color=GOLD, markeredgecolor="black", markersize=11, zorder=5)

    def _picture(self) -> Canvas:
        picture = super()._picture()
        if not self._state[4]:
            picture.block(*DOOR, GOLD)
            picture.disc(KEY, 0.2, GOLD)
        return picture
