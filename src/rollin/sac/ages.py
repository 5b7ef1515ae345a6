"""Which transitions a batch is made of, by their age: uniform, or recent ones more often."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.compiling import kept
from rollin.errors import RollinError
from rollin.sac import bits, lanes, vector
from rollin.sac.bits import draw_bits, source
from rollin.sac.vector import OPTIONS, compiled

Rows = NDArray[np.int64]
"""Numbers or ages of rows."""


def draw_ages(size: int, held: int, generator: Generator, p: float | None) -> Rows:
    """Ages of `size` of the rows held, with replacement: uniform, or geometric with parameter p."""
    if held == 0:
        raise RollinError("The replay is empty: append transitions before a batch is drawn.")
    if p is None:
        return uniform_ages(size, held, generator)
    return geometric_ages(size, held, p, generator)


def uniform_ages(size: int, held: int, generator: Generator) -> Rows:
    """Ages of rows, each equally likely; age 0 is the newest.

    These are `generator.integers(0, held, size)` to the bit, without what that call costs besides.
    """
    where = source(generator)
    if where is None or not 2 <= held < 2**32:
        return generator.integers(0, held, size)
    ages = np.empty(size, np.int64)
    _draw(*where, held, ages)
    return ages


@compiled
def draw_below(state, function, bound):
    """A number below `bound` as NumPy draws it: by multiplication, without bias (Lemire, 2019)."""
    bound, low = np.uint64(bound), np.uint64(2**32 - 1)
    product = draw_bits(state, function) * bound
    if product & low < bound:  # else it is fine whatever the threshold is, which takes a division
        threshold = (np.uint64(2**32) - bound) % bound
        while product & low < threshold:
            product = draw_bits(state, function) * bound
    return np.int64(product >> np.uint64(32))


@kept(helpers=(bits, lanes, vector), **OPTIONS)
def _draw(state, function, held, out):
    for i in range(out.shape[0]):
        out[i] = draw_below(state, function, held)


def geometric_ages(size: int, held: int, p: float, generator: Generator) -> Rows:
    """Ages with P(age = a) ∝ p (1 - p)^a for a < held, by inversion of the truncated law."""
    if not 0 < p < 1:
        raise RollinError(f"p of geometric sampling must lie in (0, 1), got {p}.")
    decay = np.log1p(-p)
    inside = -np.expm1(held * decay)  # P(age < held) before truncation
    ages = np.floor(np.log1p(-generator.random(size) * inside) / decay)
    return np.minimum(ages, held - 1).astype(np.int64)
