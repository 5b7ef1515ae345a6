"""Returns of any scale: the range seen so far, and a level between the first and the best."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollin.checks import within

HUGE = 1e300  # of returns: more cannot be subtracted


class Range:
    """The smallest and the largest return so far.

    What a teacher decides by returns it decides by their place in this range, so that rewards
    r → ar + b with a > 0 in episodes of one length change nothing.
    """

    def __init__(self) -> None:
        self.low, self.high = math.inf, -math.inf

    def add(self, total: float) -> None:
        """Take a return."""
        self.low, self.high = min(self.low, total), max(self.high, total)

    @property
    def width(self) -> float:
        """The largest less the smallest; 0 before there are two."""
        return max(self.high - self.low, 0.0)

    def place(self, returns: ArrayLike) -> NDArray[np.float64]:
        """Where returns lie, from 0 to 1; if all seen are the same, how far from these."""
        return (np.asarray(returns, np.float64) - self.low) / (self.width or 1.0)

    def get_state(self) -> list[float] | None:
        """Everything needed to go on, as JSON-able values."""
        return [self.low, self.high] if self.low <= self.high else None

    def set_state(self, state: list[float] | None) -> None:
        """Take back what `get_state` gave."""
        self.low, self.high = (math.inf, -math.inf) if state is None else map(float, state)


class Level:
    """The return that counts as good enough: V_LB of SPDL, δ of CURROT.

    given: by hand; without, half-way between the first mean of a batch and the best one, and none
    as long as no batch was better than the first.
    """

    def __init__(self, name: str, given: float | None) -> None:
        self.given = None if given is None else within(name, given, HUGE)
        self.first: float | None = None
        self.best: float | None = None

    def add(self, mean: float) -> None:
        """Take the mean return of a batch of episodes."""
        self.first = mean if self.first is None else self.first
        self.best = mean if self.best is None else max(self.best, mean)

    @property
    def value(self) -> float | None:
        """The level, or None while it is not known."""
        if self.given is not None:
            return self.given
        if self.first is None or self.best is None or self.best <= self.first:
            return None
        return (self.first + self.best) / 2

    def get_state(self) -> list[float | None]:
        """Everything needed to go on, as JSON-able values."""
        return [self.first, self.best]

    def set_state(self, state: list[float | None]) -> None:
        """Take back what `get_state` gave."""
        self.first, self.best = (None if v is None else float(v) for v in state)
