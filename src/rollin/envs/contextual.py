"""Contextual environments: one dynamics, a reward r_ω for every context ω.

`ContextualEnv` is the contract; `Contextual` makes one of any Gymnasium env plus a reward function
of (outcome, context), `GoalContext` of a goal env as in Gymnasium-Robotics; `ContextEnv` is how the
algorithms see all of them.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from rollin.curriculum import Curriculum
from rollin.envs.box import ActionBox, Env, as_reward, as_vector, name_of
from rollin.errors import RollinError
from rollin.sac.network import Float

Array = NDArray[Any]
Reward = Callable[[Array, Array], Any]
"""Rewards (…) of outcomes (…, U) under contexts (…, C), batched over leading axes."""


class ContextualEnv(gymnasium.Env[Any, Any]):
    """The contract: a `gymnasium.Env` whose task is a context that can be set at reset.

    - `observation_space`: `Dict(observation=Box, context=Box)`; `context_space`: that second Box
    - `reset(options={"context": c})` sets the context until another is given
    - `info["outcome"]`, at reset and at every step: all that the reward needs to know
    - `compute_reward(outcome, context)`: the reward of a step, batched over leading axes
    """

    context_space: spaces.Box
    curriculum: Curriculum | None = None
    """The curriculum to learn by when none is given."""

    @abstractmethod
    def compute_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of outcomes (…, U) under contexts (…, C)."""

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Whether outcomes fulfil contexts; by default where the reward is positive."""
        return np.asarray(self.compute_reward(outcome, context)) > 0

    def to_context(self, outcome: Array) -> Array:
        """The contexts that outcomes fulfil, for relabelling; by default the same vectors."""
        return outcome


def check_context(context: Any, space: spaces.Box) -> Array:
    """A context as an array of its space, or an error that says what is wrong with it."""
    try:
        array = np.asarray(context, space.dtype)
    except (TypeError, ValueError) as error:
        raise RollinError(f"A context must hold real numbers, got {context!r}.") from error
    if array.shape != space.shape:
        raise RollinError(
            f"A context must have shape {space.shape}, as the env's context_space has, "
            f"got {array.shape}."
        )
    if not space.contains(array):
        raise RollinError(
            f"The context {array.tolist()} lies outside the env's context_space "
            f"(from {space.low.tolist()} to {space.high.tolist()}): choose one inside, or widen "
            "the space."
        )
    return array


def context_of(options: dict[str, Any] | None, space: spaces.Box, before: Array) -> Array:
    """The context that `reset(options=...)` asks for; the one before if it asks for none."""
    if options is None or "context" not in options:
        return before
    return check_context(options["context"], space)


# ------------------------------------------------------------------ wrappers


class _Wrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Holds the context, and computes rewards from outcome and context."""

    context_space: spaces.Box
    curriculum: Curriculum | None
    context: Array

    def __init__(
        self,
        env: Env,
        observation: spaces.Space[Any],
        context_space: spaces.Box,
        curriculum: Curriculum | None,
    ) -> None:
        super().__init__(env)
        if not isinstance(context_space, spaces.Box):
            raise RollinError(f"context_space must be a Box of real numbers, got {context_space}.")
        self.context_space, self.curriculum = context_space, curriculum
        self.observation_space = spaces.Dict(observation=observation, context=context_space)
        first = context_space.low if curriculum is None else curriculum.contexts[-1]
        middle = np.where(np.isfinite(first), first, 0.0)
        self.context = np.clip(middle, context_space.low, context_space.high).astype(
            context_space.dtype
        )

    def _observed(self, observation: Any) -> dict[str, Any]:
        return {"observation": observation, "context": self.context.copy()}


