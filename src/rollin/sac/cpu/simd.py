"""How wide this machine's vectors are, the tiles of a product that fill its registers, and what is
done with whole lines: copies, transposes, sums, steps of Adam, products of bfloat16 pairs.

`ROLLIN_LANES=16`, `8` or `4`, read once when this is imported, takes narrower vectors than the CPU
has: so that code for another kind of CPU can be tried here. Results are the same bit for bit.
`ROLLIN_PAIRS=emulated` is read then as well.
"""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from llvmlite.ir.types import _BaseFloatType
from numba import types
from numba.core import cgutils

from rollin.compiling import host_features
from rollin.errors import RollinError
from rollin.llvm import (
    FLOAT,
    INT16,
    INT32,
    addr,
    call,
    compiled,
    constant,
    elementwise,
    int64,
    intrinsic,
    load,
    multiply_add,
    outlined,
    shuffle,
    splat,
    store,
)

VARIABLE = "ROLLIN_LANES"
_X86_NAMES = ("x86_64", "amd64", "i686", "i386")
PANEL = 16
"""Columns of a panel: a cache line of float32 numbers, and the widest vector there is."""


@dataclass(frozen=True)
class Tiling:
    """Tiles of a product: rows (the largest first, then what is left), and panels side by side."""

    heights: tuple[int, ...]
    panels: int


# A tile of R rows and V vectors keeps R · V sums, V factors and one number in registers, and reads
# R + V times for R · V multiply-adds. Sums have to be at least as many as multiply-adds are under
# way at once (8: two units, four cycles each).
TILINGS = {
    # 32 registers: 8 × 2 = 16 sums. 8 rows divide a panel and most batches, so that nothing is left
    # over; larger tiles were not tried.
    16: Tiling((8, 4, 2, 1), 2),
    # 16 registers: 6 × 2 = 12 sums, and one panel of 256 lines is half of the first cache.
    8: Tiling((6, 4, 2, 1), 1),
    # ARM has 32 registers: 6 × 4 = 24 sums.
    4: Tiling((6, 4, 2, 1), 1),
}
# x86 without AVX2 has 16: 3 × 4 = 12 sums.
OLD_X86 = Tiling((3, 2, 1), 1)


def widest(features: Mapping[str, bool]) -> int:
    """Return how many numbers this CPU's widest vector holds."""
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


def has_bfloat16(features: Mapping[str, bool]) -> bool:
    """Return whether this CPU multiplies pairs of bfloat16 numbers in vectors of 16 lanes."""
    return bool(features.get("avx512bf16"))


def choose(asked: str | None, possible: int) -> int:
    """Return the width asked for, which the CPU must have, or its widest."""
    if not asked:
        return possible
    widths = [width for width in TILINGS if width <= possible]
    if asked not in map(str, widths):
        can = ", ".join(map(str, widths[:-1])) + " or " * (len(widths) > 1) + str(widths[-1])
        raise RollinError(
            f"{VARIABLE} must be {can} on this CPU, got {asked!r}: "
            "choose one of these, or unset it for the widest."
        )
    return int(asked)


def tiling(lanes: int, machine: str) -> Tiling:
    """Return the tiles for vectors of that width on that machine (`platform.machine`)."""
    old = lanes == 4 and machine.lower() in _X86_NAMES
    return OLD_X86 if old else TILINGS[lanes]


