"""The contract of a contextual environment: a task for every context ω.

In the paper contexts share their dynamics and differ in the reward r_ω. The context of an env may
also change the dynamics or the start: then it declares this, and cannot be relabelled.
`Contextual` makes such an env of any Gymnasium env, by a reward function or by setting the context
in it.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from rollin.checks import at_least
from rollin.curriculum.contexts import Curriculum
from rollin.envs.box_env import Env, name_of, require_env
from rollin.errors import RollinError, format_exception

Array = NDArray[Any]
Reward = Callable[[Array, Array], Any]
"""Rewards (…) of outcomes (…, U) under contexts (…, C), batched over leading axes."""


class ContextualEnv(gymnasium.Env[Any, Any]):
    """The contract: a `gymnasium.Env` whose task is a context that can be set at reset.

    - `observation_space`: `Dict(observation=Box, context=Box)`; `context_space`: that second Box
    - `reset(options={"context": c})` sets the context until another is given; `set_context(c)`
      sets it from the next reset on, also through vector envs
    - `info["outcome"]`, at reset and at every step: all that the reward needs
    - `context_reward(outcome, context)`: the reward of a step, batched over leading axes; an env
      whose rewards are no such function sets `can_relabel = False` and needs none
    - `info["is_success"]` of a step, if there is one, else `is_success`: whether it is a success

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
    ...         return self.observed(), {"outcome": self.place}
    ...
    ...     def step(self, action):
    ...         self.place, self.left = self.place + action, self.left - 1
    ...         reward = float(self.context_reward(self.place, self.context))
    ...         return self.observed(), reward, False, self.left == 0, {"outcome": self.place}
    ...
    ...     def context_reward(self, outcome, context):
    ...         return np.exp(-5 * np.linalg.norm(outcome - context, axis=-1))
    ...
    ...     def observed(self):
    ...         return {"observation": self.place, "context": self.context}
    >>> rollin.check_env(Line())  # nothing to mend
    """

    context_space: spaces.Box
    context: Array
    """The current context."""
    can_relabel: bool = True
    """Whether `context_reward` gives the reward of any outcome under any context. False where the
    context changes the dynamics or the start, or rewards are the env's own."""
    success_ends: bool = False
    """Whether a success, and nothing else, ends the episode: relabelled transitions then end at
    successes, and recomputed returns stop there."""
    drawn_goal: slice | None = None
    """Where the observation shows a goal that the env itself draws at every reset, with the context
    as its range. The outcome must then be the achieved goal, followed by the drawn one. Relabelling
    replaces the drawn goal by achieved ones, and leaves the context as it is."""
    takes_start: bool = False
    """Whether `reset(options={"start": …})` begins at a state chosen by a teacher, such as the
    goal of an easier context."""
    curriculum: Curriculum | None = None
    """The default curriculum."""
    printed: Curriculum | None = None
    """The curriculum as in the paper's text, for --as-printed; only the paper's tasks have one."""
    measures: tuple[str, ...] = ()
    """Numbers of a step's `info` whose mean over every episode is recorded."""

    def context_reward(self, outcome: Array, context: Array) -> Array:
        """Return rewards (…) of outcomes (…, U) under contexts (…, C)."""
        # Stable-Baselines3 treats an env with the older name as a goal env
        older = getattr(self, "compute_reward", None)
        if older is None:
            raise RollinError(
                f"{type(self).__name__} has no context_reward(outcome, context): give it one, or "
                "say can_relabel = False if rewards cannot be had from outcome and context."
            )
        return np.asarray(older(outcome, context))

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Return whether outcomes fulfil contexts; by default where the reward is positive."""
        if not self.can_relabel:
            return np.zeros(np.shape(outcome)[:-1], bool)
        return np.asarray(self.context_reward(outcome, context)) > 0

    def set_context(self, context: Any) -> None:
        """Set the context from the next reset on; reachable through wrappers and vector envs."""
        if not hasattr(self, "context"):
            raise RollinError(
                f"{type(self).__name__} keeps its context elsewhere than in self.context: give it "
                "a method set_context of its own."
            )
        self.context = check_context(context, self.context_space)

    def to_context(self, outcome: Array) -> Array:
        """Return the contexts that outcomes fulfil, for relabelling; by default the outcomes."""
        return outcome

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw episodes of T steps under a context on Matplotlib's axes.

        outcomes: (T + 1, U) each, the first row from the reset. Default: every number against the
        steps.
        """
        draw_outcomes(axes, outcomes)


