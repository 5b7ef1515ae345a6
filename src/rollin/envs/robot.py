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
        """A picture, or a window, as the robot gives it."""
        return self.robot.render()

    def close(self) -> None:
        """Close the robot's window and renderer."""
        self.robot.close()


def picture_size(width: int, height: int) -> dict[str, int]:
    """Of a robot's pictures, in pixels, checked."""
    return {"width": at_least(1, "width", width), "height": at_least(1, "height", height)}