class Contextual(_Wrapper):
    """A contextual env of any Gymnasium env and a reward function of (outcome, context).

    outcome: from observation and info to all that the reward needs (by default the observation);
    to_context: from outcomes to contexts that they fulfil, for relabelling; is_success: whether
    outcomes fulfil contexts (by default where the reward is positive).
    """

    def __init__(
        self,
        env: Env,
        context_space: spaces.Box,
        reward: Reward,
        *,
        outcome: Callable[[Any, dict[str, Any]], ArrayLike] = lambda observation, info: observation,
        to_context: Callable[[Array], Array] | None = None,
        is_success: Reward | None = None,
        curriculum: Curriculum | None = None,
    ) -> None:
        super().__init__(env, env.observation_space, context_space, curriculum)
        self._reward, self._outcome = reward, outcome
        self._to_context, self._is_success = to_context, is_success

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode, under another context if `options` has one."""
        self.context = context_of(options, self.context_space, self.context)
        rest = {name: value for name, value in (options or {}).items() if name != "context"}
        observation, info = self.env.reset(seed=seed, options=rest or None)
        return self._observed(observation), {**info, "outcome": self._outcome(observation, info)}

    def step(self, action: Any) -> Any:
        """One step; the reward is that of the context, not the env's own."""
        observation, _, terminated, truncated, info = self.env.step(action)
        outcome = np.asarray(self._outcome(observation, info))
        reward = float(self._reward(outcome, self.context))
        info = {**info, "outcome": outcome}
        return self._observed(observation), reward, terminated, truncated, info

    def compute_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of outcomes (…, U) under contexts (…, C)."""
        return np.asarray(self._reward(outcome, context))

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Whether outcomes fulfil contexts."""
        if self._is_success is not None:
            return np.asarray(self._is_success(outcome, context), bool)
        return self.compute_reward(outcome, context) > 0

    def to_context(self, outcome: Array) -> Array:
        """The contexts that outcomes fulfil."""
        return outcome if self._to_context is None else self._to_context(outcome)


