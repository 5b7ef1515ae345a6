"""key-door: a point that must fetch a key before a door lets it through to the goal.

Two rooms with a wall between them. The start is (0, 0), the key lies at (0, 8), the door at
(4.5, 4), the last goal behind it at (8, 0): 22 m by the key. Who comes within 0.5 m of the key has
it until the episode ends, and the door is open. A goal right of x = 1, where the way from the key
to the door leads, pays with the key alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollin.envs.maze import Maze, goal_reward
from rollin.envs.picture import Picture
from rollin.envs.point_maze import Array, PointMaze

KEY, REACH = (0.0, 8.0), 0.5  # where it lies, and from how near it is taken
LINE = 1.0  # goals right of it pay with the key alone
DOOR = (4.0, 5.0, 3.0, 5.0)
WALL = ((4.0, 5.0, -3.0, 3.0), (4.0, 5.0, 5.0, 11.0))  # below and above the door
OPEN, SHUT = np.array(WALL), np.array([*WALL, DOOR])
GOLD = "#f59e0b"


class KeyDoor(PointMaze):
    """Observation (x, y, v_x, v_y, key), context the goal, outcome (x, y, key); key is 0 or 1.

    Rewards follow from outcome and context, and yet there is no relabelling: a place right of the
    line that was reached without the key fulfils no context. Options as
    `rollin.envs.point_maze.PointMaze`.
    """

    maze = Maze(
        path=((0.0, 0.0), KEY, (4.5, 4.0), (8.0, 4.0), (8.0, 0.0)),
        bounds=(-2.0, 10.0, -2.0, 10.0),
        blocks=WALL,
    )
    more = 1
    takes_start = False  # a place does not tell whether the key was fetched

    def _begin(self) -> Any:
        self._blocks = SHUT
        return super()._begin()

    def _move(self, action: Array) -> float:
        self._blocks = OPEN if self._state[4] else SHUT
        reward = super()._move(action)
        x, y = self._state[0] - KEY[0], self._state[1] - KEY[1]
        if x * x + y * y <= REACH * REACH:
            self._state[4] = 1.0
        return reward if self._state[4] or self.context[0] <= LINE else 0.0

    def _outcome(self) -> Array:
        return self._state[[0, 1, 4]]

    def context_reward(self, outcome: ArrayLike, context: ArrayLike) -> Array:
        """exp(-5 D) within 0.5 m of the goal, else 0; right of the line with the key alone."""
        outcome, context = np.asarray(outcome, np.float64), np.asarray(context, np.float64)
        counts = (outcome[..., 2] > 0) | (context[..., 0] <= LINE)
        return np.where(counts, goal_reward(outcome[..., :2], context), 0.0)

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """The rooms from above, with key and door."""
        super().draw(axes, context, outcomes)
        axes.fill_between(DOOR[:2], DOOR[2], DOOR[3], color=GOLD, alpha=0.4, lw=0, zorder=0)
        axes.plot(*KEY, marker="*", color=GOLD, markeredgecolor="black", markersize=11, zorder=5)

    def _picture(self) -> Picture:
        picture = super()._picture()
        if not self._state[4]:
            picture.block(*DOOR, GOLD)
            picture.disc(KEY, 0.2, GOLD)
        return picture
