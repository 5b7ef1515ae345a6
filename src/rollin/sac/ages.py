"""Which transitions a batch is made of, by their age: uniform, or recent ones more often."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.errors import RollinError

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
    """Ages of rows, each equally likely; age 0 is the newest."""
    return generator.integers(0, held, size)


def geometric_ages(size: int, held: int, p: float, generator: Generator) -> Rows:
    """Ages with P(age = a) ∝ p (1 - p)^a for a < held, by inversion of the truncated law."""
    if not 0 < p < 1:
        raise RollinError(f"p of geometric sampling must lie in (0, 1), got {p}.")
    decay = np.log1p(-p)
    inside = -np.expm1(held * decay)  # P(age < held) before truncation
    ages = np.floor(np.log1p(-generator.random(size) * inside) / decay)
    return np.minimum(ages, held - 1).astype(np.int64)
