"""How a cost grows with the size n: n^p or b^n, with intervals, and with runs cut off at a cap.

A run that reached its cap has a cost that is only known to be larger. The median over seeds is
still known if more than half of them ended, because a censored run counts as ∞ there; sizes whose
median is not known are left out of a fit, and named.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rollin.analysis.statistics import student_t
from rollin.errors import RollinError

Law = Literal["power", "exponential"]
LEVEL = 0.95
RESAMPLES = 2000
LEAST_SIZES = 3  # a line through two points has no residual
LEAST_MIXED = 5  # for two slopes and two degrees of freedom


@dataclass(frozen=True)
class SizeCosts:
    """What the seeds spent at one size; censored ones are ∞."""

    size: int
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """∞ if half of the seeds, or more, were cut off."""
        return float(np.median(self.values))

    @property
    def solved(self) -> int:
        """Seeds that ended."""
        return sum(map(math.isfinite, self.values))


@dataclass(frozen=True)
class Slope:
    """A law's parameter, p of n^p or b of b^n, its interval, and how far the points are off.

    residual: root mean square of ln(median) - ln(law), so 0.03 is about 3 %.
    factor: the constant before the law.
    """

    value: float
    low: float
    high: float
    residual: float
    factor: float


@dataclass(frozen=True)
class Growth:
    """Both laws fitted to the medians of the same sizes.

    mixed: b of n^p · b^n, which has one parameter more; None with fewer than five sizes.
    interval: what the intervals are of. "seeds": the seeds of each size drawn anew with replacement
    (percentiles of the bootstrap). "sizes": nothing is random; Student's interval of the regression
    slope, which says how well the sizes lie on a line and nothing about other MDPs.
    """

    power: Slope
    exponential: Slope
    mixed: Slope | None
    sizes: tuple[int, ...]
    left_out: tuple[int, ...]
    seeds: int
    interval: Literal["seeds", "sizes"]

    @property
    def better(self) -> Law:
        """The law with the smaller residual; both have two parameters."""
        return "power" if self.power.residual <= self.exponential.residual else "exponential"

    def at(self, law: Law, size: float) -> float:
        """What a law says at a size."""
        slope = self.power if law == "power" else self.exponential
        return slope.factor * (size**slope.value if law == "power" else slope.value**size)


def costs_by_size(runs: Mapping[int, Sequence[tuple[float, bool]]]) -> list[SizeCosts]:
    """Costs of every size, from pairs of what was spent and whether it was enough."""
    return [
        SizeCosts(size, tuple(spent if solved else math.inf for spent, solved in runs[size]))
        for size in sorted(runs)
    ]


def fit_growth(
    costs: Sequence[SizeCosts], *, at_least: int = 0, resamples: int = RESAMPLES, seed: int = 0
) -> Growth | None:
    """Both laws from the medians at sizes of `at_least` and more; None with fewer than three.

    A bootstrap draw in which a size loses its median counts as a slope of ∞ if that size's weight
    in the regression is positive, as a large one's is, of -∞ if it is negative, and as both if
    sizes of both signs lose it: the interval is open where that is as likely as its level says.
    """
    for cost in costs:
        if not cost.values or min(cost.values) <= 0:
            raise RollinError(
                f"A growth law needs costs greater than 0 at every size, got {cost.values} at "
                f"n = {cost.size}."
            )
    wanted = [cost for cost in costs if cost.size >= at_least]
    used = [cost for cost in wanted if math.isfinite(cost.median)]
    if len(used) < LEAST_SIZES:
        return None
    sizes = np.array([cost.size for cost in used], np.float64)
    medians = np.array([cost.median for cost in used])
    seeds = max(len(cost.values) for cost in used)
    drawn = _draws(used, resamples, seed) if seeds > 1 else None
    logs, y = np.log(sizes), np.log(medians)
    mixed = None
    if len(used) >= LEAST_MIXED:
        mixed = _exponential(_slope(np.column_stack([sizes, logs]), y, drawn))
    return Growth(
        _slope(logs[:, None], y, drawn),
        _exponential(_slope(sizes[:, None], y, drawn)),
        mixed,
        tuple(cost.size for cost in used),
        tuple(cost.size for cost in wanted if cost not in used),
        seeds,
        "seeds" if drawn is not None else "sizes",
    )


def _draws(used: Sequence[SizeCosts], resamples: int, seed: int) -> NDArray[np.float64]:
    """(resamples, sizes) logarithms of medians, the seeds of each size drawn anew."""
    rng = np.random.default_rng(seed)
    columns = []
    for cost in used:
        values = np.array(cost.values)
        columns.append(
            np.median(values[rng.integers(len(values), size=(resamples, len(values)))], 1)
        )
    return np.log(np.column_stack(columns))


def _exponential(line: Slope) -> Slope:
    """b of b^n from the slope against n."""
    low, high = math.exp(line.low), math.exp(line.high)
    return replace(line, value=math.exp(line.value), low=low, high=high)


def _slope(
    x: NDArray[np.float64], y: NDArray[np.float64], drawn: NDArray[np.float64] | None
) -> Slope:
    """Least squares of y against columns x and a constant; the first column's slope."""
    design = np.column_stack([x, np.ones(len(y))])
    inverse = np.linalg.pinv(design)
    found = inverse @ y
    slope, factor = float(found[0]), math.exp(found[-1])
    errors = y - design @ found
    residual = float(np.sqrt(np.mean(errors**2)))
    if drawn is None:
        freedom = len(y) - design.shape[1]
        spread = math.sqrt(float(errors @ errors) / freedom * float(inverse[0] @ inverse[0]))
        wide = student_t(freedom, LEVEL) * spread
        return Slope(slope, slope - wide, slope + wide, residual, factor)
    lost = ~np.isfinite(drawn)
    slopes = np.where(lost, 0.0, drawn) @ inverse[0]
    # a lost median is large: it lifts the slope where its weight is positive, else lowers it
    lifted, lowered = (lost[:, side].any(axis=1) for side in (inverse[0] > 0, inverse[0] < 0))
    low = np.quantile(
        np.where(lowered, -math.inf, np.where(lifted, math.inf, slopes)),
        (1 - LEVEL) / 2, method="nearest",
    )  # fmt: skip
    high = np.quantile(
        np.where(lifted, math.inf, np.where(lowered, -math.inf, slopes)),
        (1 + LEVEL) / 2, method="nearest",
    )  # fmt: skip
    return Slope(slope, float(low), float(high), residual, factor)
