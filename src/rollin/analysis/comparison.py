"""A curriculum against its control: final success or return, and steps where both solve the task.

Tests are permutation tests over seeds: of the mean success, and of the ranks of returns and steps,
which may be any numbers. They are exact up to EXACT seeds, whose splits can still be counted.
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from rollin.analysis.findings import ENOUGH
from rollin.analysis.results import Result, StudyResults
from rollin.analysis.statistics import exact_permutation, normal_permutation
from rollin.runs.engines.rollin_options import SOLVED
from rollin.runs.records import MetricAt, Record

LEVEL = 0.05  # of a test
MOST = 30  # seeds of a side that are looked ahead to
EXACT = 60  # seeds of both sides together
EPISODES = 100  # in which shares of successes are counted, if they have no smaller unit
SUCCESS = MetricAt("success_final")
RETURN = MetricAt("return_final")
"""What a comparison is judged by: success where the environment defines it, else the return."""

Outcome = Literal["few", "helps", "hurts", "faster", "slower", "as fast", "open", "nothing"]


@dataclass(frozen=True)
class Difference:
    """Values of a condition and of its control, seed by seed, and how far they differ.

    ranked: compare ranks and show medians; else compare and show means of shares.
    """

    ours: tuple[float, ...]
    control: tuple[float, ...]
    ranked: bool

    @property
    def middles(self) -> tuple[float, float]:
        """Mean or median of each side."""
        middle = statistics.median if self.ranked else statistics.fmean
        return middle(self.ours), middle(self.control)

    @property
    def larger(self) -> bool:
        """Whether the condition has the larger mean, or the larger mean rank."""
        ours, control = self._scores
        return sum(ours) * len(control) > sum(control) * len(ours)

    @cached_property
    def p(self) -> float:
        """The two-sided p-value of a permutation test."""
        return (exact_permutation if self.exact else normal_permutation)(*self._scores)

    @property
    def exact(self) -> bool:
        """Whether all splits of the seeds are counted."""
        return len(self.ours) + len(self.control) <= EXACT

    def more_seeds(self) -> dict[int, bool]:
        """Larger numbers of seeds, and whether a test decides if further ones come out like these.

        They are multiples of the seeds there are, up to the first that decides.
        """
        n = max(len(self.ours), len(self.control))
        found: dict[int, bool] = {}
        for times in range(2, MOST // n + 1):
            larger = Difference(self.ours * times, self.control * times, self.ranked)
            found[n * times] = larger.p < LEVEL
            if found[n * times]:
                break
        return found

    @cached_property
    def _scores(self) -> tuple[list[int], list[int]]:
        """Whole numbers whose means a test compares."""
        values = (*self.ours, *self.control)
        scores = ranks(values) if self.ranked else counts(values)
        return scores[: len(self.ours)], scores[len(self.ours) :]


@dataclass(frozen=True)
class Comparison:
    """A condition beside its control, over the seeds of each that have finished.

    end: what both are judged by; steps: to the first evaluation that solves the final context, if
    both sides solve it at the end.
    """

    ours: Result
    control: Result
    end: Difference
    steps: Difference | None

    @property
    def reading(self) -> MetricAt:
        """What both are judged by."""
        return self.ours.reading

    @property
    def seeds(self) -> tuple[int, int]:
        """Number of seeds of each side."""
        return len(self.end.ours), len(self.end.control)

    @property
    def outcome(self) -> Outcome:
        """What the seeds show."""
        if min(self.seeds) < ENOUGH:
            return "few"
        if self.end.p < LEVEL:
            return "helps" if self.end.larger else "hurts"
        if self.steps is not None:
            if self.steps.p >= LEVEL:
                return "as fast"
            return "slower" if self.steps.larger else "faster"
        failed = self.reading == SUCCESS and not any((*self.end.ours, *self.end.control))
        return "nothing" if failed else "open"


def comparison(results: StudyResults) -> Comparison | None:
    """Compare the conditions of a study with two; None before both have a finished run."""
    pair = next((p for r in (SUCCESS, RETURN) for p in results.pairs(r)), None)
    if pair is None:
        return None
    ours, control = pair
    by_return = ours.reading == RETURN
    end = Difference(ours.values, control.values, ranked=by_return)
    if by_return or not (solves(ours) and solves(control)):
        return Comparison(ours, control, end, None)
    steps = Difference(_steps(results, ours), _steps(results, control), ranked=True)
    return Comparison(ours, control, end, steps)


def solves(result: Result) -> bool:
    """Whether a condition solves the final context at the end: in at least four of five seeds."""
    return solved_seeds(result) >= SOLVED * len(result.values)


def solved_seeds(result: Result) -> int:
    """How many seeds solve the final context at the end."""
    return sum(value >= SOLVED for value in result.values)


def _steps(results: StudyResults, of: Result) -> tuple[float, ...]:
    runs = results.runs[of.condition]
    return tuple(first_solved(run) for run in runs if run.seed in of.seeds)


def first_solved(run: Record) -> float:
    """The step of the first evaluation that solves the final context; ∞ if none does."""
    trace = run.trace(SUCCESS.quantity)
    rows = () if trace is None else zip(trace.steps.tolist(), trace.values.tolist(), strict=True)
    return next((step for step, success in rows if success >= SOLVED), math.inf)


def counts(values: Sequence[float]) -> list[int]:
    """Shares of successful episodes as whole numbers of one unit."""
    shares = [Fraction(value).limit_denominator(EPISODES) for value in values]
    unit = min(math.lcm(*(share.denominator for share in shares)), EPISODES)
    return [round(share * unit) for share in shares]


def ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value, from 0; equal values share the middle of their ranks."""
    order = sorted(values)
    return [bisect_left(order, value) + bisect_right(order, value) - 1 for value in values]
