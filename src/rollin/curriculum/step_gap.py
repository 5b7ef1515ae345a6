"""When to go on without a threshold, decided from what each learning step reports.

Nobody has to know what mastering a context is worth. `StepGap` compares what is measured now with
two things that the run has seen itself: what the policy from before the switch earned under the
new context, and the best that contexts have given so far.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rollin.checks import at_least, positive, shown
from rollin.errors import RollinError
from rollin.texts import short_repr


@dataclass(frozen=True)
class GapConstants:
    """Constants of `StepGap`; none of them is in the units of a reward.

    share: λ, the part of the gap between base and aim that must be closed; first: F, steps that the
    base is the mean of; window: W, steps that are averaged later; errors: standard errors by which
    the mean must exceed the base; rise: part of the gap by which the best must grow to count as a
    rise; floor: part of the gap to the earlier aim that a lower plateau must have to count as
    mastery.
    """

    share: float = 0.6
    first: int = 3
    window: int = 20
    errors: float = 5.0
    rise: float = 0.05
    floor: float = 0.2

    def __post_init__(self) -> None:
        at_least(1, "first", self.first)
        at_least(max(2, self.first), "window", self.window)
        positive("errors", self.errors)
        for name in ("share", "rise", "floor"):
            if not 0 < getattr(self, name) < 1:
                raise RollinError(f"{name} must lie in (0, 1), got {getattr(self, name)!r}.")


class StepGap:
    """Advance when the measure has closed most of the gap between its base and its aim.

    After a switch, L is the mean of the first F measures: what the policy before the switch earns,
    hardly changed. m is that of the last W, s their deviation, which is told from differences of
    neighbours, so that a drift is no noise. B is the largest m so far.
    B has *settled* when it has not risen by 5 % of B - L in as many steps as it took to get there.
    The aim A is the larger of B and the aim of the context before; once B has settled below that,
    with at least a fifth of the gap, A = B. On the first context B must settle.

        R = L + λ (A - L),   mastered ⇔ m > R and m - L > 5 s √(1/W + 1/F)

    A context is left at once if its base exceeds the last R, or is as large as a measure can be:
    its lesson is learned already. All this stays the same if measures are shifted, or scaled by a
    positive number.

    most: the largest value that a measure can have, 1 for a success rate.

    >>> from rollin.curriculum.step_gap import StepGap
    >>> rule = StepGap()
    >>> told = [rule.mastered(1 / (1 + 2.0 ** (5 - t / 10))) for t in range(300)]
    >>> first = next(t for t, why in enumerate(told) if why)
    >>> first, told[first]
    (275, 'measure 1 > 0.613 = 0.0325 + 0.6 (1 - 0.0325), settled')
    """

    def __init__(self, constants: GapConstants | None = None, most: float = math.inf) -> None:
        self.constants, self.most = GapConstants() if constants is None else constants, most
        if not isinstance(self.constants, GapConstants):
            raise RollinError(
                f"constants must be a GapConstants, got {shown(constants)}: leave them out for the "
                "defaults."
            )
        self.aim: float | None = None
        self.last: float | None = None  # R of the context before
        self._begin()

    def __repr__(self) -> str:
        return short_repr(self, **vars(self.constants))

    def _begin(self) -> None:
        """A new context."""
        self.n, self.risen_at = 0, 0
        self.base, self.best, self.risen_to = 0.0, 0.0, 0.0
        self.values: list[float] = []

    @property
    def flat(self) -> bool:
        """Whether nothing has changed under this context, in enough steps to have seen it."""
        seen = self.n >= 2 * self.constants.window
        told = (self.best, *self.values)  # but for rounding errors
        return seen and all(math.isclose(value, self.base, rel_tol=1e-9) for value in told)

    def mastered(self, measured: float) -> str | None:
        """Take a measure; the reason to advance in words, or None to stay."""
        W = self.constants.window
        self.n += 1
        self.values = [*self.values, float(measured)][-W:]
        mean = math.fsum(self.values) / len(self.values)
        if self.n == self.constants.first:
            self.base = self.best = self.risen_to = mean
            self.risen_at = self.n
            return self._learned_already()
        if self.n < W:
            return None
        self.best = max(self.best, mean)
        if self.best - self.risen_to > self.constants.rise * (self.best - self.base):
            self.risen_to, self.risen_at = self.best, self.n
        return self._closed(mean) if self.n >= 2 * W else None

    @property
    def stuck(self) -> bool:
        """Whether no mean has been larger for ten windows, and the context is still not left."""
        return self.n - self.risen_at >= 10 * self.constants.window

    def _learned_already(self) -> str | None:
        if self.last is not None and self.base > self.last:
            why = f"base {self.base:.3g} > {self.last:.3g}, which mastered the context before"
        elif math.isclose(self.base, self.most):
            why = f"base {self.base:.3g}, the largest possible"
        else:
            return None
        self._begin()
        return why

    def _closed(self, mean: float) -> str | None:
        aim, settled = self._aim()
        if aim is None:
            return None
        share, W, base = self.constants.share, self.constants.window, self.base
        R = base + share * (aim - base)
        error = _deviation(self.values) * math.sqrt(1 / W + 1 / self.constants.first)
        if not (mean > R and mean - base > self.constants.errors * error):
            return None
        self.aim, self.last = aim, R
        self._begin()
        told = f"measure {mean:.3g} > {R:.3g} = {base:.3g} + {share:g} ({aim:.3g} - {base:.3g})"
        return told + (", settled" if settled else "")

    def _aim(self) -> tuple[float | None, bool]:
        """What is to be reached, and whether it is this context's own plateau."""
        settled = self.n >= 2 * self.risen_at
        if self.aim is None:
            return (self.best if settled else None), settled
        enough = self.best - self.base >= self.constants.floor * (self.aim - self.base)
        if settled and enough and self.best < self.aim:
            return self.best, True
        return max(self.best, self.aim), False

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        return {
            **{name: getattr(self, name) for name in (*_COUNTS, *_NUMBERS, "aim", "last")},
            "values": list(self.values),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        for name in _COUNTS:
            setattr(self, name, int(state[name]))
        for name in _NUMBERS:
            setattr(self, name, float(state[name]))
        self.values = [float(value) for value in state["values"]]
        aim, last = state["aim"], state["last"]
        self.aim = None if aim is None else float(aim)
        self.last = None if last is None else float(last)


_COUNTS = ("n", "risen_at")
_NUMBERS = ("base", "best", "risen_to")


def _deviation(values: list[float]) -> float:
    """By von Neumann: half the mean square of the differences of neighbours, and its root."""
    squares = [(b - a) ** 2 for a, b in pairwise(values)]
    return math.sqrt(math.fsum(squares) / (2 * len(squares)))
