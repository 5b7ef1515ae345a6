"""Words of LLVM's own language for bfloat16 numbers, which are kept in pairs of 32 bits.

A line of 64 bytes holds 16 float32 numbers or 16 pairs, so that the k of a product counts pairs and
tiles stay as they are. A pair's product is fma(even, fma(odd, c)), each rounded to nearest, with
denormal numbers taken and given as 0: what `vdpbf16ps` computes. A CPU without that instruction
computes the same bits by two multiply-adds.

`ROLLIN_PAIRS=emulated`, read once when this is imported, leaves the instruction out.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir
from llvmlite.ir.types import _BaseFloatType
from numba.core import cgutils

from rollin.compiling import host_features
from rollin.errors import RollinError
from rollin.llvm import (
    INT16,
    INT32,
    call,
    constant,
    int64,
    intrinsic,
    load,
    multiply_add,
    outlined,
    shuffle,
    store,
)
from rollin.sac.cpu.simd import (
    LANES,
    LINE,
    PANEL,
    VECTOR,
    X86,
    ZERO,
    has_bfloat16,
    load_line,
    turned,
)

VARIABLE = "ROLLIN_PAIRS"
_INTS = ir.VectorType(INT32, LANES)
_TINY = 0x00800000  # the smallest number that is not denormal


def choose(asked: str | None, lanes: int, features: Mapping[str, bool]) -> bool:
    """Return whether to use the instruction: if the CPU has it, unless `asked` is "emulated"."""
    if asked not in (None, "", "emulated"):
        raise RollinError(f"{VARIABLE} must be emulated or unset, got {asked!r}.")
    return not asked and lanes == 16 and has_bfloat16(features)


NATIVE = choose(os.environ.get(VARIABLE), LANES, host_features())


class _BFloat(_BaseFloatType):
    """LLVM's bfloat, which llvmlite lacks and only has to print."""

    null = "0.0"
    intrinsic_name = "bf16"

    def __str__(self) -> str:
        return "bfloat"


_BFloat._create_instance()
_BFLOAT: Any = _BFloat()
_BFLOATS = ir.VectorType(_BFLOAT, 2 * LANES)


def _integers(value: int) -> ir.Constant:
    return constant(_INTS, value)


# ------------------------------------------------------------------ products of pairs


def add_product(builder: Any, x: Any, y: Any, c: Any) -> Any:
    """Return c plus both products of each pair of x and y; all of LANES times 32 bits."""
    if NATIVE:
        factors = (builder.bitcast(value, _BFLOATS) for value in (x, y))
        return call(builder, "llvm.x86.avx512bf16.dpbf16ps.512", VECTOR, c, *factors)
    x, y = builder.bitcast(x, _INTS), builder.bitcast(y, _INTS)
    odd = [builder.and_(number, _integers(-65536)) for number in (x, y)]
    even = [builder.shl(number, _integers(16)) for number in (x, y)]
    for factors in (odd, even):
        a, b = (builder.bitcast(factor, VECTOR) for factor in factors)
        c = _flushed(builder, multiply_add(builder, a, b, c))
    return c


def _flushed(builder: Any, value: Any) -> Any:
    """Return 0 in place of a denormal number; on x86 `flush` has set the CPU to do so."""
    if X86:
        return value
    bits = builder.bitcast(value, _INTS)
    size = builder.and_(bits, _integers(0x7FFFFFFF))
    tiny = builder.icmp_unsigned("<", size, _integers(_TINY))
    sign = builder.and_(bits, _integers(-(2**31)))
    return builder.bitcast(builder.select(tiny, sign, bits), VECTOR)


_FLUSH = 0x8040  # bits of MXCSR: denormal results, and denormal operands, are 0


def flush(builder: Any) -> Any:
    """Let multiply-adds take and give denormal numbers as 0, until `unflush` of what this gives."""
    if NATIVE or not X86:
        return None
    saved = cgutils.alloca_once(builder, INT32)
    changed = cgutils.alloca_once(builder, INT32)
    _control(builder, "stmxcsr", saved)
    builder.store(builder.or_(builder.load(saved), ir.Constant(INT32, _FLUSH)), changed)
    _control(builder, "ldmxcsr", changed)
    return saved


def unflush(builder: Any, saved: Any) -> None:
    """Restore what was before `flush`."""
    if saved is not None:
        _control(builder, "ldmxcsr", saved)


