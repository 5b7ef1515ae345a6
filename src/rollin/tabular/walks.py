"""Compiled walks of one trajectory after the other: first states, roll-ins, random horizons.

States, actions and successors are laid out as in `kernels`.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from rollin import compiling
from rollin.tabular import draws
from rollin.tabular.draws import U32, draw_alias, draw_geometric, fill_random, next_random
from rollin.tabular.vectors import FLAG

kept: Any = partial(compiling.kept, helpers=(draws,))


@kept()
def draw_starts(rng: U32, alias: U32, bits: int, P: int, words: U32, starts: U32) -> None:
    """First states from the alias table of μ, premultiplied by P."""
    fill_random(rng, words, starts.size)
    for b in range(starts.size):
        starts[b] = np.uint32(draw_alias(words[b], alias, np.uint64(0), bits) * np.uint64(P))


@kept()
def _successor(rng: U32, pair: Any, successors: U32, fan_alias: U32, fan: int) -> Any:
    """The premultiplied next state (uint64) of a pair."""
    row = pair << np.uint64(fan)
    if fan > 0:
        row += draw_alias(next_random(rng), fan_alias, row, fan)
    return np.uint64(successors[row] & np.uint32(FLAG - 1))


@kept()
def walk(
    rng: U32,
    state: Any,
    steps: int,
    alias: U32,
    successors: U32,
    fan_alias: U32,
    bits: int,
    fan: int,
) -> Any:
    """Follow a policy for some steps from a premultiplied state; returns the one it ends in."""
    for _ in range(steps):
        pair = state + draw_alias(next_random(rng), alias, state, bits)
        state = _successor(rng, pair, successors, fan_alias, fan)
    return state


@kept()
def roll_in_starts(
    rng: U32,
    rho_alias: U32,
    rho_bits: int,
    chain: U32,
    beta: float,
    gamma: float,
    successors: U32,
    fan_alias: U32,
    bits: int,
    fan: int,
    starts: U32,
) -> int:
    """First states from μ_k by rolling in (line 6 of Algorithm 1, Appendix F.3).

    chain: (n, S·P) alias tables of earlier policies, oldest first. With probability 1 - β a
    trajectory starts from the level below's ρ; otherwise the level below draws the state and its
    policy walks Geom(1 - γ) steps. Returns the number of environment steps spent.
    """
    P = np.uint64(1 << bits)
    spent = 0
    threshold = beta * 4294967296.0
    for b in range(starts.size):
        depth = 0
        while depth < chain.shape[0] and float(next_random(rng)) < threshold:
            depth += 1
        state = draw_alias(next_random(rng), rho_alias, np.uint64(0), rho_bits) * P
        for level in range(chain.shape[0] - depth, chain.shape[0]):
            h = draw_geometric(rng, gamma)
            state = walk(rng, state, h, chain[level], successors, fan_alias, bits, fan)
            spent += h
        starts[b] = np.uint32(state)
    return spent


@kept()
def random_horizon(
    rng: U32,
    starts: U32,
    alias: U32,
    log_pi: Any,
    reward: Any,
    successors: U32,
    fan_alias: U32,
    bits: int,
    fan: int,
    gamma: float,
    alpha: float,
    printed: bool,
    to_go: Any,
) -> int:
    """Random-horizon SPG (Algorithm 5): SamSA, EstEntQ, and Q̂ - α log π added to `to_go`.

    starts: (B,) draws of μ; log_pi, reward, to_go: flat (S·P,) float64.
    SamSA walks H ~ Geom(1 - γ) steps, so that s_H is a draw of d_μ^π.
    EstEntQ walks H ~ Geom(1 - √γ) steps with weight γ^{(h+1)/2}: P(H > h) γ^{(h+1)/2} = γ^{h+1}.
    `printed` takes Geom(1 - γ) and γ^{h+1}/2 as in the paper's Algorithm 7, which is biased.
    Returns the number of environment steps.
    """
    go_on = gamma if printed else math.sqrt(gamma)
    spent = 0
    for b in range(starts.size):
        h = draw_geometric(rng, gamma)
        state = walk(rng, np.uint64(starts[b]), h, alias, successors, fan_alias, bits, fan)
        first = state + draw_alias(next_random(rng), alias, state, bits)
        pair = first
        q = float(reward[pair])
        H = draw_geometric(rng, go_on)
        weight = 1.0
        for _ in range(H):
            weight *= go_on
            state = _successor(rng, pair, successors, fan_alias, fan)
            pair = state + draw_alias(next_random(rng), alias, state, bits)
            factor = weight * 0.5 if printed else weight
            q += factor * (float(reward[pair]) - alpha * float(log_pi[pair]))
        to_go[first] += q - alpha * float(log_pi[first])
        spent += h + H + 1
    return spent
