"""Statistics over seeds.

Interquartile mean, stratified bootstrap and probability of improvement are those of Agarwal et al.,
"Deep reinforcement learning at the edge of the statistical precipice", NeurIPS 2021.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rollin.errors import RollinError

Strata = Sequence[Sequence[float]]
"""The seeds' values of every cell (a task or a condition); cells may differ in number of seeds."""


class Summary(NamedTuple):
    """Mean, standard error of the mean (0 for one seed) and number of seeds."""

    mean: float
    error: float
    n: int


class Interval(NamedTuple):
    """A statistic and its bootstrap interval."""

    value: float
    low: float
    high: float


def summarise(values: Sequence[float]) -> Summary:
    """Mean ± s/√n with the sample standard deviation s, as the paper's tables say they report."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(mean, 0.0, 1)
    variance = math.fsum((v - mean) ** 2 for v in values) / (n - 1)
    return Summary(mean, math.sqrt(variance / n), n)


def outcomes(ks: Iterable[int]) -> str:
    """Per-seed outcomes in short: how often each last context was reached, best first."""
    counts = sorted(Counter(ks).items(), reverse=True)
    return ", ".join(f"{k}×{count}" if count > 1 else str(k) for k, count in counts)


def iqm_interval(
    strata: Strata, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Interquartile mean of all values together, with a stratified bootstrap interval.

    It is the mean of what is left without the ⌊n/4⌋ lowest and highest values. Every resample draws
    each cell's seeds with replacement from that cell; the interval ends at the (1 ± level)/2
    quantiles of the resamples' statistics (percentile method, Agarwal et al.). With few seeds it is
    too narrow; one seed in a cell adds no width at all.
    """
    cells = _cells(strata)
    _check(level, resamples)
    rng = np.random.default_rng(seed)
    drawn = np.hstack([c[rng.integers(c.size, size=(resamples, c.size))] for c in cells])
    return _interval(float(_middle_mean(np.concatenate(cells))), _middle_mean(drawn), level)


def probability_of_improvement(ours: Strata, other: Strata) -> float:
    """How likely a seed of `ours` beats one of `other`: P(X > Y) + ½ P(X = Y), mean over cells.

    X and Y are drawn uniformly from the seeds of a cell of `ours` and of the same cell of `other`,
    so that a cell's share is Mann and Whitney's U / (n m) (Agarwal et al.).
    """
    return float(np.mean([_wins(x, y).mean() for x, y in _pairs(ours, other)]))