def _control(builder: Any, name: str, place: Any) -> None:
    pointer = builder.bitcast(place, cgutils.voidptr_t)
    call(builder, f"llvm.x86.sse.{name}", ir.VoidType(), pointer)


# ------------------------------------------------------------------ rounding


def rounded(builder: Any, vectors: Sequence[Any]) -> Any:
    """Return vectors of float32 as one of bfloat16, rounded to nearest, ties to even."""
    if NATIVE and len(vectors) == 2:
        low, high = vectors
        pair = call(builder, "llvm.x86.avx512bf16.cvtne2ps2bf16.512", _BFLOATS, high, low)
        return builder.bitcast(pair, ir.VectorType(INT16, 2 * LANES))
    parts = [_round(builder, vector) for vector in vectors]
    size = LANES
    while len(parts) > 1:
        size *= 2
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [shuffle(builder, low, high, range(size)) for low, high in pairs]
    return parts[0]


def _round(builder: Any, vector: Any) -> Any:
    """Round one vector, in whole numbers; as the instruction: no denormal numbers, quiet NaN."""
    bits = builder.bitcast(vector, _INTS)
    high = builder.lshr(bits, _integers(16))
    last = builder.and_(high, _integers(1))
    nearest = builder.add(bits, builder.add(last, _integers(0x7FFF)))
    nearest = builder.lshr(nearest, _integers(16))
    size = builder.and_(bits, _integers(0x7FFFFFFF))
    tiny = builder.icmp_unsigned("<", size, _integers(_TINY))
    nearest = builder.select(tiny, builder.and_(high, _integers(0x8000)), nearest)
    is_nan = builder.icmp_unsigned(">", size, _integers(0x7F800000))
    nearest = builder.select(is_nan, builder.or_(high, _integers(0x40)), nearest)
    return builder.trunc(nearest, ir.VectorType(INT16, LANES))


def interleaved(builder: Any, first: Any, second: Any) -> list[Any]:
    """Return pairs of two rows of bfloat16 numbers: one vector for every 16 columns."""
    size = first.type.count
    return [
        shuffle(builder, first, second, [n for i in range(PANEL) for n in (j + i, size + j + i)])
        for j in range(0, size, PANEL)
    ]


# ------------------------------------------------------------------ lines


@intrinsic
def pair_lines(builder, source, target):
    """Write two lines of float32 numbers that follow each other as one line of their pairs."""
    below = builder.add(source, int64(LINE))
    first, second = (rounded(builder, load_line(builder, at)) for at in (source, below))
    store(builder, interleaved(builder, first, second)[0], target)


@intrinsic
def pair_last_line(builder, source, target):
    """Write one line of float32 numbers as a line of pairs whose second numbers are 0."""
    first = rounded(builder, load_line(builder, source))
    second = constant(first.type, 0)
    store(builder, interleaved(builder, first, second)[0], target)


@intrinsic
def round_line(builder, source, target):
    """Write a line of float32 numbers as half a line of bfloat16 numbers."""
    store(builder, rounded(builder, load_line(builder, source)), target)


# ------------------------------------------------------------------ transposes

TURNED_PANELS = 2 if LANES == 16 else 1  # of outputs that `turn_block` takes at once


def _turn_block(builder: Any, sources: Sequence[Any], target: Any, lines: int) -> None:
    """Write lines of LANES inputs, 2 · LANES outputs of each, as lines of pairs of outputs."""
    rows = []
    for i in range(LANES):
        vectors = [
            ZERO if source is None else load(builder, VECTOR, source, LINE * i)
            for source in sources
        ]
        rows.append(builder.bitcast(rounded(builder, vectors), VECTOR))
    for i, line in enumerate(turned(builder, rows)[:lines]):
        store(builder, line, target, LINE * i)


_call_turn_block = outlined(
    f"rollin_turn_pairs_{LANES}", lambda builder, a, b, to: _turn_block(builder, (a, b), to, LANES)
)
_call_turn_half_block = outlined(
    f"rollin_turn_pairs_half_{LANES}",
    lambda builder, a, to: _turn_block(builder, (a, None), to, LANES // 2),
)


@intrinsic
def turn_block(builder, first, second, target):
    """Write the transpose of LANES inputs; addresses of LANES of their outputs and LANES more."""
    _call_turn_block(builder, first, second, target)


@intrinsic
def turn_half_block(builder, first, target):
    """Write the same for LANES outputs only."""
    _call_turn_half_block(builder, first, target)
