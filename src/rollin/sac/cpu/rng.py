"""Numbers of NumPy's generators in compiled code, bit for bit, without the cost of a call.

The compiled code of the replay draws with them the rows of a batch by their age: uniformly, or
recent ones more often. It also writes one row, and gathers a batch.
"""

import ctypes
import math
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from rollin import llvm
from rollin.compiling import cached_njit
from rollin.errors import RollinError
from rollin.llvm import INT32, INT64, OPTIONS, addr, compiled, intrinsic, prefetch

Source = tuple[int, int]
"""Addresses of a generator's state, and of the function that gives its next 32 bits."""

LAYERS = 256
TAIL = 3.6541528853610088  # where the last layer of the ziggurat ends


def source(generator: Generator) -> Source | None:
    """Return where compiled code finds a generator's numbers; None if it is no PCG64.

    The addresses hold as long as the generator lives.
    """
    made_by = generator.bit_generator
    return (made_by.ctypes.state_address, _next_uint32()) if type(made_by) is PCG64 else None


@cache
def _next_uint32() -> int:
    """Return the address of the function, which all of them share."""
    return ctypes.cast(PCG64().ctypes.next_uint32, ctypes.c_void_p).value or 0


@intrinsic(result=types.uint64)
def draw_bits(builder, state, function):
    """Return the next 32 bits."""
    kind = ir.FunctionType(INT32, [INT64])
    drawn = builder.call(builder.inttoptr(function, kind.as_pointer()), [state])
    return builder.zext(drawn, INT64)


# ------------------------------------------------------------------ normal numbers


def _ziggurat() -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.float32]]:
    """Return layers of equal area under exp(-x²/2), for 23 bits (Marsaglia and Tsang, 2000).

    Which draws lie inside for sure, the width of a unit of a draw, and the density at the end.
    """
    unit = 2.0**-23
    ends = np.zeros(LAYERS)
    ends[-1] = TAIL
    area = TAIL * math.exp(-(TAIL**2) / 2) + math.sqrt(math.pi / 2) * math.erfc(TAIL / 2**0.5)
    for i in range(LAYERS - 2, 0, -1):
        before = ends[i + 1]
        ends[i] = math.sqrt(-2 * math.log(area / before + math.exp(-(before**2) / 2)))
    density = np.array([math.exp(-(end**2) / 2) for end in ends])
    widths = np.array([area / density[-1], *ends[1:]])
    inside = np.rint(np.array([TAIL, *ends[:-1]]) / widths / unit)
    return inside.astype(np.uint64), (widths * unit).astype(np.float32), density.astype(np.float32)


_INSIDE, _WIDTH, _DENSITY = _ziggurat()
_TAIL, _INVERSE = np.float32(TAIL), np.float32(1 / TAIL)


@compiled
def _uniform(state, function):
    """Return a number in [0, 1)."""
    return np.float32(draw_bits(state, function) >> np.uint64(8)) * np.float32(2.0**-24)


@compiled
def _tail(state, function, negative):
    """Return a number beyond the last layer."""
    while True:
        x = -_INVERSE * np.float32(math.log1p(-_uniform(state, function)))
        y = -np.float32(math.log1p(-_uniform(state, function)))
        if y + y > x * x:
            return -(_TAIL + x) if negative else _TAIL + x


@compiled
def draw_normal(state, function, out):
    """Fill a vector with `Generator.standard_normal(dtype=float32)`'s next numbers."""
    for i in range(out.shape[0]):
        while True:
            bits = draw_bits(state, function)
            layer = bits & np.uint64(LAYERS - 1)
            size = (bits >> np.uint64(9)) & np.uint64(2**23 - 1)
            # no branch for the sign, which no processor foresees
            sign = np.float32(np.int64(1) - np.int64((bits >> np.uint64(7)) & np.uint64(2)))
            out[i] = sign * (np.float32(size) * _WIDTH[layer])
            if size < _INSIDE[layer]:
                break
            if layer == 0:
                out[i] = _tail(state, function, (size >> np.uint64(8)) & np.uint64(1))
                break
            step = _DENSITY[layer - np.uint64(1)] - _DENSITY[layer]
            height = step * _uniform(state, function) + _DENSITY[layer]
            if height < math.exp(-0.5 * float(out[i]) * float(out[i])):
                break


Rows = NDArray[np.int64]
"""Numbers or ages of rows."""

BOX = 1 + 1e-6  # actions lie in [-1, 1], up to rounding
NOWHERE = -1  # the slot of a row that is checked only
LINE = 64  # bytes of a cache line
EARLY = 16  # rows between one that is copied and one that is asked for: memory takes that long

_entry: Any = cached_njit(helpers=(llvm,), **OPTIONS)


