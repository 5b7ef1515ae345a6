"""point-umaze: a point mass in the U-maze of antmaze-umaze, with its path, reward and contexts.

Small enough to see ROLLIN work in seconds. Coordinates are the ant's: the start is (0, 0), the last
goal (0, 8), and the way there leads along (8, 0) and (8, 8), 24 m, around a wall.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from rollin.checks import at_least, positive
from rollin.compiling import kept
from rollin.curriculum.contexts import Curriculum
from rollin.envs.contextual import ContextualEnv, context_of
from rollin.envs.picture import maze_picture
from rollin.envs.umaze import HIGH, LOW, PATH, RADIUS, SHARPNESS, WALL, draw_maze, goal_reward

FRICTION, FORCE = 0.7, 0.15  # v ← 0.7 v + 0.15 a
RESET_NOISE = 0.1  # of the first position, uniform, as the ant's

Array = NDArray[Any]


class PointUmaze(ContextualEnv):
    """Observation (x, y, v_x, v_y), action a force in [-1, 1]², context the goal, outcome (x, y).

    max_speed: metres a step; horizon: steps of an episode; R: return that masters a context;
    delta: step of the curriculum along the path of length 1.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 (Gymnasium's)

    def __init__(
        self,
        max_speed: float = 0.5,
        horizon: int = 200,
        R: float = 80.0,
        delta: float = 1 / 12,
        render_mode: str | None = None,
    ) -> None:
        self.max_speed = positive("max_speed", max_speed)
        self.horizon = at_least(1, "horizon", horizon)
        self.render_mode = render_mode
        low = np.array([LOW, LOW, -max_speed, -max_speed])
        high = np.array([HIGH, HIGH, max_speed, max_speed])
        observed = spaces.Box(low, high, dtype=np.float64)
        self.context_space = spaces.Box(LOW, HIGH, (2,), np.float64)
        self.observation_space = spaces.Dict(observation=observed, context=self.context_space)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.curriculum = Curriculum.along(PATH, delta, R)
        self.context: Array = np.array(PATH[-1])
        self._state = np.zeros(4)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin at the start, at rest."""
        super().reset(seed=seed)
        self.context = context_of(options, self.context_space, self.context)
        self._state[:2] = self.np_random.uniform(-RESET_NOISE, RESET_NOISE, 2)
        self._state[2:] = 0
        self._steps = 0
        return self._observed()

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Push the point; episodes end by time alone."""
        a = np.asarray(action, np.float64)
        reward = _step(self._state, a, self.context, self.max_speed)
        self._steps += 1
        observed, info = self._observed()
        return observed, reward, False, self._steps >= self.horizon, info

    def context_reward(self, outcome: ArrayLike, context: ArrayLike) -> Array:
        """exp(-5 D) within 0.5 m of the goal, else 0."""
        return goal_reward(outcome, context)

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """The maze from above, with the path, the goal and where episodes went."""
        draw_maze(axes, context, outcomes)

    def render(self) -> NDArray[np.uint8] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The maze from above, with goal and point."""
        if self.render_mode != "rgb_array":
            return None
        return maze_picture(self._state[:2], self.context, LOW, HIGH, WALL, RADIUS)

    def _observed(self) -> tuple[dict[str, Array], dict[str, Any]]:
        observed = self._state.copy()
        return {"observation": observed, "context": self.context.copy()}, {
            "outcome": observed[:2].copy()
        }


@kept(error_model="numpy")
def _step(state, action, goal, max_speed):
    """Move the point in place; returns the reward. A wall stops the axis that runs into it."""
    for i in range(2):
        push = min(max(action[i], -1.0), 1.0)
        state[2 + i] = FRICTION * state[2 + i] + FORCE * push
    speed = np.sqrt(state[2] ** 2 + state[3] ** 2)
    if speed > max_speed:
        for i in range(2, 4):  # rounding must not leave the observation's box
            state[i] = min(max(state[i] * max_speed / speed, -max_speed), max_speed)
    for i in range(2):
        before = state[i]
        state[i] += state[2 + i]
        if state[i] < LOW or state[i] > HIGH:
            state[i] = min(max(state[i], LOW), HIGH)
            state[2 + i] = 0.0
        if WALL[0] <= state[0] < WALL[1] and WALL[2] < state[1] < WALL[3]:
            if i == 0:
                state[0] = WALL[1]
            else:
                state[1] = WALL[2] if before <= WALL[2] else WALL[3]
            state[2 + i] = 0.0
    distance = np.sqrt((state[0] - goal[0]) ** 2 + (state[1] - goal[1]) ** 2)
    return np.exp(-SHARPNESS * distance) if distance <= RADIUS else 0.0
