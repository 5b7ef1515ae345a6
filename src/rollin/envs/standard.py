"""Tasks that others made, each with a context: what `rollin reproduce standard` trains on.

Every function is an adapter as a user would write it. The mazes and the robot arm come from
Gymnasium-Robotics (the extra `robotics`). `SparseGoals` is rebuilt from its published description
(Klink et al., 2022, "Curriculum Reinforcement Learning via Constrained Optimal Transport").
"""

import math
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.curriculum.contexts import Curriculum
from rollin.envs.contextual import Contextual, TaskEnv
from rollin.envs.goals import GoalContext
from rollin.errors import MissingExtraError, install_hint

Array = NDArray[Any]

# ------------------------------------------------------------------ a hill


def mountain_car(render_mode: str | None = None) -> Contextual:
    """MountainCarContinuous-v0; context: position of the goal, from beside the start to the top."""
    env = gymnasium.make("MountainCarContinuous-v0", render_mode=render_mode)
    return Contextual(
        env,
        spaces.Box(-0.4, 0.45, (1,), np.float64),
        context="goal_position",
        is_success=lambda state, goal: (state[..., 0] >= goal[..., 0]) & (state[..., 1] >= 0),
        curriculum=Curriculum.along([[-0.35], [0.45]]),
    )


# ------------------------------------------------------------------ mazes

U_PATH = ((-1.0, 1.0), (1.0, 1.0), (1.0, -1.0), (-1.0, -1.0))
MEDIUM_PATH = ((-2.5, 2.5), (-1.5, 2.5), (-1.5, 0.5), (0.5, 0.5), (0.5, -0.5), (2.5, -0.5),
               (2.5, -2.5), (1.5, -2.5))  # fmt: skip
"""Corners of the shortest way from the start cell to the farthest cell, in the maze's metres."""


def point_maze(
    name: str, corners: tuple[tuple[float, float], ...], render_mode: str | None = None
) -> GoalContext:
    """PointMaze from its first cell; context: the goal, along the way to the farthest cell."""
    env = make_robotics(name, continuing_task=False, render_mode=render_mode)
    curriculum = Curriculum.along(corners)
    return GoalContext(
        env, curriculum=curriculum, reset_options={"reset_cell": [1, 1]}, success_ends=True
    )


point_maze_umaze = partial(point_maze, "PointMaze_UMaze-v3", U_PATH)
point_maze_medium = partial(point_maze, "PointMaze_Medium-v3", MEDIUM_PATH)

# ------------------------------------------------------------------ a robot arm


class NearGoal(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Moves the goal that an env draws towards what the episode begins with.

    distance: share of the way from the achieved goal to the drawn one; 1 is the env's own goal.
    """

    distance = 1.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        start, drawn = observation["achieved_goal"], observation["desired_goal"]
        inner: Any = self.env.unwrapped
        inner.goal = start + self.distance * (drawn - start)
        return {**observation, "desired_goal": inner.goal.copy()}, info


def fetch(name: str, render_mode: str | None = None) -> Contextual:
    """Return a task of the robot arm; context: how far its goals lie, 1 for the env's own."""
    env = NearGoal(make_robotics(name, render_mode=render_mode))
    arm: Any = env.unwrapped

    def reward(outcome: Array, distance: Array) -> Array:
        return arm.compute_reward(outcome[..., :3], outcome[..., 3:], {})

    return Contextual(
        env,
        spaces.Box(0.0, 1.0, (1,), np.float64),
        reward,
        context="distance",
        outcome=lambda seen, info: np.concatenate((seen["achieved_goal"], seen["desired_goal"])),
        is_success=lambda outcome, distance: reward(outcome, distance) == 0,
        can_relabel=True,
        drawn_goal=slice(3, 6),  # of the vector achieved_goal, desired_goal, observation
        curriculum=Curriculum.along([[0.2], [1.0]]),
    )


fetch_reach = partial(fetch, "FetchReach-v4")
fetch_push = partial(fetch, "FetchPush-v4")
fetch_pick_and_place = partial(fetch, "FetchPickAndPlace-v4")


def make_robotics(name: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Make an env of Gymnasium-Robotics."""
    try:
        import gymnasium_robotics  # an extra
    except ImportError as error:
        raise MissingExtraError(
            f"{name} needs Gymnasium-Robotics, which is not installed: {install_hint('robotics')}."
        ) from error
    gymnasium.register_envs(gymnasium_robotics)
    return gymnasium.make(name, **options)


# ------------------------------------------------------------------ goals drawn in a ring

ROOM = 7.0  # half the side of the room
BLOCK = 5.0  # half the side of the block in its middle
STEP = 0.3  # the longest move
LOOSEST, TIGHTEST = 18.0, 0.05  # tolerances
HORIZON = 200


class SparseGoals(TaskEnv):
    """A point in a square room with a block in the middle; context: the tolerance of the goal.

    The point starts in the lower left corner. The goal is drawn at every reset, uniformly from
    where the point can be, and is the end of the observation. A step costs 1 until the point is
    within the tolerance, which ends the episode. Tolerances fall from 18 to 0.05 by equal ratios.
    """

    success_ends = True
    drawn_goal = slice(2, 4)

    def __init__(self) -> None:
        curriculum = Curriculum.along(lambda at: [LOOSEST * (TIGHTEST / LOOSEST) ** at])
        super().__init__(
            spaces.Box(-ROOM, ROOM, (4,), np.float64),
            spaces.Box(-1.0, 1.0, (2,), np.float32),
            spaces.Box(TIGHTEST, LOOSEST, (1,), np.float64),
            curriculum,
            HORIZON,
        )
        self._place = self._goal = np.zeros(2)

    def _begin(self, seed: int | None, start: Any) -> tuple[Array, dict[str, Any]]:
        self._place = self.np_random.uniform(-ROOM, -BLOCK, 2)
        self._goal = self.np_random.uniform(-ROOM, ROOM, 2)
        while np.abs(self._goal).max() < BLOCK:
            self._goal = self.np_random.uniform(-ROOM, ROOM, 2)
        seen = np.concatenate((self._place, self._goal))
        return seen, {"outcome": seen}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Move the point; a move longer than `STEP` is shortened."""
        move = np.asarray(action, np.float64)
        move = STEP * move / max(1.0, math.hypot(*move))
        self._place = stopped(self._place, np.clip(self._place + move, -ROOM, ROOM))
        seen = np.concatenate((self._place, self._goal))
        reached = bool(self.is_success(seen, self.context))
        info = {"outcome": seen, "is_success": reached}
        return self._observed(seen), 0.0 if reached else -1.0, reached, self._over(), info

    def context_reward(self, outcome: Array, context: Array) -> Array:
        """Return 0 within the tolerance, else -1."""
        return self.is_success(outcome, context) - 1.0

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Return whether the place lies within the tolerance of the goal."""
        distance = np.linalg.norm(outcome[..., :2] - outcome[..., 2:], axis=-1)
        return distance < context[..., 0]


def stopped(before: Array, after: Array) -> Array:
    """Return where a move ends that the block may stop: at the side from which it came."""
    if np.abs(after).max() >= BLOCK:
        return after
    outside = np.abs(before) >= BLOCK
    return np.where(outside, np.copysign(BLOCK, before), after)