class GoalContext(_Wrapper):
    """A contextual env of a goal env: outcome = achieved goal, context = desired goal.

    The env's own goal follows where it keeps it in `env.unwrapped.goal`. is_success: whether
    achieved goals fulfil desired ones; by default where the reward is positive, which does not fit
    rewards of -1 and 0. reset_options: options that the env's own reset always gets, such as where
    to start.
    """

    def __init__(
        self,
        env: Env,
        *,
        is_success: Reward | None = None,
        curriculum: Curriculum | None = None,
        reset_options: dict[str, Any] | None = None,
    ) -> None:
        parts = env.observation_space
        wanted = {"observation", "achieved_goal", "desired_goal"}
        if not isinstance(parts, spaces.Dict) or not wanted <= parts.spaces.keys():
            raise RollinError(
                f"{name_of(env)} is no goal env: its observations must be a Dict with "
                f"observation, achieved_goal and desired_goal, got {parts}."
            )
        super().__init__(env, parts["observation"], _box(parts["desired_goal"]), curriculum)
        try:
            self._compute_reward = env.get_wrapper_attr("compute_reward")
        except AttributeError as error:
            raise RollinError(
                f"{name_of(env)} has no compute_reward(achieved_goal, desired_goal, info), as "
                "goal envs do: give it one, or use rollin.Contextual with a reward function."
            ) from error
        self._is_success, self._reset_options = is_success, reset_options or {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode, under another goal if `options` has one."""
        self.context = context_of(options, self.context_space, self.context)
        asked = {**self._reset_options, **(options or {})}
        asked.pop("context", None)
        observation, info = self.env.reset(seed=seed, options=asked or None)
        self._set_goal()
        return self._take(observation, info)

    def step(self, action: Any) -> Any:
        """One step; the reward is that of the context."""
        observation, _, terminated, truncated, info = self.env.step(action)
        observed, info = self._take(observation, info)
        reward = float(self.compute_reward(info["outcome"], self.context))
        self._set_goal()  # some goal envs choose another one on success
        return observed, reward, terminated, truncated, info

    def _take(
        self, observation: Any, info: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        outcome = np.asarray(observation["achieved_goal"])
        return self._observed(observation["observation"]), {**info, "outcome": outcome}

    def _set_goal(self) -> None:
        inner: Any = self.env.unwrapped
        if hasattr(inner, "goal"):
            inner.goal = self.context.copy()
            if hasattr(inner, "update_target_site_pos"):
                inner.update_target_site_pos()

    def compute_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of achieved goals (…, C) under desired goals (…, C)."""
        return np.asarray(self._compute_reward(outcome, context, {}))

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Whether achieved goals fulfil desired ones."""
        if self._is_success is not None:
            return np.asarray(self._is_success(outcome, context), bool)
        return self.compute_reward(outcome, context) > 0

    def to_context(self, outcome: Array) -> Array:
        """An achieved goal fulfils itself."""
        return outcome


def _box(space: spaces.Space[Any]) -> spaces.Box:
    if not isinstance(space, spaces.Box):
        raise RollinError(f"Goals must lie in a Box of real numbers, got {space}.")
    return space


# ------------------------------------------------------------------ as the algorithms see it


@dataclass(slots=True)
class ContextStep:
    """What a step of a contextual environment gave."""

    observation: Float
    reward: float
    terminated: bool
    truncated: bool
    outcome: Float


class ContextEnv:
    """Checks the spaces of a contextual env once, scales actions, and gives float32 vectors.

    Whatever the env raises becomes one sentence; the env may be wrapped in others of Gymnasium's.
    """

    def __init__(self, env: Env) -> None:
        self.env = env
        name = name_of(env)
        context_space = _attribute(env, "context_space")
        parts = env.observation_space
        if not isinstance(context_space, spaces.Box) or len(context_space.shape) != 1:
            raise RollinError(
                f"{name} is no contextual env: it needs a context_space that is a one-dimensional "
                f"Box, got {context_space}. rollin.Contextual(env, context_space, reward) makes "
                "one of any env, rollin.GoalContext(env) of a goal env."
            )
        if not isinstance(parts, spaces.Dict) or parts.spaces.keys() != {"observation", "context"}:
            raise RollinError(
                f"{name} must have observations in a Dict with the entries observation and "
                f"context, got {parts}."
            )
        observed = parts["observation"]
        if not isinstance(observed, spaces.Box):
            raise RollinError(
                f"{name} must have an observation in a Box of real numbers, got {observed}."
            )
        if parts["context"] != context_space:
            raise RollinError(
                f"{name} must have the same Box as context_space and as its observation's "
                f"context, got {context_space} and {parts['context']}."
            )
        for method in ("compute_reward", "is_success", "to_context"):
            if not callable(_attribute(env, method)):
                raise RollinError(
                    f"{name} must have a method {method}: derive it from rollin.ContextualEnv, "
                    "which has what can be left out."
                )
        self.context_space = context_space
        self.observation_size = int(np.prod(observed.shape))
        self.context_size = int(context_space.shape[0])
        self.actions = ActionBox(env.action_space, name)
        self.action_size = self.actions.size
        _, info = self.call("reset", seed=0)
        self.outcome_size = int(np.size(self.outcome_of(info)))
        self.compute_reward: Reward = _attribute(env, "compute_reward")
        self.is_success_of: Reward = _attribute(env, "is_success")
        self.to_context: Callable[[Array], Array] = _attribute(env, "to_context")

    @property
    def curriculum(self) -> Curriculum | None:
        """The env's own, if it has one."""
        return _attribute(self.env, "curriculum")

    def reset(self, context: Array, seed: int | None = None) -> tuple[Float, Float]:
        """Begin an episode under a context; returns the first observation and outcome.

        The context goes to the env in the precision of its space: rounded, it might lie outside.
        """
        asked = np.asarray(context, self.context_space.dtype)
        observed, info = self.call("reset", seed=seed, options={"context": asked})
        return self._vector(observed), self.outcome_of(info).astype(np.float32)

    def step(self, action: Float) -> ContextStep:
        """Act with an action in [-1, 1]^A."""
        scaled = self.actions.scale(action)
        observed, reward, terminated, truncated, info = self.call("step", scaled)
        return ContextStep(
            self._vector(observed),
            as_reward(reward, self.env),
            bool(terminated),
            bool(truncated),
            as_vector("an outcome", self.outcome_of(info), self.outcome_size, self.env),
        )

    def is_success(self, outcome: Float, context: Float) -> bool:
        """Whether an outcome fulfils a context."""
        return bool(self.is_success_of(outcome, context))

    def _vector(self, observed: Any) -> Float:
        return as_vector("an observation", observed["observation"], self.observation_size, self.env)

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """What the env's `reset` or `step` gives; whatever it raises becomes one sentence."""
        try:
            return getattr(self.env, method)(*arguments, **options)
        except RollinError:
            raise
        except Exception as error:  # an environment's own code may raise anything
            text = " ".join(str(error).split()).rstrip(".")
            raise RollinError(
                f"The environment's {method} raised {type(error).__name__}: {text}."
            ) from error

    def outcome_of(self, info: dict[str, Any]) -> Array:
        """The outcome in an info, as a vector."""
        if "outcome" not in info:
            raise RollinError(
                f"{name_of(self.env)} must give info['outcome'] at reset and at every step: all "
                f"that compute_reward needs to know; got {sorted(info)}."
            )
        return np.asarray(info["outcome"]).reshape(-1)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def _attribute(env: Env, name: str) -> Any:
    """An attribute of the env or of what it wraps; None if there is none."""
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None
