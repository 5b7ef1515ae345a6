"""Trajectories, compiled: a gradient step of the experiment, and walks one after the other.

The step is policy tables, rollouts, gradient and Adam; `reference` has the same in NumPy, and the
package's docstring explains the layout. Walks draw first states, roll-ins and random horizons;
`dynamics` is `Dynamics.tables`. The tests compare the laws of their draws with `soft.visitation`
and `soft.policy_gradient`.

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
from rollin.llvm import addr
from rollin.tabular.kernels import draws
from rollin.tabular.kernels.draws import (
    ABREAST,
    FLAG,
    GATHERS,
    STREAMS,
    U32,
    act_abreast,
    build_aliases,
    draw_alias,
    draw_geometric,
    fill_random,
    next_random,
    quantise,
)

cached_njit: Any = partial(
    compiling.cached_njit, helpers=(*draws.HELPERS, draws), variant=int(GATHERS)
)

F32 = NDArray[np.float32]

LANES = 40  # trajectories interleaved in one block, to hide the latency of dependent loads
REPLICAS = 4  # gradient copies, against stalls when neighbours add to the same entry
TINY = np.float32(1e-36)  # smaller moments become 0; the smallest normal float is 1.2e-38


@cached_njit()
def _sum(row: F32) -> Any:
    """Return Σ of a row with four partial sums, so that additions do not wait for each other."""
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


@cached_njit()
def _max(row: F32) -> Any:
    """Return the largest value of a row, also with four partial results."""
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


@cached_njit(error_model="numpy")
def _softmax(row: F32, exponent: Any, power: F32, out: F32) -> Any:
    """Write exp(row - max) / Σ to `out`; return log Σ exp(row).

    exp is computed by range reduction and a polynomial of degree 6, in loops that the compiler
    vectorises. power: a view of exponent as float32.
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


