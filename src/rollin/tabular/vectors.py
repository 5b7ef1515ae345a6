"""Innermost loops of the tabular kernels as vectors, in LLVM's own language.

The compiler keeps neither sixteen generators in registers, nor does it load from eight places at
once. Places in memory are addresses, int64 numbers of bytes. Results are those of the plain loops,
to the bit.
"""

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic as _numba_intrinsic

from rollin.compiling import host_features

intrinsic: Any = _numba_intrinsic  # called without its first argument, which type checkers miss

STREAMS = 16  # xoshiro128++ generators side by side: one AVX-512 or two AVX2 registers
ABREAST = 8  # trajectories in a vector
FLAG = 0x80000000  # success bit of a successor word
GATHERS = bool(host_features().get("avx2")) and not vars(config)["CPU_NAME"]
"""Whether the CPU loads from many places at once, and machine code is made for that CPU."""

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


def _constant(kind: Any, value: Any) -> ir.Constant:
    return ir.Constant(kind, [value] * kind.count)


def _place(builder: Any, kind: Any, address: Any, offset: int = 0) -> Any:
    """So many bytes behind an address."""
    there = builder.add(address, ir.Constant(_INT64, offset)) if offset else address
    return builder.inttoptr(there, kind.as_pointer())


def _rotl(builder: Any, x: Any, k: int) -> Any:
    left = builder.shl(x, _constant(x.type, k))
    return builder.or_(left, builder.lshr(x, _constant(x.type, 32 - k)))


def _next_words(builder: Any, state: list[Any]) -> tuple[Any, list[Any]]:
    """Numbers of all generators, and their next states (xoshiro128++, Blackman & Vigna)."""
    s0, s1, s2, s3 = state
    words = builder.add(_rotl(builder, builder.add(s0, s3), 7), s0)
    s2, s3 = builder.xor(s2, s0), builder.xor(s3, s1)
    shifted = builder.shl(s1, _constant(s1.type, 9))
    after = [builder.xor(s0, s3), builder.xor(s1, s2), builder.xor(s2, shifted)]
    return words, [*after, _rotl(builder, s3, 11)]


@intrinsic
def fill_blocks(typing, state, out, blocks):
    """Write so many times STREAMS numbers; at least one.

    state: of (4, STREAMS) uint32 numbers, which stay in registers until the end.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        state, out, blocks = args
        kind = ir.VectorType(_INT32, STREAMS)
        places = [_place(builder, kind, state, 4 * STREAMS * row) for row in range(4)]
        before, loop = builder.block, builder.append_basic_block("fill")
        first = [builder.load(place, align=4) for place in places]
        builder.branch(loop)
        builder.position_at_end(loop)
        rows = [builder.phi(kind) for _ in places]
        block = builder.phi(_INT64)
        words, after = _next_words(builder, rows)
        to = builder.add(out, builder.mul(block, ir.Constant(_INT64, 4 * STREAMS)))
        builder.store(words, _place(builder, kind, to), align=4)
        following = builder.add(block, ir.Constant(_INT64, 1))
        block.add_incoming(ir.Constant(_INT64, 0), before)
        block.add_incoming(following, loop)
        for row, begin, then in zip(rows, first, after, strict=True):
            row.add_incoming(begin, before)
            row.add_incoming(then, loop)
        end = builder.append_basic_block("filled")
        builder.cbranch(builder.icmp_signed("<", following, blocks), loop, end)
        builder.position_at_end(end)
        for place, row in zip(places, after, strict=True):
            builder.store(row, place, align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


# ------------------------------------------------------------------ trajectories abreast

_WORDS = ir.VectorType(_INT32, ABREAST)


def _gather(builder: Any, table: Any, indices: Any) -> Any:
    """table[indices], 32 bits each; a table is its address."""
    begin, size = ir.IntType(8).as_pointer(), ir.IntType(8)
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_WORDS, [_WORDS, begin, _WORDS, _WORDS, size]),
        "llvm.x86.avx2.gather.d.d.256",
    )
    nothing, place = ir.Constant(_WORDS, ir.Undefined), builder.inttoptr(table, begin)
    every = _constant(_WORDS, -1)
    return builder.call(function, [nothing, place, indices, every, ir.Constant(size, 4)])


def _splat(builder: Any, number: Any) -> Any:
    first = ir.Constant(_INT32, 0)
    single = builder.insert_element(ir.Constant(_WORDS, ir.Undefined), number, first)
    return builder.shuffle_vector(single, single, _constant(_WORDS, 0))


@intrinsic
def act_abreast(typing, words, states, alias, successors, bits, pairs):
    """One step of ABREAST trajectories: actions by `draw_alias`, then where they lead.

    words, states, pairs: of that many numbers; states are overwritten, pairs written. alias,
    successors: tables as in `rollouts`.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words, states, alias, successors, bits, pairs = args
        few = builder.trunc(bits, _INT32)
        width = _splat(builder, few)
        rest = _splat(builder, builder.sub(ir.Constant(_INT32, 32), few))
        ones = builder.sub(builder.shl(_constant(_WORDS, 1), width), _constant(_WORDS, 1))
        drawn = builder.load(_place(builder, _WORDS, words), align=4)
        before = builder.load(_place(builder, _WORDS, states), align=4)
        base = builder.and_(before, _constant(_WORDS, FLAG - 1))
        bucket = builder.lshr(drawn, rest)
        entry = _gather(builder, alias, builder.add(base, bucket))
        compared = builder.or_(builder.shl(drawn, width), ones)
        inside = builder.icmp_unsigned("<", compared, entry)
        action = builder.select(inside, bucket, builder.and_(entry, ones))
        pair = builder.add(base, action)
        builder.store(pair, _place(builder, _WORDS, pairs), align=4)
        met = builder.and_(before, _constant(_WORDS, FLAG))
        after = builder.or_(_gather(builder, successors, pair), met)
        builder.store(after, _place(builder, _WORDS, states), align=4)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), generate
