"""The test of equivalence, on numbers whose answer is known."""

import numpy as np
import pytest
from scipy import stats
from studies.precision_page import equivalence, verdict


def test_equal_samples_are_equivalent_and_far_ones_are_not():
    rng = np.random.default_rng(0)
    single, half = rng.normal(100, 2, (2, 10))
    assert equivalence(single, half) < 0.001
    assert equivalence(single, half + 30) > 0.99
    assert equivalence(single, half - 30) > 0.99
    assert verdict(list(single), list(half), 10) == ("< 0.001", "equivalent")
    assert verdict(list(single), list(half - 30), 10)[1] == "not shown"


def test_negative_returns_turn_the_bounds():
    rng = np.random.default_rng(1)
    single, half = rng.normal(-150, 2, (2, 10))
    assert equivalence(single, half) == pytest.approx(equivalence(-single, -half))


def test_a_sample_at_the_margin_is_refused_as_often_as_stated():
    """At a difference of just the margin, a test of 5 % errs in 5 % of all samples."""
    rng = np.random.default_rng(2)
    found = [
        equivalence(rng.normal(100, 5, 12), rng.normal(110, 5, 12)) < 0.05 for _ in range(2000)
    ]
    share = np.mean(found)
    assert stats.binom.sf(sum(found) - 1, 2000, 0.05) > 0.001, share
    assert share > 0.02


def test_few_or_constant_samples_have_words_of_their_own():
    assert verdict([1.0], [1.0, 1.0], 2) == ("–", "seeds missing")
    assert verdict([1.0, 1.0], [1.0, 1.0], 2) == ("no spread", "equivalent")
    assert verdict([1.0, 1.0], [0.8, 0.8], 2) == ("no spread", "not shown")
