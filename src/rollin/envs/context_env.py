"""Guards around contextual envs.

`ContextHandle` serves any agent: observations and actions are the env's own. `ContextEnv` serves
SAC: float32 vectors out, actions in [-1, 1] in. Every error of an environment's own code, and every
result of a wrong form, becomes one sentence.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollin.curriculum.contexts import Curriculum
from rollin.envs.box_env import (
    ActionBox,
    Env,
    EnvStep,
    Float,
    GuardedEnv,
    as_vector,
    attribute,
    form_of,
    is_vector,
)
from rollin.envs.contextual import Array, draw_outcomes
from rollin.errors import RollinError, format_exception

METHODS = {
    "reward": ("compute_reward", "context_reward"),  # the first is the older name
    "success": ("is_success",),
    "to_context": ("to_context",),
}
"""Names of the methods of a contextual env, by their purpose."""
RESERVED = ("step", "k", "kappa", "return", "length", "success", "rollin", "rollin_steps")
"""Names of a run's own columns, which no measure may have."""


class ContextHandle(GuardedEnv):
    """Checks the contract of a contextual env once; other wrappers may be around the env."""

    limit_hint = ", or use --horizon"

    def __init__(self, env: Env) -> None:
        if not isinstance(env, gymnasium.Env):
            wrong = vector_env(env) or f"made and not as a class, got {form_of(env)}"
            raise RollinError(f"A contextual Gymnasium env is needed, {wrong}.")
        super().__init__(env)
        self.context_space = self._context_box()
        self.context_size = int(self.context_space.shape[0])
        self._check_spaces()
        relabels = _of_contextual(env, "can_relabel")
        self.can_relabel = True if relabels is None else bool(relabels)
        self.success_ends = bool(_of_contextual(env, "success_ends"))
        self.drawn_goal: slice | None = _of_contextual(env, "drawn_goal")
        self.takes_start = bool(_of_contextual(env, "takes_start"))
        self._methods: dict[str, tuple[str, Callable[..., Any]]] = {}  # names and functions
        for purpose, names in METHODS.items():
            for name in names:
                method = _of_contextual(env, name)
                if callable(method):
                    self._methods.setdefault(purpose, (name, method))
            if self.can_relabel and purpose not in self._methods:
                raise RollinError(
                    f"{self.name} must have a method {names[-1]}: derive it from "
                    "rollin.ContextualEnv, which has what can be left out."
                )
        self.measures = self._checked_measures()

    def _context_box(self) -> spaces.Box:
        """Return the box of contexts."""
        name = self.name
        parts = self.env.observation_space
        context = attribute(self.env, "context_space")
        if not isinstance(context, spaces.Box) or len(context.shape) != 1:
            raise RollinError(
                f"{name} is not a contextual env: it needs a context_space that is a "
                f"one-dimensional Box, got {context}. rollin.Contextual(env, context_space, "
                "reward) makes one of any env, rollin.GoalContext(env) of a goal env."
            )
        if context.dtype.kind != "f":
            raise RollinError(
                f"{name} must have contexts of real numbers, got a context_space of "
                f"{context.dtype}: make it a Box of float32 or float64."
            )
        if not isinstance(parts, spaces.Dict) or parts.spaces.keys() != {"observation", "context"}:
            raise RollinError(
                f"{name} must have observations in a Dict with the entries observation and "
                f"context, got {parts}."
            )
        if parts["context"] != context:
            raise RollinError(
                f"{name} must have the same Box as context_space and as its observation's "
                f"context, got {context} and {parts['context']}."
            )
        return context

    def _check_spaces(self) -> None:
        """Raise for unusable observations or actions; a handle takes any."""

    def _checked_measures(self) -> tuple[str, ...]:
        """Return the names of the numbers in `info` to record."""
        names = _of_contextual(self.env, "measures")
        names = () if names is None else names
        fits = isinstance(names, tuple | list) and all(
            isinstance(name, str) and name.isidentifier() and name not in RESERVED for name in names
        )
        if not fits or len(set(names)) < len(names):
            raise RollinError(
                f"{self.name}: measures must be names of numbers in info, each once and none of "
                f"{', '.join(RESERVED)}, such as ('x_velocity',); got {names!r}."
            )
        return tuple(names)

    @property
    def curriculum(self) -> Curriculum | None:
        """Return the env's own curriculum, if it has one."""
        return self._own_curriculum("curriculum")

    @property
    def printed(self) -> Curriculum | None:
        """Return the curriculum as in the paper's text, if the env is one of the paper's."""
        return self._own_curriculum("printed")

    def _own_curriculum(self, name: str) -> Curriculum | None:
        own = attribute(self.env, name)
        if own is not None and not isinstance(own, Curriculum):
            raise RollinError(
                f"{self.name}: its {name} must be a rollin.Curriculum, got "
                f"{type(own).__name__}: Curriculum.listed(contexts, R) makes one of a list."
            )
        return own

    def compute_reward(self, outcome: Array, context: Array) -> Array:
        """Return rewards (…) of outcomes (…, U) under contexts (…, C)."""
        return self._numbers("reward", outcome, context)

    def to_context(self, outcome: Array) -> Array:
        """Return the contexts (…, C) that outcomes (…, U) fulfil."""
        return self._numbers("to_context", outcome)

    def are_successes(self, outcomes: Array, contexts: Array) -> Array:
        """Return whether outcomes (…, U) fulfil contexts (…, C)."""
        return self._numbers("success", outcomes, contexts)

    def is_success(self, outcome: Array, context: Array) -> bool:
        """Return whether one outcome fulfils a context."""
        if "success" not in self._methods:
            return False
        success = self._numbers("success", outcome, context)
        if success.ndim != 0:
            raise RollinError(
                f"{self.name}: is_success must give one value for one outcome, got shape "
                f"{success.shape}: reduce over the last axis (axis=-1)."
            )
        return bool(success)

    def require_relabelling(self) -> None:
        """Raise if the env cannot be relabelled."""
        if not self.can_relabel:
            raise RollinError(
                f"{self.name} cannot be relabelled: its reward under another context does not "
                "follow from the outcome, because the context changes the dynamics or the start, "
                "or the reward is the env's own. Leave out --relabel, or give the env a reward "
                "that is a function of outcome and context."
            )

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw episodes by the env's own `draw`, or every number against the steps."""
        own = _of_contextual(self.env, "draw")
        if callable(own):
            self.call("draw", own, axes, context, outcomes)
        else:
            draw_outcomes(axes, outcomes)

    def outcome_of(self, info: dict[str, Any]) -> Array:
        """Return the outcome of an info as a vector."""
        if "outcome" not in info:
            raise RollinError(
                f"{self.name} must give info['outcome'] at reset and at every step: all "
                f"that its reward needs to know; got {sorted(map(str, info))}."
            )
        outcome = self.call("info['outcome']", np.asarray, info["outcome"])
        if outcome.dtype.kind not in "fiub":
            raise RollinError(
                f"{self.name} must give info['outcome'] as real numbers, got "
                f"{type(info['outcome']).__name__} of {outcome.dtype}."
            )
        return outcome.reshape(-1)

    def reported_success(self, info: dict[str, Any]) -> bool | None:
        """Return info["is_success"] as a bool; None if there is none."""
        success = info.get("is_success")
        if success is None:
            return None
        if np.size(success) != 1:
            raise RollinError(
                f"{self.name}: info['is_success'] must be one value, got shape {np.shape(success)}:"
                " reduce over the last axis (axis=-1)."
            )
        return self.call("info['is_success']", lambda: bool(np.reshape(success, ())))

    def success_of(self, info: dict[str, Any], context: Array) -> bool:
        """Return whether a step is a success: by its info, else by its outcome."""
        success = self.reported_success(info)
        return self.is_success(self.outcome_of(info), context) if success is None else success

    def measured(self, info: dict[str, Any]) -> tuple[float, ...]:
        """Return the env's own measures in the info of a step."""
        try:
            measured = tuple([float(info[name]) for name in self.measures])
        except (KeyError, TypeError, ValueError) as error:
            raise RollinError(
                f"{self.name} must give the numbers {', '.join(self.measures)} in the info of "
                f"every step, as its measures say: {format_exception(error)}."
            ) from error
        if not all(map(math.isfinite, measured)):
            pairs = zip(self.measures, measured, strict=True)
            name, value = next(pair for pair in pairs if not math.isfinite(pair[1]))
            raise RollinError(f"{self.name} gave info[{name!r}] = {value}, one of its measures.")
        return measured

    def check_result(self, observation: Any, info: dict[str, Any], when: str) -> None:
        """Raise for an unusable observation or info; when: "reset" or "step"."""
        if when == "step":
            self.measured(info)

    def name_of(self, purpose: str) -> str:
        """Return the env's name of the method that gives rewards, successes or contexts."""
        return self._methods[purpose][0] if purpose in self._methods else METHODS[purpose][-1]

    def _numbers(self, purpose: str, *arguments: Any) -> Array:
        """Return the result of a method of the env as an array of numbers or truth values."""
        if purpose not in self._methods:
            raise RollinError(
                f"{self.name} has no {self.name_of(purpose)}(…), as its can_relabel is False."
            )
        name, method = self._methods[purpose]
        try:
            result = self.call(name, method, *arguments)
        except RollinError as error:
            if np.ndim(arguments[0]) < 2:
                raise
            raise RollinError(
                f"{str(error).rstrip('.')}; it was called with a batch of {len(arguments[0])} "
                "outcomes, as relabelling does: the last axis is the vector."
            ) from error
        array = self.call(name, np.asarray, result)
        if array.dtype.kind not in "fiub":
            raise RollinError(
                f"{self.name}: {name} must give numbers, got {form_of(result)}: does it return?"
            )
        return array


