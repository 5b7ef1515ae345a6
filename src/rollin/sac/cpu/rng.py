"""Numbers of NumPy's generators in compiled code, bit for bit, without the cost of a call."""

import ctypes
import math
from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from rollin.llvm import INT32, INT64, compiled, intrinsic

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