@cached_njit()
def policy_tables(
    rows: Any, theta: F32, pi: F32, alias: U32, bonus: F32, reward: F32, alpha: float
) -> None:
    """Write all that a rollout needs of a policy, for some states.

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


@cached_njit()
def rollouts(
    rng: U32, starts: U32, alias: U32, bonus: F32, dynamics: Any, gamma: float, T: int, to_go: F32
) -> int:
    """Sample len(starts) trajectories of T steps and add their rewards-to-go to `to_go`.

    starts: (B,) premultiplied first states; alias, bonus: flat (S·P,) policy tables;
    dynamics: `Dynamics.tables_of` a task; to_go: (REPLICAS, S·P), to which
    Σ_{b,t} 1{(s_t, a_t) = (s, a)} R_t^b is added. Returns the number of successful trajectories.
    """
    successors, fan_alias, bits, fan = dynamics
    B = starts.size
    per_step = 1 if fan == 0 else 2  # random numbers: the action, and where it leads
    words = np.empty((T * LANES * per_step + STREAMS) // STREAMS * STREAMS, np.uint32)
    trace = np.empty((T, LANES), np.uint32)
    state = np.empty(LANES, np.uint32)  # premultiplied, with the flag once it has succeeded
    value = np.empty(LANES, np.float32)
    discount = np.float32(gamma)
    successes = 0
    for first in range(0, B, LANES):
        lanes = min(LANES, B - first)
        fill_random(rng, words, T * lanes * per_step)
        for i in range(lanes):
            state[i] = starts[first + i]
            value[i] = 0.0
        for t in range(T):
            drawn = words[t * lanes * per_step : (t + 1) * lanes * per_step]
            _advance(drawn, state[:lanes], alias, successors, fan_alias, bits, fan, trace[t])
        for i in range(lanes):
            successes += int(state[i] >> np.uint32(31))
        for t in range(T - 1, -1, -1):
            _add_returns(trace[t], bonus, discount, value[:lanes], to_go)
    return successes


@cached_njit(inline="always")
def _advance(
    words: U32, state: U32, alias: U32, successors: U32, fan_alias: U32, bits: int, fan: int,
    pairs: U32,
) -> None:  # fmt: skip
    """Take one step of all trajectories of a block; write their state-action pairs."""
    lanes = np.uint64(state.size)
    # unsigned indices spare the check for negative ones
    first = np.uint64(0)
    if GATHERS and fan == 0:
        first = lanes // np.uint64(ABREAST) * np.uint64(ABREAST)
        for i in range(0, np.int64(first), ABREAST):
            at = np.int64(4 * i)
            act_abreast(
                addr(words) + at,
                addr(state) + at,
                addr(alias),
                addr(successors),
                np.int64(bits),
                addr(pairs) + at,
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


@cached_njit(inline="always")
def _add_returns(pairs: U32, bonus: F32, discount: Any, value: F32, to_go: F32) -> None:
    """Add R_t = r_ent,t + γ R_{t+1} of all trajectories of a block at their pairs."""
    lanes = np.uint64(value.size)
    for i in range(lanes):
        pair = np.uint64(pairs[i])
        value[i] = bonus[pair] + discount * value[i]
        to_go[i & np.uint64(REPLICAS - 1), pair] += value[i]


@cached_njit()
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
        visited = np.uint32(0)
        for a in range(np.uint64(A)):
            at = base + a
            visited |= (words[0, at] | words[1, at]) | (words[2, at] | words[3, at])
        if visited == 0:
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


@cached_njit(error_model="numpy")
def adam_ascent(rows: Any, theta: F32, gradient: F32, m: F32, v: F32, t: int, rate: float) -> None:
    """Take a step of Adam (Kingma & Ba) uphill for some states; t = 1 at first.

    Moments of states that are no longer visited decay; they end at 0 instead of in denormal floats,
    which are a hundred times slower and too small to move θ.
    """
    b1 = np.float32(0.9)
    b2 = np.float32(0.999)
    scale = np.float32(rate / (1.0 - 0.9**t))
    unbias = np.float32(1.0 / (1.0 - 0.999**t))
    for s in rows:
        row = theta[s]
        g = gradient[s]
        m_ = m[s]
        v_ = v[s]
        for a in range(row.size):
            mean = b1 * m_[a] + (np.float32(1.0) - b1) * g[a]
            square = b2 * v_[a] + (np.float32(1.0) - b2) * g[a] * g[a]
            m_[a] = mean if abs(mean) > TINY else np.float32(0.0)
            v_[a] = square if square > TINY else np.float32(0.0)
            row[a] += scale * m_[a] / (np.sqrt(v_[a] * unbias) + np.float32(1e-8))


@cached_njit()
def batch_step(
    rng: U32,
    starts: U32,
    reward: F32,
    dynamics: Any,
    policy: Any,
    adam: Any,
    gamma: float,
    alpha: float,
    T: int,
    t: int,
    rate: float,
) -> int:
    """Take one gradient step of the experiment (Appendix F.3) from given first states.

    policy: (theta, pi, alias, bonus), the last three in step with theta before and after;
    adam: (gradient, m, v, to_go, active), to_go cleared.
    Only `active` states, which a trajectory has visited since Adam began, have a gradient or
    moments; the others are skipped. Returns the number of successful trajectories.
    """
    theta, pi, alias, bonus = policy
    gradient, m, v, to_go, active = adam
    successes = rollouts(rng, starts, alias.ravel(), bonus.ravel(), dynamics, gamma, T, to_go)
    gradient_from(to_go, pi, 1.0 / (starts.size * T), gradient, active)
    rows = np.flatnonzero(active)
    adam_ascent(rows, theta, gradient, m, v, t, rate)
    policy_tables(rows, theta, pi, alias, bonus, reward, alpha)
    return successes


@cached_njit()
def draw_starts(rng: U32, alias: U32, bits: int, P: int, words: U32, starts: U32) -> None:
    """Draw first states, premultiplied by P, from the alias table of μ."""
    fill_random(rng, words, starts.size)
    for b in range(starts.size):
        starts[b] = np.uint32(draw_alias(words[b], alias, np.uint64(0), bits) * np.uint64(P))


@cached_njit()
def _successor(rng: U32, pair: Any, dynamics: Any) -> Any:
    """Return the premultiplied next state (uint64) of a pair."""
    successors, fan_alias, _, fan = dynamics
    row = pair << np.uint64(fan)
    if fan > 0:
        row += draw_alias(next_random(rng), fan_alias, row, fan)
    return np.uint64(successors[row] & np.uint32(FLAG - 1))


@cached_njit()
def walk(rng: U32, state: Any, steps: int, alias: U32, dynamics: Any) -> Any:
    """Follow a policy for some steps from a premultiplied state; return the last state."""
    for _ in range(steps):
        pair = state + draw_alias(next_random(rng), alias, state, dynamics[2])
        state = _successor(rng, pair, dynamics)
    return state


@cached_njit()
def roll_in_starts(
    rng: U32,
    rho_alias: U32,
    rho_bits: int,
    chain: U32,
    beta: float,
    gamma: float,
    dynamics: Any,
    starts: U32,
) -> int:
    """Draw first states from μ_k by rolling in (line 6 of Algorithm 1, Appendix F.3).

    chain: (n, S·P) alias tables of earlier policies, oldest first. With probability 1 - β a
    trajectory starts from the level below's ρ; otherwise the level below draws the state and its
    policy walks Geom(1 - γ) steps. Returns the number of environment steps spent.
    """
    P = np.uint64(1 << dynamics[2])
    spent = 0
    threshold = beta * 4294967296.0
    for b in range(starts.size):
        depth = 0
        while depth < chain.shape[0] and float(next_random(rng)) < threshold:
            depth += 1
        state = draw_alias(next_random(rng), rho_alias, np.uint64(0), rho_bits) * P
        for level in range(chain.shape[0] - depth, chain.shape[0]):
            h = draw_geometric(rng, gamma)
            state = walk(rng, state, h, chain[level], dynamics)
            spent += h
        starts[b] = np.uint32(state)
    return spent


@cached_njit()
def random_horizon(
    rng: U32,
    starts: U32,
    alias: U32,
    log_pi: Any,
    reward: Any,
    dynamics: Any,
    gamma: float,
    alpha: float,
    printed: bool,
    to_go: Any,
) -> int:
    """Add Q̂ - α log π of random-horizon SPG (Algorithms 5 – 7) to `to_go`, by SamSA and EstEntQ.

    starts: (B,) draws of μ; log_pi, reward, to_go: flat (S·P,) float64.
    SamSA walks H ~ Geom(1 - γ) steps, so that s_H is a draw of d_μ^π.
    EstEntQ walks H ~ Geom(1 - √γ) steps with weight γ^{(h+1)/2}: P(H > h) γ^{(h+1)/2} = γ^{h+1}.
    `printed` takes Geom(1 - γ) and γ^{h+1}/2 as in the paper's Algorithm 7, which is biased.
    Returns the number of environment steps.
    """
    bits = dynamics[2]
    continue_ = gamma if printed else math.sqrt(gamma)
    spent = 0
    for b in range(starts.size):
        h = draw_geometric(rng, gamma)
        state = walk(rng, np.uint64(starts[b]), h, alias, dynamics)
        first = state + draw_alias(next_random(rng), alias, state, bits)
        pair = first
        q = float(reward[pair])
        H = draw_geometric(rng, continue_)
        weight = 1.0
        for _ in range(H):
            weight *= continue_
            state = _successor(rng, pair, dynamics)
            pair = state + draw_alias(next_random(rng), alias, state, bits)
            factor = weight * 0.5 if printed else weight
            q += factor * (float(reward[pair]) - alpha * float(log_pi[pair]))
        to_go[first] += q - alpha * float(log_pi[first])
        spent += h + H + 1
    return spent
