"""How wide this machine's vectors are, the tiles of a product that fill its registers, and what is
done with whole lines: copies, transposes, sums, steps of Adam.

`ROLLIN_LANES=16`, `8` or `4`, read once when this is imported, takes narrower vectors than the CPU
has: so that code for another kind of CPU can be tried here. Results are the same bit for bit.
"""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types

from rollin.compiling import host_features
from rollin.errors import RollinError
from rollin.llvm import (
    FLOAT,
    INT32,
    addr,
    compiled,
    constant,
    elementwise,
    int64,
    intrinsic,
    load,
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
