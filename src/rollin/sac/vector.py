"""Words of LLVM's own language for vectors of float32 numbers, from which kernels are written.

A compiler does not find register tiles by itself, and a BLAS costs more than its arithmetic at
these sizes. Places in memory are addresses, int64 numbers of bytes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as _numba_intrinsic

from rollin.sac.lanes import LANES, PANEL

# errors as in NumPy: a check for a division by zero would keep loops from becoming vector code
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# For compiled code alone: a call from Python would end the process. Ways in from there, which only
# the functions of `kernels` and `rows` need, took a quarter of the time to compile.
_INSIDE: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
compiled: Any = njit(**_INSIDE)
inlined: Any = njit(**_INSIDE, inline="always")
intrinsic: Any = _numba_intrinsic  # called without its first argument, which type checkers miss


def compiled_as(name: str, function: Any) -> Any:
    """A function that a factory made, compiled under a name of its own.

    Machine code is named by this and by a count of the process that compiled it. Under one name,
    two functions from two processes' caches could be taken for each other.
    """
    function.__qualname__ = name
    return compiled(function)


LINE = 4 * PANEL  # bytes of a line of a panel
FLOAT, INT32, INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(FLOAT, LANES)
_INDICES = ir.VectorType(INT32, LANES)


def int64(value: int) -> ir.Constant:
    """A constant."""
    return ir.Constant(INT64, value)


def zero(kind: Any) -> ir.Constant:
    """0 as a number or as a vector of them."""
    return ir.Constant(kind, [0.0] * LANES if kind is VECTOR else 0.0)


def splat(builder: Any, scalar: Any) -> Any:
    """A vector of one number."""
    undefined = ir.Constant(VECTOR, ir.Undefined)
    single = builder.insert_element(undefined, scalar, ir.Constant(INT32, 0))
    return builder.shuffle_vector(single, undefined, ir.Constant(_INDICES, [0] * LANES))


def load(builder: Any, kind: Any, address: Any, offset: int = 0) -> Any:
    """The number or the vector that is so many bytes behind an address."""
    return builder.load(_pointer(builder, kind, address, offset), align=4)


def store(builder: Any, value: Any, address: Any, offset: int = 0) -> None:
    """Write a number or a vector so many bytes behind an address."""
    builder.store(value, _pointer(builder, value.type, address, offset), align=4)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """A b + c, rounded once."""
    kind = a.type
    name = f"llvm.fma.{'f32' if kind is FLOAT else f'v{LANES}f32'}"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * 3), name
    )
    return builder.call(function, [a, b, c])


def _pointer(builder: Any, kind: Any, address: Any, offset: int) -> Any:
    base = builder.inttoptr(address, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(base, [int64(offset)]), kind.as_pointer())


def calling(name: str, write: Any) -> Any:
    """What an intrinsic of int64 numbers generates: a call of a function that `write` fills.

    The function is compiled once, not once per place that calls it.
    """
    name = f"rollin_{name}_{LANES}"

    def define(module: Any, arguments: int) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [INT64] * arguments)
        function = ir.Function(module, kind, name)
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        write(builder, *function.args)
        builder.ret_void()
        return function

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        module = builder.module
        builder.call(module.globals.get(name) or define(module, len(args)), args)
        return context.get_dummy_value()

    return generate


# ------------------------------------------------------------------ transposition


def _transpose_block(
    builder: Any, source: Any, source_line: Any, target: Any, target_line: Any
) -> None:
    """A block of LANES × LANES numbers, transposed in registers."""
    lines = [
        load(builder, VECTOR, builder.add(source, builder.mul(source_line, int64(i))))
        for i in range(LANES)
    ]
    for i, line in enumerate(turned(builder, lines)):
        store(builder, line, builder.add(target, builder.mul(target_line, int64(i))))


def turned(builder: Any, lines: Sequence[Any]) -> list[Any]:
    """LANES vectors, transposed by exchanging halves."""
    rows, lines = range(LANES), list(lines)
    distance = 1
    while distance < LANES:
        low = [n if not n & distance else LANES + n - distance for n in rows]
        high = [n + distance if not n & distance else LANES + n for n in rows]
        for i in rows:
            if not i & distance:
                pair = lines[i], lines[i + distance]
                lines[i] = _shuffle(builder, pair, low)
                lines[i + distance] = _shuffle(builder, pair, high)
        distance *= 2
    return lines


def _shuffle(builder: Any, pair: Sequence[Any], order: list[int]) -> Any:
    return builder.shuffle_vector(*pair, ir.Constant(_INDICES, order))


_call_transpose_block = calling("transpose_block", _transpose_block)


@intrinsic
def transpose_block(typing, source, source_line, target, target_line):
    """Of LANES × LANES numbers; lines are so many bytes apart."""
    return types.void(*[types.int64] * 4), _call_transpose_block


@compiled
def transpose(source, i, j, target, to_i, to_j, rows, columns):
    """target[to_i + n, to_j + m] = source[i + m, j + n] for m < rows, n < columns.

    Both are matrices whose numbers of a row follow each other.
    """
    line, to_line = source.strides[0], target.strides[0]
    whole_rows, whole_columns = rows // LANES * LANES, columns // LANES * LANES
    for m in range(0, whole_rows, LANES):
        for n in range(0, whole_columns, LANES):
            begin = base(source) + (i + m) * line + 4 * (j + n)
            end = base(target) + (to_i + n) * to_line + 4 * (to_j + m)
            transpose_block(begin, line, end, to_line)
    for m in range(rows):
        for n in range(0 if m >= whole_rows else whole_columns, columns):
            target[to_i + n, to_j + m] = source[i + m, j + n]


# ------------------------------------------------------------------ lines of a panel

_PARTS = [4 * LANES * part for part in range(PANEL // LANES)]  # bytes from the begin of a line


@intrinsic
def copy_line(typing, source, target):
    """Copy the 16 numbers of a line."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for part in _PARTS:
            store(builder, load(builder, VECTOR, args[0], part), args[1], part)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def gate_line(typing, line, scale, gate, target):
    """Write a line times a number where the line `gate` is positive, else 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        line, scale, gate, target = args
        factor = splat(builder, scale)
        for part in _PARTS:
            value = builder.fmul(load(builder, VECTOR, line, part), factor)
            active = load(builder, VECTOR, gate, part)
            positive = builder.fcmp_ordered(">", active, zero(VECTOR))
            store(builder, builder.select(positive, value, zero(VECTOR)), target, part)
        return context.get_dummy_value()

    return types.void(types.int64, types.float32, types.int64, types.int64), generate


@intrinsic
def clear_line(typing, target):
    """Write 16 zeros."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for part in _PARTS:
            store(builder, zero(VECTOR), args[0], part)
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def sum_line(typing, source):
    """The sum of a line's numbers, by halves, so that any vectors give the same bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = [load(builder, VECTOR, args[0], part) for part in _PARTS]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
        total, half = parts[0], LANES // 2
        while half:
            order = [(i + half) % LANES for i in range(LANES)]
            total = builder.fadd(total, _shuffle(builder, (total, total), order))
            half //= 2
        return builder.extract_element(total, ir.Constant(INT32, 0))

    return types.float32(types.int64), generate


BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam
REST1, REST2 = 0.1, 0.001  # 1 - β, not rounded twice
TINY = 1.2e-38  # below are denormals, on which a CPU is a hundred times slower


def constant(value: float) -> ir.Constant:
    """A vector of one float32 number."""
    return ir.Constant(VECTOR, [float(np.float32(value))] * LANES)


def _elementwise(builder: Any, name: str, value: Any) -> Any:
    """A function that LLVM knows by this name, of each number."""
    kind = ir.FunctionType(VECTOR, [VECTOR])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, [value])


@intrinsic
def adam_line(typing, gradient, theta, m, v, rate, correction):
    """One step of Adam on a line; correction: of v."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        gradient, theta, m, v = args[:4]
        rate, correction = (splat(builder, number) for number in args[4:])
        for part in _PARTS:
            g = load(builder, VECTOR, gradient, part)
            fresh = builder.fmul(constant(REST1), g)
            mean = builder.fmul(constant(BETA1), load(builder, VECTOR, m, part))
            mean = builder.fadd(mean, fresh)
            fresh = builder.fmul(builder.fmul(constant(REST2), g), g)
            square = builder.fmul(constant(BETA2), load(builder, VECTOR, v, part))
            square = builder.fadd(square, fresh)
            for value, place in ((mean, m), (square, v)):
                size = _elementwise(builder, "fabs", value)
                normal = builder.fcmp_ordered(">", size, constant(TINY))
                store(builder, builder.select(normal, value, zero(VECTOR)), place, part)
            root = _elementwise(builder, "sqrt", builder.fmul(square, correction))
            root = builder.fadd(root, constant(EPSILON))
            change = builder.fdiv(builder.fmul(rate, mean), root)
            moved = builder.fsub(load(builder, VECTOR, theta, part), change)
            store(builder, moved, theta, part)
        return context.get_dummy_value()

    numbers = (types.float32, types.float32)
    return types.void(*[types.int64] * 4, *numbers), generate


