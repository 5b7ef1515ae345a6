"""Matrix products, transposition and a team of threads, for the kernels of the CPU learner.

Products are written in LLVM's own language, because a compiler does not find register tiles by
itself and a BLAS costs more than its arithmetic at these sizes. `multiply` reads the numbers of A
one at a time, so that A may have any strides: a forward pass (Wᵀx) and a backward pass (W dy) read
the same weights, and nothing is ever packed. A ReLU, or its derivative, is applied while the result
is still in registers.

Each number of a product is one chain of fused multiply-adds in the order of k, whichever tile or
thread computes it: results are the same to the bit for any number of threads.
"""

import os
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as _numba_intrinsic

# errors as in NumPy: a check for a division by zero would keep loops from becoming vector code
compiled = njit(nogil=True, error_model="numpy")
inlined = njit(nogil=True, error_model="numpy", inline="always")
intrinsic: Any = _numba_intrinsic  # called without its first argument, which type checkers miss


def _vector_lanes() -> int:
    try:
        features = llvmlite.binding.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this processor
        return 4
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


LANES = _vector_lanes()
VECTORS = 2 if LANES == 8 else 4  # in a tile of 6 rows: 24 of 32 registers, or 12 of AVX2's 16
ONE = np.int64(1)
# what happens to a product before it is stored
STORE, RELU, GATE = np.int64(0), np.int64(1), np.int64(2)

_FLOAT, _INT32, _INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)
_INDICES = ir.VectorType(_INT32, LANES)


def _int(value: int) -> ir.Constant:
    return ir.Constant(_INT64, value)


def _splat(builder: Any, scalar: Any, vector: ir.VectorType = _VECTOR) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    single = builder.insert_element(undefined, scalar, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(single, undefined, ir.Constant(_INDICES, [0] * LANES))


def _pointer(builder: Any, address: Any, offset: Any, kind: Any = _FLOAT) -> Any:
    """Address + 4 offset as a pointer."""
    base = builder.inttoptr(address, _FLOAT.as_pointer())
    return builder.bitcast(builder.gep(base, [offset]), kind.as_pointer())


def _load(builder: Any, address: Any, offset: Any, mask: Any = None) -> Any:
    pointer = _pointer(builder, address, offset, _VECTOR)
    if mask is None:
        return builder.load(pointer, align=4)
    kind = ir.FunctionType(_VECTOR, [_VECTOR.as_pointer(), _INT32, _MASK, _VECTOR])
    name = f"llvm.masked.load.v{LANES}f32.p0"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [pointer, ir.Constant(_INT32, 4), mask, _ZERO])


def _store(builder: Any, value: Any, address: Any, offset: Any, mask: Any = None) -> None:
    pointer = _pointer(builder, address, offset, _VECTOR)
    if mask is None:
        builder.store(value, pointer, align=4)
        return
    kind = ir.FunctionType(ir.VoidType(), [_VECTOR, _VECTOR.as_pointer(), _INT32, _MASK])
    name = f"llvm.masked.store.v{LANES}f32.p0"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(function, [value, pointer, ir.Constant(_INT32, 4), mask])


def _first_lanes(builder: Any, count: Any) -> Any:
    """A mask of the first `count` lanes."""
    iota = ir.Constant(_INDICES, list(range(LANES)))
    limit = _splat(builder, builder.trunc(count, _INT32), _INDICES)
    return builder.icmp_signed("<", iota, limit)


def _tile(rows: int, vectors: int, masked: bool) -> Any:
    """One tile of C = A B in registers: `rows` × (vectors · LANES), or the first `columns` of it.

    a(i, k) is at a + 4(i·a_i + k·a_k), b(k, j) at b + 4(k·b_k + j), c(i, j) at c + 4(i·c_i + j).
    mode: STORE c; RELU: max(c, 0); GATE: c where the number at the same place of `gate` is
    positive, else 0.
    """
    name = f"rollin_tile_{rows}_{vectors}_{int(masked)}"

    def write_function(module: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_INT64] * 11)
        function = ir.Function(module, kind, name)
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")  # compiled once, not once per place that calls it
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        a, a_i, a_k, b, b_k, c, c_i, inner, columns, mode, gate = function.args
        mask = _first_lanes(builder, columns) if masked else None
        sums = _accumulate(builder, rows, vectors, mask, (a, a_i, a_k, b, b_k, inner))
        _write_tile(builder, sums, mask, (c, c_i, mode, gate))
        builder.ret_void()
        return function

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = builder.module.globals.get(name) or write_function(builder.module)
        builder.call(function, args)
        return context.get_dummy_value()

    @intrinsic
    def tile(typing, a, a_i, a_k, b, b_k, c, c_i, inner, columns, mode, gate):
        return types.void(*[types.int64] * 11), generate

    return tile