def improvement_interval(
    ours: Strata,
    other: Strata,
    *,
    shared: Sequence[int] | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Probability of improvement with a stratified bootstrap interval, as for `iqm_interval`.

    The seeds of the two sides are drawn independently of each other. shared: for every pair of
    cells the number of the other's cell; pairs of one number are compared with the very same
    seeds, which a resample draws once for all of them. None: every pair has its own.
    """
    pairs = _pairs(ours, other)
    _check(level, resamples)
    numbers = _numbers(shared, [y for _, y in pairs])
    rng = np.random.default_rng(seed)

    def draw(cell: np.ndarray) -> np.ndarray:
        # How often each seed was drawn says it all, and spares an array of resamples × n × m.
        return rng.multinomial(cell.size, np.full(cell.size, 1 / cell.size), resamples)

    drawn = np.zeros(resamples)
    others: dict[int, np.ndarray] = {}
    for number, (x, y) in zip(numbers, pairs, strict=True):
        wins = _wins(x, y)
        first = draw(x)
        if number not in others:
            others[number] = draw(y)
        drawn += ((first @ wins) * others[number]).sum(1) / wins.size
    return _interval(probability_of_improvement(ours, other), drawn / len(pairs), level)


def exact_permutation(ours: Sequence[int], other: Sequence[int]) -> float:
    """Permutation test of equal means of whole numbers: the exact two-sided p-value.

    It is the share of all ways to split the values into two such groups, in which the means are at
    least as far apart. Splits are counted by their size and sum, not made one by one.
    """
    values = [*ours, *other]
    n = len(ours)
    splits: list[Counter[int]] = [Counter({0: 1}), *(Counter[int]() for _ in values)]
    for count, value in enumerate(values):  # splits[i][s]: ways to choose i values of sum s
        for size in range(count, -1, -1):
            for total, ways in splits[size].items():
                splits[size + 1][total + value] += ways
    all_of_them = sum(values)

    def apart(total: int) -> int:  # the distance of the means, times a constant
        return abs(total * len(values) - all_of_them * n)

    far = sum(ways for total, ways in splits[n].items() if apart(total) >= apart(sum(ours)))
    return far / math.comb(len(values), n)


def normal_permutation(ours: Sequence[int], other: Sequence[int]) -> float:
    """Approximate the p-value of `exact_permutation` for many values.

    Over all splits the sum of one group is nearly normal; its mean and variance are exact.
    """
    values = [*ours, *other]
    whole, n = len(values), len(ours)
    mean = math.fsum(values) / whole
    squares = math.fsum((value - mean) ** 2 for value in values)
    if squares == 0:
        return 1.0
    variance = squares / (whole - 1) * n * len(other) / whole
    return math.erfc(abs(sum(ours) - n * mean) / math.sqrt(2 * variance))


def exact_test(successes: int, n: int, other_successes: int, other_n: int) -> float:
    """Fisher's exact test of equal success rates: the two-sided p-value.

    The share of all ways to spread the successes that are no likelier than the one seen, counted
    in whole numbers.
    """
    if not (0 <= successes <= n and 0 <= other_successes <= other_n):
        raise RollinError(
            f"Successes are a part of the tries, but {successes} of {n} and {other_successes} of "
            f"{other_n} are given."
        )
    total = successes + other_successes
    few = range(max(0, total - other_n), min(n, total) + 1)
    ways = {k: math.comb(n, k) * math.comb(other_n, total - k) for k in few}
    observed = ways[successes]
    return sum(w for w in ways.values() if w <= observed) / sum(ways.values())


def student_t(freedom: int, level: float) -> float:
    """The t for which P(|T| ≤ t) = level under Student's distribution, by bisection.

    With t = √ν tan θ that probability is a sum of ν/2 powers of cos θ (Abramowitz and Stegun,
    26.7.3 and 26.7.4), and grows with θ.
    """
    low, high = 0.0, math.pi / 2
    while low < (angle := (low + high) / 2) < high:
        low, high = (angle, high) if _central(freedom, angle) < level else (low, angle)
    return math.sqrt(freedom) * math.tan(angle)


def _central(freedom: int, angle: float) -> float:
    """P(|T| ≤ √ν tan θ)."""
    cos = math.cos(angle)
    odd = freedom % 2
    term = cos if odd else 1.0
    found = 0.0
    for power in range(odd, freedom - 1, 2):
        found += term
        term *= cos * cos * (power + 1) / (power + 2)
    found *= math.sin(angle)
    return (angle + found) * 2 / math.pi if odd else found


def _cells(strata: Strata) -> list[np.ndarray]:
    """Every cell as an array, sorted so that no interval depends on the order of the seeds."""
    cells = [np.sort(np.asarray(values, dtype=float)) for values in strata]
    if not cells:
        raise RollinError("Statistics over seeds need at least one cell, got none.")
    for number, cell in enumerate(cells, 1):
        if not cell.size:
            raise RollinError(
                f"Statistics over seeds need a seed in every cell: cell {number} of {len(cells)} "
                "is empty."
            )
        if not np.isfinite(cell).all():
            raise RollinError(
                f"Statistics over seeds need finite values: cell {number} of {len(cells)} has "
                f"{cell[~np.isfinite(cell)][0]}."
            )
    return cells


def _pairs(ours: Strata, other: Strata) -> list[tuple[np.ndarray, np.ndarray]]:
    if len(ours) != len(other):
        raise RollinError(
            f"A comparison needs the same cells on both sides, got {len(ours)} and {len(other)}."
        )
    return list(zip(_cells(ours), _cells(other), strict=True))


def _numbers(shared: Sequence[int] | None, cells: Sequence[np.ndarray]) -> Sequence[int]:
    """Which cell stands in each pair; what has one number must be one cell."""
    if shared is None:
        return range(len(cells))
    if len(shared) != len(cells):
        raise RollinError(
            f"Shared cells need a number for every pair, got {len(shared)} for {len(cells)}."
        )
    first: dict[int, np.ndarray] = {}
    for number, cell in zip(shared, cells, strict=True):
        if not np.array_equal(first.setdefault(number, cell), cell):
            raise RollinError(f"Shared cells are the same cell: those numbered {number} differ.")
    return shared


def _wins(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """For every pair of seeds 1 where x is higher, ½ where they tie, else 0."""
    return (x[:, None] > y) + 0.5 * (x[:, None] == y)


def _middle_mean(values: np.ndarray) -> np.ndarray:
    n = values.shape[-1]
    return np.sort(values)[..., n // 4 : n - n // 4].mean(-1)


def _check(level: float, resamples: int) -> None:
    if not 0 < level < 1:
        raise RollinError(f"The level of an interval must lie between 0 and 1, got {level}.")
    if resamples < 1:
        raise RollinError(f"A bootstrap needs at least one resample, got {resamples}.")


def _interval(value: float, drawn: np.ndarray, level: float) -> Interval:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))
