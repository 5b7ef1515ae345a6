"""When to go on to the next context.

An `AdvanceRule` decides from what one learning step reports (the tabular engine), an `EpisodeRule`
from a `Window` of the last episodes under the current context (the deep engine).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

from rollin.checks import require_number
from rollin.errors import RollinError
from rollin.texts import short_repr


class AdvanceRule(Protocol):
    """Decides whether the current context is mastered."""

    def mastered(self, measured: float) -> str | None:
        """The reason to advance in words, or None to stay."""
        ...


@dataclass(frozen=True)
class SuccessRate:
    """Advance when the success rate is strictly greater than the threshold (four rooms: 50 %).

    >>> import rollin
    >>> rule = rollin.SuccessRate(0.5)
    >>> rule.mastered(0.503)
    'success rate 0.503 > 0.5'
    >>> rule.mastered(0.5) is None
    True
    """

    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.threshold, Real) and 0 <= self.threshold < 1):
            raise RollinError(
                f"The success threshold must lie in [0, 1), got {self.threshold!r}: "
                "a rate can never be greater than 1."
            )

    def mastered(self, measured: float) -> str | None:
        """`measured` is the share of successful trajectories of this step."""
        if measured > self.threshold:
            return f"success rate {measured:.3f} > {self.threshold:g}"
        return None

    def measure(self, total: float, success: bool) -> float:
        """What an episode counts for."""
        return float(success)

    def threshold_at(self, at: float) -> float:
        """The same on every context."""
        return self.threshold


@dataclass(frozen=True)
class SubOptimality:
    """Advance when the soft sub-optimality V*(ρ) - V^π(ρ) is at most ε (the theory's rule).

    >>> import rollin
    >>> rollin.SubOptimality(0.01).mastered(0.004)
    'sub-optimality 0.004 ≤ 0.01'
    """

    epsilon: float

    def __post_init__(self) -> None:
        require_number("epsilon", self.epsilon)
        if not self.epsilon > 0:
            raise RollinError(f"epsilon must be greater than 0, got {self.epsilon}.")

    def mastered(self, measured: float) -> str | None:
        """`measured` is the exact soft sub-optimality of the current policy."""
        if measured <= self.epsilon:
            return f"sub-optimality {measured:.3g} ≤ {self.epsilon:g}"
        return None


class EpisodeRule(Protocol):
    """Decides from the last episodes whether a context is mastered."""

    def measure(self, total: float, success: bool) -> float:
        """What an episode counts for, from its return and whether it was successful."""
        ...

    def threshold_at(self, at: float) -> float:
        """What the mean of the window must exceed.

        at: κ of the context, or what the curriculum's `threshold_at` names instead.
        """
        ...


@dataclass(frozen=True, repr=False)
class ReturnThreshold:
    """Advance when the mean return is strictly greater than R, a number or a function of κ.

    >>> import rollin
    >>> rising = rollin.ReturnThreshold(lambda kappa: 500 + 4500 * kappa)
    >>> rising.threshold_at(0.5)
    2750.0
    """

    R: float | Callable[[float], float]

    def __post_init__(self) -> None:
        if not callable(self.R) and not (isinstance(self.R, Real) and math.isfinite(self.R)):
            raise RollinError(f"The return threshold R must be a finite number, got {self.R!r}.")

    def __repr__(self) -> str:
        return short_repr(self, R=self.R)

    def measure(self, total: float, success: bool) -> float:
        """An episode's return."""
        return total

    def threshold_at(self, at: float) -> float:
        """R, or R(κ)."""
        value = self.R(at) if callable(self.R) else self.R
        if not isinstance(value, Real):
            raise RollinError(f"R({at:g}) must be a number, got {value!r}.")
        return float(value)


class Window:
    """What the last episodes under the current context counted for."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: list[float] = []
        self.seen = 0  # episodes under the current context
        self.largest = -math.inf  # the best of them
        self.streak = 0  # successes in a row, up to the last episode

    def add(self, value: float, *, success: bool = False) -> None:
        """Add an episode, and drop the oldest when there are too many."""
        self.values = [*self.values, value][-self.size :]
        self.largest = max(self.largest, value)
        self.seen += 1
        self.streak = self.streak + 1 if success else 0

    def restart(self) -> None:
        """Forget all episodes: a new context begins."""
        self.values, self.seen, self.largest, self.streak = [], 0, -math.inf, 0

    @property
    def full(self) -> bool:
        """Whether enough episodes were seen to decide."""
        return len(self.values) == self.size

    @property
    def mean(self) -> float:
        """Mean of the episodes in the window; NaN if there is none."""
        return math.fsum(self.values) / len(self.values) if self.values else math.nan

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        largest = self.largest if self.values else None
        state = {"values": self.values, "seen": self.seen, "largest": largest}
        return {**state, "streak": self.streak} if self.streak else state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.values, self.seen = [float(v) for v in state["values"]], int(state["seen"])
        self.largest = -math.inf if state["largest"] is None else float(state["largest"])
        self.streak = int(state.get("streak", 0))  # earlier versions have none


Rule = EpisodeRule | float | Callable[[float], float]
"""A rule, or the return threshold R, or R(κ)."""


def as_rule(rule: Any) -> Any:
    """A rule, from one, from a threshold R or from a function R(κ); None stays None."""
    if rule is None:
        return None
    if hasattr(rule, "threshold_at") and hasattr(rule, "measure"):
        return rule
    if callable(rule):
        function: Any = rule
        return ReturnThreshold(function)
    if isinstance(rule, Real) and not isinstance(rule, bool):
        return ReturnThreshold(float(rule))
    raise RollinError(
        f"A rule must be a threshold R, a function R(κ), a ReturnThreshold or a SuccessRate, got "
        f"{type(rule).__name__}."
    )
