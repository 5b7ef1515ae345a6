"""A contextual env as the algorithms see it: float32 vectors out, actions in [-1, 1] in.

Whatever an environment's own code raises or gives in a wrong form becomes one sentence.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollin.arrays import Float
from rollin.curriculum.contexts import Curriculum
from rollin.envs import box_env
from rollin.envs.box_env import ActionBox, Env, GuardedEnv, as_vector, form_of, is_vector
from rollin.envs.contextual import Array, draw_outcomes
from rollin.errors import RollinError, told

METHODS = ("compute_reward", "is_success", "to_context")
RESERVED = ("step", "k", "kappa", "return", "length", "success", "rollin", "rollin_steps")
"""Names of a run's own columns, which measures must not take."""
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


class ContextEnv(GuardedEnv):
    """Checks the spaces of a contextual env once; it may be wrapped in others of Gymnasium's."""

    def __init__(self, env: Env) -> None:
        if not isinstance(env, gymnasium.Env):
            raise RollinError(
                "A contextual Gymnasium env is needed, made and not as a class, got "
                f"{form_of(env)}."
            )
        super().__init__(env)
        observed, self.context_space = self._spaces()
        self._methods: dict[str, Callable[..., Any]] = {}
        for method in METHODS:
            found = _attribute(env, method)
            if not callable(found):
                raise RollinError(
                    f"{self.name} must have a method {method}: derive it from "
                    "rollin.ContextualEnv, which has what can be left out."
                )
            self._methods[method] = found
        self.observation_size = int(np.prod(observed.shape))
        self.context_size = int(self.context_space.shape[0])
        self.actions = ActionBox(env.action_space, self.name)
        self.action_size = self.actions.size
        self.measures = self._named_measures()
        _, info = self.raw_reset(seed=0)
        self.outcome_size = int(np.size(self.outcome_of(info)))

    def _spaces(self) -> tuple[spaces.Box, spaces.Box]:
        """The boxes of observations and of contexts."""
        name, parts = self.name, self.env.observation_space
        context = _attribute(self.env, "context_space")
        if not isinstance(context, spaces.Box) or len(context.shape) != 1:
            raise RollinError(
                f"{name} is not a contextual env: it needs a context_space that is a "
                f"one-dimensional Box, got {context}. rollin.Contextual(env, context_space, "
                "reward) makes "
                "one of any env, rollin.GoalContext(env) of a goal env."
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
        observed = parts["observation"]
        if not isinstance(observed, spaces.Box):
            raise RollinError(
                f"{name} must have an observation in a Box of real numbers, got {observed}."
            )
        if parts["context"] != context:
            raise RollinError(
                f"{name} must have the same Box as context_space and as its observation's "
                f"context, got {context} and {parts['context']}."
            )
        return observed, context

    def _named_measures(self) -> tuple[str, ...]:
        """Names of the numbers in `info` that are kept."""
        named = _of_contextual(self.env, "measures")
        named = () if named is None else named
        fits = isinstance(named, tuple | list) and all(
            isinstance(name, str) and name.isidentifier() and name not in RESERVED for name in named
        )
        if not fits or len(set(named)) < len(named):
            raise RollinError(
                f"{self.name}: measures must be names of numbers in info, each once and none of "
                f"{', '.join(RESERVED)}, such as ('x_velocity',); got {named!r}."
            )
        return tuple(named)

    @property
    def curriculum(self) -> Curriculum | None:
        """The env's own, if it has one."""
        return self._named_curriculum("curriculum")

    @property
    def printed(self) -> Curriculum | None:
        """The curriculum as the paper's text has it, if the env is one of the paper's."""
        return self._named_curriculum("printed")

    def _named_curriculum(self, name: str) -> Curriculum | None:
        own = _attribute(self.env, name)
        if own is not None and not isinstance(own, Curriculum):
            raise RollinError(
                f"{self.name}: its {name} must be a rollin.Curriculum, got "
                f"{type(own).__name__}: Curriculum.listed(contexts, R) makes one of a list."
            )
        return own

    def reset(self, context: Array, seed: int | None = None) -> tuple[Float, Float]:
        """Begin an episode under a context; returns the first observation and outcome.

        The context goes to the env in the precision of its space: rounded, it might lie outside.
        """
        asked = np.array(context, self.context_space.dtype)
        observed, info = self.raw_reset(seed=seed, options={"context": asked})
        return self._vector(observed), self._outcome_vector(info)

    def step(self, action: Float) -> ContextStep:
        """Act with an action in [-1, 1]^A."""
        observed, reward, terminated, truncated, info = self.raw_step(self.actions.scale(action))
        self._count(terminated or truncated, LONGEST, ", or use --horizon")
        return ContextStep(
            self._vector(observed),
            reward,
            terminated,
            truncated,
            self._outcome_vector(info),
            self._measured(info),
        )

    def compute_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of outcomes (…, U) under contexts (…, C)."""
        return self._numbers("compute_reward", outcome, context)

    def to_context(self, outcome: Array) -> Array:
        """The contexts (…, C) that outcomes (…, U) fulfil."""
        return self._numbers("to_context", outcome)

    def are_successes(self, outcomes: Array, contexts: Array) -> Array:
        """Whether outcomes (…, U) fulfil contexts (…, C)."""
        return self._numbers("is_success", outcomes, contexts)

    def is_success(self, outcome: Float, context: Float) -> bool:
        """Whether one outcome fulfils a context."""
        found = self._numbers("is_success", outcome, context)
        if found.ndim != 0:
            raise RollinError(
                f"{self.name}: is_success must give one value for one outcome, got shape "
                f"{found.shape}: reduce over the last axis (axis=-1)."
            )
        return bool(found)

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw episodes under a context, as the env does, or every number against the steps."""
        own = _of_contextual(self.env, "draw")
        if callable(own):
            self._call("draw", own, axes, context, outcomes)
        else:
            draw_outcomes(axes, outcomes)

    # -------------------------------------------------------------- the env's own code

    def outcome_of(self, info: dict[str, Any]) -> Array:
        """The outcome in an info, as a vector."""
        if "outcome" not in info:
            raise RollinError(
                f"{self.name} must give info['outcome'] at reset and at every step: all "
                f"that compute_reward needs to know; got {sorted(map(str, info))}."
            )
        outcome = self._call("info['outcome']", np.asarray, info["outcome"])
        if outcome.dtype.kind not in "fiub":
            raise RollinError(
                f"{self.name} must give info['outcome'] as real numbers, got "
                f"{type(info['outcome']).__name__} of {outcome.dtype}."
            )
        return outcome.reshape(-1)

    def check_vectors(self, observed: Any, info: dict[str, Any], when: str) -> None:
        """Refuse what `reset` and `step` could not take: sizes, types, numbers not finite."""
        parts = {"observation": self._vector(observed), "outcome": self._outcome_vector(info)}
        for what, vector in parts.items():
            if not np.isfinite(vector).all():
                raise RollinError(f"{self.name} gave an {what} that is not finite after {when}.")
        if when == "step":
            self._measured(info)

    def _measured(self, info: dict[str, Any]) -> tuple[float, ...]:
        try:
            measured = tuple([float(info[name]) for name in self.measures])
        except (KeyError, TypeError, ValueError) as error:
            raise RollinError(
                f"{self.name} must give the numbers {', '.join(self.measures)} in the info of "
                f"every step, as its measures say: {told(error)}."
            ) from error
        if not all(map(math.isfinite, measured)):
            name, value = next(
                (name, value)
                for name, value in zip(self.measures, measured, strict=True)
                if not math.isfinite(value)
            )
            raise RollinError(f"{self.name} gave info[{name!r}] = {value}, one of its measures.")
        return measured

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

    def _numbers(self, method: str, *arguments: Any) -> Array:
        """What a method of the env's gives, as an array of numbers or of truth values."""
        found = self._call(method, self._methods[method], *arguments)
        array = self._call(method, np.asarray, found)
        if array.dtype.kind not in "fiub":
            raise RollinError(
                f"{self.name}: {method} must give numbers, got {form_of(found)}: does it return?"
            )
        return array


def _of_contextual(env: Env, name: str) -> Any:
    """An attribute of the env or a wrapper, from the outside in; None if there is none.

    What lies below the contextual layer is not ours, and may have another of the same name.
    """
    while not hasattr(env, name):
        if hasattr(env, "context_space") or not isinstance(env, gymnasium.Wrapper):
            return None
        env = env.env
    return getattr(env, name)


def _attribute(env: Env, name: str) -> Any:
    """An attribute of the env or of what it wraps; None if there is none."""
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None
