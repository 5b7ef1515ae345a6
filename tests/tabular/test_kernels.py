"""Compiled kernels against their NumPy reference; random numbers and alias tables by their laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rollin.errors import RollinError
from rollin.tabular.kernels import draws, reference, rollouts
from rollin.tabular.kernels.draws import FLAG
from rollin.tabular.kernels.rollouts import LANES, REPLICAS
from rollin.tabular.kernels.tables import Dynamics, Stream, alias_table
from rollin.tabular.mdp import ContextualMDP

TOTAL = 1 << draws.TOTAL_BITS
SEEDS = st.integers(0, 2**32 - 1)


def represented(table: np.ndarray, bits: int) -> np.ndarray:
    """Exact weight of every outcome of a packed table, in units of 2^-32."""
    weights = np.zeros(1 << bits, np.int64)
    full = 1 << (32 - bits)
    for bucket, entry in enumerate(table.tolist()):
        threshold, other = entry >> bits, entry & ((1 << bits) - 1)
        weights[bucket] += threshold
        weights[other] += full - threshold
    return weights


def random_words(seed: int, n: int) -> np.ndarray:
    words = np.empty(n, np.uint32)
    draws.fill_random(Stream(seed).words, words, n)
    return words


@given(
    st.lists(
        st.one_of(st.just(0.0), st.floats(1e-12, 1.0), st.floats(1.0, 1e6)),
        min_size=1,
        max_size=300,
    ).filter(lambda values: sum(values) > 0)
)
@settings(max_examples=300)
def test_alias_tables_represent_the_quantised_weights_exactly(values: list[float]) -> None:
    p = np.array(values) / np.sum(values)
    table, bits = alias_table(p)
    weights = np.zeros(1 << bits, np.int32)
    draws.quantise(p, bits, weights)
    assert weights.sum(dtype=np.int64) == TOTAL
    np.testing.assert_array_equal(represented(table, bits), 4 * weights.astype(np.int64))
    error = np.abs(weights[: len(p)] / TOTAL - p)
    assert np.sort(error)[:-1].max(initial=0) <= 1 / TOTAL
    assert error.max() <= len(p) / TOTAL  # the likeliest takes the rounding rest


@pytest.mark.parametrize("n", [1, 2, 3, 105, 128])
def test_uniform_and_certain_distributions(n: int) -> None:
    for p in (np.full(n, 1 / n), np.eye(n)[n // 2]):
        table, bits = alias_table(p)
        np.testing.assert_allclose(represented(table, bits)[:n] / 2**32, p, atol=n / TOTAL)
        assert represented(table, bits)[n:].sum() == 0  # padding is never drawn


def test_draws_follow_the_table_and_are_those_of_the_reference() -> None:
    p = np.random.default_rng(0).dirichlet(np.full(105, 0.3))
    table, bits = alias_table(p)
    words = random_words(3, 48_000)
    drawn = reference.draw_alias(words, table, np.zeros(len(words), np.int64), bits)
    compiled = [int(draws.draw_alias(w, table, np.uint64(0), bits)) for w in words[:2000]]
    assert compiled == drawn[:2000].tolist()
    counts = np.bincount(drawn, minlength=105)
    enough = p * len(drawn) > 20
    chi2 = ((counts - p * len(drawn)) ** 2 / (p * len(drawn)))[enough].sum()
    assert stats.chi2.sf(chi2, enough.sum() - 1) > 1e-4


def test_a_draw_compares_with_the_threshold_exactly() -> None:
    """At the threshold's own word the alias is taken, one below it the bucket."""
    table, bits = alias_table(np.array([0.3, 0.7]))
    threshold = int(table[0]) >> bits
    for rest, outcome in ((threshold - 1, 0), (threshold, 1)):
        assert int(draws.draw_alias(np.uint32(rest), table, np.uint64(0), bits)) == outcome


