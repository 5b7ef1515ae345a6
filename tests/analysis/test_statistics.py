"""Statistics over seeds: by hand, by full enumeration and beside SciPy's."""

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rollin.analysis.statistics import (
    Interval,
    Strata,
    exact_permutation,
    exact_test,
    improvement_interval,
    iqm_interval,
    normal_permutation,
    outcomes,
    probability_of_improvement,
    student_t,
    summarise,
)
from rollin.errors import RollinError

GRID = st.integers(0, 8).map(lambda k: k / 8)  # as κ: few values, many ties, exact in floats
CELL = st.lists(GRID, min_size=1, max_size=6)
CELLS = st.lists(CELL, min_size=1, max_size=4)
PAIRS = st.lists(st.tuples(CELL, CELL), min_size=1, max_size=4)


def test_mean_and_standard_error_by_hand() -> None:
    found = summarise([1.0, 2.0, 3.0, 6.0])
    assert found.mean == 3
    assert found.error == pytest.approx(np.sqrt(14 / 3) / 2)
    assert summarise([4.0]) == (4.0, 0.0, 1)


def test_outcomes_are_counted_best_first() -> None:
    assert outcomes([13, 16, 13, 13, 9]) == "16, 13×3, 9"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # 8 values: ⌊8/4⌋ = 2 go at each end; (3 + 4 + 6 + 7)/4 = 5
        ([100, 3, 1, 7, -50, 4, 6, 9], 5.0),
        # 10 values: ⌊10/4⌋ = 2 go; (2 + 3 + 3 + 5 + 6 + 8)/6 = 27/6
        ([8, 0, 1, 2, 3, 3, 5, 6, 9, 90], 4.5),
        # 11 values: ⌊11/4⌋ = 2 go; (0 + 0 + 0 + 1 + 1 + 1 + 1)/7
        ([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], 4 / 7),
        # 3 values: ⌊3/4⌋ = 0 go; (1 + 2 + 9)/3
        ([9, 1, 2], 4.0),
        ([7], 7.0),
    ],
)
def test_interquartile_mean_by_hand(values: list[float], expected: float) -> None:
    assert iqm_interval([values]).value == pytest.approx(expected)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30))
def test_interquartile_mean_beside_scipy(values: list[float]) -> None:
    found = iqm_interval([values], resamples=1).value
    assert found == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-9)


def test_intervals_by_hand() -> None:
    # Means of two draws from {0, 1}: 0, ½, 1 with probabilities ¼, ½, ¼. The 2.5 % quantile is 0;
    # those of 30 % and 70 % lie both within the half that is ½.
    assert iqm_interval([[0, 1]]) == (0.5, 0, 1)
    assert iqm_interval([[0, 1]], level=0.4) == (0.5, 0.5, 0.5)
    # Draws stay within their cell, so that two cells of equal seeds leave nothing to chance.
    assert iqm_interval([[0, 0], [1, 1, 1, 1]]) == (3 / 4, 3 / 4, 3 / 4)
    assert iqm_interval([[0.5], [0.25], [0.75]]) == (0.5, 0.5, 0.5)
    # Of four values the middle two count, whichever cell they are in: (2 + 3)/2. Each cell is drawn
    # as it is with ½ and as either value twice with ¼. Lowest come 1, 1, 2, 2 (1/16) and 1, 1, 2, 3
    # (2/16), both 1.5 and together 0.1875; then 1, 1, 3, 3 (1/16) and 1, 2, 2, 9 (2/16), both 2,
    # which make it 0.375.
    assert iqm_interval([[1, 9], [2, 3]]).value == 2.5
    assert iqm_interval([[1, 9], [2, 3]], level=1 - 2 * 0.15).low == 1.5
    assert iqm_interval([[1, 9], [2, 3]], level=1 - 2 * 0.23).low == 2
    # One seed a side and cell: it wins, ties and loses; (1 + ½ + 0)/3
    assert improvement_interval([[2], [1], [0]], [[1], [1], [1]]) == (0.5, 0.5, 0.5)
    assert improvement_interval([[3, 4]] * 9, [[1, 2, 0]] * 9) == (1, 1, 1)
    # One seed of ours, 1, against draws of two from {0, 2}: 0, ½ or 1 with ¼, ½, ¼
    assert improvement_interval([[1]], [[0, 2]]) == (0.5, 0, 1)
    assert improvement_interval([[1]], [[0, 2]], level=0.4) == (0.5, 0.5, 0.5)


