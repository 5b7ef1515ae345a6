"""A contextual env of any Gymnasium env, by a reward function or by setting the context in it."""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from rollin.curriculum.contexts import Curriculum
from rollin.envs.box_env import Env, name_of, require_env
from rollin.envs.contextual import Array, Reward, check_context, context_of
from rollin.errors import RollinError, told

Tell = Callable[[Any, Array], dict[str, Any] | None]
"""Tells an env its context before a reset; may return options for that reset."""


class ContextWrapper(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """What both wrappers share: the context, its space, and what counts as a success."""

    context_space: spaces.Box
    curriculum: Curriculum | None
    context: Array
    can_relabel: bool

    def __init__(
        self,
        env: Env,
        observation: spaces.Space[Any],
        context_space: spaces.Box,
        curriculum: Curriculum | None,
        is_success: Reward | None,
        measures: Sequence[str],
        recorded: dict[str, Any],
    ) -> None:
        # recorded: the other arguments of the subclass, for copies made from the env's spec
        shared = {"is_success": is_success, "measures": measures, "curriculum": curriculum}
        gymnasium.utils.RecordConstructorArgs.__init__(self, **shared, **recorded)
        gymnasium.Wrapper.__init__(self, env)
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

    def set_context(self, context: Any) -> None:
        """The context from the next reset on; reachable through wrappers and vector envs."""
        self.context = check_context(context, self.context_space)

    def _observed(self, observation: Any) -> dict[str, Any]:
        return {"observation": observation, "context": self.context.copy()}


class Contextual(ContextWrapper):
    """A contextual env of any Gymnasium env.

    reward: a function of (outcome, context), batched over leading axes; without it the env's own
    reward is kept. context: how the env itself gets to know its context before every reset, if it
    changes more than the reward: "options" (`reset(options={"context": c})`), the name of an
    attribute or method of the env, or a function of (env, context), which may return options for
    the env's reset. outcome: from observation and info to all that the reward needs (by default the
    observation); to_context: from outcomes to contexts that they fulfil, for relabelling;
    can_relabel: whether rewards follow from outcome and context alone, by default if there is a
    `reward` and no `context`; is_success: whether outcomes fulfil contexts (by default where
    `reward` is positive, or the env's own `info["is_success"]`); measures: numbers of `info` to
    keep the mean of. Observations in a Dict or a Tuple become one vector, as Gymnasium's
    FlattenObservation makes it; `outcome` receives them as the env gives them.

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

    The context as gravity, with Pendulum's own reward:

    >>> gravity = gymnasium.spaces.Box(1.0, 10.0, (1,), np.float64)
    >>> env = rollin.Contextual(gymnasium.make("Pendulum-v1"), gravity, context="g")
    >>> observed, info = env.reset(seed=0, options={"context": [2.5]})
    >>> env.unwrapped.g, env.can_relabel
    (2.5, False)
    """

    def __init__(
        self,
        env: Env,
        context_space: spaces.Box,
        reward: Reward | None = None,
        *,
        context: str | Tell | None = None,
        outcome: Callable[[Any, dict[str, Any]], ArrayLike] | None = None,
        to_context: Callable[[Array], Array] | None = None,
        can_relabel: bool | None = None,
        is_success: Reward | None = None,
        measures: Sequence[str] = (),
        curriculum: Curriculum | None = None,
    ) -> None:
        require_env(env, "Contextual")
        own = {"context_space": context_space, "reward": reward, "context": context}
        own |= {"outcome": outcome, "to_context": to_context, "can_relabel": can_relabel}
        self._parts = _flattened(env.observation_space)
        seen = env.observation_space if self._parts is None else self._parts[1]
        super().__init__(env, seen, context_space, curriculum, is_success, measures, own)
        self._reward, self._outcome = reward, outcome
        self._to_context = to_context
        self._tell = None if context is None else teller(env, context)
        if reward is None and context is None:
            raise RollinError(
                f"A context would change nothing in {name_of(env)}: give rollin.Contextual a "
                "reward(outcome, context), or say by context= how the env gets to know it."
            )
        if reward is None and can_relabel:
            raise RollinError(
                "can_relabel=True needs a reward(outcome, context): the env's own reward under "
                "another context is not known."
            )
        by_reward = reward is not None and context is None
        self.can_relabel = by_reward if can_relabel is None else can_relabel

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode, under another context if `options` has one."""
        self.context = context_of(options, self.context_space, self.context)
        rest = {name: value for name, value in (options or {}).items() if name != "context"}
        if self._tell is not None:
            rest |= self._tell(self.env, self.context.copy()) or {}
        observation, info = self.env.reset(seed=seed, options=rest or None)
        observation, outcome = self._take(observation, info)
        return self._observed(observation), {**info, "outcome": outcome}

    def step(self, action: Any) -> Any:
        """One step; the reward is that of the context, if there is a function for it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, outcome = self._take(observation, info)
        info = {**info, "outcome": outcome}
        if self._reward is not None:
            reward = float(self._reward(outcome, self.context))
        if self.tells_success:
            info["is_success"] = truth(self.is_success(outcome, self.context))
        elif self.success_by_reward:  # the env's own would be of another task
            info["is_success"] = float(reward) > 0
        return self._observed(observation), reward, terminated, truncated, info

    def _take(self, observation: Any, info: dict[str, Any]) -> tuple[Any, Array]:
        """Observation, as one vector if it has parts, and outcome of a reset or a step."""
        seen = observation if self._parts is None else spaces.flatten(self._parts[0], observation)
        return seen, np.asarray(seen if self._outcome is None else self._outcome(observation, info))

    def context_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of outcomes (…, U) under contexts (…, C)."""
        if self._reward is None:
            raise RollinError(
                f"{name_of(self.env)} keeps its own reward, which is not known for other contexts: "
                "give rollin.Contextual a reward(outcome, context)."
            )
        return np.asarray(self._reward(outcome, context))

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Whether outcomes fulfil contexts."""
        if self._is_success is not None:
            return np.asarray(self._is_success(outcome, context), bool)
        if self._reward is None:
            return np.zeros(np.shape(outcome)[:-1], bool)
        return self.context_reward(outcome, context) > 0

    @property
    def tells_success(self) -> bool:
        """Whether a function says what a success is."""
        return self._is_success is not None

    @property
    def success_by_reward(self) -> bool:
        """Whether a positive reward is taken for a success."""
        return self._reward is not None and not self.tells_success

    def to_context(self, outcome: Array) -> Array:
        """The contexts that outcomes fulfil."""
        return outcome if self._to_context is None else self._to_context(outcome)


def _flattened(space: spaces.Space[Any]) -> tuple[spaces.Space[Any], spaces.Box] | None:
    """A space of parts and the box of its flat vectors; None for others."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return None
    flat = spaces.flatten_space(space)
    return (space, flat) if isinstance(flat, spaces.Box) else None


def truth(found: Any) -> Any:
    """One truth value as Python's; whoever asks tells if there are more."""
    array = np.asarray(found, bool)
    return bool(array) if array.ndim == 0 else array


def teller(env: Env, how: str | Tell) -> Tell:
    """A function that tells an env its context; how: "options", a name in the env, or itself."""
    if callable(how):
        return how
    if how == "options":
        return lambda env, context: {"context": context}
    layer = layer_with(env, how)
    if layer is None:
        raise RollinError(
            f'{name_of(env)} has no attribute or method {how!r}: context must be "options", a name '
            "in the env, or a function of (env, context)."
        )

    def tell(env: Any, context: Array) -> None:
        put(layer, how, context)

    return tell


def layer_with(env: Any, name: str) -> Any:
    """The env or the wrapper, from the outside in, that has something of this name itself."""
    while True:
        if hasattr(env, name):
            return env
        if not isinstance(env, gymnasium.Wrapper):
            return None
        env = env.env


def put(layer: Any, name: str, value: Array) -> None:
    """Call a method with a vector, or set an attribute to it; a number where there was a number."""
    there = getattr(layer, name)
    if callable(there):
        there(value)
        return
    number = value.size == 1 and np.ndim(there) == 0 and not isinstance(there, str)
    try:
        setattr(layer, name, float(value.reshape(-1)[0]) if number and there is not None else value)
    except AttributeError as error:  # a property without a setter
        raise RollinError(
            f"{type(layer).__name__}.{name} cannot be set ({told(error)}): name a method, or give "
            "a function of (env, context)."
        ) from error