def _accumulate(builder: Any, rows: int, vectors: int, mask: Any, operands: Any) -> Any:
    """The loop over k of a tile; returns its sums, (rows, vectors) registers."""
    a, a_i, a_k, b, b_k, inner = operands
    kind, name = ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fma.v{LANES}f32"
    fma = cgutils.get_or_insert_function(builder.module, kind, name)
    row_offsets = [builder.mul(a_i, _int(i)) for i in range(rows)]
    before = builder.block
    loop, after = (builder.append_basic_block(name) for name in ("inner", "after"))
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(_INT64)
    k.add_incoming(_int(0), before)
    sums = [[builder.phi(_VECTOR) for _ in range(vectors)] for _ in range(rows)]
    b_row, a_column = builder.mul(k, b_k), builder.mul(k, a_k)
    factors = [_load(builder, b, builder.add(b_row, _int(j * LANES)), mask) for j in range(vectors)]
    results = []
    for offset, row in zip(row_offsets, sums, strict=True):
        pointer = _pointer(builder, a, builder.add(offset, a_column))
        number = _splat(builder, builder.load(pointer))
        pairs = zip(factors, row, strict=True)
        results.append([builder.call(fma, [number, factor, value]) for factor, value in pairs])
    following = builder.add(k, _int(1))
    k.add_incoming(following, loop)
    for i in range(rows):
        for j in range(vectors):
            sums[i][j].add_incoming(_ZERO, before)
            sums[i][j].add_incoming(results[i][j], loop)
    builder.cbranch(builder.icmp_signed("<", following, inner), loop, after)
    builder.position_at_end(after)
    return results


def _write_tile(builder: Any, sums: Any, mask: Any, to: Any) -> None:
    """Store a tile's sums, changed as `mode` says."""
    c, c_i, mode, gate = to

    def write(change: Any) -> None:
        for i, row in enumerate(sums):
            begin = builder.mul(c_i, _int(i))
            for j, value in enumerate(row):
                place = builder.add(begin, _int(j * LANES))
                _store(builder, change(value, place), c, place, mask)

    def relu(value: Any, place: Any) -> Any:  # a comparison that lets NaN pass
        return builder.select(builder.fcmp_ordered("<", value, _ZERO), _ZERO, value)

    def gated(value: Any, place: Any) -> Any:
        activation = _load(builder, gate, place, mask)
        return builder.select(builder.fcmp_ordered(">", activation, _ZERO), value, _ZERO)

    is_relu = builder.icmp_signed("==", mode, _int(int(RELU)))
    is_gate = builder.icmp_signed("==", mode, _int(int(GATE)))
    with builder.if_else(is_relu) as (then, otherwise):
        with then:
            write(relu)
        with otherwise, builder.if_else(is_gate) as (then_gate, otherwise_store):
            with then_gate:
                write(gated)
            with otherwise_store:
                write(lambda value, place: value)


def _strip(vectors: int, masked: bool) -> Any:
    """A strip of C: `vectors` · LANES columns wide, as high as C is."""
    tile6, tile4 = _tile(6, vectors, masked), _tile(4, vectors, masked)
    tile2, tile1 = _tile(2, vectors, masked), _tile(1, vectors, masked)

    def strip(a, a_i, a_k, b, b_k, c, c_i, rows, columns, inner, mode, gate):
        i = 0
        a_step, c_step = 4 * a_i, 4 * c_i
        while rows - i >= 6:
            tile6(a, a_i, a_k, b, b_k, c, c_i, inner, columns, mode, gate)
            i, a, c, gate = i + 6, a + 6 * a_step, c + 6 * c_step, gate + 6 * c_step
        if rows - i >= 4:
            tile4(a, a_i, a_k, b, b_k, c, c_i, inner, columns, mode, gate)
            i, a, c, gate = i + 4, a + 4 * a_step, c + 4 * c_step, gate + 4 * c_step
        if rows - i >= 2:
            tile2(a, a_i, a_k, b, b_k, c, c_i, inner, columns, mode, gate)
            i, a, c, gate = i + 2, a + 2 * a_step, c + 2 * c_step, gate + 2 * c_step
        if rows > i:
            tile1(a, a_i, a_k, b, b_k, c, c_i, inner, columns, mode, gate)

    # Machine code is named by this and by a count of the process that compiled it. Under one name,
    # two strips from two processes' caches could be taken for each other.
    strip.__qualname__ = f"strip_{vectors}_{int(masked)}"
    return compiled(strip)


_strip_wide = _strip(VECTORS, False)
_strip_two = _strip(2, False)
_strip_one = _strip(1, False)
_strip_rest = _strip(1, True)


