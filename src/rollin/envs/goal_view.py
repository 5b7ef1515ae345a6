"""A contextual env seen as a goal env, as hindsight replay of other libraries wants it."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollin.envs.box_env import Env, name_of, require_env
from rollin.errors import RollinError


class GoalView(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observations with achieved_goal and desired_goal, and a compute_reward of three arguments.

    The achieved goal is the context that an outcome fulfils, so outcomes must be all that the
    reward needs to know, as they are where the context is a place to reach.

    >>> import rollin
    >>> from rollin.envs.point_umaze import PointUmaze
    >>> env = rollin.GoalView(PointUmaze())
    >>> observed, info = env.reset(seed=0, options={"context": [2.0, 0.0]})
    >>> sorted(observed), observed["desired_goal"].tolist()
    (['achieved_goal', 'desired_goal', 'observation'], [2.0, 0.0])
    """

    def __init__(self, env: Env) -> None:
        require_env(env, "GoalView")
        super().__init__(env)
        parts = env.observation_space
        try:
            self._to_context = env.get_wrapper_attr("to_context")
            self._compute = env.get_wrapper_attr("context_reward")
            goals: Any = env.get_wrapper_attr("context_space")
        except AttributeError as error:
            raise RollinError(
                f"{name_of(env)} is not a contextual env: rollin.Contextual(env, context_space, "
                "reward) makes one of any env; a goal env needs no GoalView."
            ) from error
        if not isinstance(parts, spaces.Dict):
            raise RollinError(f"{name_of(env)} must have observations in a Dict, got {parts}.")
        self.observation_space = spaces.Dict(
            observation=parts["observation"], achieved_goal=goals, desired_goal=goals
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        observed, info = self.env.reset(seed=seed, options=options)
        return self._seen(observed, info), info

    def step(self, action: Any) -> Any:
        """One step."""
        observed, reward, terminated, truncated, info = self.env.step(action)
        return self._seen(observed, info), reward, terminated, truncated, info

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Rewards (…) of achieved goals (…, C) under desired goals (…, C)."""
        return np.asarray(self._compute(achieved_goal, desired_goal))

    def _seen(self, observed: Any, info: dict[str, Any]) -> dict[str, Any]:
        desired = np.asarray(observed["context"])
        achieved = np.asarray(self._to_context(np.asarray(info["outcome"])), desired.dtype)
        return {
            "observation": observed["observation"],
            "achieved_goal": achieved,
            "desired_goal": desired,
        }
