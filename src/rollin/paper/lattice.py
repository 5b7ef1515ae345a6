"""Which seeds can have given a printed mean ± error, if the value of every seed is on a lattice.

Progress is k/parts with a whole k. The mean of n seeds and its error follow from Σk and Σk²: all
pairs that n seeds can have are enumerated, and compared with the printed digits in whole numbers.
A value half-way between two roundings may go either way: a printed number is impossible only if no
rounding gives it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Lattice:
    """The values k/parts, k = first … last."""

    parts: int
    first: int
    last: int


@dataclass(frozen=True)
class Error:
    """The printed ±: s/√divisor, with s² = Σ(x - mean)²/(n - ddof)."""

    divisor: int
    ddof: int = 0


class Rounded(NamedTuple):
    """The numbers that print as one text: from low/unit to high/unit, both included."""

    low: int
    high: int
    unit: int

    @property
    def least(self) -> float:
        """The smallest of them; what is printed is no deviation below 0."""
        return max(0, self.low) / self.unit

    @property
    def most(self) -> float:
        """The largest of them."""
        return self.high / self.unit


def rounded(text: str) -> Rounded:
    """The numbers that round to a decimal text such as 0.36."""
    whole, _, digits = text.partition(".")
    value = int(whole + digits)
    return Rounded(2 * value - 1, 2 * value + 1, 2 * 10 ** len(digits))


@cache
def sums(first: int, last: int, n: int) -> tuple[Integers, Integers, Integers]:
    """All (Σk, Σk²) of n seeds at k = first … last ≥ 0, with the number of multisets of each."""
    small = math.comb(last - first + n, n) < 2**31  # all multisets there are
    table = np.zeros((n + 1, n * last + 1, n * last**2 + 1), np.int32 if small else np.int64)
    table[0, 0, 0] = 1
    for k in range(first, last + 1):
        for seeds in range(1, n + 1):  # in rising order: a value may be taken again
            fewer = table[seeds - 1, : table.shape[1] - k, : table.shape[2] - k * k]
            table[seeds, k:, k * k :] += fewer
    total, squares = np.nonzero(table[n])
    return total, squares, table[n][total, squares].astype(np.int64)


def _matching(
    lattice: Lattice, n: int, mean: str, error: str, kind: Error
) -> tuple[Integers, Integers, Integers]:
    """The sums that round to the printed mean and error."""
    total, squares, multisets = sums(lattice.first, lattice.last, n)
    low, high, unit = rounded(mean)
    scale = n * lattice.parts
    fits = (low * scale <= total * unit) & (total * unit <= high * scale)
    low, high, unit = rounded(error)
    spread = (n * squares - total**2) * unit**2
    scale = n * (n - kind.ddof) * lattice.parts**2 * kind.divisor
    fits &= (max(0, low) ** 2 * scale <= spread) & (spread <= high**2 * scale)
    return total[fits], squares[fits], multisets[fits]


def count(lattice: Lattice, n: int, mean: str, error: str, kind: Error) -> int:
    """How many multisets of n seeds print as mean ± error; 0: it is impossible."""
    return int(_matching(lattice, n, mean, error, kind)[2].sum())


def seed_sets(
    lattice: Lattice, n: int, mean: str, error: str, kind: Error
) -> list[tuple[int, ...]]:
    """The multisets themselves, each as rising k."""
    total, squares, _ = _matching(lattice, n, mean, error, kind)
    pairs = zip(total.tolist(), squares.tolist(), strict=True)
    return sorted(seeds for s, q in pairs for seeds in _sets(lattice.first, lattice.last, n, s, q))


def _sets(least: int, last: int, n: int, total: int, squares: int) -> Iterator[tuple[int, ...]]:
    """Rising n-tuples within least … last with these sums."""
    if n == 0:
        if total == 0 and squares == 0:
            yield ()
        return
    # n numbers have n Σk² ≥ (Σk)², and none here is greater than the last
    if n * least > total or total > n * last or n * squares < total**2:
        return
    for k in range(least, total // n + 1):  # the smallest is not above the mean
        for rest in _sets(k, last, n - 1, total - k, squares - k * k):
            yield (k, *rest)


class Mixture(NamedTuple):
    """Seeds of which a share has one value and the others have 0.

    share lies between share_low and share_high, as the printed digits leave open.
    """

    share: float
    share_low: float
    share_high: float
    value: float


def mixture(mean: str, error: str, divisor: int) -> Mixture:
    """The mixture of 0 and one value that has this mean, and this error s/√divisor.

    With share p and value v the mean is pv and s² = v²p(1 - p), so p = mean²/(mean² + s²).
    """

    def share(m: float, e: float) -> float:
        return m**2 / (m**2 + divisor * e**2)

    m, e = rounded(mean), rounded(error)
    p = share(float(mean), float(error))
    return Mixture(p, share(m.least, e.most), share(m.most, e.least), float(mean) / p)


def fastest(some: int, n: int, mean: str, error: str) -> float:
    """The largest mean that `some` of n seeds can have, given the printed mean ± s/√n of all.

    It is reached if the others are equal; s is that with n below, which leaves more room.
    """
    p = some / n
    apart = rounded(error).most * math.sqrt(n) / math.sqrt(p * (1 - p))
    return rounded(mean).most + (1 - p) * apart