# ------------------------------------------------------------------ ages


def draw_ages(size: int, held: int, generator: Generator, p: float | None) -> Rows:
    """Return ages of `size` of the rows held: uniform, or geometric with parameter p."""
    if held == 0:
        raise RollinError("The replay is empty: append transitions before a batch is drawn.")
    if p is None:
        return uniform_ages(size, held, generator)
    return geometric_ages(size, held, p, generator)


def uniform_ages(size: int, held: int, generator: Generator) -> Rows:
    """Return ages of rows, each equally likely; age 0 is the newest.

    These are `generator.integers(0, held, size)` bit for bit, without what that call costs besides.
    """
    where = source(generator)
    if where is None or not 2 <= held < 2**32:
        return generator.integers(0, held, size)
    ages = np.empty(size, np.int64)
    _draw(*where, held, ages)
    return ages


@compiled
def draw_below(state, function, bound):
    """Return a number below `bound` as NumPy draws it: by multiplication (Lemire, 2019)."""
    bound = np.uint64(bound)
    low = np.uint64(2**32 - 1)
    product = draw_bits(state, function) * bound
    if product & low < bound:  # else it is fine whatever the threshold is, which takes a division
        threshold = (np.uint64(2**32) - bound) % bound
        while product & low < threshold:
            product = draw_bits(state, function) * bound
    return np.int64(product >> np.uint64(32))


@_entry
def _draw(state, function, held, out):
    for i in range(out.shape[0]):
        out[i] = draw_below(state, function, held)


def geometric_ages(size: int, held: int, p: float, generator: Generator) -> Rows:
    """Return ages with P(age = a) ∝ p (1 - p)^a for a < held, by inversion of the truncated law."""
    if not 0 < p < 1:
        raise RollinError(f"p of geometric sampling must lie in (0, 1), got {p}.")
    decay = np.log1p(-p)
    inside = -np.expm1(held * decay)  # P(age < held) before truncation
    ages = np.floor(np.log1p(-generator.random(size) * inside) / decay)
    return np.minimum(ages, held - 1).astype(np.int64)


# ------------------------------------------------------------------ rows


@_entry
def insert(rows, slot, observation, action, context, following, outcome, reward, flag):
    """Write a row; or write nothing and return the first number that is not allowed.

    It is counted through the parts in their order here, the reward last. -1: all is well.
    """
    checked = 0
    for part in (observation, action, context, following, outcome):
        for x in part:
            if not np.isfinite(x):
                return checked
            checked += 1
    for i in range(len(action)):
        if abs(action[i]) > BOX:
            return len(observation) + i
    if not np.isfinite(np.float32(reward)):
        return checked
    if slot == NOWHERE:
        return -1
    row = rows[slot]
    i = 0
    for part in (action, observation, context, following):
        for x in part:
            row[i] = x
            i += 1
    row[i] = reward
    row[i + 1] = flag
    for x in outcome:
        row[i + 2] = x
        i += 1
    return -1


@compiled
def _copy(row, sizes, to):
    """Copy a row as a batch has it: action, observation, context, next, context, reward, mask."""
    a = sizes[0]
    o = sizes[1]
    c = sizes[2]
    head = a + o + c
    for i in range(head + o):
        to[i] = row[i]
    for i in range(c):
        to[head + o + i] = row[a + o + i]
    to[head + o + c] = row[head + o]
    to[head + o + c + 1] = min(row[head + o + 1], np.float32(1))


@compiled
def _ask_for(rows, slot):
    """Let the caches fetch a row."""
    size = 4 * rows.shape[1]
    begin = addr(rows) + slot * size
    for offset in range(0, size, LINE):
        prefetch(begin + offset)
    prefetch(begin + size - 4)  # the row may begin within a line


@compiled
def _gather(rows, slots, sizes, out):
    count = len(slots)
    for b in range(min(EARLY, count)):
        _ask_for(rows, slots[b])
    for b in range(count):
        if b + EARLY < count:
            _ask_for(rows, slots[b + EARLY])
        _copy(rows[slots[b]], sizes, out[b])


@_entry
def gather(rows, picked, sizes, out):
    """Write the batch of these rows."""
    _gather(rows, picked % rows.shape[0], sizes, out)


@_entry
def sample(rows, sizes, out, state, function, held, total):
    """Draw as many of the newest `held` rows as `out` has, and write their batch."""
    capacity = rows.shape[0]
    slots = np.empty(out.shape[0], np.int64)
    newest = (total - 1) % capacity
    for b in range(out.shape[0]):
        slot = newest - draw_below(state, function, held)
        slots[b] = slot if slot >= 0 else slot + capacity  # a division would take longer
    _gather(rows, slots, sizes, out)
