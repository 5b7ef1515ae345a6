"""Random draws in compiled code: 32-bit words, geometric numbers, exact alias tables.

An alias entry packs a threshold and an alias into 32 bits, threshold << bits | alias, so that one
32-bit random number and one load make a draw: the number's top `bits` bits choose a bucket, the
rest is compared with the threshold. Probabilities are whole multiples of 2^-30, so that a table
represents them exactly.

The innermost loops are vectors, in LLVM's own language: the compiler keeps neither sixteen
generators in registers, nor does it load from eight places at once. Results are those of the plain
loops, bit for bit.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config
from numpy.typing import NDArray

from rollin import compiling, llvm
from rollin.compiling import host_features
from rollin.llvm import (
    INT8,
    INT32,
    addr,
    call,
    constant,
    int64,
    intrinsic,
    load,
    loop,
    splat,
    store,
)

STREAMS = 16  # xoshiro128++ generators side by side: one AVX-512 or two AVX2 registers
ABREAST = 8  # trajectories in a vector
FLAG = 0x80000000  # success bit of a successor word
GATHERS = bool(host_features().get("avx2")) and not vars(config)["CPU_NAME"]
"""Whether the CPU loads from many places at once, and machine code is made for that CPU."""

_GENERATORS = ir.VectorType(INT32, STREAMS)
_WORDS = ir.VectorType(INT32, ABREAST)


def _rotated(builder: Any, x: Any, k: int) -> Any:
    left = builder.shl(x, constant(x.type, k))
    return builder.or_(left, builder.lshr(x, constant(x.type, 32 - k)))


def _next_words(builder: Any, state: list[Any]) -> tuple[Any, list[Any]]:
    """Return numbers of all generators, and their next states (xoshiro128++, Blackman & Vigna)."""
    s0, s1, s2, s3 = state
    words = builder.add(_rotated(builder, builder.add(s0, s3), 7), s0)
    s2 = builder.xor(s2, s0)
    s3 = builder.xor(s3, s1)
    shifted = builder.shl(s1, constant(s1.type, 9))
    after = [builder.xor(s0, s3), builder.xor(s1, s2), builder.xor(s2, shifted)]
    return words, [*after, _rotated(builder, s3, 11)]


@intrinsic
def fill_blocks(builder, state, out, blocks):
    """Write `blocks` times STREAMS numbers.

    state: of (4, STREAMS) uint32 numbers, which stay in registers until the end.
    """
    offsets = [4 * STREAMS * row for row in range(4)]

    def fill(block: Any, step: int, rows: list[Any]) -> list[Any]:
        words, after = _next_words(builder, rows)
        store(builder, words, builder.add(out, builder.mul(block, int64(4 * STREAMS))))
        return after

    rows = [load(builder, _GENERATORS, state, offset) for offset in offsets]
    rows = loop(builder, int64(0), blocks, 1, rows, fill)
    for offset, row in zip(offsets, rows, strict=True):
        store(builder, row, state, offset)


def _gather(builder: Any, table: Any, indices: Any) -> Any:
    """Return table[indices], 32 bits each; a table is its address."""
    nothing = ir.Constant(_WORDS, ir.Undefined)
    place = builder.inttoptr(table, INT8.as_pointer())
    every = constant(_WORDS, -1)
    size = ir.Constant(INT8, 4)
    name = "llvm.x86.avx2.gather.d.d.256"
    return call(builder, name, _WORDS, nothing, place, indices, every, size)


@intrinsic
def act_abreast(builder, words, states, alias, successors, bits, pairs):
    """Take one step of ABREAST trajectories: actions by `draw_alias`, then their next states.

    words, states, pairs: of that many numbers; states are overwritten, pairs written. alias,
    successors: tables as in `rollouts`.
    """
    few = builder.trunc(bits, INT32)
    width = splat(builder, _WORDS, few)
    rest = splat(builder, _WORDS, builder.sub(ir.Constant(INT32, 32), few))
    ones = builder.sub(builder.shl(constant(_WORDS, 1), width), constant(_WORDS, 1))
    drawn = load(builder, _WORDS, words)
    before = load(builder, _WORDS, states)
    base = builder.and_(before, constant(_WORDS, FLAG - 1))
    bucket = builder.lshr(drawn, rest)
    entry = _gather(builder, alias, builder.add(base, bucket))
    compared = builder.or_(builder.shl(drawn, width), ones)
    inside = builder.icmp_unsigned("<", compared, entry)
    action = builder.select(inside, bucket, builder.and_(entry, ones))
    pair = builder.add(base, action)
    store(builder, pair, pairs)
    success = builder.and_(before, constant(_WORDS, FLAG))
    store(builder, builder.or_(_gather(builder, successors, pair), success), states)


HELPERS = (llvm,)
"""Modules whose code is part of the compiled functions here; numba's cache does not watch them."""
cached_njit: Any = partial(compiling.cached_njit, helpers=HELPERS, variant=int(GATHERS))