def draws(strata: Strata) -> Iterator[list[tuple[float, ...]]]:
    """All resamples within cells; each is equally likely."""
    of_cells = [list(itertools.product(cell, repeat=len(cell))) for cell in strata]
    return map(list, itertools.product(*of_cells))


def share(ours: Strata, other: Strata) -> float:
    """Probability of improvement by counting pairs."""
    shares = []
    for xs, ys in zip(ours, other, strict=True):
        halves = sum((x > y) + (x >= y) for x in xs for y in ys)
        shares.append(Fraction(halves, 2 * len(xs) * len(ys)))
    return float(sum(shares) / len(shares))


def check_quantiles(interval: Callable[[float], Interval], every: list[float]) -> None:
    """Interval ends lie between the exact quantiles a little to either side."""
    slack = 0.01  # 4 standard deviations of a share of 40,000 draws, at most
    for level in np.linspace(0.04, 0.96, 24):
        found = interval(level)
        for end, q in ((found.low, (1 - level) / 2), (found.high, (1 + level) / 2)):
            near = [max(q - slack, 0), min(q + slack, 1)]
            lowest, highest = np.quantile(every, near, method="inverted_cdf")
            assert lowest - 1e-12 <= end <= highest + 1e-12


@pytest.mark.parametrize("strata", [[[0, 1, 4], [2, 9]], [[3, 3, 8], [0, 1, 1], [5]], [[1, 2]]])
def test_resamples_are_those_of_full_enumeration(strata: Strata) -> None:
    every = [float(stats.trim_mean(np.concatenate(drawn), 0.25)) for drawn in draws(strata)]
    check_quantiles(lambda level: iqm_interval(strata, level=level, resamples=40_000), every)


@pytest.mark.parametrize(
    ("ours", "other", "tables"),
    [
        ([[1, 2, 4], [0, 1]], [[2, 1], [1, 3, 0]], 27 * 4 * 4 * 27),
        ([[1, 3], [1, 3]], [[2, 0], [2, 0]], 4**4),  # the same cell twice is drawn twice
    ],
)
def test_resampled_improvements_are_those_of_full_enumeration(
    ours: Strata, other: Strata, tables: int
) -> None:
    every = [share(x, y) for x, y in itertools.product(draws(ours), draws(other))]
    assert len(every) == tables
    check_quantiles(
        lambda level: improvement_interval(ours, other, level=level, resamples=40_000), every
    )


@pytest.mark.parametrize(
    ("ours", "cells", "shared"),
    [
        ([[1, 3], [0, 2], [2, 3]], [[2, 0]], [0, 0, 0]),
        ([[1, 2, 4], [0, 1], [3, 1]], [[2, 1], [1, 3, 0]], [0, 1, 0]),
    ],
)
def test_a_shared_cell_is_drawn_once_for_all_its_pairs(
    ours: Strata, cells: Strata, shared: list[int]
) -> None:
    every = [
        share(x, [y[number] for number in shared])
        for x, y in itertools.product(draws(ours), draws(cells))
    ]
    other = [cells[number] for number in shared]

    def interval(level: float) -> Interval:
        return improvement_interval(ours, other, shared=shared, level=level, resamples=40_000)

    check_quantiles(interval, every)


def test_pairs_that_share_a_baseline_leave_more_to_chance() -> None:
    # All cells spread alike, so that either side of a pair adds the variance v: six pairs have
    # (v + v)/6 on their own and v/6 + v with one baseline, which is nearly √3.5 times as wide.
    other, ours = [list(range(8))] * 6, [[i + 0.1 * b for i in range(8)] for b in range(-3, 3)]
    alone = improvement_interval(ours, other)
    found = improvement_interval(ours, other, shared=[0] * 6)
    assert found.value == alone.value
    assert (alone.low, alone.high) == pytest.approx((0.37, 0.61), abs=0.01)
    assert (found.low, found.high) == pytest.approx((0.285, 0.69), abs=0.01)
    assert improvement_interval(ours, other, shared=range(6)) == alone


def test_probability_of_improvement_by_hand() -> None:
    # 1 beats nothing and ties with one of {1, 2}: ½; 2 beats 1 and ties with 2: 1½, twice;
    # (½ + 1½ + 1½)/(3 · 2) = 7/12
    assert probability_of_improvement([[2, 1, 2]], [[1, 2]]) == pytest.approx(7 / 12)
    # The second cell counts as much as the first, however few its seeds: (7/12 + 0)/2
    assert probability_of_improvement([[2, 1, 2], [0]], [[1, 2], [1]]) == pytest.approx(7 / 24)
    assert probability_of_improvement([[1, 1]], [[1, 1, 1]]) == 0.5


