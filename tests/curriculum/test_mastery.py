"""Rules without a threshold: cases worked out by hand, and what a change of the rewards leaves."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollin.curriculum.mastery import FIRST, LONGEST, Gap, Plateau
from rollin.curriculum.rules import Window
from rollin.errors import RollinError


def fed(rule, totals, size):
    """The decisions after each episode."""
    window = Window(size)
    told = []
    for total in totals:
        rule.add(total)
        window.add(total)
        told.append((rule.mastered(window) is not None, rule.threshold(window)))
    return told


def test_gap_lies_a_share_of_the_way_from_the_base_to_the_best():
    rule = Gap(share=0.6, window=2)
    rule.begin([1.0, 3.0], before=50.0)  # L = 2, M = 50 is more than any return here
    told = fed(rule, [12.0, 30.0, 31.0, 31.0], 2)
    assert [R for _, R in told] == pytest.approx([30.8] * 4)  # 2 + 0.6 · 48
    assert [mastered for mastered, _ in told] == [False, False, False, True]


def test_gap_gives_up_a_mean_that_is_out_of_reach():
    rule = Gap(share=0.6, window=2)
    rule.begin([0.0, 0.0], before=1000.0)
    told = fed(rule, [10.0] * 8, 2)
    # the first return is new, and six more make three windows without a better one
    assert [R for _, R in told] == pytest.approx([600.0] * 6 + [6.0] * 2)
    assert told[6][0]


def test_gap_needs_more_than_chance():
    rule, window = Gap(share=0.1, window=2), Window(2)
    rule.begin([-30.0, 30.0], before=5.0)  # L = 0 with a standard deviation of 42
    for total in (6.0, 6.0):
        rule.add(total)
        window.add(total)
    assert window.mean > rule.threshold(Window(2))  # R = 0.6
    assert rule.mastered(window) is None  # 6 < 3 √(42²/2) = 90
    assert rule.threshold(window) == pytest.approx(90.0)  # what binds is what is shown


def test_the_first_context_is_judged_by_its_own_first_episodes():
    rule = Gap(share=0.5, window=2)
    told = fed(rule, [4.0, 4.0, 10.0, 10.0], 2)  # base 4, best 10
    assert math.isnan(told[0][1])
    assert told[3] == (True, pytest.approx(7.0))


def test_without_relabelling_the_base_is_the_lower_of_two_beginnings():
    rule = Gap(share=0.5, window=2)
    fed(rule, [1.0, 1.0], 2)  # the very first episodes
    rule.begin(None, before=1.0)
    told = fed(rule, [9.0] * FIRST, 2)  # succeeds at once
    assert told[-1] == (True, pytest.approx(5.0))  # from 1, not from 9
    rule.begin(None, before=9.0)
    told = fed(rule, [0.0] * FIRST + [8.0, 8.0], 2)
    assert told[-1] == (True, pytest.approx(4.5))  # from 0 to 9


def test_plateau_waits_until_nothing_better_comes():
    rule = Plateau(window=2)
    rule.begin([0.0, 0.0], before=0.0)
    told = [mastered for mastered, _ in fed(rule, [5.0, 10.0, 10.0, 9.0, 10.0, 9.0, 9.0, 9.0], 2)]
    assert told == [False] * 7 + [True]  # six episodes after the best


@pytest.mark.parametrize("rule", [Gap(window=3), Plateau(window=3)])
def test_rewards_that_never_vary_master_nothing(rule):
    rule.begin([7.0] * 3, before=7.0)
    assert not any(mastered for mastered, _ in fed(rule, [7.0] * 40, 3))


def test_a_share_outside_is_refused():
    with pytest.raises(RollinError, match=r"must lie in \(0, 1\), got 1"):
        Gap(share=1)


whole = st.integers(-1000, 1000).map(float)  # sums of these are exact in either scale


@given(
    st.sampled_from([Gap, Plateau]),
    st.lists(whole, min_size=1, max_size=5) | st.none(),
    st.lists(whole, min_size=1, max_size=60),
    st.sampled_from([0.25, 2.0, 64.0]),
    st.integers(-512, 512),
)
def test_shift_and_scale_of_rewards_change_no_decision(kind, base, totals, scale, shift):
    def changed(values):
        return None if values is None else [scale * x + shift for x in values]

    def decisions(base, first, totals):
        rule, size = kind(window=4), 4
        told = [mastered for mastered, _ in fed(rule, first, size)]
        rule.begin(base, before=first[-1])
        return told + [mastered for mastered, _ in fed(rule, totals, size)]

    first = totals[:7]
    plain = decisions(base, first, totals)
    assert decisions(changed(base), changed(first), changed(totals)) == plain


@given(
    st.sampled_from([Gap, Plateau]),
    st.lists(whole, min_size=1, max_size=30),
    st.lists(whole, min_size=1, max_size=30),
    st.booleans(),
)
def test_a_state_goes_on_as_it_would_have(kind, before, after, begun):
    one, other = kind(window=3), kind(window=3)
    fed(one, before, 3)
    if begun:
        one.begin(None, before=before[-1])
    other.set_state(one.get_state())
    assert other.get_state() == one.get_state()
    once, again = fed(one, after, 3), fed(other, after, 3)
    assert repr(once) == repr(again)  # NaN is no equal of itself


def test_a_best_from_before_there_was_a_base_is_not_forgotten():
    rule = Plateau(window=2)
    fed(rule, [0.0, 0.0], 2)  # the very first episodes
    rule.begin(None, before=1.0)
    fed(rule, [0.0, 100.0, 0.0, 0.0, 0.0], 2)
    assert (rule.risen, rule.since) == (100.0, 3)
    fed(rule, [16.0, 50.0, 94.0], 2)
    assert (rule.risen, rule.since) == (100.0, 6)  # none of them is better than 100


def test_returns_below_the_base_that_fall_are_no_new_best():
    rule = Plateau(window=2)
    rule.begin([60.0, 60.0], before=1.0)
    fed(rule, [50.0, 45.0, 40.0, 35.0], 2)
    assert (rule.risen, rule.since) == (50.0, 3)


def test_the_standard_error_knows_how_many_values_the_base_has():
    rule, window = Plateau(window=8), Window(8)
    rule.begin([0.0, 2.0], before=1.0)  # L = 1, variance 2: a standard error of 1
    for _ in range(8):
        window.add(3.9)
    assert not rule.above(window)  # 2.9 < 3; with the window's eight values it would be 3 · 0.5
    for _ in range(8):
        window.add(4.1)
    assert rule.above(window)


def test_a_state_does_not_change_when_more_is_told():
    rule = Gap(window=4)
    rule.add(1.0)
    state = rule.get_state()
    rule.add(2.0)
    assert state["early"] == [1.0]


RETURNS = st.floats(-100.0, 100.0)


@pytest.mark.parametrize("kind", [Gap, Plateau])
@given(levels=st.lists(RETURNS, min_size=1, max_size=5), base=st.none() | st.just([96.6] * 10),
       before=st.just(math.nan) | RETURNS, seed=st.integers(0, 99))  # fmt: skip
@example(levels=[96.6, 96.7], base=None, before=96.7, seed=0)
@example(levels=[1.0], base=None, before=math.nan, seed=0)
def test_any_stationary_returns_master_a_context_whose_every_episode_succeeds(
    kind, levels, base, before, seed
):
    rule, window, draws = kind(), Window(10), np.random.default_rng(seed)
    for total in (97.0, 96.0) * 5:  # the first episodes of the run succeed as well
        rule.add(total)
    rule.begin(base, before)
    for _ in range(LONGEST * 10):
        total = float(draws.choice(levels))
        rule.add(total)
        window.add(total, success=True)
        if rule.mastered(window):
            return
    pytest.fail("a hundred successes in a row do not master the context")


@pytest.mark.parametrize("kind", [Gap, Plateau])
def test_a_failure_begins_the_row_of_successes_again(kind):
    rule, window = kind(window=2), Window(2)
    rule.begin([5.0, 5.0], before=5.0)
    for n in range(200):
        rule.add(5.0)
        window.add(5.0, success=n % 6 != 0)
        assert rule.mastered(window) is None  # five of them in a row; three windows are six


@pytest.mark.parametrize("kind", [Gap, Plateau])
@given(
    totals=st.lists(st.floats(-10, 10), min_size=4, max_size=30),
    base=st.lists(RETURNS, min_size=2, max_size=4),
)
def test_a_rule_that_is_met_by_returns_exceeds_the_threshold_that_is_shown(kind, totals, base):
    rule, window = kind(window=3), Window(3)
    rule.begin(base, before=0.0)
    for total in totals:
        rule.add(total)
        window.add(total)
        over = window.mean > rule.threshold(window) + 1e-9
        if kind is Gap and window.full and over:
            assert rule.mastered(window)
        if rule.mastered(window):
            assert window.mean > rule.threshold(window) - 1e-9