class TaskEnv(ContextualEnv):
    """The base of rollin's own tasks, whose episodes last `horizon` steps at most.

    The first context is the curriculum's final one.
    """

    def __init__(
        self,
        observations: spaces.Box,
        actions: Any,
        contexts: spaces.Box,
        curriculum: Curriculum,
        horizon: int,
    ) -> None:
        self.horizon = at_least(1, "horizon", horizon)
        self.observation_space = spaces.Dict(observation=observations, context=contexts)
        self.action_space = actions
        self.context_space = contexts
        self.curriculum = curriculum
        self.context = curriculum.contexts[-1].copy()
        self._steps = 0

    @abstractmethod
    def _begin(self, seed: int | None, start: Any) -> tuple[Array, dict[str, Any]]:
        """Return the first observation and info; start: where to begin, for envs that take one."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin an episode, under another context if `options` has one."""
        super().reset(seed=seed)
        known = ["context", "start"] if self.takes_start else ["context"]
        self.context = context_of(options, self.context_space, self.context, known)
        self._steps = 0
        observation, info = self._begin(seed, (options or {}).get("start"))
        return self._observed(observation), info

    def _observed(self, observation: Array) -> dict[str, Array]:
        return {"observation": observation, "context": self.context.copy()}

    def _over(self) -> bool:
        """Count a step; return whether it was the last one."""
        self._steps += 1
        return self._steps >= self.horizon


def draw_outcomes(axes: Any, outcomes: Sequence[Array]) -> None:
    """Draw every number of the outcomes against the steps, in one colour each."""
    for episode in outcomes:
        for i, values in enumerate(np.asarray(episode).T):
            axes.plot(values, color=f"C{i}", lw=0.8, alpha=0.7)
    axes.set(xlabel="step", ylabel="outcome")


def check_context(context: Any, space: spaces.Box) -> Array:
    """Return a copy of a context as an array of its space; raise if it is not in the space."""
    try:
        array = np.array(context, space.dtype)
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


def context_of(
    options: dict[str, Any] | None,
    space: spaces.Box,
    before: Array,
    known: Sequence[str] | None = None,
) -> Array:
    """Return the context in the options of `reset`; the previous one if there is none.

    known: all options of the env; None: others are for the env inside, and only a misspelt
    "context" is an error.
    """
    if not options:
        return before
    for key in map(str, options):
        misspelt = "context" not in options and get_close_matches(key, ["context"], cutoff=0.75)
        if misspelt if known is None else key not in known:
            raise RollinError(
                f"reset has no option {key!r}: expected "
                f"{' or '.join(map(repr, known or ['context']))}, as in "
                "reset(options={'context': c})."
            )
    return check_context(options["context"], space) if "context" in options else before


# ------------------------------------------------------------------ around other envs

SetContext = Callable[[Any, Array], dict[str, Any] | None]
"""Sets the context of an env before a reset; may return options for that reset."""