@given(CELL, CELL)
def test_probability_of_improvement_is_mann_and_whitneys(x: list[float], y: list[float]) -> None:
    # Only U counts here; the p-value divides by 0 where all values tie.
    with np.errstate(all="ignore"):
        u = stats.mannwhitneyu(x, y, method="asymptotic").statistic
    assert probability_of_improvement([x], [y]) == pytest.approx(u / (len(x) * len(y)))


@given(PAIRS)
def test_improvement_turns_round_and_sees_only_order(pairs: list[tuple[list, list]]) -> None:
    ours, other = [x for x, _ in pairs], [y for _, y in pairs]
    found = improvement_interval(ours, other, resamples=50)
    assert (
        found.value == probability_of_improvement(ours, other) == pytest.approx(share(ours, other))
    )
    assert probability_of_improvement(other, ours) == pytest.approx(1 - found.value)
    assert probability_of_improvement(ours, ours) == pytest.approx(0.5)
    one, two = ([[math.exp(3 * v) for v in cell] for cell in side] for side in (ours, other))
    assert improvement_interval(one, two, resamples=50) == found


@given(CELLS, st.randoms(use_true_random=False))
def test_order_is_nothing_and_shift_and_scale_carry_over(
    strata: list[list[float]], rng: random.Random
) -> None:
    found = iqm_interval(strata, resamples=50)
    pooled = [v for cell in strata for v in cell]
    assert min(pooled) <= found.low <= found.high <= max(pooled)
    assert found.value == pytest.approx(stats.trim_mean(pooled, 0.25))
    mixed = [rng.sample(cell, len(cell)) for cell in strata]
    assert iqm_interval(mixed, resamples=50) == found
    moved = iqm_interval([[4 * v + 3 for v in cell] for cell in strata], resamples=50)
    assert moved == pytest.approx([4 * v + 3 for v in found])


def test_improvements_do_not_depend_on_the_order_of_seeds() -> None:
    one = improvement_interval([[1, 5, 3], [2, 7]], [[4, 0], [9, 2, 1]], resamples=50)
    assert one == improvement_interval([[5, 3, 1], [7, 2]], [[0, 4], [1, 9, 2]], resamples=50)


def test_the_seed_decides_the_resamples() -> None:
    strata = [list(np.random.default_rng(0).normal(size=9))]
    other = [[v + 0.1 for v in strata[0]]]
    for interval in (
        lambda **options: iqm_interval(strata, **options),
        lambda **options: improvement_interval(strata, other, **options),
    ):
        assert interval(seed=1) == interval(seed=1)
        assert interval(seed=1) != interval(seed=2)
        assert interval(seed=0, resamples=2000, level=0.95) == interval()


def test_exact_test_by_hand() -> None:
    # The lady tasting tea, 4 + 4 cups. C(8, 4) = 70 tables: 1, 16, 36, 16, 1 for 0 … 4 right.
    assert exact_test(3, 4, 1, 4) == pytest.approx((1 + 16 + 16 + 1) / 70)  # 0.4857
    assert exact_test(4, 4, 0, 4) == pytest.approx(2 / 70)
    assert exact_test(2, 4, 2, 4) == 1
    # 3 of 3 and 1 of 5: 4 of 8 succeed; k of ours in C(3, k) C(5, 4 - k) ways: 5, 30, 30, 5 of 70
    assert exact_test(3, 3, 1, 5) == pytest.approx(10 / 70)
    # 10 of 10 and 5 of 10: C(10, 5) = 252 of C(20, 15) = 15504 ways, and as many the other way
    assert exact_test(10, 10, 5, 10) == pytest.approx(504 / 15504)
    assert exact_test(0, 0, 1, 3) == 1


@given(st.integers(0, 40), st.integers(0, 40), st.data())
def test_exact_test_beside_scipy(n: int, other_n: int, data: st.DataObject) -> None:
    here, there = data.draw(st.integers(0, n)), data.draw(st.integers(0, other_n))
    found: Any = stats.fisher_exact([[here, n - here], [there, other_n - there]])
    wanted = pytest.approx(found[1], rel=1e-9)
    assert exact_test(here, n, there, other_n) == wanted
    # neither the order of the sides nor what is called success matters
    assert exact_test(there, other_n, here, n) == wanted
    assert exact_test(n - here, n, other_n - there, other_n) == wanted


