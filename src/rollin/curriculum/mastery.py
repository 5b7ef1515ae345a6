"""When a context is mastered, without a return R that somebody must know.

`Gap` puts the threshold between what the behaviour from before the switch earns under ω_k and the
best that was seen; `Plateau` waits until nothing better comes. Both look at returns through
differences and ratios alone: r → a r + b with a > 0 changes no decision where episodes have one
length. Where every episode succeeds, returns may have nothing left to rise by: a long row of
successes then masters a context, too. Our extension; the paper's R is set by hand.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rollin.checks import at_least, require_number
from rollin.curriculum.rules import Window
from rollin.errors import RollinError
from rollin.texts import short_repr

FIRST = 5  # episodes under ω_k that stand for the behaviour before, where nothing can be relabelled
ERRORS = 3  # standard errors by which the mean must exceed the base
RISE = 0.05  # of the gap: a best return counts as a new one if it is that much better
SETTLED = 3  # windows without a new best
LONGEST = 10  # windows of successes in a row, after which returns that still rise do not matter


@runtime_checkable
class Mastery(Protocol):
    """Decides from the returns under a context whether it is mastered."""

    @property
    def floor(self) -> float:
        """The best that behaviour without practice earns there; -inf if that is not known."""
        ...

    def begin(self, base: Sequence[float] | None, before: float) -> None:
        """A new context: what earlier behaviour earns there, if it is known.

        before: the mean return that mastered the last context, NaN on the first.
        """
        ...

    def add(self, total: float) -> None:
        """The return of an episode under the context."""
        ...

    def threshold(self, window: Window) -> float:
        """What the window's mean must exceed; NaN where nothing can be said yet.

        Of an empty window: the least that any window's mean must exceed.
        """
        ...

    def mastered(self, window: Window) -> str | None:
        """Why the context is mastered, in words, or None."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        ...

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        ...