@intrinsic
def follow_line(typing, theta, target, tau):
    """Move a line of a target by τ towards a line of theta."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        theta, target, tau = args
        factor = splat(builder, tau)
        for part in _PARTS:
            old = load(builder, VECTOR, target, part)
            gap = builder.fsub(load(builder, VECTOR, theta, part), old)
            store(builder, builder.fadd(old, builder.fmul(factor, gap)), target, part)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float32), generate


# ------------------------------------------------------------------ arrays and their addresses


@inlined
def base(array):
    """Address of the first entry of an array."""
    return np.int64(array.ctypes.data)


@intrinsic
def pointer(typing, address):
    """An address as numba's `carray` takes it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


def fetch(builder: Any, address: Any, *, write: bool = True) -> None:
    """Let the caches fetch the line that holds an address, and go on meanwhile."""
    kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, INT32, INT32, INT32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    place = builder.inttoptr(address, cgutils.voidptr_t)
    words = int(write), 3, 1  # to be read or written, into the first cache, and data
    builder.call(function, [place, *(ir.Constant(INT32, word) for word in words)])


@intrinsic
def prefetch(typing, address):
    """Let the caches fetch the line that holds an address, which will be read."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        fetch(builder, args[0], write=False)
        return context.get_dummy_value()

    return types.void(types.int64), generate
