"""The reference of `draws` and `rollouts` in NumPy; the tests compare them bit for bit.

The softmax of `rollouts.policy_tables` has its reference in `soft.log_softmax`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.tabular.kernels.draws import FLAG, STREAMS, U32
from rollin.tabular.kernels.rollouts import F32, LANES, REPLICAS, TINY


def random_words(state: U32, blocks: int) -> U32:
    """Return STREAMS numbers a block; advances `state`, (4, STREAMS) of xoshiro128++."""
    words = np.empty((blocks, STREAMS), np.uint32)
    s0, s1, s2, s3 = state
    for block in words:
        block[:] = _rotl(s0 + s3, 7) + s0
        shifted = s1 << np.uint32(9)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3[:] = _rotl(s3, 11)
    return words.ravel()


def _rotl(x: U32, k: int) -> U32:
    return x << np.uint32(k) | x >> np.uint32(32 - k)


def draw_alias(words: U32, alias: U32, base: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Return the outcomes that random words pick from the alias tables that begin at `base`."""
    bucket = words >> np.uint32(32 - bits)
    entry = alias[base + bucket]
    ones = np.uint32((1 << bits) - 1)
    inside = (words << np.uint32(bits) | ones) < entry
    return np.where(inside, bucket, entry & ones).astype(np.int64)


def rollouts(
    state: U32, starts: U32, alias: U32, bonus: F32, dynamics: Any, gamma: float, T: int
) -> tuple[int, F32]:
    """Return successes and rewards-to-go of trajectories, LANES of them at a time."""
    successors, fan_alias, bits, fan = dynamics
    per_step = 1 if fan == 0 else 2
    to_go = np.zeros((REPLICAS, bonus.size), np.float32)
    successes = 0
    for first in range(0, starts.size, LANES):
        at = starts[first : first + LANES].astype(np.int64)
        lanes = at.size
        drawn = T * per_step * lanes
        words = random_words(state, -(-drawn // STREAMS))[:drawn].reshape(T, per_step, lanes)
        pairs = np.empty((T, lanes), np.int64)
        success = np.zeros(lanes, np.bool_)
        for t in range(T):
            pairs[t] = at + draw_alias(words[t, 0], alias, at, bits)
            row = pairs[t] << fan
            if fan > 0:
                row += draw_alias(words[t, 1], fan_alias, row, fan)
            success |= successors[row] >= FLAG
            at = (successors[row] & np.uint32(FLAG - 1)).astype(np.int64)
        successes += int(success.sum())
        value = np.zeros(lanes, np.float32)
        replica = np.arange(lanes) % REPLICAS
        for t in reversed(range(T)):
            value = bonus[pairs[t]] + np.float32(gamma) * value
            np.add.at(to_go, (replica, pairs[t]), value)
    return successes, to_go


def gradient_from(to_go: F32, pi: F32, scale: float) -> F32:
    """Return G(s, a) - π(a|s) Σ_a' G(s, a') times the scale, where G sums the replicas."""
    S, A = pi.shape
    parts = to_go.reshape(REPLICAS, S, -1)[:, :, :A]
    G = (parts[0] + parts[1]) + (parts[2] + parts[3])
    sums = np.zeros((4, S), np.float32)  # four partial sums, as in the kernel
    whole = A - A % 4
    for a in range(A):
        sums[a % 4 if a < whole else 0] += G[:, a]
    total = (sums[0] + sums[1]) + (sums[2] + sums[3])
    return np.float32(scale) * (G - pi * total[:, None])


def adam_ascent(theta: F32, gradient: F32, m: F32, v: F32, t: int, rate: float) -> None:
    """Take a step of Adam uphill; moments below TINY become 0."""
    b1 = np.float32(0.9)
    b2 = np.float32(0.999)
    one = np.float32(1.0)
    mean = b1 * m + (one - b1) * gradient
    square = b2 * v + (one - b2) * gradient * gradient
    m[:] = np.where(abs(mean) > TINY, mean, 0)
    v[:] = np.where(square > TINY, square, 0)
    scale = np.float32(rate / (1.0 - 0.9**t))
    unbias = np.float32(1.0 / (1.0 - 0.999**t))
    theta += scale * m / (np.sqrt(v * unbias) + np.float32(1e-8))
