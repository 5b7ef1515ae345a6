"""Which transitions a batch is made of, by their age: uniform, or recent ones more often."""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from rollin.compiling import kept
from rollin.errors import RollinError
from rollin.sac import lanes, vector
from rollin.sac.vector import INT32, INT64, OPTIONS, intrinsic

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
    source = generator.bit_generator
    if type(source) is not PCG64 or not 2 <= held < 2**32:
        return generator.integers(0, held, size)
    ages = np.empty(size, np.int64)
    _draw(source.ctypes.state_address, _next_uint32(), held, ages)
    return ages


@cache
def _next_uint32() -> int:
    """Address of NumPy's function that gives a PCG64's next 32 bits, the same for all of them."""
    return ctypes.cast(PCG64().ctypes.next_uint32, ctypes.c_void_p).value or 0


@intrinsic
def _bits(typing, function, state):
    """Call such a function on a generator's state."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(INT32, [INT64])
        drawn = builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return builder.zext(drawn, INT64)

    return types.uint64(types.int64, types.int64), generate


@kept(helpers=(lanes, vector), **OPTIONS)
def _draw(state, function, held, out):
    """Numbers below `held` as NumPy draws them: by multiplication, without bias (Lemire, 2019)."""
    held = np.uint64(held)
    low = np.uint64(2**32 - 1)
    threshold = (np.uint64(2**32) - held) % held
    for i in range(out.shape[0]):
        product = _bits(function, state) * held
        while product & low < threshold:
            product = _bits(function, state) * held
        out[i] = product >> np.uint64(32)


def geometric_ages(size: int, held: int, p: float, generator: Generator) -> Rows:
    """Ages with P(age = a) ∝ p (1 - p)^a for a < held, by inversion of the truncated law."""
    if not 0 < p < 1:
        raise RollinError(f"p of geometric sampling must lie in (0, 1), got {p}.")
    decay = np.log1p(-p)
    inside = -np.expm1(held * decay)  # P(age < held) before truncation
    ages = np.floor(np.log1p(-generator.random(size) * inside) / decay)
    return np.minimum(ages, held - 1).astype(np.int64)
