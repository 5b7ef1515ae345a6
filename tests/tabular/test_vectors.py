"""Vector code of the tabular kernels beside plain Python."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollin.tabular import draws, kernels
from rollin.tabular.kernels import LANES, REPLICAS
from rollin.tabular.packing import Stream
from rollin.tabular.vectors import FLAG


def _reference(words, starts, alias, bonus, successors, bits, gamma, T):
    """What `rollouts` does, a trajectory at a time, for deterministic dynamics."""
    ones = (1 << bits) - 1
    to_go = np.zeros((REPLICAS, bonus.size), np.float32)
    successes, at = 0, 0
    for first in range(0, starts.size, LANES):
        lanes = min(LANES, starts.size - first)
        traces, met = [], 0
        for i in range(lanes):
            state, trace, flag = int(starts[first + i]), [], 0
            for t in range(T):
                word = int(words[at + t * lanes + i])
                bucket = word >> (32 - bits)
                entry = int(alias[state + bucket])
                inside = ((word << bits) & 0xFFFFFFFF | ones) < entry
                pair = state + (bucket if inside else entry & ones)
                trace.append(pair)
                flag |= int(successors[pair]) & FLAG
                state = int(successors[pair]) & (FLAG - 1)
            traces.append(trace)
            met += flag >> 31
        successes += met
        at += -(-T * lanes // 16) * 16  # numbers are drawn sixteen at a time
        value = np.zeros(lanes, np.float32)
        for t in reversed(range(T)):
            for i in range(lanes):
                value[i] = bonus[traces[i][t]] + np.float32(gamma) * value[i]
                to_go[i % REPLICAS, traces[i][t]] += value[i]
    return successes, to_go


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    B=st.sampled_from([1, 7, 8, 9, 39, 40, 41, 95]),
    T=st.integers(1, 6),
    bits=st.integers(1, 5),
    S=st.integers(1, 9),
)
def test_rollouts_are_those_of_plain_python(seed: int, B: int, T: int, bits: int, S: int) -> None:
    generator = np.random.default_rng(seed)
    P = 1 << bits
    alias = np.empty((S, P), np.uint32)
    draws.alias_rows(generator.dirichlet(np.full(P, 0.5), S), bits, alias)
    flags = np.where(generator.random(S * P) < 0.1, np.uint32(FLAG), np.uint32(0))
    successors = (generator.integers(0, S, S * P) * P).astype(np.uint32) | flags
    bonus = generator.standard_normal(S * P).astype(np.float32)
    starts = (generator.integers(0, S, B) * P).astype(np.uint32)
    words = np.empty(-(-T * 40 // 16) * 16 * -(-B // LANES) + 16, np.uint32)
    draws.fill_random(Stream(seed).words, words, words.size - 16)
    wanted = _reference(words, starts, alias.ravel(), bonus, successors, bits, 0.9, T)
    to_go, stream = np.zeros((REPLICAS, S * P), np.float32), Stream(seed)
    nothing = np.zeros(1, np.uint32)
    found = kernels.rollouts(
        stream.words, starts, alias.ravel(), bonus, successors, nothing, bits, 0, 0.9, T, to_go
    )
    assert found == wanted[0]
    assert np.array_equal(to_go, wanted[1])