LANES = choose(os.environ.get(VARIABLE), widest(host_features()))
TILES = tiling(LANES, platform.machine())
X86 = platform.machine().lower() in _X86_NAMES
LINE = 4 * PANEL
"""Bytes of a line of a panel."""
VECTOR = ir.VectorType(FLOAT, LANES)
ZERO = constant(VECTOR, 0.0)
PARTS = [4 * LANES * part for part in range(PANEL // LANES)]
"""Where the vectors of a line begin, in bytes."""


# ------------------------------------------------------------------ transposition


def turned(builder: Any, lines: Sequence[Any]) -> list[Any]:
    """Return LANES vectors transposed, by exchanging halves."""
    rows = range(LANES)
    lines = list(lines)
    distance = 1
    while distance < LANES:
        low = [n if not n & distance else LANES + n - distance for n in rows]
        high = [n + distance if not n & distance else LANES + n for n in rows]
        for i in rows:
            if not i & distance:
                pair = lines[i], lines[i + distance]
                lines[i] = shuffle(builder, *pair, low)
                lines[i + distance] = shuffle(builder, *pair, high)
        distance *= 2
    return lines


def _transpose_block(builder: Any, source: Any, stride: Any, target: Any, to_stride: Any) -> None:
    lines = [
        load(builder, VECTOR, builder.add(source, builder.mul(stride, int64(i))))
        for i in range(LANES)
    ]
    for i, line in enumerate(turned(builder, lines)):
        store(builder, line, builder.add(target, builder.mul(to_stride, int64(i))))


_call_transpose_block = outlined(f"rollin_transpose_{LANES}", _transpose_block)


@intrinsic
def transpose_block(builder, source, stride, target, to_stride):
    """Transpose LANES × LANES numbers in registers; lines are so many bytes apart."""
    _call_transpose_block(builder, source, stride, target, to_stride)


@compiled
def transpose(source, i, j, target, to_i, to_j, rows, columns):
    """Set target[to_i + n, to_j + m] = source[i + m, j + n] for m < rows, n < columns.

    Both are matrices whose numbers of a row follow each other.
    """
    stride, to_stride = source.strides[0], target.strides[0]
    whole_rows = rows // LANES * LANES
    whole_columns = columns // LANES * LANES
    for m in range(0, whole_rows, LANES):
        for n in range(0, whole_columns, LANES):
            begin = addr(source) + (i + m) * stride + 4 * (j + n)
            end = addr(target) + (to_i + n) * to_stride + 4 * (to_j + m)
            transpose_block(begin, stride, end, to_stride)
    for m in range(rows):
        for n in range(0 if m >= whole_rows else whole_columns, columns):
            target[to_i + n, to_j + m] = source[i + m, j + n]


# ------------------------------------------------------------------ lines of a panel


def load_line(builder: Any, address: Any) -> list[Any]:
    """Load the vectors of a line."""
    return [load(builder, VECTOR, address, part) for part in PARTS]


@intrinsic
def copy_line(builder, source, target):
    """Copy the 16 numbers of a line."""
    for part in PARTS:
        store(builder, load(builder, VECTOR, source, part), target, part)


@intrinsic
def gate_line(builder, line, scale, gate, target):
    """Write a line times a number where the line `gate` is positive, else 0."""
    factor = splat(builder, VECTOR, scale)
    for part in PARTS:
        value = builder.fmul(load(builder, VECTOR, line, part), factor)
        positive = builder.fcmp_ordered(">", load(builder, VECTOR, gate, part), ZERO)
        store(builder, builder.select(positive, value, ZERO), target, part)


@intrinsic
def clear_line(builder, target):
    """Write 16 zeros."""
    for part in PARTS:
        store(builder, ZERO, target, part)


@intrinsic(result=types.float32)
def sum_line(builder, source):
    """Return the sum of a line's numbers, by halves: the same bits for vectors of any width."""
    parts = load_line(builder, source)
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [builder.fadd(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
    total = parts[0]
    half = LANES // 2
    while half:
        order = [(i + half) % LANES for i in range(LANES)]
        total = builder.fadd(total, shuffle(builder, total, total, order))
        half //= 2
    return builder.extract_element(total, ir.Constant(INT32, 0))


BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam
REST1, REST2 = 0.1, 0.001  # 1 - β, not rounded twice
TINY = 1.2e-38  # below are denormals, on which a CPU is a hundred times slower


@intrinsic
def adam_line(builder, gradient, theta, m, v, rate, correction):
    """Make one step of Adam on a line; correction: of v."""

    def number(value: float) -> Any:
        return constant(VECTOR, value)

    rate, correction = (splat(builder, VECTOR, scalar) for scalar in (rate, correction))
    for part in PARTS:
        g = load(builder, VECTOR, gradient, part)
        fresh = builder.fmul(number(REST1), g)
        mean = builder.fmul(number(BETA1), load(builder, VECTOR, m, part))
        mean = builder.fadd(mean, fresh)
        fresh = builder.fmul(builder.fmul(number(REST2), g), g)
        square = builder.fmul(number(BETA2), load(builder, VECTOR, v, part))
        square = builder.fadd(square, fresh)
        for value, place in ((mean, m), (square, v)):
            size = elementwise(builder, "fabs", value)
            normal = builder.fcmp_ordered(">", size, number(TINY))
            store(builder, builder.select(normal, value, ZERO), place, part)
        root = elementwise(builder, "sqrt", builder.fmul(square, correction))
        change = builder.fdiv(builder.fmul(rate, mean), builder.fadd(root, number(EPSILON)))
        store(builder, builder.fsub(load(builder, VECTOR, theta, part), change), theta, part)


@intrinsic
def follow_line(builder, theta, target, tau):
    """Move a line of a target by τ towards a line of theta."""
    factor = splat(builder, VECTOR, tau)
    for part in PARTS:
        old = load(builder, VECTOR, target, part)
        gap = builder.fsub(load(builder, VECTOR, theta, part), old)
        store(builder, builder.fadd(old, builder.fmul(factor, gap)), target, part)


# ------------------------------------------------------------------ pairs of bfloat16 numbers
#
# A pair takes 32 bits, and a line of 64 bytes holds 16 float32 numbers or 16 pairs, so that the k
# of a product counts pairs and tiles stay as they are. A pair's product is fma(even, fma(odd, c)),
# each rounded to nearest, with denormal numbers taken and given as 0: what `vdpbf16ps` computes. A
# CPU without that instruction computes the same bits by two multiply-adds.

PAIRS_VARIABLE = "ROLLIN_PAIRS"
_INTS = ir.VectorType(INT32, LANES)
_TINY = 0x00800000  # the smallest number that is not denormal


def choose_pairs(asked: str | None, lanes: int, features: Mapping[str, bool]) -> bool:
    """Return whether to use the instruction: if the CPU has it, unless `asked` is "emulated"."""
    if asked not in (None, "", "emulated"):
        raise RollinError(f"{PAIRS_VARIABLE} must be emulated or unset, got {asked!r}.")
    return not asked and lanes == 16 and has_bfloat16(features)


NATIVE = choose_pairs(os.environ.get(PAIRS_VARIABLE), LANES, host_features())


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
