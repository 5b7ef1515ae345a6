"""Progress along a curriculum, and the last episodes under its current context.

Both engines keep a `Progress`; only the deep one keeps a `Window`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from rollin.curriculum.state import State, Stateful
from rollin.errors import RollinError
from rollin.texts import short_repr

RATES = (0.5, 0.9)  # success rates that the sequential test decides between
ODDS = 18.0  # which the higher one must reach: five successes in a row do, or eight of nine


@dataclass(frozen=True)
class Advance:
    """An advance to ω_k after `step` learning steps, and its reason."""

    step: int
    k: int
    reason: str


@dataclass(repr=False)
class Progress(Stateful):
    """The current context k of 0 … K, and the advances so far.

    kappas: κ of each context, k / K by default; completed: when the final context was mastered.
    """

    K: State[int]
    k: State[int] = 0
    advances: State[list[Advance]] = field(default_factory=list)
    kappas: Sequence[float] = ()
    completed: State[Advance | None] = None

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
        """Return κ ∈ [0, 1] of a context."""
        return self.kappas[k] if self.kappas else k / self.K

    @property
    def first(self) -> int:
        """The context at the beginning."""
        return 0 if self.advances else self.k  # a run that has switched began at ω_0

    def k_at(self, step: int) -> int:
        """Return the context after a step."""
        reached = [advance.k for advance in self.advances if advance.step <= step]
        return reached[-1] if reached else self.first

    def kappa_at(self, step: int) -> float:
        """Return κ after a step."""
        return self.kappa_of(self.k_at(step))

    def mean_kappa(self, begin: int, end: int) -> float:
        """Return the mean of κ over the steps begin + 1 … end."""
        k = self.first
        since = begin
        total = 0.0
        for advance in self.advances:
            at = min(max(advance.step, begin), end)
            total += self.kappa_of(k) * (at - since)
            k = advance.k
            since = at
        return (total + self.kappa_of(k) * (end - since)) / (end - begin)

    @property
    def finished(self) -> bool:
        """Whether the current context is the final one."""
        return self.k == self.K

    def advance(self, step: int, reason: str) -> None:
        """Move to the next context."""
        if self.finished:
            raise RollinError(f"The curriculum is at its final context, {self.K}, already.")
        self.move(step, self.k + 1, reason)

    def move(self, step: int, k: int, reason: str) -> None:
        """Move to any context, harder or easier."""
        if not 0 <= k <= self.K:
            raise RollinError(f"The contexts are 0 to {self.K}, got {k}.")
        self.k = k
        self.advances.append(Advance(step, k, reason))

    def complete(self, step: int, reason: str) -> None:
        """Record when the final context is first mastered."""
        self.completed = self.completed or Advance(step, self.k, reason)


class Window(Stateful):
    """The last episodes under the current context, as numbers that the rule averages.

    seen, largest: the number of all episodes under the context, and the best of them; streak:
    successes in a row up to the last episode; odds: how much likelier the last episodes are if nine
    tenths of them end in success than if half do (Wald's test, which begins again at 1).
    """

    values: State[list[float]]
    seen: State[int] = 0
    largest: State[float] = -math.inf
    streak: State[int] = 0
    odds: State[float] = 1.0

    def __init__(self, size: int) -> None:
        self.size = size
        self.values = []

    def add(self, value: float, *, success: bool = False, ended: bool = False) -> None:
        """Add an episode, and drop the oldest when there are too many.

        ended: whether it was the success that ended it.
        """
        self.values = [*self.values, value][-self.size :]
        self.largest = max(self.largest, value)
        self.seen += 1
        self.streak = self.streak + 1 if success else 0
        low, high = RATES
        ratio = high / low if ended else (1 - high) / (1 - low)
        self.odds = min(max(self.odds * ratio, 1.0), ODDS)

    def restart(self) -> None:
        """Forget all episodes: a new context begins."""
        self.values = []
        self.seen = 0
        self.largest = -math.inf
        self.streak = 0
        self.odds = 1.0

    @property
    def certain(self) -> bool:
        """Whether the last episodes show that nearly all end in success."""
        return self.odds >= ODDS

    @property
    def full(self) -> bool:
        """Whether there are enough episodes to decide."""
        return len(self.values) == self.size

    @property
    def mean(self) -> float:
        """Mean of the episodes in the window; NaN if there is none."""
        return math.fsum(self.values) / len(self.values) if self.values else math.nan
