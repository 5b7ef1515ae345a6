"""What the MuJoCo tasks share: a robot inside, its spaces, its time limit, its pictures."""

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.checks import at_least
from rollin.curriculum.contexts import Curriculum
from rollin.envs.contextual import ContextualEnv

if TYPE_CHECKING:
    from gymnasium.envs.mujoco import MujocoEnv

Array = NDArray[Any]

SHADOWS = 1024  # pixels of MuJoCo's map; with 4096, its default, a picture takes 1.5 times as long


class RobotEnv(ContextualEnv):
    """A robot with a context beside its observation, until `horizon` steps are over."""

    def __init__(
        self,
        robot: "MujocoEnv",
        horizon: int,
        context_space: spaces.Box,
        curriculum: Curriculum,
        printed: Curriculum,
    ) -> None:
        self.robot = robot
        robot.model.vis.quality.shadowsize = SHADOWS
        self.horizon = at_least(1, "horizon", horizon)
        self.render_mode, self.metadata = robot.render_mode, robot.metadata
        self.context_space = context_space
        self.curriculum, self.printed = curriculum, printed
        self.observation_space = spaces.Dict(
            observation=robot.observation_space, context=context_space
        )
        self.action_space = robot.action_space
        self.context: Array = np.array(curriculum.contexts[-1])
        self._steps = 0

    def _observed(self, observation: Array) -> dict[str, Array]:
        return {"observation": observation, "context": self.context.copy()}

    def _over(self) -> bool:
        """Count a step; returns whether it was the last one."""
        self._steps += 1
        return self._steps >= self.horizon

    def render(self) -> Any:
        """A picture, or a window, as the robot gives it, with a floor that goes on and on."""
        places, floors = self.robot.data.geom_xpos, planes(self.robot)
        were = places[floors]
        places[floors, :2] = tiles_below(self.robot.data.xpos[1, :2], self.robot, floors)
        try:
            return self.robot.render()
        finally:
            places[floors] = were

    def close(self) -> None:
        """Close the robot's window and renderer."""
        self.robot.close()


def planes(robot: "MujocoEnv") -> Array:
    """Numbers of the geoms that collide as infinite planes, and are drawn some 40 metres wide."""
    return np.flatnonzero(robot.model.geom_type == 0)  # mjtGeom.mjGEOM_PLANE


def tiles_below(place: Array, robot: "MujocoEnv", floors: Array) -> Array:
    """Where to draw planes so that they are below the robot, and their squares where they were."""
    model = robot.model
    squares = 2 * model.geom_size[floors, :2] / model.mat_texrepeat[model.geom_matid[floors]]
    return np.round(place / squares) * squares


def picture_size(width: int, height: int) -> dict[str, int]:
    """Of a robot's pictures, in pixels, checked."""
    return {"width": at_least(1, "width", width), "height": at_least(1, "height", height)}
