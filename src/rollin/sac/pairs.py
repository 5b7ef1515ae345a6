"""Words of LLVM's own language for bfloat16 numbers, which are kept in pairs of 32 bits.

A line of 64 bytes holds 16 float32 numbers or 16 pairs, so that the k of a product counts pairs and
tiles stay as they are. A pair's product is fma(even, fma(odd, c)), each rounded to nearest, with
denormal numbers taken and given as 0: what `vdpbf16ps` computes. A CPU without that instruction
computes the same bits by two multiply-adds.

`ROLLIN_PAIRS=emulated`, read once when this is imported, leaves the instruction out.
"""

import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir
from llvmlite.ir.types import _BaseFloatType
from numba import types
from numba.core import cgutils

from rollin.compiling import host_features
from rollin.errors import RollinError
from rollin.sac.lanes import LANES, PANEL, has_bfloat16
from rollin.sac.vector import (
    INT32,
    LINE,
    VECTOR,
    calling,
    intrinsic,
    load,
    multiply_add,
    store,
    turned,
    zero,
)

VARIABLE = "ROLLIN_PAIRS"
HALF = ir.IntType(16)
_INTS = ir.VectorType(INT32, LANES)
_TINY = 0x00800000  # the smallest number that is not denormal
_PARTS = PANEL // LANES  # vectors of a line


def choose(asked: str | None, lanes: int, features: Mapping[str, bool]) -> bool:
    """Whether to use the instruction: where the CPU has it, unless `asked` is "emulated"."""
    if asked not in (None, "", "emulated"):
        raise RollinError(f"{VARIABLE} must be emulated or unset, got {asked!r}.")
    return not asked and lanes == 16 and has_bfloat16(features)


NATIVE = choose(os.environ.get(VARIABLE), LANES, host_features())
X86 = platform.machine().lower() in ("x86_64", "amd64", "i686", "i386")


class _BFloat(_BaseFloatType):
    """LLVM's bfloat, which llvmlite lacks and only has to print."""

    null = "0.0"
    intrinsic_name = "bf16"

    def __str__(self) -> str:
        return "bfloat"


_BFloat._create_instance()
_BFLOAT: Any = _BFloat()


def _halves(count: int) -> ir.VectorType:
    return ir.VectorType(HALF, count)


def _bfloats(count: int) -> ir.VectorType:
    return ir.VectorType(_BFLOAT, count)


def _integers(value: int) -> ir.Constant:
    return ir.Constant(_INTS, [value] * LANES)


def _shuffle(builder: Any, a: Any, b: Any, order: Sequence[int]) -> Any:
    indices = ir.Constant(ir.VectorType(INT32, len(order)), list(order))
    return builder.shuffle_vector(a, b, indices)


# ------------------------------------------------------------------ products of pairs


def add_product(builder: Any, x: Any, y: Any, c: Any) -> Any:
    """C plus both products of each pair of x and y; all of LANES times 32 bits."""
    if NATIVE:
        pairs = _bfloats(2 * LANES)
        kind = ir.FunctionType(VECTOR, [VECTOR, pairs, pairs])
        name = "llvm.x86.avx512bf16.dpbf16ps.512"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, [c, builder.bitcast(x, pairs), builder.bitcast(y, pairs)])
    x, y = builder.bitcast(x, _INTS), builder.bitcast(y, _INTS)
    odd = [builder.and_(number, _integers(-65536)) for number in (x, y)]
    even = [builder.shl(number, _integers(16)) for number in (x, y)]
    for factors in (odd, even):
        a, b = (builder.bitcast(factor, VECTOR) for factor in factors)
        c = _flushed(builder, multiply_add(builder, a, b, c))
    return c


def _flushed(builder: Any, value: Any) -> Any:
    """0 in place of a denormal number; on x86 `flush` has set the CPU to give it."""
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
    """Go back to what was before `flush`."""
    if saved is not None:
        _control(builder, "ldmxcsr", saved)


def _control(builder: Any, name: str, place: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
    builder.call(function, [builder.bitcast(place, cgutils.voidptr_t)])


# ------------------------------------------------------------------ rounding


def rounded(builder: Any, vectors: Sequence[Any]) -> Any:
    """Vectors of float32 as one of bfloat16, rounded to nearest, ties to even."""
    if NATIVE and len(vectors) == 2:
        low, high = vectors
        kind = ir.FunctionType(_bfloats(2 * LANES), [VECTOR, VECTOR])
        name = "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.bitcast(builder.call(function, [high, low]), _halves(2 * LANES))
    found, size = [_round(builder, vector) for vector in vectors], LANES
    while len(found) > 1:
        size *= 2
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [_shuffle(builder, low, high, range(size)) for low, high in pairs]
    return found[0]


def _round(builder: Any, vector: Any) -> Any:
    """One vector, in whole numbers; as the instruction does it: no denormal numbers, quiet NaN."""
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
    return builder.trunc(nearest, _halves(LANES))


def interleaved(builder: Any, first: Any, second: Any) -> list[Any]:
    """Pairs of two rows of bfloat16 numbers: one vector for every 16 columns."""
    size = first.type.count
    return [
        _shuffle(builder, first, second, [n for i in range(PANEL) for n in (j + i, size + j + i)])
        for j in range(0, size, PANEL)
    ]


# ------------------------------------------------------------------ lines


def _load_line(builder: Any, address: Any) -> list[Any]:
    return [load(builder, VECTOR, address, 4 * LANES * part) for part in range(_PARTS)]


@intrinsic
def pair_lines(typing, source, target):
    """Two lines of float32 numbers that follow each other as one line of their pairs."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target = args
        below = builder.add(source, ir.Constant(source.type, LINE))
        first, second = (rounded(builder, _load_line(builder, at)) for at in (source, below))
        store(builder, interleaved(builder, first, second)[0], target)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def pair_last_line(typing, source, target):
    """One line of float32 numbers as a line of pairs whose second numbers are 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = rounded(builder, _load_line(builder, args[0]))
        second = ir.Constant(first.type, [0] * PANEL)
        store(builder, interleaved(builder, first, second)[0], args[1])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def round_line(typing, source, target):
    """A line of float32 numbers as half a line of bfloat16 numbers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        store(builder, rounded(builder, _load_line(builder, args[0])), args[1])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


# ------------------------------------------------------------------ transposes

TURNED_PANELS = 2 if LANES == 16 else 1  # of outputs that `turn_block` takes at once


def _turn_block(builder: Any, sources: Sequence[Any], target: Any, lines: int) -> None:
    """Lines of LANES inputs, 2 · LANES outputs of each, as lines of pairs of outputs."""
    rows = []
    for i in range(LANES):
        vectors = [
            zero(VECTOR) if source is None else load(builder, VECTOR, source, LINE * i)
            for source in sources
        ]
        rows.append(builder.bitcast(rounded(builder, vectors), VECTOR))
    for i, line in enumerate(turned(builder, rows)[:lines]):
        store(builder, line, target, LINE * i)


_call_turn_block = calling(
    "turn_pairs", lambda builder, a, b, to: _turn_block(builder, (a, b), to, LANES)
)
_call_turn_half_block = calling(
    "turn_pairs_half", lambda builder, a, to: _turn_block(builder, (a, None), to, LANES // 2)
)


@intrinsic
def turn_block(typing, first, second, target):
    """The transpose of LANES inputs; addresses of LANES outputs of theirs, and of LANES more."""
    return types.void(*[types.int64] * 3), _call_turn_block


@intrinsic
def turn_half_block(typing, first, target):
    """The same for LANES outputs alone."""
    return types.void(*[types.int64] * 2), _call_turn_half_block
