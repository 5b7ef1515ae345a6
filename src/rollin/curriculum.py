"""A curriculum: contexts ω_0 … ω_K walked in order, with a progress κ = k / K.

Both engines walk it. `Progress` says where a run stands and keeps the reason of every advance;
an `AdvanceRule` decides, from what one learning step reports, whether the context is mastered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rollin.errors import RollinError


@dataclass(frozen=True)
class Advance:
    """One switch of context: ω_{k-1} → ω_k after `step` learning steps, and why."""

    step: int
    k: int
    reason: str


@dataclass
class Progress:
    """Where a run stands: the current context k of 0 … K, and the advances so far."""

    K: int
    k: int = 0
    advances: list[Advance] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.K < 1:
            raise RollinError(
                f"A curriculum needs at least two contexts, got {self.K + 1}: add an easier one."
            )

    @property
    def kappa(self) -> float:
        """κ ∈ [0, 1], the current index over the number of switches."""
        return self.k / self.K

    @property
    def finished(self) -> bool:
        """Whether the current context is the last one."""
        return self.k == self.K

    def advance(self, step: int, reason: str) -> None:
        """Go on to the next context."""
        if self.finished:
            raise RollinError(f"The curriculum already stands at its last context, {self.K}.")
        self.k += 1
        self.advances.append(Advance(step, self.k, reason))

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        return {
            "K": self.K,
            "k": self.k,
            "advances": [[a.step, a.k, a.reason] for a in self.advances],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.K, self.k = int(state["K"]), int(state["k"])
        self.advances = [Advance(int(s), int(k), str(why)) for s, k, why in state["advances"]]


class AdvanceRule(Protocol):
    """Decides whether the current context is mastered."""

    def mastered(self, measured: float) -> str | None:
        """The reason to advance in words, or None to stay."""
        ...


@dataclass(frozen=True)
class SuccessRate:
    """Advance when the success rate is strictly greater than the threshold (four rooms: 50 %)."""

    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise RollinError(
                f"The success threshold must lie in [0, 1), got {self.threshold}: "
                "a rate can never be greater than 1."
            )

    def mastered(self, measured: float) -> str | None:
        """`measured` is the share of successful trajectories of this step."""
        if measured > self.threshold:
            return f"success rate {measured:.3f} > {self.threshold:g}"
        return None


@dataclass(frozen=True)
class SubOptimality:
    """Advance when the soft sub-optimality V*(ρ) - V^π(ρ) is at most ε (the theory's rule)."""

    epsilon: float

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise RollinError(f"epsilon must be greater than 0, got {self.epsilon}.")

    def mastered(self, measured: float) -> str | None:
        """`measured` is the exact soft sub-optimality of the current policy."""
        if measured <= self.epsilon:
            return f"sub-optimality {measured:.3g} ≤ {self.epsilon:g}"
        return None