def test_random_words_are_uniform() -> None:
    words = random_words(1, 160_000)
    for shift in (0, 12, 24):  # low, middle and high bytes
        counts = np.bincount((words >> shift) & 255, minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-4
    lagged = np.corrcoef(words[:-16].astype(float), words[16:].astype(float))[0, 1]
    assert abs(lagged) < 0.02


def test_random_words_are_those_of_xoshiro128plusplus() -> None:
    state = np.tile(np.arange(1, 5, dtype=np.uint32)[:, None], (1, 16))
    known = [641, 1573767, 3222811527, 3517856514, 836907274, 4247214768]  # of seed 1, 2, 3, 4
    assert reference.random_words(state, 6)[::16].tolist() == known
    ours, plain, single = (Stream(5).words for _ in range(3))
    words = np.empty(16 * 50, np.uint32)
    draws.fill_random(ours, words, words.size)
    np.testing.assert_array_equal(words, reference.random_words(plain, 50))
    np.testing.assert_array_equal(ours, plain)
    assert [int(draws.next_random(single)) for _ in range(50)] == words[::16].tolist()


@pytest.mark.parametrize("continue_", [0.0, 0.5, 0.95])
def test_geometric_law_starts_at_zero(continue_: float) -> None:
    stream = Stream(2)
    drawn = np.array([draws.draw_geometric(stream.words, continue_) for _ in range(20_000)])
    if continue_ == 0:
        assert (drawn == 0).all()
        return
    top = int(np.log(100 / 20_000) / np.log(continue_))
    expected = (1 - continue_) * continue_ ** np.arange(top) * len(drawn)
    counts = np.bincount(drawn, minlength=top)[:top]
    observed = [*counts, len(drawn) - counts.sum()]
    assert stats.chisquare(observed, [*expected, len(drawn) - expected.sum()]).pvalue > 1e-4


def test_mdps_too_large_to_sample_are_refused() -> None:
    S = 5000
    mdp = ContextualMDP(np.zeros((S, 1), int), np.zeros((2, S, 1)), 0.9, np.eye(S)[0])
    with pytest.raises(RollinError, match="at most 4096 states and actions, got S = 5000, A = 1"):
        Dynamics.of(mdp)


# ------------------------------------------------------------------ a gradient step


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    B=st.sampled_from([1, 7, 8, 9, LANES - 1, LANES, LANES + 1, 95]),
    T=st.integers(1, 6),
    bits=st.integers(1, 5),
    fan=st.sampled_from([0, 0, 1, 2]),
    S=st.integers(1, 9),
)
def test_rollouts_are_those_of_the_reference(
    seed: int, B: int, T: int, bits: int, fan: int, S: int
) -> None:
    rng = np.random.default_rng(seed)
    P, width = 1 << bits, 1 << fan
    alias = np.empty((S, P), np.uint32)
    draws.alias_rows(rng.dirichlet(np.full(P, 0.5), S), bits, alias)
    fan_alias = np.zeros((S * P, width), np.uint32)
    if fan > 0:
        draws.alias_rows(rng.dirichlet(np.full(width, 0.5), S * P), fan, fan_alias)
    flags = np.where(rng.random(S * P * width) < 0.1, np.uint32(FLAG), np.uint32(0))
    successors = (rng.integers(0, S, S * P * width) * P).astype(np.uint32) | flags
    dynamics = successors, fan_alias.ravel(), bits, fan
    bonus = rng.standard_normal(S * P).astype(np.float32)
    starts = (rng.integers(0, S, B) * P).astype(np.uint32)
    policy = starts, alias.ravel(), bonus
    ours, plain = Stream(seed).words, Stream(seed).words
    to_go = np.zeros((REPLICAS, S * P), np.float32)
    successes = rollouts.rollouts(ours, *policy, dynamics, 0.9, T, to_go)
    expected = reference.rollouts(plain, *policy, dynamics, 0.9, T)
    assert successes == expected[0]
    np.testing.assert_array_equal(to_go, expected[1])
    np.testing.assert_array_equal(ours, plain)


@given(seed=SEEDS, S=st.integers(1, 9), bits=st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_gradients_are_those_of_the_reference_and_skip_unvisited_states(seed, S, bits) -> None:
    rng = np.random.default_rng(seed)
    P = 1 << bits
    A = int(rng.integers(1, P + 1))
    visited = rng.random(S) < 0.6
    to_go = np.zeros((REPLICAS, S, P), np.float32)
    to_go[:, visited, :A] = rng.standard_normal((REPLICAS, int(visited.sum()), A))
    pi = rng.dirichlet(np.ones(A), S).astype(np.float32)
    expected = reference.gradient_from(to_go.reshape(REPLICAS, -1), pi, 0.01)
    gradient = np.full_like(pi, 7)
    active = np.ones(S, np.bool_)
    sums = to_go.reshape(REPLICAS, -1)
    rollouts.gradient_from(sums, pi, 0.01, gradient, active)
    np.testing.assert_array_equal(gradient, expected)
    assert not sums.any()
    inactive = np.zeros(S, np.bool_)
    rollouts.gradient_from(to_go.reshape(REPLICAS, -1), pi, 0.01, np.full_like(pi, 7), inactive)
    assert not inactive.any()  # the sums are cleared


def test_adam_against_the_reference_and_its_definition() -> None:
    rng = np.random.default_rng(0)
    ours, plain = ([np.zeros((3, 7), np.float32) for _ in range(3)] for _ in range(2))
    theta, m, v = (np.zeros((3, 7)) for _ in range(3))
    for t in range(1, 30):
        g = rng.normal(size=(3, 7)) * 1e-4
        gradient = g.astype(np.float32)
        rollouts.adam_ascent(np.arange(3), ours[0], gradient, *ours[1:], t, 1e-3)
        reference.adam_ascent(plain[0], gradient, plain[1], plain[2], t, 1e-3)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        theta += 1e-3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    for mine, other in zip(ours, plain, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)
    np.testing.assert_allclose(ours[0], theta, rtol=1e-4, atol=1e-7)
