"""When a context is mastered, without a hand-set return R: our extension.

The gap rule puts the threshold between a base L, what the behaviour from before the switch earns
under ω_k, and an aim A, the best return so far: R = L + λ (A - L). `Gap` looks at the returns of
episodes (the deep engine), `StepGap` at what each learning step reports (the tabular engine).
`EarlyGap` decides sooner where these are clear, `Plateau` waits until no better return comes.

All use differences and ratios only: r → a r + b with a > 0 changes no decision where episodes have
one length. Where every episode succeeds, returns may have nothing left to rise by: a long row of
successes then masters a context as well.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

from rollin.checks import at_least, positive, require_number, shown
from rollin.curriculum.progress import HasState, State, Stateful, Window
from rollin.errors import RollinError, short_repr

SHARE = 0.6  # λ, the part of the gap that must be closed
RISE = 0.05  # of the gap: a best value counts as a new one if it is that much better
FIRST = 5  # episodes under ω_k that stand for the behaviour before, where nothing can be relabelled
ERRORS = 3  # standard errors by which the mean must exceed the base
SETTLED = 3  # windows without a new best
LONGEST = 10  # windows of successes in a row, after which returns that still rise do not matter
CLEAR = 5  # returns in a row above R are clear evidence


def gap_threshold(base: float, aim: float, share: float) -> float:
    """Return R = L + λ (A - L)."""
    return base + share * (aim - base)


# ------------------------------------------------------------------ by the returns of episodes


@runtime_checkable
class MasteryRule(HasState, Protocol):
    """Decides from the returns under a context whether it is mastered."""

    @property
    def floor(self) -> float:
        """The best that behaviour without practice earns there; -inf if that is not known."""
        ...

    def begin(self, base: Sequence[float] | None, before: float) -> None:
        """Begin a new context; base: what earlier behaviour earns there, if known.

        before: the mean return that mastered the last context, NaN on the first.
        """
        ...

    def add(self, total: float) -> None:
        """Add the return of an episode under the context."""
        ...

    def threshold(self, window: Window) -> float:
        """Return what the window's mean must exceed; NaN while that is unknown.

        Of an empty window: the least that any window's mean must exceed.
        """
        ...

    def mastered(self, window: Window) -> str | None:
        """Return the reason why the context is mastered, or None."""
        ...


class _Returns(Stateful):
    """The common state of both rules: base and best return under ω_k, and how old the best is.

    base: returns that earlier behaviour earns under ω_k. On the first context these are the first
    W episodes. Later, where nothing can be relabelled, they are the first episodes under ω_k or
    the very first ones of all, whichever are lower: an agent that succeeds at once would leave no
    gap otherwise.

    random: the first episodes of all; early: the first under ω_k, until there is a base; before:
    mean under ω_{k-1} when that was mastered; risen: the best when it last counted as new; since:
    episodes since then.
    """

    base: State[list[float] | None] = None
    random: State[list[float] | None] = None
    early: State[tuple[float, ...]] = ()
    before: State[float] = math.nan
    best: State[float] = -math.inf
    risen: State[float] = -math.inf
    since: State[int] = 0
    count: State[int] = 0

    def __init__(self, window: int) -> None:
        self.size = at_least(1, "window", window)

    def __repr__(self) -> str:
        return short_repr(self, window=self.size)

    def begin(self, base: Sequence[float] | None, before: float) -> None:
        """Begin a new context."""
        self.base = None if base is None else [float(x) for x in base]
        self.before = before
        self.early = ()
        self.best = self.risen = -math.inf
        self.since = self.count = 0

    def add(self, total: float) -> None:
        """Add the return of an episode under the context."""
        self.count += 1
        if self.base is None:
            self.early = (*self.early, total)
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
        """Return whether the window's mean exceeds the base by three standard errors."""
        assert self.base is not None
        return _exceeds(window.values, self.base)

    def bar(self, window: Window) -> float:
        """Return L, plus three standard errors if the window is full."""
        if not window.full or self.base is None:
            return self.low
        return self.low + ERRORS * _error(window.values, self.base)

    def succeeds(self, window: Window) -> str | None:
        """Return the reason if successes alone master the context, else None.

        Three windows of them are enough once no better return has come for as long, ten in any
        case.
        """
        windows = SETTLED if self.settled else LONGEST
        if window.streak < windows * window.size:
            return None
        return f"success in the last {windows * window.size} episodes"

    @property
    def settled(self) -> bool:
        """Whether three windows of episodes have brought no better return."""
        return self.since >= SETTLED * self.size


