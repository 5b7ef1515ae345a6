"""Contextual environments: one dynamics, a reward r_ω for every context ω.

`ContextualEnv` is the contract; `Contextual` makes one of any Gymnasium env plus a reward function
of (outcome, context), `GoalContext` of a goal env as in Gymnasium-Robotics.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from rollin.curriculum.contexts import Curriculum
from rollin.envs.box_env import Env, name_of
from rollin.errors import RollinError

Array = NDArray[Any]
Reward = Callable[[Array, Array], Any]
"""Rewards (…) of outcomes (…, U) under contexts (…, C), batched over leading axes."""


class ContextualEnv(gymnasium.Env[Any, Any]):
    """The contract: a `gymnasium.Env` whose task is a context that can be set at reset.

    - `observation_space`: `Dict(observation=Box, context=Box)`; `context_space`: that second Box
    - `reset(options={"context": c})` sets the context until another is given
    - `info["outcome"]`, at reset and at every step: all that the reward needs to know
    - `compute_reward(outcome, context)`: the reward of a step, batched over leading axes

    >>> import gymnasium
    >>> import numpy as np
    >>> import rollin
    >>> class Line(rollin.ContextualEnv):  # walk to a place on a line
    ...     context_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    ...     action_space = gymnasium.spaces.Box(-0.1, 0.1, (1,))
    ...     observation_space = gymnasium.spaces.Dict(
    ...         observation=gymnasium.spaces.Box(-9.0, 9.0, (1,)), context=context_space
    ...     )
    ...     context = np.ones(1, np.float32)
    ...
    ...     def reset(self, *, seed=None, options=None):
    ...         super().reset(seed=seed)
    ...         self.context = np.asarray((options or {}).get("context", self.context))
    ...         self.place, self.left = np.zeros(1, np.float32), 50
    ...         return self.seen(), {"outcome": self.place}
    ...
    ...     def step(self, action):
    ...         self.place, self.left = self.place + action, self.left - 1
    ...         reward = float(self.compute_reward(self.place, self.context))
    ...         return self.seen(), reward, False, self.left == 0, {"outcome": self.place}
    ...
    ...     def compute_reward(self, outcome, context):
    ...         return np.exp(-5 * np.linalg.norm(outcome - context, axis=-1))
    ...
    ...     def seen(self):
    ...         return {"observation": self.place, "context": self.context}
    >>> rollin.check_env(Line())  # nothing to mend
    """

    context_space: spaces.Box
    curriculum: Curriculum | None = None
    """The curriculum to learn by when none is given."""
    printed: Curriculum | None = None
    """The curriculum as the paper's text has it, for --literal; only its own tasks have one."""
    measures: tuple[str, ...] = ()
    """Numbers of a step's `info` to keep the mean of, over every episode, in a run's files."""

    @abstractmethod
    def compute_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of outcomes (…, U) under contexts (…, C)."""

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Whether outcomes fulfil contexts; by default where the reward is positive."""
        return np.asarray(self.compute_reward(outcome, context)) > 0

    def to_context(self, outcome: Array) -> Array:
        """The contexts that outcomes fulfil, for relabelling; by default the same vectors."""
        return outcome

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw episodes of T steps under a context on Matplotlib's axes.

        outcomes: (T + 1, U) each, the first row from the reset. By default every number against the
        steps.
        """
        draw_outcomes(axes, outcomes)


def draw_outcomes(axes: Any, outcomes: Sequence[Array]) -> None:
    """Every number of the outcomes against the steps, a colour each."""
    for episode in outcomes:
        for i, values in enumerate(np.asarray(episode).T):
            axes.plot(values, color=f"C{i}", lw=0.8, alpha=0.7)
    axes.set(xlabel="step", ylabel="outcome")


def check_context(context: Any, space: spaces.Box) -> Array:
    """A context as an array of its space, or an error that says what is wrong with it."""
    try:
        array = np.array(context, space.dtype)  # a copy: the caller may go on with its own
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
        is_success: Reward | None,
        measures: Sequence[str],
    ) -> None:
        super().__init__(env)
        self._is_success = is_success
        self.measures = measures
        if not isinstance(context_space, spaces.Box):
            raise RollinError(f"context_space must be a Box of real numbers, got {context_space}.")
        if curriculum is not None:
            for context in curriculum.contexts:
                check_context(context, context_space)
        self.context_space, self.curriculum = context_space, curriculum
        self.observation_space = spaces.Dict(observation=observation, context=context_space)
        first = context_space.low if curriculum is None else curriculum.contexts[-1]
        middle = np.where(np.isfinite(first), first, 0.0)
        self.context = np.clip(middle, context_space.low, context_space.high).astype(
            context_space.dtype
        )

    @abstractmethod
    def compute_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of outcomes (…, U) under contexts (…, C)."""

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Whether outcomes fulfil contexts."""
        if self._is_success is not None:
            return np.asarray(self._is_success(outcome, context), bool)
        return self.compute_reward(outcome, context) > 0

    def _observed(self, observation: Any) -> dict[str, Any]:
        return {"observation": observation, "context": self.context.copy()}


class Contextual(_Wrapper):
    """A contextual env of any Gymnasium env and a reward function of (outcome, context).

    outcome: from observation and info to all that the reward needs (by default the observation);
    to_context: from outcomes to contexts that they fulfil, for relabelling; is_success: whether
    outcomes fulfil contexts (by default where the reward is positive); measures: numbers of `info`
    to keep the mean of.

    >>> import gymnasium
    >>> import numpy as np
    >>> import rollin
    >>> def close(outcome, context):  # outcome: cos, sin and speed of the pendulum
    ...     angle = np.abs(np.arctan2(outcome[..., 1], outcome[..., 0]))
    ...     return np.exp(-np.abs(angle - context[..., 0]))
    >>> angles = gymnasium.spaces.Box(0.0, np.pi, (1,), np.float64)
    >>> env = rollin.Contextual(gymnasium.make("Pendulum-v1"), angles, close)
    >>> observed, info = env.reset(seed=0, options={"context": [np.pi]})
    >>> sorted(observed), info["outcome"].shape
    (['context', 'observation'], (3,))
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
        measures: Sequence[str] = (),
        curriculum: Curriculum | None = None,
    ) -> None:
        seen = env.observation_space
        super().__init__(env, seen, context_space, curriculum, is_success, measures)
        self._reward, self._outcome = reward, outcome
        self._to_context = to_context

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

    def to_context(self, outcome: Array) -> Array:
        """The contexts that outcomes fulfil."""
        return outcome if self._to_context is None else self._to_context(outcome)