class _Returns:
    """What both rules keep: the base under ω_k, the best return there, and how long it stands.

    base: returns that earlier behaviour earns under ω_k. On the first context these are the first
    W episodes. Later, where nothing can be relabelled, they are the first episodes under ω_k or
    the very first ones of all, whichever are lower: an agent that succeeds at once would leave no
    gap otherwise.
    """

    def __init__(self, window: int) -> None:
        self.size = at_least(1, "window", window)
        self.base: list[float] | None = None
        self.random: list[float] | None = None  # the first episodes of all
        self.early: list[float] = []  # the first under ω_k, until there is a base
        self.before = math.nan  # mean under ω_{k-1} when that was mastered
        self.best = -math.inf
        self.risen = -math.inf  # the best when it last counted as new
        self.since = 0  # episodes since then
        self.count = 0

    def __repr__(self) -> str:
        return short_repr(self, window=self.size)

    def begin(self, base: Sequence[float] | None, before: float) -> None:
        """A new context."""
        self.base = None if base is None else [float(x) for x in base]
        self.before = before
        self.early = []
        self.best = self.risen = -math.inf
        self.since = self.count = 0

    def add(self, total: float) -> None:
        """The return of an episode under the context."""
        self.count += 1
        if self.base is None:
            self.early.append(total)
            first = self.random is None
            if len(self.early) == (self.size if first else FIRST):
                self.base = list(self.early)
                if self.random is None:
                    self.random = self.base
                elif _mean(self.random) < _mean(self.base):
                    self.base = self.random
        self.best = max(self.best, total)
        gap = max(self.best - self.low, 0.0) if self.base else 0.0
        new = not math.isfinite(self.risen) or total > self.risen + RISE * gap
        self.since = 0 if new else self.since + 1
        self.risen = total if new else self.risen

    @property
    def low(self) -> float:
        """L, the mean of the base."""
        return _mean(self.base) if self.base else math.nan

    @property
    def floor(self) -> float:
        """The best of the base, or of the very first episodes while there is none."""
        return max(self.base or self.random or [-math.inf])

    def above(self, window: Window) -> bool:
        """Whether the window's mean lies above the base by more than chance."""
        return window.mean - self.low > ERRORS * self._error(window)

    def _error(self, window: Window) -> float:
        """Standard error of the difference between the window's mean and L."""
        assert self.base is not None
        samples = window.values, self.base
        return math.sqrt(math.fsum(_variance(values) / len(values) for values in samples))

    def bar(self, window: Window) -> float:
        """What a full window's mean must exceed to lie above the base by more than chance."""
        full = window.full and self.base is not None
        return self.low + (ERRORS * self._error(window) if full else 0.0)

    def succeeds(self, window: Window) -> str | None:
        """Why successes alone master the context, in words, or None.

        Three windows of them are enough once no better return has come for as long, ten in any
        case.
        """
        windows = SETTLED if self.settled else LONGEST
        if window.streak < windows * window.size:
            return None
        return f"success in the last {windows * window.size} episodes"

    @property
    def settled(self) -> bool:
        """Whether no better return has come for long."""
        return self.since >= SETTLED * self.size

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        numbers = {name: _finite(getattr(self, name)) for name in ("before", "best", "risen")}
        return {
            "base": self.base,
            "random": self.random,
            "early": list(self.early),
            "since": self.since,
            "count": self.count,
            **numbers,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.base, self.random = _listed(state["base"]), _listed(state["random"])
        self.early = _listed(state["early"]) or []
        self.since, self.count = int(state["since"]), int(state["count"])
        self.before = math.nan if state["before"] is None else float(state["before"])
        self.best = -math.inf if state["best"] is None else float(state["best"])
        self.risen = -math.inf if state["risen"] is None else float(state["risen"])


class Gap(_Returns):
    """Mastered when the mean return has closed a share λ of the gap between base and best.

    R_k = L + λ (A - L). L: what the behaviour from before the switch earns under ω_k. A: the best
    return B under ω_k, or the mean M that mastered ω_{k-1} while that is more; once B has not
    risen for three windows, A = B, because M may be out of reach there. The mean must also exceed
    L by three standard errors. Successes in all of the last three windows are enough once B has not
    risen for as long, and in all of the last ten windows in any case.

    >>> from rollin.curriculum.rules import Window
    >>> gap, window = Gap(share=0.5, window=2), Window(2)
    >>> gap.begin(base=[0.0, 0.0], before=7.0)
    >>> for total in (10.0, 4.0, 8.0, 9.0):
    ...     gap.add(total)
    ...     window.add(total)
    >>> gap.threshold(window)
    5.0
    >>> gap.mastered(window)
    'mean return 8.5 of the last 2 episodes > 5, 50 % of the way from 0 to 10'
    """

    def __init__(self, share: float = 0.6, window: int = 10) -> None:
        require_number("The share of the gap", share)
        if not 0 < share < 1:
            raise RollinError(f"The share of the gap must lie in (0, 1), got {share!r}.")
        super().__init__(window)
        self.share = share

    def __repr__(self) -> str:
        return short_repr(self, share=self.share, window=self.size)

    def _aim(self) -> float:
        """A: what the gap is measured up to."""
        if math.isnan(self.before) or self.settled:
            return self.best
        return max(self.best, self.before)

    def _R(self) -> float:
        return self.low + self.share * (self._aim() - self.low)

    def threshold(self, window: Window) -> float:
        """R_k, or three standard errors above L if that is more."""
        return max(self._R(), self.bar(window))

    def mastered(self, window: Window) -> str | None:
        """Why the context is mastered, in words, or None."""
        R = self._R()
        first = math.isnan(self.before)  # whose base are its own episodes
        if not window.full or self.base is None or self.count < self.size * (2 if first else 1):
            return None
        if not (window.mean > R and self.above(window)):
            return self.succeeds(window)
        return (
            f"mean return {window.mean:.6g} of the last {window.size} episodes > {R:.4g}, "
            f"{100 * self.share:.3g} % of the way from {self.low:.4g} to {self._aim():.4g}"
        )


class Plateau(_Returns):
    """Mastered when no better return has come for three windows, and the mean exceeds the base.

    Successes in all of these are enough, and in all of the last ten windows in any case.

    >>> from rollin.curriculum.rules import Window
    >>> plateau, window = Plateau(window=2), Window(2)
    >>> plateau.begin(base=[0.0, 0.0], before=7.0)
    >>> for total in (10.0, 9.0, 10.0, 9.0, 10.0, 9.0, 10.0):
    ...     plateau.add(total)
    ...     window.add(total)
    >>> plateau.mastered(window)
    'no return above 10 for 6 episodes, and a mean of 9.5 where the behaviour before earned 0'
    """

    def __init__(self, window: int = 10) -> None:
        super().__init__(window)

    def threshold(self, window: Window) -> float:
        """L, or three standard errors above it of a full window."""
        return self.bar(window)

    def mastered(self, window: Window) -> str | None:
        """Why the context is mastered, in words, or None."""
        if not window.full or self.base is None:
            return None
        if not (self.settled and self.above(window)):
            return self.succeeds(window)
        return (
            f"no return above {self.best:.4g} for {self.since} episodes, and a mean of "
            f"{window.mean:.6g} where the behaviour before earned {self.low:.4g}"
        )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    """Of a sample; 0 of a single value."""
    middle = _mean(values)
    return math.fsum((x - middle) ** 2 for x in values) / max(len(values) - 1, 1)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _listed(values: Any) -> list[float] | None:
    return None if values is None else [float(value) for value in values]