class Gap(_Returns):
    """Mastered when the mean return has closed a share λ of the gap between base and best.

    R_k = L + λ (A - L). L: what the behaviour from before the switch earns under ω_k. A: the best
    return B under ω_k, or the mean M that mastered ω_{k-1} while that is more; once B has not
    risen for three windows, A = B, because M may be out of reach there. The mean must also exceed
    L by three standard errors. Successes in all of the last three windows are enough once B has not
    risen for as long, and in all of the last ten windows in any case.

    >>> from rollin.curriculum.progress import Window
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

    def __init__(self, share: float = SHARE, window: int = 10) -> None:
        require_number("The share of the gap", share)
        if not 0 < share < 1:
            raise RollinError(f"The share of the gap must lie in (0, 1), got {share!r}.")
        super().__init__(window)
        self.share = share

    def __repr__(self) -> str:
        return short_repr(self, share=self.share, window=self.size)

    def _aim(self) -> float:
        """Return A, the upper end of the gap."""
        if math.isnan(self.before) or self.settled:
            return self.best
        return max(self.best, self.before)

    def _R(self) -> float:
        return gap_threshold(self.low, self._aim(), self.share)

    def threshold(self, window: Window) -> float:
        """Return R_k, or three standard errors above L if that is more."""
        return max(self._R(), self.bar(window))

    def mastered(self, window: Window) -> str | None:
        """Return the reason why the context is mastered, or None."""
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


class EarlyGap(Gap):
    """The gap rule, decided before the window is full where the evidence is clear.

    After the first context, five returns in a row above R are enough. Where a success ends its
    episode, returns have nothing to rise by, and Wald's sequential test of successes decides
    instead: a rate of 0.9 must be 18 times as likely as one of 0.5. Five successes in a row show
    that, or eight of nine.

    The mean must exceed, by three standard errors, either L or what the very first episodes of all
    earned: behaviour that earns enough at once has nothing left to show under ω_k.

    >>> from rollin.curriculum.progress import Window
    >>> rule, window = EarlyGap(), Window(10)
    >>> rule.begin(base=[0.0] * 10, before=10.0)
    >>> for total in (0.0, 8.0, 9.0, 8.0, 9.0, 8.0):
    ...     rule.add(total)
    ...     window.add(total)
    >>> rule.mastered(window)
    'the last 5 returns > 6, 60 % of the way from 0 to 10'
    """

    def above(self, window: Window) -> bool:
        """Return whether the window's mean exceeds the base or the very first episodes."""
        return self._beyond(window.values)

    def bar(self, window: Window) -> float:
        """Return the lower of both bounds."""
        lowest = super().bar(window)
        if not window.full or self.random is None:
            return lowest
        return min(lowest, _mean(self.random) + ERRORS * _error(window.values, self.random))

    def mastered(self, window: Window) -> str | None:
        """Return the reason why the context is mastered, or None."""
        if window.certain:
            return "the last episodes ended in success"
        R = self._R()
        last = window.values[-CLEAR:]
        first = math.isnan(self.before)  # whose base are its own episodes
        if not first and len(last) == CLEAR and min(last) > R and self._beyond(last):
            return (
                f"the last {CLEAR} returns > {R:.4g}, {100 * self.share:.3g} % of the way from "
                f"{self.low:.4g} to {self._aim():.4g}"
            )
        return super().mastered(window)

    def _beyond(self, values: Sequence[float]) -> bool:
        """Return whether returns exceed the base or the very first ones."""
        return any(_exceeds(values, past) for past in (self.base, self.random) if past is not None)


