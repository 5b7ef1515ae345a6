"""A contextual env of any kind, guarded: contexts, outcomes, successes, measures, its curriculum.

Whatever an environment's own code raises or gives in a wrong form becomes one sentence.
Observations and actions are the env's own; `rollin.envs.context_env` makes vectors of them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollin.curriculum.contexts import Curriculum
from rollin.envs.box_env import LONGEST, Env, GuardedEnv, form_of
from rollin.envs.contextual import Array, draw_outcomes
from rollin.errors import RollinError, told

METHODS = {
    "reward": ("compute_reward", "context_reward"),  # the first is the older name
    "success": ("is_success",),
    "to_context": ("to_context",),
}
"""What a contextual env is asked, and the names of the method that answers."""
RESERVED = ("step", "k", "kappa", "return", "length", "success", "rollin", "rollin_steps")
"""Names of a run's own columns, which measures must not take."""


class ContextHandle(GuardedEnv):
    """Checks the contract of a contextual env once; it may be wrapped in others of Gymnasium's."""

    def __init__(self, env: Env) -> None:
        if not isinstance(env, gymnasium.Env):
            raise RollinError(f"A contextual Gymnasium env is needed, {_not_this(env)}.")
        super().__init__(env)
        self.context_space = self._context_box()
        self.context_size = int(self.context_space.shape[0])
        self._check_kinds()
        relabels = _of_contextual(env, "can_relabel")
        self.can_relabel = True if relabels is None else bool(relabels)
        self.takes_start = bool(_of_contextual(env, "takes_start"))
        self._methods: dict[str, Callable[..., Any]] = {}
        self._names: dict[str, str] = {}
        for what, names in METHODS.items():
            for name in names:
                found = _of_contextual(env, name)
                if callable(found) and what not in self._methods:
                    self._methods[what], self._names[what] = found, name
            if self.can_relabel and what not in self._methods:
                raise RollinError(
                    f"{self.name} must have a method {names[-1]}: derive it from "
                    "rollin.ContextualEnv, which has what can be left out."
                )
        self.measures = self._named_measures()

    def _context_box(self) -> spaces.Box:
        """The box of contexts."""
        name, parts = self.name, self.env.observation_space
        context = _attribute(self.env, "context_space")
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

    def _check_kinds(self) -> None:
        """Refuse observations or actions that cannot be used; here any can."""

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

    def compute_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of outcomes (…, U) under contexts (…, C)."""
        return self._numbers("reward", outcome, context)

    def to_context(self, outcome: Array) -> Array:
        """The contexts (…, C) that outcomes (…, U) fulfil."""
        return self._numbers("to_context", outcome)

    def are_successes(self, outcomes: Array, contexts: Array) -> Array:
        """Whether outcomes (…, U) fulfil contexts (…, C)."""
        return self._numbers("success", outcomes, contexts)

    def is_success(self, outcome: Array, context: Array) -> bool:
        """Whether one outcome fulfils a context."""
        if "success" not in self._methods:
            return False  # nothing says so
        found = self._numbers("success", outcome, context)
        if found.ndim != 0:
            raise RollinError(
                f"{self.name}: is_success must give one value for one outcome, got shape "
                f"{found.shape}: reduce over the last axis (axis=-1)."
            )
        return bool(found)

    def require_relabelling(self) -> None:
        """Refuse to relabel an env that says that it cannot be."""
        if not self.can_relabel:
            raise RollinError(
                f"{self.name} cannot be relabelled: its reward under another context does not "
                "follow from the outcome, because the context changes the dynamics or the start, "
                "or the reward is the env's own. Leave out --relabel, or give the env a reward "
                "that is a function of outcome and context."
            )

    def draw(self, axes: Any, context: Array, outcomes: Sequence[Array]) -> None:
        """Draw episodes under a context, as the env does, or every number against the steps."""
        own = _of_contextual(self.env, "draw")
        if callable(own):
            self.call("draw", own, axes, context, outcomes)
        else:
            draw_outcomes(axes, outcomes)

    # -------------------------------------------------------------- the env's own code

    def outcome_of(self, info: dict[str, Any]) -> Array:
        """The outcome in an info, as a vector."""
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

    def told_success(self, info: dict[str, Any]) -> bool | None:
        """Whether a step says that it is a success; None if it does not say."""
        found = info.get("is_success")
        if found is None:
            return None
        if np.size(found) != 1:
            raise RollinError(
                f"{self.name}: info['is_success'] must be one value, got shape {np.shape(found)}: "
                "reduce over the last axis (axis=-1)."
            )
        return self.call("info['is_success']", lambda: bool(np.reshape(found, ())))

    def success_of(self, info: dict[str, Any], context: Array) -> bool:
        """Whether a step under a context is a success: as its info tells, or by its outcome."""
        said = self.told_success(info)
        return self.is_success(self.outcome_of(info), context) if said is None else said

    def count_step(self, over: bool) -> None:
        """Count a step, and refuse an episode that has no end."""
        self._count(over, LONGEST, ", or use --horizon")

    def measured(self, info: dict[str, Any]) -> tuple[float, ...]:
        """The env's own measures in the info of a step."""
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

    def name_of(self, what: str) -> str:
        """How the env calls the method that gives rewards, successes or contexts."""
        return self._names[what] if what in self._names else METHODS[what][-1]

    def _numbers(self, what: str, *arguments: Any) -> Array:
        """What a method of the env's gives, as an array of numbers or of truth values."""
        method = self.name_of(what)
        if what not in self._methods:
            raise RollinError(f"{self.name} has no {method}(…), and says that it needs none.")
        try:
            found = self.call(method, self._methods[what], *arguments)
        except RollinError as error:
            if np.ndim(arguments[0]) < 2:
                raise
            raise RollinError(
                f"{str(error).rstrip('.')}; it was called with a batch of {len(arguments[0])} "
                "outcomes, as relabelling does: the last axis is the vector."
            ) from error
        array = self.call(method, np.asarray, found)
        if array.dtype.kind not in "fiub":
            raise RollinError(
                f"{self.name}: {method} must give numbers, got {form_of(found)}: does it return?"
            )
        return array


def _not_this(given: Any) -> str:
    """What a user gave in the place of an env, and what to do."""
    return vector_env(given) or f"made and not as a class, got {form_of(given)}"


def vector_env(given: Any) -> str:
    """What to do with a vector env in the place of an env; empty if it is none."""
    if not hasattr(given, "num_envs"):
        return ""
    return (
        f"got the vector env {type(given).__name__}: give one env, or a function that makes "
        "it; for vector envs there is rollin.RollIn around the agents of Stable-Baselines3, and "
        "rollin.attach (docs/agents.md)"
    )


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