@dataclass(slots=True)
class ContextStep(EnvStep):
    """The results of a step of a contextual environment."""

    outcome: Float
    measured: tuple[float, ...] = ()


class ContextEnv(ContextHandle):
    """Checks that observations and actions are real vectors, and scales actions to their box."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        if self.drawn_goal is not None:
            self.drawn_goal = slice(*self.drawn_goal.indices(self.observation_size))
        _, info = self.raw_reset(seed=0)
        self.outcome_size = int(np.size(self.outcome_of(info)))
        self._context: Float = np.zeros(0, np.float32)
        self._last_success: tuple[Float, bool] | None = None  # with its outcome

    def _check_spaces(self) -> None:
        parts: Any = self.env.observation_space
        space = parts["observation"]
        if not isinstance(space, spaces.Box):
            raise RollinError(
                f"{self.name} must have an observation in a Box of real numbers, got {space}: "
                "put gymnasium.wrappers.FlattenObservation around the env before "
                "rollin.Contextual, or make the entry a Box."
            )
        self.observation_size = int(np.prod(space.shape))
        self.actions = ActionBox(self.env.action_space, self.name)
        self.action_size = self.actions.size

    def reset(
        self, context: Array, seed: int | None = None, start: Any = None
    ) -> tuple[Float, Float]:
        """Begin an episode under a context; return the first observation and outcome.

        The env receives the context in the precision of its space: rounded, it might lie outside.
        start: a state to begin in, for envs that take one.
        """
        exact = np.array(context, self.context_space.dtype)
        options = {"context": exact} if start is None else {"context": exact, "start": start}
        observation, info = self.raw_reset(seed=seed, options=options)
        self._context = exact.astype(np.float32)
        self._last_success = None
        return self._vector(observation), self._outcome_vector(info)

    def step(self, action: Float) -> ContextStep:
        """Act with an action in [-1, 1]^A."""
        observation, reward, terminated, truncated, info = self.raw_step(self.actions.scale(action))
        self.count_step(terminated or truncated)
        outcome = self._outcome_vector(info)
        success = self.reported_success(info)
        self._last_success = None if success is None else (outcome, success)
        return ContextStep(
            self._vector(observation), reward, terminated, truncated, outcome, self.measured(info)
        )

    def is_success(self, outcome: Float, context: Float) -> bool:
        """Return whether an outcome fulfils a context; of the last step, as its info reported."""
        last = self._last_success
        if last is not None and last[0] is outcome and np.array_equal(context, self._context):
            return last[1]
        return super().is_success(outcome, context)

    def check_result(self, observation: Any, info: dict[str, Any], when: str) -> None:
        """Raise for vectors of a wrong size or type, and for numbers that are not finite."""
        parts = {"observation": self._vector(observation), "outcome": self._outcome_vector(info)}
        for what, vector in parts.items():
            if not np.isfinite(vector).all():
                raise RollinError(f"{self.name} gave an {what} that is not finite after {when}.")
        super().check_result(observation, info, when)

    def _outcome_vector(self, info: dict[str, Any]) -> Float:
        outcome = info.get("outcome")
        if is_vector(outcome, self.outcome_size):  # as nearly always
            return outcome.astype(np.float32)
        return as_vector("an outcome", self.outcome_of(info), self.outcome_size, self.env)

    def _vector(self, observation: Any) -> Float:
        try:
            part = observation["observation"]
        except (TypeError, KeyError, IndexError) as error:
            raise RollinError(
                f"{self.name} must give observations as a dict of observation and context, got "
                f"{type(observation).__name__}."
            ) from error
        return as_vector("an observation", part, self.observation_size, self.env)


def vector_env(given: Any) -> str:
    """Return advice for a vector env given as an env; "" for anything else."""
    if not hasattr(given, "num_envs"):
        return ""
    return (
        f"got the vector env {type(given).__name__}: give one env, or a function that makes "
        "it; for vector envs there is rollin.RollIn around the agents of Stable-Baselines3, and "
        "rollin.attach (docs/own-agent.md)"
    )


def _of_contextual(env: Env, name: str) -> Any:
    """Return an attribute of the env or a wrapper, from the outside in; None if there is none.

    Wrappers below the contextual layer may have another of the same name, so the search ends there.
    """
    while not hasattr(env, name):
        if hasattr(env, "context_space") or not isinstance(env, gymnasium.Wrapper):
            return None
        env = env.env
    return getattr(env, name)