class Plateau(_Returns):
    """Mastered when no better return has come for three windows, and the mean exceeds the base.

    Successes in all of these are enough, and in all of the last ten windows in any case.

    >>> from rollin.curriculum.progress import Window
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
        """Return L, or three standard errors above it for a full window."""
        return self.bar(window)

    def mastered(self, window: Window) -> str | None:
        """Return the reason why the context is mastered, or None."""
        if not window.full or self.base is None:
            return None
        if not (self.settled and self.above(window)):
            return self.succeeds(window)
        return (
            f"no return above {self.best:.4g} for {self.since} episodes, and a mean of "
            f"{window.mean:.6g} where the behaviour before earned {self.low:.4g}"
        )


# ------------------------------------------------------------------ by what learning steps report


@dataclass(frozen=True)
class GapConstants:
    """Constants of `StepGap`; none of them is in the units of a reward.

    share: λ, the part of the gap between base and aim that must be closed; first: F, steps that the
    base is the mean of; window: W, steps that are averaged later; errors: standard errors by which
    the mean must exceed the base; rise: part of the gap by which the best must grow to count as a
    rise; floor: part of the gap to the earlier aim that a lower plateau must have to count as
    mastery.
    """

    share: float = SHARE
    first: int = 3
    window: int = 20
    errors: float = 5.0
    rise: float = RISE
    floor: float = 0.2

    def __post_init__(self) -> None:
        at_least(1, "first", self.first)
        at_least(max(2, self.first), "window", self.window)
        positive("errors", self.errors)
        for name in ("share", "rise", "floor"):
            if not 0 < getattr(self, name) < 1:
                raise RollinError(f"{name} must lie in (0, 1), got {getattr(self, name)!r}.")


class StepGap(Stateful):
    """Advance when the measure has closed most of the gap between its base and its aim.

    After a switch, L is the mean of the first F measures: what the policy before the switch earns,
    hardly changed. m is that of the last W, s their deviation, computed from differences of
    neighbours, so that a drift is no noise. B is the largest m so far.
    B has *settled* when it has not risen by 5 % of B - L in as many steps as it took to get there.
    The aim A is the larger of B and the aim of the context before; once B has settled below that,
    with at least a fifth of the gap, A = B. On the first context B must settle.

        R = L + λ (A - L),   mastered ⇔ m > R and m - L > 5 s √(1/W + 1/F)

    A context is left at once if its base exceeds the last R, or is as large as a measure can be:
    its lesson is learned already. All this stays the same if measures are shifted, or scaled by a
    positive number.

    most: the largest value that a measure can have, 1 for a success rate.

    >>> from rollin.curriculum.mastery import StepGap
    >>> rule = StepGap()
    >>> reasons = [rule.mastered(1 / (1 + 2.0 ** (5 - t / 10))) for t in range(300)]
    >>> first = next(t for t, reason in enumerate(reasons) if reason)
    >>> first, reasons[first]
    (275, 'measure 1 > 0.613 = 0.0325 + 0.6 (1 - 0.0325), settled')
    """

    n: State[int] = 0  # steps under this context
    risen_at: State[int] = 0
    base: State[float] = 0.0
    best: State[float] = 0.0
    risen_to: State[float] = 0.0
    values: State[tuple[float, ...]] = ()  # the last W measures
    aim: State[float | None] = None
    last: State[float | None] = None  # R of the context before

    def __init__(self, constants: GapConstants | None = None, most: float = math.inf) -> None:
        self.constants = GapConstants() if constants is None else constants
        self.most = most
        if not isinstance(self.constants, GapConstants):
            raise RollinError(
                f"constants must be a GapConstants, got {shown(constants)}: leave them out for the "
                "defaults."
            )

    def __repr__(self) -> str:
        return short_repr(self, **vars(self.constants))

    def _begin(self) -> None:
        """Begin a new context."""
        self.n = self.risen_at = 0
        self.base = self.best = self.risen_to = 0.0
        self.values = ()

    @property
    def flat(self) -> bool:
        """Whether nothing has changed under this context, in two windows of steps."""
        if self.n < 2 * self.constants.window:
            return False
        values = (self.best, *self.values)  # equal but for rounding errors
        return all(math.isclose(value, self.base, rel_tol=1e-9) for value in values)

    def mastered(self, measured: float) -> str | None:
        """Add a measure; return the reason to advance, or None to stay."""
        W = self.constants.window
        self.n += 1
        self.values = (*self.values, float(measured))[-W:]
        mean = _mean(self.values)
        if self.n == self.constants.first:
            self.base = self.best = self.risen_to = mean
            self.risen_at = self.n
            return self._learned_already()
        if self.n < W:
            return None
        self.best = max(self.best, mean)
        if self.best - self.risen_to > self.constants.rise * (self.best - self.base):
            self.risen_to = self.best
            self.risen_at = self.n
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
        share = self.constants.share
        W = self.constants.window
        base = self.base
        R = gap_threshold(base, aim, share)
        error = _deviation(self.values) * math.sqrt(1 / W + 1 / self.constants.first)
        if not (mean > R and mean - base > self.constants.errors * error):
            return None
        self.aim = aim
        self.last = R
        self._begin()
        reason = f"measure {mean:.3g} > {R:.3g} = {base:.3g} + {share:g} ({aim:.3g} - {base:.3g})"
        return reason + (", settled" if settled else "")

    def _aim(self) -> tuple[float | None, bool]:
        """Return A, and whether it is this context's own plateau."""
        settled = self.n >= 2 * self.risen_at
        if self.aim is None:
            return (self.best if settled else None), settled
        enough = self.best - self.base >= self.constants.floor * (self.aim - self.base)
        if settled and enough and self.best < self.aim:
            return self.best, True
        return max(self.best, self.aim), False


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _exceeds(values: Sequence[float], past: Sequence[float]) -> bool:
    """Return whether the mean of a sample exceeds that of another by three standard errors."""
    return _mean(values) - _mean(past) > ERRORS * _error(values, past)


def _error(*samples: Sequence[float]) -> float:
    """Return the standard error of the difference between the means of two samples."""
    return math.sqrt(math.fsum(_variance(values) / len(values) for values in samples))


def _variance(values: Sequence[float]) -> float:
    """Return the variance of a sample; 0 for a single value."""
    middle = _mean(values)
    return math.fsum((x - middle) ** 2 for x in values) / max(len(values) - 1, 1)


def _deviation(values: Sequence[float]) -> float:
    """Return von Neumann's estimate: the root of half the mean squared difference of neighbours."""
    squares = [(b - a) ** 2 for a, b in pairwise(values)]
    return math.sqrt(math.fsum(squares) / (2 * len(squares)))
