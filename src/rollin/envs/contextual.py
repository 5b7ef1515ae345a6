"""The contract of a contextual environment: a task for every context ω.

In the paper contexts share their dynamics and differ in the reward r_ω. An env may let its context
change the dynamics or the start, too: then it says so, and cannot be relabelled.
"""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.curriculum.contexts import Curriculum
from rollin.errors import RollinError

Array = NDArray[Any]
Reward = Callable[[Array, Array], Any]
"""Rewards (…) of outcomes (…, U) under contexts (…, C), batched over leading axes."""


class ContextualEnv(gymnasium.Env[Any, Any]):
    """The contract: a `gymnasium.Env` whose task is a context that can be set at reset.

    - `observation_space`: `Dict(observation=Box, context=Box)`; `context_space`: that second Box
    - `reset(options={"context": c})` sets the context until another is given; so does
      `set_context(c)`, from the next reset on, also through vector envs
    - `info["outcome"]`, at reset and at every step: all that the reward needs to know
    - `context_reward(outcome, context)`: the reward of a step, batched over leading axes; an env
      whose rewards cannot be had that way says `can_relabel = False` and needs none
    - `info["is_success"]`, if a step has it: whether it is a success; else `is_success` tells

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
    ...         reward = float(self.context_reward(self.place, self.context))
    ...         return self.seen(), reward, False, self.left == 0, {"outcome": self.place}
    ...
    ...     def context_reward(self, outcome, context):
    ...         return np.exp(-5 * np.linalg.norm(outcome - context, axis=-1))
    ...
    ...     def seen(self):
    ...         return {"observation": self.place, "context": self.context}
    >>> rollin.check_env(Line())  # nothing to mend
    """

    context_space: spaces.Box
    context: Array
    """The context of the moment."""
    can_relabel: bool = True
    """Whether the reward under any context follows from the outcome, by `context_reward`. False
    where the context changes the dynamics or the start, or rewards are the env's own."""
    takes_start: bool = False
    """Whether `reset(options={"start": …})` begins at a place that a teacher names, such as the
    goal of an easier context."""
    curriculum: Curriculum | None = None
    """The curriculum to learn by when none is given."""
    printed: Curriculum | None = None
    """The curriculum as the paper's text has it, for --literal; only its own tasks have one."""
    measures: tuple[str, ...] = ()
    """Numbers of a step's `info` to keep the mean of, over every episode, in a run's files."""

    def context_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of outcomes (…, U) under contexts (…, C)."""
        # by its older name Stable-Baselines3 would take the env for a goal env
        older = getattr(self, "compute_reward", None)
        if older is None:
            raise RollinError(
                f"{type(self).__name__} has no context_reward(outcome, context): give it one, or "
                "say can_relabel = False if rewards cannot be had from outcome and context."
            )
        return np.asarray(older(outcome, context))

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Whether outcomes fulfil contexts; by default where the reward is positive."""
        if not self.can_relabel:
            return np.zeros(np.shape(outcome)[:-1], bool)
        return np.asarray(self.context_reward(outcome, context)) > 0

    def set_context(self, context: Any) -> None:
        """The context from the next reset on; reachable through wrappers and vector envs."""
        if not hasattr(self, "context"):
            raise RollinError(
                f"{type(self).__name__} keeps its context elsewhere than in self.context: give it "
                "a method set_context of its own."
            )
        self.context = check_context(context, self.context_space)

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


def context_of(
    options: dict[str, Any] | None,
    space: spaces.Box,
    before: Array,
    known: Sequence[str] | None = None,
) -> Array:
    """The context that `reset(options=...)` asks for; the one before if it asks for none.

    known: all options that the env takes; None: others are for the env inside, and a key is refused
    only if it is a misspelt "context".
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