@compiled
def multiply(a, a_i, a_k, b, b_k, c, c_i, rows, columns, inner, mode, gate):
    """C = A B with addresses and strides (in numbers, not bytes) as in `_tile`.

    All arguments are int64: numba would compile another version for each literal, so callers
    write `ONE`, not 1.
    """
    j, step = 0, VECTORS * LANES
    while columns - j >= step:
        at_j, rest = 4 * j, columns - j
        _strip_wide(a, a_i, a_k, b + at_j, b_k, c + at_j, c_i, rows, rest, inner, mode, gate + at_j)
        j += step
    while columns - j >= 2 * LANES:
        at_j, rest = 4 * j, columns - j
        _strip_two(a, a_i, a_k, b + at_j, b_k, c + at_j, c_i, rows, rest, inner, mode, gate + at_j)
        j += 2 * LANES
    if columns - j >= LANES:
        at_j, rest = 4 * j, columns - j
        _strip_one(a, a_i, a_k, b + at_j, b_k, c + at_j, c_i, rows, rest, inner, mode, gate + at_j)
        j += LANES
    if columns > j:
        at_j, rest = 4 * j, columns - j
        _strip_rest(a, a_i, a_k, b + at_j, b_k, c + at_j, c_i, rows, rest, inner, mode, gate + at_j)


@intrinsic
def _transpose_block(typing, source, source_i, target, target_i):
    """A block of LANES × LANES numbers, transposed in registers by exchanging halves."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, source_i, target, target_i = args
        lines = [_load(builder, source, builder.mul(source_i, _int(i))) for i in range(LANES)]
        distance = 1
        while distance < LANES:
            low = [n if not n & distance else LANES + n - distance for n in range(LANES)]
            high = [n + distance if not n & distance else LANES + n for n in range(LANES)]
            for i in range(LANES):
                if not i & distance:
                    pair = lines[i], lines[i + distance]
                    lines[i] = builder.shuffle_vector(*pair, ir.Constant(_INDICES, low))
                    lines[i + distance] = builder.shuffle_vector(*pair, ir.Constant(_INDICES, high))
            distance *= 2
        for i in range(LANES):
            _store(builder, lines[i], target, builder.mul(target_i, _int(i)))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


@compiled
def transpose(source, target, rows, columns):
    """target[j, i] = source[i, j] for the first `rows` and `columns`; unit last strides."""
    source_i, target_i = source.strides[0] // 4, target.strides[0] // 4
    whole_rows, whole_columns = rows // LANES * LANES, columns // LANES * LANES
    for i in range(0, whole_rows, LANES):
        for j in range(0, whole_columns, LANES):
            _transpose_block(at(source, i, j), source_i, at(target, j, i), target_i)
    for i in range(rows):
        for j in range(0 if i >= whole_rows else whole_columns, columns):
            target[j, i] = source[i, j]


@inlined
def base(array):
    """Address of the first entry of an array."""
    return np.int64(array.ctypes.data)


@inlined
def at(array, i, j):
    """Address of an entry of a matrix."""
    return base(array) + i * array.strides[0] + 4 * j


# ------------------------------------------------------------------ threads


@intrinsic
def atomic_add(typing, address, value):
    """Add to a shared int64 and return what it was."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], _INT64.as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def atomic_load(typing, address):
    """A shared int64 as it is now."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], _INT64.as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.int64), generate


_sched_yield = types.ExternalFunction("sched_yield", types.int32())
_usleep = types.ExternalFunction("usleep", types.int32(types.uint32))

ARRIVED, GENERATION, JOB, STOP = 0, 8, 16, 24  # places in a team's int64s, on lines of their own
TEAM = 32
SPINS, YIELDS = 4_000, 20_000  # then a waiting thread sleeps between looks, longer and longer
LONGEST_SLEEP = 1_000  # µs
POSIX = os.name == "posix"


@compiled
def wait_while(address, value):
    """Wait until a shared number is no longer `value`: busy at first, then politely."""
    turns = 0
    while atomic_load(address) == value:
        turns += 1
        if POSIX:  # elsewhere there is one thread only, which never waits
            if turns > YIELDS:
                _usleep(np.uint32(min(turns - YIELDS, LONGEST_SLEEP)))
            elif turns > SPINS:
                _sched_yield()


@compiled
def meet(team, threads):
    """A barrier: nobody goes on before everybody is here."""
    if threads == 1:
        return
    place = base(team)
    generation = atomic_load(place + 8 * GENERATION)
    if atomic_add(place + 8 * ARRIVED, 1) == threads - 1:
        atomic_add(place + 8 * ARRIVED, -threads)
        atomic_add(place + 8 * GENERATION, 1)
    else:
        wait_while(place + 8 * GENERATION, generation)


@compiled
def share(total, grain, rank, threads):
    """Begin and size of one thread's part of `total` things in grains that are not split."""
    grains = (total + grain - 1) // grain
    begin = min(total, grains * rank // threads * grain)
    end = min(total, grains * (rank + 1) // threads * grain)
    return begin, end - begin
