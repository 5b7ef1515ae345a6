"""Exact policy gradients in compiled code, many thousand steps in a call.

The two linear systems of a step, (I - γP)v = r and (I - γP)ᵀd = (1-γ)μ, share one factorisation.
Its pattern of zeros depends only on the MDP and is computed once: on a chain of states a step then
costs O(S), on a grid as much as a banded system. No pivots are needed, as I - γP is an M-matrix.

All kernels are in this module, as numba's cache looks only at the file of the function called.
Their references are `soft.success_probability`, `soft.visitation`, `ExactPG` and `NaturalPG`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.compiling import cached_njit
from rollin.errors import RollinError
from rollin.tabular.mdp import Array, ContextualMDP

I64 = NDArray[np.int64]
Structure = tuple[I64, I64, I64, I64, I64, I64]


def structure_of(mdp: ContextualMDP) -> Structure:
    """Return below, below_at, above, above_at, nexts and merged, which the kernels read.

    The entries of I - γP that can differ from 0 while states are eliminated, last one first. below:
    rows that a state's elimination changes; above: columns of its row; both as flat lists with the
    offsets (_at) of each state's part. nexts: (S, A) next states; merged: (S, A) for each action
    the first with the same next state.
    """
    if not mdp.deterministic:
        raise RollinError(
            "The compiled exact gradient takes deterministic MDPs, given as an (S, A) table of "
            "next states; use rollin.ExactPG or rollin.NaturalPG for this one."
        )
    S = mdp.n_states
    pattern = np.eye(S, dtype=bool)
    pattern[np.arange(S)[:, None], mdp.transitions] = True
    below: list[I64] = [np.empty(0, np.int64)] * S
    above: list[I64] = [np.empty(0, np.int64)] * S
    for p in range(S - 1, -1, -1):
        below[p] = np.flatnonzero(pattern[:p, p])
        above[p] = np.flatnonzero(pattern[p, :p])
        pattern[np.ix_(below[p], above[p])] = True
    below_at, above_at = (np.cumsum([0, *map(len, lists)]) for lists in (below, above))
    same = mdp.transitions[:, :, None] == mdp.transitions[:, None, :]
    merged = np.ascontiguousarray(same.argmax(2))
    lists = np.concatenate(below), below_at, np.concatenate(above), above_at
    return *lists, mdp.transitions, merged


@cached_njit()
def _log_softmax(theta: Any, log_pi: Any, pi: Any) -> None:
    S, A = theta.shape
    for s in range(S):
        top = theta[s, 0]
        for a in range(1, A):
            top = max(top, theta[s, a])
        total = 0.0
        for a in range(A):
            total += np.exp(theta[s, a] - top)
        total = np.log(total) + top
        for a in range(A):
            log_pi[s, a] = theta[s, a] - total
            pi[s, a] = np.exp(log_pi[s, a])


@cached_njit()
def log_policy(theta: Any) -> Array:
    """Return log π_θ of softmax parameters θ (S, A)."""
    log_pi = np.empty_like(theta)
    _log_softmax(theta, log_pi, np.empty_like(theta))
    return log_pi


@cached_njit()
def _factorise(pi: Any, gamma: float, structure: Any, M: Any) -> None:
    """Write the LU factors of I - γP, with a unit diagonal of L."""
    below, below_at, above, above_at, nexts, _ = structure
    S, A = pi.shape
    for p in range(S):
        M[p, p] = 1.0
        for at in range(below_at[p], below_at[p + 1]):
            M[below[at], p] = 0.0
        for at in range(above_at[p], above_at[p + 1]):
            M[p, above[at]] = 0.0
    for s in range(S):
        for a in range(A):
            M[s, nexts[s, a]] -= gamma * pi[s, a]
    for p in range(S - 1, -1, -1):
        for at in range(below_at[p], below_at[p + 1]):
            i = below[at]
            if M[i, p] == 0.0:
                continue
            factor = M[i, p] / M[p, p]
            M[i, p] = factor
            for also in range(above_at[p], above_at[p + 1]):
                j = above[also]
                M[i, j] -= factor * M[p, j]


@cached_njit()
def _solve(structure: Any, M: Any, x: Any) -> None:
    """Write x ← (I - γP)⁻¹ x."""
    below, below_at, above, above_at, _, _ = structure
    S = x.size
    for p in range(S - 1, -1, -1):
        for at in range(below_at[p], below_at[p + 1]):
            x[below[at]] -= M[below[at], p] * x[p]
    for p in range(S):
        rest = x[p]
        for at in range(above_at[p], above_at[p + 1]):
            rest -= M[p, above[at]] * x[above[at]]
        x[p] = rest / M[p, p]


@cached_njit()
def _solve_transposed(structure: Any, M: Any, x: Any) -> None:
    """Write x ← (I - γP)⁻ᵀ x; nothing cancels, so that small entries keep all their digits."""
    below, below_at, above, above_at, _, _ = structure
    S = x.size
    for p in range(S - 1, -1, -1):
        x[p] /= M[p, p]
        for at in range(above_at[p], above_at[p + 1]):
            x[above[at]] -= M[p, above[at]] * x[p]
    for p in range(S):
        rest = x[p]
        for at in range(below_at[p], below_at[p + 1]):
            rest -= M[below[at], p] * x[below[at]]
        x[p] = rest


@cached_njit()
def _success(pi: Any, hits: Any, rho: Any, horizon: int, structure: Any) -> float:
    """Return P(some pair of `hits` is used within `horizon` steps | s_0 ~ ρ)."""
    nexts = structure[4]
    merged = structure[5]
    S, A = pi.shape
    # each state's distinct next states, with the chance to get there without success; in columns,
    # and with unsigned indices, so that the compiler makes vector code of the sweeps
    chance = np.zeros((S, A))
    for s in range(S):
        for a in range(A):
            if not hits[s, a]:
                chance[s, merged[s, a]] += pi[s, a]
    weight = np.zeros((A, S))
    to = np.zeros((A, S), np.uint64)
    width = 1
    for s in range(S):
        used = 0
        for a in range(A):
            if chance[s, a] > 0.0:
                to[used, s] = nexts[s, a]
                weight[used, s] = chance[s, a]
                used += 1
        width = max(width, used)
    missed = np.ones(S)
    later = np.ones(S)
    for _ in range(horizon):
        for s in range(np.uint64(S)):
            missed[s] = weight[0, s] * later[to[0, s]]
        for j in range(1, width):
            column = weight[j]
            target = to[j]
            for s in range(np.uint64(S)):
                missed[s] += column[s] * later[target[s]]
        missed, later = later, missed
    total = 0.0
    for s in range(S):
        total += rho[s] * later[s]
    return 1.0 - total


@cached_njit()
def success_from(theta: Any, hits: Any, rho: Any, horizon: int, structure: Any) -> float:
    """Return the same probability of softmax parameters θ."""
    pi = np.empty_like(theta)
    _log_softmax(theta, np.empty_like(theta), pi)
    return _success(pi, hits, rho, horizon, structure)


@cached_njit()
def visitation_of(theta: Any, mu: Any, gamma: float, structure: Any) -> Array:
    """Return d_μ^π of softmax parameters θ, each entry to full relative precision."""
    S = mu.size
    pi = np.empty_like(theta)
    _log_softmax(theta, np.empty_like(theta), pi)
    M = np.empty((S, S))
    _factorise(pi, gamma, structure, M)
    d = (1.0 - gamma) * mu
    _solve_transposed(structure, M, d)
    return d


@cached_njit(nogil=True)  # a call may take minutes, in which a worker must notice its parent's end
def climb(
    theta: Any,
    reward: Any,
    hits: Any,
    mu: Any,
    rho: Any,
    alpha: float,
    gamma: float,
    rate: float,
    natural: bool,
    horizon: int,
    threshold: float,
    most: int,
    structure: Any,
) -> tuple[int, bool]:
    """Ascend θ (S, A) on one context until its exact success from ρ is above the threshold.

    The gradient is that of V(μ), as in `ExactPG`, or the natural one, as in `NaturalPG`.
    Returns the steps taken, at most `most`, and whether the threshold was exceeded.
    """
    S, A = theta.shape
    nexts = structure[4]
    log_pi = np.empty((S, A))
    pi = np.empty((S, A))
    M = np.empty((S, S))
    v = np.empty(S)
    d = np.empty(S)
    _log_softmax(theta, log_pi, pi)
    for step in range(1, most + 1):
        _factorise(pi, gamma, structure, M)
        for s in range(S):
            v[s] = 0.0
            for a in range(A):
                v[s] += pi[s, a] * (reward[s, a] - alpha * log_pi[s, a])
        _solve(structure, M, v)
        if not natural:
            for s in range(S):
                d[s] = (1.0 - gamma) * mu[s]
            _solve_transposed(structure, M, d)
        for s in range(S):
            for a in range(A):
                advantage = reward[s, a] + gamma * v[nexts[s, a]] - alpha * log_pi[s, a] - v[s]
                weight = 1.0 if natural else d[s] * pi[s, a]
                theta[s, a] += rate * weight * advantage / (1.0 - gamma)
        _log_softmax(theta, log_pi, pi)
        if _success(pi, hits, rho, horizon, structure) > threshold:
            return step, True
    return most, False