class GoalContext(_Wrapper):
    """A contextual env of a goal env: outcome = achieved goal, context = desired goal.

    The env's own goal follows where it keeps it in `env.unwrapped.goal`. is_success: whether
    achieved goals fulfil desired ones; by default where the reward is positive, which does not fit
    rewards of -1 and 0. measures: numbers of `info` to keep the mean of. reset_options: options
    that the env's own reset always gets, such as where to start.

    >>> import gymnasium
    >>> import numpy as np
    >>> import rollin
    >>> box = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    >>> class Jump(gymnasium.Env):  # a goal env: an action is the place to go to
    ...     action_space = box
    ...     observation_space = gymnasium.spaces.Dict(
    ...         observation=box, achieved_goal=box, desired_goal=box
    ...     )
    ...     goal = np.zeros(2, np.float32)
    ...
    ...     def at(self, place):
    ...         return {"observation": place, "achieved_goal": place, "desired_goal": self.goal}
    ...
    ...     def reset(self, *, seed=None, options=None):
    ...         return self.at(np.zeros(2, np.float32)), {}
    ...
    ...     def step(self, action):
    ...         return self.at(action), 0.0, True, False, {}
    ...
    ...     def compute_reward(self, achieved, desired, info):
    ...         return (np.linalg.norm(achieved - desired, axis=-1) < 0.1) * 1.0
    >>> env = rollin.GoalContext(Jump())
    >>> observed, info = env.reset(options={"context": [0.5, 0.5]})
    >>> observed["context"].tolist(), info["outcome"].tolist()
    ([0.5, 0.5], [0.0, 0.0])
    >>> env.step(np.array([0.5, 0.5], np.float32))[1]
    1.0
    """

    def __init__(
        self,
        env: Env,
        *,
        is_success: Reward | None = None,
        measures: Sequence[str] = (),
        curriculum: Curriculum | None = None,
        reset_options: dict[str, Any] | None = None,
    ) -> None:
        parts = env.observation_space
        wanted = {"observation", "achieved_goal", "desired_goal"}
        if not isinstance(parts, spaces.Dict) or not wanted <= parts.spaces.keys():
            raise RollinError(
                f"{name_of(env)} is not a goal env: its observations must be a Dict with "
                f"observation, achieved_goal and desired_goal, got {parts}."
            )
        goals = _box(parts["desired_goal"])
        super().__init__(env, parts["observation"], goals, curriculum, is_success, measures)
        try:
            self._compute_reward = env.get_wrapper_attr("compute_reward")
        except AttributeError as error:
            raise RollinError(
                f"{name_of(env)} has no compute_reward(achieved_goal, desired_goal, info), as "
                "goal envs do: give it one, or use rollin.Contextual with a reward function."
            ) from error
        self._reset_options = reset_options or {}

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

    def to_context(self, outcome: Array) -> Array:
        """An achieved goal fulfils itself."""
        return outcome


def _box(space: spaces.Space[Any]) -> spaces.Box:
    if not isinstance(space, spaces.Box):
        raise RollinError(f"Goals must lie in a Box of real numbers, got {space}.")
    return space
