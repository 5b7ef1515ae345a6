"""Compiled inner loops of the tabular engine: policy tables, rollouts, Adam.

Layout. Actions are padded to P = 2^bits buckets, so that the pair (s, a) lives at s·P + a. A state
is stored premultiplied (s·P). A successor word is the premultiplied next state with the success
flag in its top bit; stochastic dynamics have 2^fan such words per pair and an alias table over
them (`draws`).

No fast-math: with plain IEEE arithmetic the compiler's inlining cannot change a result, so that a
seed gives the same bits from a fresh compile and from the cache. Sums keep four partial sums
instead, which is as fast.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin import compiling
from rollin.tabular import draws, vectors
from rollin.tabular.draws import (
    U32,
    address,
    build_aliases,
    draw_alias,
    fill_random,
    quantise,
)
from rollin.tabular.vectors import ABREAST, FLAG, GATHERS, STREAMS, act_abreast

# numba's cache looks only at the file of the function that is called, and at those named here
kept: Any = partial(compiling.kept, helpers=(draws, vectors), variant=int(GATHERS))

F32 = NDArray[np.float32]

LANES = 40  # trajectories interleaved in one block, to hide the latency of dependent loads
REPLICAS = 4  # gradient copies, against stalls when neighbours add to the same entry
TINY = np.float32(1e-36)  # moments below are 0; the smallest normal float is 1.2e-38


@kept()
def _sum(row: F32) -> Any:
    """Σ of a row with four partial sums, so that the additions do not wait for each other."""
    whole = row.size & ~3
    a = b = c = d = np.float32(0.0)
    for i in range(0, whole, 4):
        a += row[i]
        b += row[i + 1]
        c += row[i + 2]
        d += row[i + 3]
    for i in range(whole, row.size):
        a += row[i]
    return (a + b) + (c + d)


@kept()
def _max(row: F32) -> Any:
    """The largest value of a row, in the same manner."""
    whole = row.size & ~3
    a = b = c = d = row[0]
    for i in range(0, whole, 4):
        a = max(a, row[i])
        b = max(b, row[i + 1])
        c = max(c, row[i + 2])
        d = max(d, row[i + 3])
    for i in range(whole, row.size):
        a = max(a, row[i])
    return max(max(a, b), max(c, d))


@kept(error_model="numpy")
def _softmax(row: F32, exponent: Any, power: F32, out: F32) -> Any:
    """exp(row - max) / Σ to `out`; returns log Σ exp(row).

    exp by range reduction and a polynomial of degree 6: loops that the compiler vectorises.
    power is exponent seen as float32.
    """
    top = _max(row)
    for a in range(row.size):
        x = max(row[a] - top, np.float32(-87.0))
        n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
        y = (x - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)
        e = np.float32(1.0 / 720.0)
        e = e * y + np.float32(1.0 / 120.0)
        e = e * y + np.float32(1.0 / 24.0)
        e = e * y + np.float32(1.0 / 6.0)
        e = e * y + np.float32(0.5)
        e = e * y + np.float32(1.0)
        e = e * y + np.float32(1.0)
        out[a] = e
        exponent[a] = (np.int32(n) + np.int32(127)) << np.int32(23)
    for a in range(row.size):
        out[a] *= power[a]
    total = _sum(out)
    scale = np.float32(1.0) / total
    for a in range(row.size):
        out[a] *= scale
    return np.float32(math.log(total)) + top


@kept()
def policy_tables(
    rows: Any, theta: F32, reward: F32, alpha: float, pi: F32, alias: U32, bonus: F32
) -> None:
    """From parameters to all that a rollout needs, for some states.

    rows: (n,) states; theta: (S, A); reward: (S, P) padded; alpha: entropy coefficient.
    Writes pi: (S, A) softmax; alias: (S, P) action tables; bonus: (S, P), r - α log π.
    """
    A = theta.shape[1]
    P = alias.shape[1]
    bits = int(math.log2(P) + 0.5)
    weights = np.zeros((4, P), np.int32)
    order = np.zeros((4, P + 1), np.uint32)
    exponent = np.zeros(A, np.int32)
    power = exponent.view(np.float32)
    temperature = np.float32(alpha)
    last = len(rows) - 1
    for first in range(0, len(rows), 4):
        for i in range(4):
            s = rows[min(first + i, last)]
            log_total = _softmax(theta[s], exponent, power, pi[s])
            for a in range(A):
                bonus[s, a] = reward[s, a] - temperature * (theta[s, a] - log_total)
            quantise(pi[s], bits, weights[i])
        build_aliases(
            weights,
            bits,
            order,
            alias[rows[first]],
            alias[rows[min(first + 1, last)]],
            alias[rows[min(first + 2, last)]],
            alias[rows[min(first + 3, last)]],
        )


@kept()
def rollouts(
    rng: U32,
    starts: U32,
    alias: U32,
    bonus: F32,
    successors: U32,
    fan_alias: U32,
    bits: int,
    fan: int,
    gamma: float,
    T: int,
    to_go: F32,
) -> int:
    """Sample len(starts) trajectories of T steps and add their rewards-to-go to `to_go`.

    starts: (B,) premultiplied first states; alias, bonus: flat (S·P,) policy tables;
    successors: flat (S·P·2^fan,) words; fan_alias: their alias table (unused if fan = 0);
    to_go: (REPLICAS, S·P), to which Σ_{b,t} 1{(s_t, a_t) = (s, a)} R_t^b is added.
    Returns the number of successful trajectories.
    """
    B = starts.size
    per_step = 1 if fan == 0 else 2  # random numbers: the action, and where it leads
    words = np.empty((T * LANES * per_step + STREAMS) // STREAMS * STREAMS, np.uint32)
    trace = np.empty((T, LANES), np.uint32)
    state = np.empty(LANES, np.uint32)  # premultiplied, with the success flag once it was met
    value = np.empty(LANES, np.float32)
    discount = np.float32(gamma)
    successes = 0
    for first in range(0, B, LANES):
        lanes = min(LANES, B - first)
        fill_random(rng, words, T * lanes * per_step)
        for i in range(lanes):
            state[i], value[i] = starts[first + i], 0.0
        for t in range(T):
            drawn = words[t * lanes * per_step : (t + 1) * lanes * per_step]
            _advance(drawn, state[:lanes], alias, successors, fan_alias, bits, fan, trace[t])
        for i in range(lanes):
            successes += int(state[i] >> np.uint32(31))
        for t in range(T - 1, -1, -1):
            _add_returns(trace[t], bonus, discount, value[:lanes], to_go)
    return successes


@kept(inline="always")
def _advance(
    words: U32, state: U32, alias: U32, successors: U32, fan_alias: U32, bits: int, fan: int,
    pairs: U32,
) -> None:  # fmt: skip
    """One step of all trajectories of a block; `pairs` is what they did."""
    lanes = np.uint64(state.size)
    # unsigned indices spare the check for negative ones
    first = np.uint64(0)
    if GATHERS and fan == 0:
        first = lanes // np.uint64(ABREAST) * np.uint64(ABREAST)
        for i in range(0, np.int64(first), ABREAST):
            at = np.int64(4 * i)
            act_abreast(
                address(words) + at,
                address(state) + at,
                address(alias),
                address(successors),
                np.int64(bits),
                address(pairs) + at,
            )
    for i in range(first, lanes):
        before = state[i]
        base = np.uint64(before & np.uint32(FLAG - 1))
        pair = base + draw_alias(words[i], alias, base, bits)
        pairs[i] = pair
        if fan == 0:
            word = successors[pair]
        else:
            row = pair << np.uint64(fan)
            word = successors[row + draw_alias(words[lanes + i], fan_alias, row, fan)]
        state[i] = word | (before & np.uint32(FLAG))


@kept(inline="always")
def _add_returns(pairs: U32, bonus: F32, discount: Any, value: F32, to_go: F32) -> None:
    """R_t = r_ent,t + γ R_{t+1} of all trajectories of a block, added at what they did."""
    lanes = np.uint64(value.size)
    for i in range(lanes):
        pair = np.uint64(pairs[i])
        value[i] = bonus[pair] + discount * value[i]
        to_go[i & np.uint64(REPLICAS - 1), pair] += value[i]


@kept()
def gradient_from(to_go: F32, pi: F32, scale: float, gradient: F32, active: Any) -> None:
    """Turn summed rewards-to-go into Σ ∇ log π(a|s) R · scale, and clear them.

    For a softmax, ∂ log π(a|s) / ∂θ(s, ·) = e_a - π(·|s): G(s, a) - π(a|s) Σ_a' G(s, a').
    active: (S,) bool, set for the states that were visited.
    """
    S, A = pi.shape
    P = to_go.shape[1] // S
    factor = np.float32(scale)
    words = to_go.view(np.uint32)
    for s in range(S):
        row = gradient[s]
        base = np.uint64(s * P)
        # a bitwise or of all sums: a loop that the compiler vectorises, unlike one over floats
        seen = np.uint32(0)
        for a in range(np.uint64(A)):
            at = base + a
            seen |= (words[0, at] | words[1, at]) | (words[2, at] | words[3, at])
        if seen == 0:  # nobody was here
            if active[s]:
                row[:] = 0.0
            continue
        active[s] = True
        for a in range(np.uint64(A)):
            at = base + a
            row[a] = (to_go[0, at] + to_go[1, at]) + (to_go[2, at] + to_go[3, at])
        total = _sum(row)
        for a in range(A):
            row[a] = factor * (row[a] - pi[s, a] * total)
        for replica in range(REPLICAS):
            to_go[replica, base : base + np.uint64(P)] = 0.0


@kept(error_model="numpy")
def adam_ascent(rows: Any, theta: F32, gradient: F32, m: F32, v: F32, t: int, rate: float) -> None:
    """Adam (Kingma & Ba) with its default constants, uphill, for some states; t = 1 at first.

    Moments of states that are no longer visited decay; they end at 0 instead of in denormal floats,
    which are a hundred times slower and too small to move θ.
    """
    b1, b2 = np.float32(0.9), np.float32(0.999)
    scale = np.float32(rate / (1.0 - 0.9**t))
    unbias = np.float32(1.0 / (1.0 - 0.999**t))
    for s in rows:
        row, g, m_, v_ = theta[s], gradient[s], m[s], v[s]
        for a in range(row.size):
            mean = b1 * m_[a] + (np.float32(1.0) - b1) * g[a]
            square = b2 * v_[a] + (np.float32(1.0) - b2) * g[a] * g[a]
            m_[a] = mean if abs(mean) > TINY else np.float32(0.0)
            v_[a] = square if square > TINY else np.float32(0.0)
            row[a] += scale * m_[a] / (np.sqrt(v_[a] * unbias) + np.float32(1e-8))


@kept()
def batch_step(
    rng: U32,
    starts: U32,
    model: Any,
    policy: Any,
    adam: Any,
    bits: int,
    fan: int,
    gamma: float,
    alpha: float,
    T: int,
    t: int,
    rate: float,
) -> int:
    """One whole gradient step of the experiment (Appendix F.3) from given first states.

    model: (reward, successors, fan_alias); policy: (theta, pi, alias, bonus), the last three in
    step with theta before and after; adam: (gradient, m, v, to_go, active), to_go cleared.
    States that no trajectory has visited since Adam began have zero gradient and moments, and are
    passed over: `active` marks the others. Returns the number of successful trajectories.
    """
    reward, successors, fan_alias = model
    theta, pi, alias, bonus = policy
    gradient, m, v, to_go, active = adam
    flat_alias, flat_bonus = alias.ravel(), bonus.ravel()
    successes = rollouts(
        rng, starts, flat_alias, flat_bonus, successors, fan_alias, bits, fan, gamma, T, to_go
    )
    gradient_from(to_go, pi, 1.0 / (starts.size * T), gradient, active)
    rows = np.flatnonzero(active)
    adam_ascent(rows, theta, gradient, m, v, t, rate)
    policy_tables(rows, theta, reward, alpha, pi, alias, bonus)
    return successes
