"""A point mass in a maze, compiled: what point-umaze, dead-end and key-door share."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from rollin.checks import positive
from rollin.compiling import kept
from rollin.curriculum.contexts import Curriculum
from rollin.envs.contextual import check_context
from rollin.envs.maze import RADIUS, SHARPNESS, Maze, goal_reward
from rollin.envs.picture import EDGE, FLOOR, GOAL, POINT, STONE, Picture
from rollin.envs.small import SmallEnv

FRICTION, FORCE = 0.7, 0.15  # v ← 0.7 v + 0.15 a
RESET_NOISE = 0.1  # of the first position, uniform, as the ant's

Array = NDArray[Any]


class PointMaze(SmallEnv):
    """Observation (x, y, v_x, v_y), action a force in [-1, 1]², context the goal, outcome (x, y).

    max_speed: metres a step; horizon: steps of an episode; R: return that masters a context;
    delta: step of the curriculum along the path of length 1.
    """

    takes_start = True
    maze: ClassVar[Maze]
    more: ClassVar[int] = 0
    """Numbers in [0, 1] that are observed after position and velocity."""

    def __init__(
        self,
        max_speed: float = 0.5,
        horizon: int = 200,
        R: float = 80.0,
        delta: float = 1 / 12,
        render_mode: str | None = None,
    ) -> None:
        self.max_speed = positive("max_speed", max_speed)
        left, right, bottom, top = self.maze.bounds
        low = np.array([left, bottom, -max_speed, -max_speed, *[0.0] * self.more])
        high = np.array([right, top, max_speed, max_speed, *[1.0] * self.more])
        super().__init__(
            spaces.Box(low, high, dtype=np.float64),
            spaces.Box(low[:2], high[:2], dtype=np.float64),
            2,
            Curriculum.along(self.maze.path, delta, R),
            horizon,
            render_mode,
        )
        self._bounds, self._blocks = np.array(self.maze.bounds), np.array(self.maze.blocks)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin at the start, or at the place options["start"], at rest."""
        begun = super().reset(seed=seed, options=options)
        if options is None or "start" not in options:
            return begun
        place, box = check_context(options["start"], self.context_space), self.context_space
        noise = self._state[:2] - self.maze.path[0]
        self._state[:2] = np.clip(place + noise, box.low, box.high)
        return self._observed()

    def _begin(self) -> Any:
        noise = self.np_random.uniform(-RESET_NOISE, RESET_NOISE, 2)
        return (*(noise + self.maze.path[0]), *[0.0] * (2 + self.more))

    def _move(self, action: Array) -> float:
        return push(self._state, action, self.context, self.max_speed, self._bounds, self._blocks)

    def _outcome(self) -> Array:
        return self._state[:2].copy()

    def context_reward(self, outcome: ArrayLike, context: ArrayLike) -> Array:
        """exp(-5 D) within 0.5 m of the goal, else 0."""
        return goal_reward(outcome, context)

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """The maze from above, with the path, the goal and where episodes went."""
        self.maze.draw(axes, context, [np.asarray(places)[:, :2] for places in outcomes])

    def _picture(self) -> Picture:
        picture = Picture(*self.maze.bounds)
        picture.block(*self.maze.bounds, FLOOR)
        for block in self.maze.blocks:
            picture.block(*block, STONE)
        picture.disc(self.context, RADIUS, GOAL, EDGE)
        picture.disc(self._state[:2], 0.25, POINT)
        return picture


@kept(error_model="numpy")
def push(state, action, goal, max_speed, bounds, blocks):
    """Move the point in place; returns the reward. A wall stops the axis that runs into it."""
    for i in range(2):
        force = min(max(action[i], -1.0), 1.0)
        state[2 + i] = FRICTION * state[2 + i] + FORCE * force
    speed = np.sqrt(state[2] ** 2 + state[3] ** 2)
    if speed > max_speed:
        for i in range(2, 4):  # rounding must not leave the observation's box
            state[i] = min(max(state[i] * max_speed / speed, -max_speed), max_speed)
    for i in range(2):
        before, after, other = state[i], state[i] + state[2 + i], state[1 - i]
        low, high = bounds[2 * i], bounds[2 * i + 1]
        for b in range(len(blocks)):  # those in the way narrow the room
            if blocks[b, 2 - 2 * i] < other < blocks[b, 3 - 2 * i]:
                if before <= blocks[b, 2 * i]:
                    high = min(high, blocks[b, 2 * i])
                else:
                    low = max(low, blocks[b, 2 * i + 1])
        if after < low or after > high:
            after = min(max(after, low), high)
            state[2 + i] = 0.0
        state[i] = after
    distance = np.sqrt((state[0] - goal[0]) ** 2 + (state[1] - goal[1]) ** 2)
    return np.exp(-SHARPNESS * distance) if distance <= RADIUS else 0.0
