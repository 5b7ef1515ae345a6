"""Where a run stands on its curriculum, and why it advanced; both engines keep one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollin.errors import RollinError
from rollin.texts import short_repr


@dataclass(frozen=True)
class Advance:
    """One switch of context: to ω_k after `step` learning steps, and why."""

    step: int
    k: int
    reason: str


@dataclass(repr=False)
class Progress:
    """Where a run stands: the current context k of 0 … K, and the advances so far.

    kappas: κ of each context, k / K if not given; completed: when the last context was mastered.
    """

    K: int
    k: int = 0
    advances: list[Advance] = field(default_factory=list)
    kappas: Sequence[float] = ()
    completed: Advance | None = None

    def __post_init__(self) -> None:
        if self.K < 1:
            raise RollinError(
                f"A curriculum needs at least two contexts, got {self.K + 1}: add an easier one."
            )

    def __repr__(self) -> str:
        return short_repr(self, kappa=self.kappa, k=self.k, K=self.K, advances=len(self.advances))

    @property
    def kappa(self) -> float:
        """κ ∈ [0, 1] of the current context."""
        return self.kappa_of(self.k)

    def kappa_of(self, k: int) -> float:
        """κ ∈ [0, 1] of a context."""
        return self.kappas[k] if self.kappas else k / self.K

    @property
    def first(self) -> int:
        """The context at the beginning."""
        return 0 if self.advances else self.k  # who switches began at ω_0

    def k_at(self, step: int) -> int:
        """The context after a step."""
        reached = [advance.k for advance in self.advances if advance.step <= step]
        return reached[-1] if reached else self.first

    def kappa_at(self, step: int) -> float:
        """κ after a step."""
        return self.kappa_of(self.k_at(step))

    def mean_kappa(self, begin: int, end: int) -> float:
        """κ averaged over the steps begin + 1 … end."""
        k = self.first
        since, total = begin, 0.0
        for advance in self.advances:
            at = min(max(advance.step, begin), end)
            total += self.kappa_of(k) * (at - since)
            k, since = advance.k, at
        return (total + self.kappa_of(k) * (end - since)) / (end - begin)

    @property
    def finished(self) -> bool:
        """Whether the current context is the last one."""
        return self.k == self.K

    def advance(self, step: int, reason: str) -> None:
        """Go on to the next context."""
        if self.finished:
            raise RollinError(f"The curriculum already stands at its last context, {self.K}.")
        self.move(step, self.k + 1, reason)

    def move(self, step: int, k: int, reason: str) -> None:
        """Go on to any context, or back to one that is easier."""
        if not 0 <= k <= self.K:
            raise RollinError(f"The contexts are 0 to {self.K}, got {k}.")
        self.k = k
        self.advances.append(Advance(step, k, reason))

    def complete(self, step: int, reason: str) -> None:
        """Note that the last context is mastered, the first time."""
        self.completed = self.completed or Advance(step, self.k, reason)

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        return {
            "K": self.K,
            "k": self.k,
            "advances": [_listed(a) for a in self.advances],
            "completed": _listed(self.completed) if self.completed else None,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.K, self.k = int(state["K"]), int(state["k"])
        self.advances = [_advance(a) for a in state["advances"]]
        self.completed = _advance(state["completed"]) if state["completed"] else None


def _listed(advance: Advance) -> list[Any]:
    return [advance.step, advance.k, advance.reason]


def _advance(listed: Sequence[Any]) -> Advance:
    step, k, reason = listed
    return Advance(int(step), int(k), str(reason))
