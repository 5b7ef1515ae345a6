"""A contextual env as SAC sees it: float32 vectors out, actions in [-1, 1] in."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from rollin.arrays import Float
from rollin.envs import box_env
from rollin.envs.box_env import ActionBox, Env, as_vector, is_vector
from rollin.envs.context_handle import ContextHandle
from rollin.envs.contextual import Array
from rollin.errors import RollinError

LONGEST = box_env.LONGEST


@dataclass(slots=True)
class ContextStep:
    """What a step of a contextual environment gave."""

    observation: Float
    reward: float
    terminated: bool
    truncated: bool
    outcome: Float
    measured: tuple[float, ...] = ()


class ContextEnv(ContextHandle):
    """Checks that observations and actions are real vectors, and scales actions to their box."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        _, info = self.raw_reset(seed=0)
        self.outcome_size = int(np.size(self.outcome_of(info)))
        self._context: Float = np.zeros(0, np.float32)
        self._told: tuple[Float, bool] | None = None

    def _check_kinds(self) -> None:
        parts: Any = self.env.observation_space
        observed = parts["observation"]
        if not isinstance(observed, spaces.Box):
            raise RollinError(
                f"{self.name} must have an observation in a Box of real numbers, got {observed}: "
                "put gymnasium.wrappers.FlattenObservation around the env before "
                "rollin.Contextual, or make the entry a Box."
            )
        self.observation_size = int(np.prod(observed.shape))
        self.actions = ActionBox(self.env.action_space, self.name)
        self.action_size = self.actions.size

    def reset(
        self, context: Array, seed: int | None = None, start: Any = None
    ) -> tuple[Float, Float]:
        """Begin an episode under a context; returns the first observation and outcome.

        The context goes to the env in the precision of its space: rounded, it might lie outside.
        start: a state to begin in, for envs that take one.
        """
        asked = np.array(context, self.context_space.dtype)
        options = {"context": asked} if start is None else {"context": asked, "start": start}
        observed, info = self.raw_reset(seed=seed, options=options)
        self._context, self._told = asked.astype(np.float32), None
        return self._vector(observed), self._outcome_vector(info)

    def step(self, action: Float) -> ContextStep:
        """Act with an action in [-1, 1]^A."""
        observed, reward, terminated, truncated, info = self.raw_step(self.actions.scale(action))
        self._count(terminated or truncated, LONGEST, ", or use --horizon")
        outcome, success = self._outcome_vector(info), self.told_success(info)
        self._told = None if success is None else (outcome, success)
        return ContextStep(
            self._vector(observed), reward, terminated, truncated, outcome, self.measured(info)
        )

    def is_success(self, outcome: Float, context: Float) -> bool:
        """Whether an outcome fulfils a context; of the last step, as its info told it."""
        told = self._told
        if told is not None and told[0] is outcome and np.array_equal(context, self._context):
            return told[1]
        return super().is_success(outcome, context)

    def check_vectors(self, observed: Any, info: dict[str, Any], when: str) -> None:
        """Refuse what `reset` and `step` could not take: sizes, types, numbers not finite."""
        parts = {"observation": self._vector(observed), "outcome": self._outcome_vector(info)}
        for what, vector in parts.items():
            if not np.isfinite(vector).all():
                raise RollinError(f"{self.name} gave an {what} that is not finite after {when}.")
        if when == "step":
            self.measured(info)

    def _outcome_vector(self, info: dict[str, Any]) -> Float:
        outcome = info.get("outcome")
        if is_vector(outcome, self.outcome_size):  # as nearly always
            return outcome.astype(np.float32)
        return as_vector("an outcome", self.outcome_of(info), self.outcome_size, self.env)

    def _vector(self, observed: Any) -> Float:
        try:
            seen = observed["observation"]
        except (TypeError, KeyError, IndexError) as error:
            raise RollinError(
                f"{self.name} must give observations as a dict of observation and context, got "
                f"{type(observed).__name__}."
            ) from error
        return as_vector("an observation", seen, self.observation_size, self.env)