U32 = NDArray[np.uint32]

TOTAL_BITS = 30  # weights of a distribution sum to 2^30
MAX_BITS = 12  # 4096 buckets leave 18 bits of threshold


def bits_for(n: int) -> int:
    """Return the number of bits of the next power of two ≥ n, at least 1."""
    return max(1, (n - 1).bit_length())


@cached_njit(inline="always")
def _rotl(x: Any, k: int) -> Any:
    return np.uint32(np.uint32(x << np.uint32(k)) | (x >> np.uint32(32 - k)))


@cached_njit(inline="always")
def _next_word(state: U32, i: Any) -> Any:
    """Advance generator i of the (4, STREAMS) xoshiro128++ state; return its word."""
    s0 = state[0, i]
    s1 = state[1, i]
    s2 = state[2, i]
    s3 = state[3, i]
    word = np.uint32(_rotl(np.uint32(s0 + s3), 7) + s0)
    s2 = np.uint32(s2 ^ s0)
    s3 = np.uint32(s3 ^ s1)
    state[0, i] = np.uint32(s0 ^ s3)
    state[1, i] = np.uint32(s1 ^ s2)
    state[2, i] = np.uint32(s2 ^ np.uint32(s1 << np.uint32(9)))
    state[3, i] = _rotl(s3, 11)
    return word


