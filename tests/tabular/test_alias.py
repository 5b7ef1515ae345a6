"""Random numbers and alias tables: exact tables, uniform words, the right laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rollin.errors import RollinError
from rollin.tabular import draws as drawing
from rollin.tabular.mdp import ContextualMDP
from rollin.tabular.packing import Dynamics, Stream, alias_table

TOTAL = 1 << drawing.TOTAL_BITS


def represented(table: np.ndarray, bits: int) -> np.ndarray:
    """Exact weight of every outcome of a packed table, in units of 2^-32."""
    weights = np.zeros(1 << bits, np.int64)
    full = 1 << (32 - bits)
    for bucket, entry in enumerate(table.tolist()):
        threshold, other = entry >> bits, entry & ((1 << bits) - 1)
        weights[bucket] += threshold
        weights[other] += full - threshold
    return weights


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
    drawing.quantise(p, bits, weights)
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


def test_draws_follow_the_table() -> None:
    p = np.random.default_rng(0).dirichlet(np.full(105, 0.3))
    table, bits = alias_table(p)
    words = np.empty(200_000, np.uint32)
    drawing.fill_random(Stream(3).words, words, words.size)
    draws = np.array(
        [int(drawing.draw_alias(w, table, np.uint64(0), bits)) for w in words[:50_000]]
    )
    counts = np.bincount(draws, minlength=105)
    enough = p * len(draws) > 20
    chi2 = ((counts - p * len(draws)) ** 2 / (p * len(draws)))[enough].sum()
    assert stats.chi2.sf(chi2, enough.sum() - 1) > 1e-4


def test_a_draw_compares_with_the_threshold_exactly() -> None:
    """At the threshold's own word the alias is taken, one below it the bucket."""
    table, bits = alias_table(np.array([0.3, 0.7]))
    threshold = int(table[0]) >> bits
    for rest, outcome in ((threshold - 1, 0), (threshold, 1)):
        assert int(drawing.draw_alias(np.uint32(rest), table, np.uint64(0), bits)) == outcome


def test_random_words_are_uniform_and_repeatable() -> None:
    words = np.empty(160_000, np.uint32)
    drawing.fill_random(Stream(1).words, words, words.size)
    again = np.empty_like(words)
    drawing.fill_random(Stream(1).words, again, again.size)
    np.testing.assert_array_equal(words, again)
    for shift in (0, 12, 24):  # low, middle and high bytes
        counts = np.bincount((words >> shift) & 255, minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-4
    lagged = np.corrcoef(words[:-16].astype(float), words[16:].astype(float))[0, 1]
    assert abs(lagged) < 0.02


def test_fill_random_is_xoshiro128plusplus() -> None:
    """Against the published recurrence, written out for one of the side-by-side generators."""
    stream = Stream(5)
    s = [int(x) for x in stream.words[:, 7]]
    words = np.empty(16 * 50, np.uint32)
    drawing.fill_random(stream.words, words, words.size)

    def rotl(x: int, k: int) -> int:
        return ((x << k) | (x >> (32 - k))) & 0xFFFFFFFF

    for block in range(50):
        assert int(words[16 * block + 7]) == (rotl((s[0] + s[3]) & 0xFFFFFFFF, 7) + s[0]) % 2**32
        t = (s[1] << 9) & 0xFFFFFFFF
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 11)


@pytest.mark.parametrize("go_on", [0.0, 0.5, 0.95])
def test_geometric_law_starts_at_zero(go_on: float) -> None:
    stream = Stream(2)
    draws = np.array([drawing.draw_geometric(stream.words, go_on) for _ in range(20_000)])
    if go_on == 0:
        assert (draws == 0).all()
        return
    top = int(np.log(100 / 20_000) / np.log(go_on))
    expected = (1 - go_on) * go_on ** np.arange(top) * len(draws)
    counts = np.bincount(draws, minlength=top)[:top]
    observed = [*counts, len(draws) - counts.sum()]
    assert stats.chisquare(observed, [*expected, len(draws) - expected.sum()]).pvalue > 1e-4


def test_mdps_too_large_to_sample_are_refused() -> None:
    S = 5000
    mdp = ContextualMDP(np.zeros((S, 1), int), np.zeros((2, S, 1)), 0.9, np.eye(S)[0])
    with pytest.raises(RollinError, match="at most 4096 states and actions, got S = 5000, A = 1"):
        Dynamics.of(mdp)