class ContextWrapper(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """The base of both wrappers: the context, its space, and the definition of a success."""

    context_space: spaces.Box
    curriculum: Curriculum | None
    context: Array
    can_relabel: bool
    success_ends: bool = False
    drawn_goal: slice | None = None

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
        self.context_space = context_space
        self.curriculum = curriculum
        self.observation_space = spaces.Dict(observation=observation, context=context_space)
        first = context_space.low if curriculum is None else curriculum.contexts[-1]
        middle = np.where(np.isfinite(first), first, 0.0)
        self.context = np.clip(middle, context_space.low, context_space.high).astype(
            context_space.dtype
        )

    def set_context(self, context: Any) -> None:
        """Set the context from the next reset on; reachable through wrappers and vector envs."""
        self.context = check_context(context, self.context_space)

    def _observed(self, observation: Any) -> dict[str, Any]:
        return {"observation": observation, "context": self.context.copy()}


class Contextual(ContextWrapper):
    """A contextual env of any Gymnasium env.

    reward: a function of (outcome, context), batched over leading axes; default: the env's own
    reward. context: how the env receives its context before every reset, if it changes more than
    the reward: "options" (`reset(options={"context": c})`), the name of an attribute or method of
    the env, or a function of (env, context), which may return options for the env's reset. outcome:
    from observation and info to all that the reward needs (default: the observation). to_context:
    from outcomes to contexts that they fulfil, for relabelling. can_relabel: whether rewards are a
    function of outcome and context (default: if there is a `reward` and no `context`). is_success:
    whether outcomes fulfil contexts (default: where `reward` is positive, or the env's own
    `info["is_success"]`). drawn_goal: where the vector of observations shows a goal that the env
    draws, if the context is only its range; outcomes are then the achieved goal and the drawn one,
    and relabelling (can_relabel=True) replaces the drawn one. measures: numbers of `info` to
    average. Observations in a Dict or a Tuple become one vector, as by Gymnasium's
    FlattenObservation; `outcome` receives the original ones.

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
        context: str | SetContext | None = None,
        outcome: Callable[[Any, dict[str, Any]], ArrayLike] | None = None,
        to_context: Callable[[Array], Array] | None = None,
        can_relabel: bool | None = None,
        is_success: Reward | None = None,
        drawn_goal: slice | None = None,
        measures: Sequence[str] = (),
        curriculum: Curriculum | None = None,
    ) -> None:
        require_env(env, "Contextual")
        own = {"context_space": context_space, "reward": reward, "context": context}
        own |= {"outcome": outcome, "to_context": to_context, "can_relabel": can_relabel}
        own |= {"drawn_goal": drawn_goal}
        self.drawn_goal = drawn_goal
        self._parts = _flattened(env.observation_space)
        space = env.observation_space if self._parts is None else self._parts[1]
        super().__init__(env, space, context_space, curriculum, is_success, measures, own)
        self._reward = reward
        self._outcome = outcome
        self._to_context = to_context
        self._set_env_context = None if context is None else _context_setter(env, context)
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
        if self._set_env_context is not None:
            rest |= self._set_env_context(self.env, self.context.copy()) or {}
        observation, info = self.env.reset(seed=seed, options=rest or None)
        observation, outcome = self._take(observation, info)
        return self._observed(observation), {**info, "outcome": outcome}

    def step(self, action: Any) -> Any:
        """Act; the reward is that of the context, if there is a function for it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, outcome = self._take(observation, info)
        info = {**info, "outcome": outcome}
        if self._reward is not None:
            reward = float(self._reward(outcome, self.context))
        if self.defines_success:
            info["is_success"] = truth(self.is_success(outcome, self.context))
        elif self.success_by_reward:  # the env's own would be of another task
            info["is_success"] = float(reward) > 0
        return self._observed(observation), reward, terminated, truncated, info

    def _take(self, observation: Any, info: dict[str, Any]) -> tuple[Any, Array]:
        """Return the observation, as one vector if it has parts, and the outcome."""
        flat = observation if self._parts is None else spaces.flatten(self._parts[0], observation)
        return flat, np.asarray(flat if self._outcome is None else self._outcome(observation, info))

    def context_reward(self, outcome: Array, context: Array) -> Array:
        """Return rewards (…) of outcomes (…, U) under contexts (…, C)."""
        if self._reward is None:
            raise RollinError(
                f"{name_of(self.env)} keeps its own reward, which is not known for other contexts: "
                "give rollin.Contextual a reward(outcome, context)."
            )
        return np.asarray(self._reward(outcome, context))

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Return whether outcomes fulfil contexts."""
        if self._is_success is not None:
            return np.asarray(self._is_success(outcome, context), bool)
        if self._reward is None:
            return np.zeros(np.shape(outcome)[:-1], bool)
        return self.context_reward(outcome, context) > 0

    @property
    def defines_success(self) -> bool:
        """Whether a function defines what a success is."""
        return self._is_success is not None

    @property
    def success_by_reward(self) -> bool:
        """Whether a positive reward counts as a success."""
        return self._reward is not None and not self.defines_success

    def to_context(self, outcome: Array) -> Array:
        """Return the contexts that outcomes fulfil."""
        return outcome if self._to_context is None else self._to_context(outcome)


def _flattened(space: spaces.Space[Any]) -> tuple[spaces.Space[Any], spaces.Box] | None:
    """Return a space of parts and the box of its flat vectors; None for other spaces."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return None
    flat = spaces.flatten_space(space)
    return (space, flat) if isinstance(flat, spaces.Box) else None


def truth(values: Any) -> Any:
    """Return one truth value as Python's bool, several as an array."""
    array = np.asarray(values, bool)
    return bool(array) if array.ndim == 0 else array


def _context_setter(env: Env, how: str | SetContext) -> SetContext:
    """Return a function that sets the context; how: "options", a name in the env, or itself."""
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
    return lambda env, context: set_value(layer, how, context)


def layer_with(env: Any, name: str) -> Any:
    """Return the env or the wrapper, from the outside in, that has this attribute; else None."""
    while not hasattr(env, name):
        if not isinstance(env, gymnasium.Wrapper):
            return None
        env = env.env
    return env


def set_value(layer: Any, name: str, value: Array) -> None:
    """Call a method with a vector, or set an attribute to it: to a number if it was a number."""
    before = getattr(layer, name)
    if callable(before):
        before(value)
        return
    is_number = value.size == 1 and np.ndim(before) == 0 and not isinstance(before, str | None)
    try:
        setattr(layer, name, float(value.reshape(-1)[0]) if is_number else value)
    except AttributeError as error:  # a property without a setter
        raise RollinError(
            f"{type(layer).__name__}.{name} cannot be set ({format_exception(error)}): name a "
            "method, or give a function of (env, context)."
        ) from error