@cached_njit()
def fill_random(state: U32, out: U32, n: int) -> None:
    """Write n random 32-bit numbers to `out` (length ≥ n rounded up to STREAMS)."""
    fill_blocks(addr(state), addr(out), np.int64(max(1, (n + STREAMS - 1) // STREAMS)))


@cached_njit()
def next_random(state: U32) -> Any:
    """Return a random 32-bit number of the first generator, for loops of unknown length."""
    return _next_word(state, 0)


@cached_njit()
def draw_geometric(state: U32, continue_: float) -> int:
    """Return H with P(H = h) = (1 - c) c^h, h = 0, 1, …; c: the probability to continue."""
    if continue_ <= 0.0:
        return 0
    # two words make 53 bits; the half keeps the logarithm finite
    high = np.uint64(next_random(state)) >> np.uint64(6)
    low = np.uint64(next_random(state)) >> np.uint64(5)
    u = (float(high) * 134217728.0 + float(low) + 0.5) / 9007199254740992.0
    return int(math.log(u) / math.log(continue_))


@cached_njit(inline="always")
def _split(weights: Any, bits: int, order: Any) -> Any:
    """Sort light outcomes to the front of `order`, heavy ones to its back.

    Returns the first heavy weight.
    """
    full = np.int32(1 << (TOTAL_BITS - bits))
    light = np.uint64(0)
    heavy = np.uint64(1 << bits)
    for i in range(1 << bits):
        is_light = np.uint64(weights[i] < full)
        order[light] = i
        order[heavy] = i
        light += is_light
        heavy -= np.uint64(1) - is_light
    return weights[order[1 << bits]]


@cached_njit(inline="always")
def _close_bucket(
    weights: Any, bits: int, order: U32, alias: U32, light: Any, heavy: Any, rest: Any
) -> Any:
    """Close one bucket: the next light one, or the heavy one if its rest fits.

    Returns the new cursors and the rest of the heavy one.

    Cursors are unsigned, which spares the check for negative indices, and they are selected before
    anything is loaded: a load in one arm only would be a branch.
    """
    full = np.int32(1 << (TOTAL_BITS - bits))
    take = rest > full
    after = heavy - np.uint64(1)
    bucket = order[light if take else heavy]
    source = order[heavy if take else after]
    added = weights[order[light if take else after]]
    inside = added if take else rest
    # to 32 - bits bits, then room for the alias
    packed = np.uint32(np.uint32(inside) << np.uint32(32 - TOTAL_BITS + bits)) | source
    alias[bucket] = bucket if inside == full else np.uint32(packed)
    return light + np.uint64(take), after + np.uint64(take), np.int32(rest - full + added)


@cached_njit()
def build_aliases(weights: Any, bits: int, order: Any, a0: U32, a1: U32, a2: U32, a3: U32) -> None:
    """Write exact alias tables of four rows of whole weights that sum to 2^TOTAL_BITS each.

    weights: (4, 2^bits) int32; order: (4, 2^bits + 1) scratch; a0 … a3: packed rows, written.
    A sweep in the manner of Hübschle-Schneider & Sanders (2022): every round closes one bucket,
    either the next light one, topped up by the current heavy one, or the heavy one itself, once
    its rest has fallen to a bucket or less, topped up by the next heavy one. The two cases are
    selected without a branch, which no CPU could predict, and four rows advance together, as each
    round waits for the one before. Whole numbers leave no rounding rest to drain at the end.
    """
    l0 = l1 = l2 = l3 = np.uint64(0)
    h0 = h1 = h2 = h3 = np.uint64(1 << bits)
    r0 = _split(weights[0], bits, order[0])
    r1 = _split(weights[1], bits, order[1])
    r2 = _split(weights[2], bits, order[2])
    r3 = _split(weights[3], bits, order[3])
    for _ in range(1 << bits):
        l0, h0, r0 = _close_bucket(weights[0], bits, order[0], a0, l0, h0, r0)
        l1, h1, r1 = _close_bucket(weights[1], bits, order[1], a1, l1, h1, r1)
        l2, h2, r2 = _close_bucket(weights[2], bits, order[2], a2, l2, h2, r2)
        l3, h3, r3 = _close_bucket(weights[3], bits, order[3], a3, l3, h3, r3)


@cached_njit(inline="always")
def draw_alias(word: Any, alias: U32, base: Any, bits: int) -> Any:
    """Return the outcome (uint64) that a random word picks from the alias table at `base`.

    The rest of the word fills up with ones below, so that comparing it with a whole entry compares
    it with the threshold: an alias never reaches beyond those ones.
    """
    bucket = np.uint64(word >> np.uint32(32 - bits))
    entry = alias[base + bucket]
    ones = np.uint32((1 << bits) - 1)
    inside = np.uint32(np.uint32(word << np.uint32(bits)) | ones) < entry
    return bucket if inside else np.uint64(entry & ones)


@cached_njit()
def quantise(probabilities: Any, bits: int, weights: Any) -> None:
    """Write whole weights with sum 2^TOTAL_BITS; the likeliest outcome takes the rounding rest."""
    n = probabilities.size
    total = np.int32(0)
    largest = np.int32(0)
    for i in range(n):
        weight = np.int32(probabilities[i] * np.float32(1 << TOTAL_BITS))
        weights[i] = weight
        total = np.int32(total + weight)
        largest = max(largest, weight)
    for i in range(n, 1 << bits):
        weights[i] = 0
    likeliest = 0
    while likeliest < n - 1 and weights[likeliest] != largest:  # NaN equals nothing
        likeliest += 1
    weights[likeliest] += np.int32(np.int32(1 << TOTAL_BITS) - total)


@cached_njit()
def alias_rows(probabilities: Any, bits: int, alias: U32) -> None:
    """Write the alias tables of many distributions: (n, m ≤ 2^bits) float64 → (n, 2^bits)."""
    weights = np.zeros((4, 1 << bits), np.int32)
    order = np.zeros((4, (1 << bits) + 1), np.uint32)
    for i in range(len(probabilities)):
        for row in weights:  # one would do, but four are built together
            quantise(probabilities[i], bits, row)
        build_aliases(weights, bits, order, alias[i], alias[i], alias[i], alias[i])