@given(st.integers(1, 300), st.floats(0.01, 0.999))
def test_quantiles_of_students_distribution_beside_scipy(freedom: int, level: float) -> None:
    wanted = float(stats.t.ppf((1 + level) / 2, freedom))
    assert student_t(freedom, level) == pytest.approx(wanted, rel=1e-9)


def test_quantiles_of_students_distribution_by_hand() -> None:
    assert student_t(1, 0.5) == pytest.approx(1)  # Cauchy: half of it within one unit
    assert student_t(2, 0.8) == pytest.approx(0.8 * math.sqrt(2 / (1 - 0.8**2)))  # in closed form


def test_an_exact_test_of_counts_that_cannot_be_is_refused() -> None:
    for counts in ((5, 4, 0, 4), (1, 4, -1, 4)):
        with pytest.raises(RollinError, match="a part of the tries"):
            exact_test(*counts)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: iqm_interval([[]]), "cell 1 of 1 is empty"),
        (lambda: iqm_interval([[1, math.nan]]), "cell 1 of 1 has nan"),
        (lambda: iqm_interval([]), "at least one cell"),
        (lambda: iqm_interval([[1], []]), "cell 2 of 2 is empty"),
        (lambda: iqm_interval([[1, math.inf], [1]]), "cell 1 of 2 has inf"),
        (lambda: probability_of_improvement([], []), "at least one cell"),
        (lambda: probability_of_improvement([[1]], [[]]), "cell 1 of 1 is empty"),
        (lambda: improvement_interval([[1], [math.nan]], [[1], [1]]), "cell 2 of 2 has nan"),
        (lambda: improvement_interval([[1]], [[1], [2]]), "same cells on both sides, got 1 and 2"),
        (lambda: iqm_interval([[1]], level=1), "between 0 and 1, got 1"),
        (lambda: improvement_interval([[1]], [[1]], level=95), "between 0 and 1, got 95"),
        (lambda: iqm_interval([[1]], resamples=0), "at least one resample, got 0"),
        (lambda: improvement_interval([[1]], [[1]], shared=[]), "every pair, got 0 for 1"),
        (
            lambda: improvement_interval([[1], [1]], [[1], [2]], shared=[3, 3]),
            "those numbered 3 differ",
        ),
    ],
)
def test_what_cannot_be_used_is_told(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(RollinError, match=sentence):
        call()


# ------------------------------------------------------------------ permutations


def test_permutations_by_hand() -> None:
    """Of the six splits of 1, 2, 3, 9 into pairs, {3, 9} and {1, 2} lie furthest apart."""
    assert exact_permutation([3, 9], [1, 2]) == 2 / 6
    assert exact_permutation([2, 9], [1, 3]) == 4 / 6
    assert exact_permutation([1, 2], [1, 2]) == 1.0
    assert exact_permutation([5], [0, 0, 0]) == 1 / 4


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
)
def test_permutations_are_those_of_full_enumeration(ours: list[int], other: list[int]) -> None:
    values, every = [*ours, *other], range(len(ours) + len(other))

    def apart(chosen: tuple[int, ...]) -> Fraction:
        rest = [values[i] for i in every if i not in chosen]
        return abs(
            Fraction(sum(values[i] for i in chosen), len(chosen)) - Fraction(sum(rest), len(rest))
        )

    splits = [apart(chosen) for chosen in itertools.combinations(every, len(ours))]
    seen = apart(tuple(range(len(ours))))
    expected = sum(distance >= seen for distance in splits) / len(splits)
    assert exact_permutation(ours, other) == expected


@pytest.mark.parametrize("shift", [0, 20, 40, 70])
def test_the_normal_approximation_is_near_the_exact_value(shift: int) -> None:
    rng = np.random.default_rng(0)
    ours, other = rng.integers(0, 200, 15).tolist(), rng.integers(shift, 200 + shift, 12).tolist()
    exact = exact_permutation(ours, other)
    assert normal_permutation(ours, other) == pytest.approx(exact, abs=0.01)
    assert normal_permutation(other, ours) == pytest.approx(normal_permutation(ours, other))


def test_equal_values_differ_in_no_split() -> None:
    assert normal_permutation([3] * 40, [3] * 40) == 1.0
