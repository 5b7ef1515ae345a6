"""When to advance to the next context, by a threshold.

An `AdvanceRule` decides from what one learning step reports (the tabular engine), an `EpisodeRule`
from the last episodes under the current context (the deep engine).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

from rollin.checks import require_number
from rollin.errors import RollinError
from rollin.texts import short_repr


class AdvanceRule(Protocol):
    """Decides whether the current context is mastered."""

    def mastered(self, measured: float) -> str | None:
        """Return the reason to advance, or None to stay."""
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
        """Return the reason if `measured`, a step's share of successes, exceeds the threshold."""
        if measured > self.threshold:
            return f"success rate {measured:.3f} > {self.threshold:g}"
        return None

    def measure(self, total: float, success: bool) -> float:
        """Return 1 for a success, else 0."""
        return float(success)

    def threshold_at(self, at: float) -> float:
        """Return the threshold, the same on every context."""
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
        """Return the reason if `measured`, the exact soft sub-optimality, is at most ε."""
        if measured <= self.epsilon:
            return f"sub-optimality {measured:.3g} ≤ {self.epsilon:g}"
        return None


class EpisodeRule(Protocol):
    """Decides from the last episodes whether a context is mastered."""

    def measure(self, total: float, success: bool) -> float:
        """Return the number that an episode adds to the window."""
        ...

    def threshold_at(self, at: float) -> float:
        """Return what the mean of the window must exceed.

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
        """Return the episode's return."""
        return total

    def threshold_at(self, at: float) -> float:
        """Return R, or R(κ)."""
        value = self.R(at) if callable(self.R) else self.R
        if not isinstance(value, Real):
            raise RollinError(f"R({at:g}) must be a number, got {value!r}.")
        return float(value)


Rule = EpisodeRule | float | Callable[[float], float]
"""A rule, or the return threshold R, or R(κ)."""


def as_rule(rule: Any) -> Any:
    """Return the rule of a threshold R or of a function R(κ); rules and None stay as they are."""
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
