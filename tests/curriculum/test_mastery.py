"""Rules without a threshold: cases worked out by hand, and what a change of the rewards leaves."""

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollin.curriculum.mastery import FIRST, LONGEST, Gap, GapConstants, Plateau, StepGap
from rollin.curriculum.progress import Window
from rollin.errors import RollinError


def fed(rule, totals, size):
    """The decisions after each episode."""
    window = Window(size)
    decisions = []
    for total in totals:
        rule.add(total)
        window.add(total)
        decisions.append((rule.mastered(window) is not None, rule.threshold(window)))
    return decisions


def test_gap_lies_a_share_of_the_way_from_the_base_to_the_best():
    rule = Gap(share=0.6, window=2)
    rule.begin([1.0, 3.0], before=50.0)  # L = 2, M = 50 is more than any return here
    decisions = fed(rule, [12.0, 30.0, 31.0, 31.0], 2)
    assert [R for _, R in decisions] == pytest.approx([30.8] * 4)  # 2 + 0.6 · 48
    assert [mastered for mastered, _ in decisions] == [False, False, False, True]


def test_gap_gives_up_a_mean_that_is_out_of_reach():
    rule = Gap(share=0.6, window=2)
    rule.begin([0.0, 0.0], before=1000.0)
    decisions = fed(rule, [10.0] * 8, 2)
    # the first return is new, and six more make three windows without a better one
    assert [R for _, R in decisions] == pytest.approx([600.0] * 6 + [6.0] * 2)
    assert decisions[6][0]


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
    decisions = fed(rule, [4.0, 4.0, 10.0, 10.0], 2)  # base 4, best 10
    assert math.isnan(decisions[0][1])
    assert decisions[3] == (True, pytest.approx(7.0))


def test_without_relabelling_the_base_is_the_lower_of_two_beginnings():
    rule = Gap(share=0.5, window=2)
    fed(rule, [1.0, 1.0], 2)  # the very first episodes
    rule.begin(None, before=1.0)
    decisions = fed(rule, [9.0] * FIRST, 2)  # succeeds at once
    assert decisions[-1] == (True, pytest.approx(5.0))  # from 1, not from 9
    rule.begin(None, before=9.0)
    decisions = fed(rule, [0.0] * FIRST + [8.0, 8.0], 2)
    assert decisions[-1] == (True, pytest.approx(4.5))  # from 0 to 9


def test_plateau_waits_until_nothing_better_comes():
    rule = Plateau(window=2)
    rule.begin([0.0, 0.0], before=0.0)
    decisions = [
        mastered for mastered, _ in fed(rule, [5.0, 10.0, 10.0, 9.0, 10.0, 9.0, 9.0, 9.0], 2)
    ]
    assert decisions == [False] * 7 + [True]  # six episodes after the best


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
        decisions = [mastered for mastered, _ in fed(rule, first, size)]
        rule.begin(base, before=first[-1])
        return decisions + [mastered for mastered, _ in fed(rule, totals, size)]

    first = totals[:7]
    plain = decisions(base, first, totals)
    assert decisions(changed(base), changed(first), changed(totals)) == plain


@given(
    st.sampled_from([Gap, Plateau]),
    st.lists(whole, min_size=1, max_size=30),
    st.lists(whole, min_size=1, max_size=30),
    st.booleans(),
)
def test_a_restored_state_continues_bit_for_bit(kind, before, after, begun):
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


# ------------------------------------------------------------------ by what learning steps report

BY_HAND = GapConstants(share=0.5, first=2, window=2, errors=1.0, rise=0.1, floor=0.5)


def measured(rule: StepGap, measures) -> list[str | None]:
    return [rule.mastered(measured) for measured in measures]


def after_the_first() -> StepGap:
    """A rule that has left a first context at R = 4, with the aim 8."""
    rule = StepGap(BY_HAND)
    measured(rule, [0, 0, 4, 8, 8, 8, 8, 8, 8, 8])
    assert (rule.aim, rule.last) == (8, 4)
    return rule


def test_the_first_context_must_settle() -> None:
    """Base 0; the best has last risen at step 5, to 8, and as many steps later it has settled."""
    decisions = measured(StepGap(BY_HAND), [0, 0, 4, 8, 8, 8, 8, 8, 8, 8])
    assert decisions == [None] * 9 + ["measure 8 > 4 = 0 + 0.5 (8 - 0), settled"]


def test_later_contexts_need_a_share_of_the_gap_to_the_aim() -> None:
    """Base 1, aim 8: R = 4.5, which the mean of the last two first exceeds at step 4."""
    decisions = measured(after_the_first(), [1, 1, 5, 5])
    assert decisions == [None, None, None, "measure 5 > 4.5 = 1 + 0.5 (8 - 1)"]


def test_a_context_whose_base_is_good_enough_is_left_at_once() -> None:
    rule = after_the_first()
    assert measured(rule, [5, 5]) == [None, "base 5 > 4, which mastered the context before"]
    assert (rule.aim, rule.last, rule.n) == (8, 4, 0)
    assert measured(rule, [4, 4]) == [None, None]  # not greater than 4


def test_a_lower_plateau_is_taken_if_it_is_not_too_low() -> None:
    """4 of 8 are the floor; last risen at step 4, settled at 8. 3 of 8 are never enough."""
    decisions = measured(after_the_first(), [0, 0, 4, 4, 4, 4, 4, 4])
    assert decisions == [None] * 7 + ["measure 4 > 2 = 0 + 0.5 (4 - 0), settled"]
    assert measured(after_the_first(), [0, 0] + [3] * 500) == [None] * 502


def test_the_aim_falls_with_a_lower_plateau_and_rises_with_a_higher_best() -> None:
    rule = after_the_first()
    measured(rule, [0, 0, 4, 4, 4, 4, 4, 4])
    assert rule.aim == 4
    rule = after_the_first()
    measured(rule, [0, 0, 20, 20])
    assert rule.aim == 20


def test_what_grows_steadily_has_not_settled() -> None:
    assert not any(measured(StepGap(), range(5000)))


def test_noise_is_no_mastery() -> None:
    """Success rates of 2,000 trajectories each, at the same chance all the time."""
    for chance in (0.0, 2e-4, 0.01, 0.5):
        rates = np.random.default_rng(7).binomial(2000, chance, 20_000) / 2000
        assert not any(measured(StepGap(), rates))


def test_a_real_rise_in_noise_is_seen_soon_after_its_plateau() -> None:
    """From 1 % to 30 % in 500 steps, then level: settled by step 1,000, mastered there."""
    chances = np.clip(0.01 + 0.29 * np.arange(1500) / 500, None, 0.3)
    rates = np.random.default_rng(3).binomial(2000, chances) / 2000
    first = next(t for t, why in enumerate(measured(StepGap(), rates)) if why)
    assert 900 < first < 1100


def test_what_is_learned_in_a_few_steps_is_mastered() -> None:
    """All of the rise lies in the first steps, as with large exact steps on a small MDP."""
    decisions = measured(StepGap(), [0.5, 0.6, 0.8, 0.95] + [0.99] * 60)
    assert next(t for t, why in enumerate(decisions) if why) < 50


def test_a_measure_that_never_changes_is_flat() -> None:
    rule = StepGap(BY_HAND)
    measured(rule, [0.3] * 3)
    assert not rule.flat  # too early to say
    measured(rule, [0.3])
    assert rule.flat
    measured(rule, [0.4])
    assert not rule.flat


def test_a_context_whose_every_trajectory_succeeds_is_left_at_once() -> None:
    """On the first context there is no R yet, and nothing can rise above 1."""
    assert measured(StepGap(most=1.0), [1.0] * 3) == [None, None, "base 1, the largest possible"]
    assert not any(
        measured(StepGap(), [1.0] * 5000)
    )  # of a measure whose largest value is not known
    assert not any(measured(StepGap(most=1.0), [0.99] * 5000))


def test_a_rate_that_stays_where_it_began_is_found_stuck() -> None:
    rule = StepGap()
    measured(rule, [0.98, 0.97] * 150)
    assert rule.stuck
    assert not rule.flat
    measured(rule, np.linspace(0.975, 2, 20))
    assert not rule.stuck


def walk(seed: int, length: int) -> np.ndarray:
    """Measures of some contexts: rises to plateaus with noise, of random heights and lengths."""
    generator = np.random.default_rng(seed)
    parts = []
    while sum(map(len, parts)) < length:
        low, high = np.sort(generator.normal(size=2))
        rise, plateau = generator.integers(5, 120, 2)
        level = np.concatenate([np.linspace(low, high, rise), np.full(plateau, high)])
        parts.append(level + 0.02 * generator.normal(size=len(level)))
    return np.concatenate(parts)[:length]


@given(st.integers(0, 2**32), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_shift_and_positive_scale_of_the_measure_change_no_decision(seed, shift, scale) -> None:
    constants, measures = GapConstants(first=2, window=5), walk(seed, 600)
    plain = [why is not None for why in measured(StepGap(constants), measures)]
    changed = [why is not None for why in measured(StepGap(constants), scale * measures + shift)]
    assert plain == changed


def test_the_measures_of_that_property_have_advances_of_all_kinds() -> None:
    decisions = [
        why
        for s in range(40)
        for why in measured(StepGap(GapConstants(first=2, window=5)), walk(s, 600))
    ]
    kinds = ["settled" in why or why.split()[0] for why in decisions if why]
    assert {kind: kinds.count(kind) > 3 for kind in (True, "base", "measure")} == {
        True: True,
        "base": True,
        "measure": True,
    }


@given(st.integers(0, 2**32), st.integers(0, 400))
def test_a_rule_resumes_from_its_saved_state(seed, cut) -> None:
    measures, constants = walk(seed, 400), GapConstants(first=2, window=5)
    whole, first, second = (StepGap(constants) for _ in range(3))
    expected = measured(whole, measures)
    begun = measured(first, measures[:cut])
    second.set_state(json.loads(json.dumps(first.get_state(), allow_nan=False)))
    assert begun + measured(second, measures[cut:]) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"share": 1.0}, r"share must lie in \(0, 1\), got 1.0"),
        ({"window": 1}, "window must be at least 3"),
        ({"errors": math.inf}, "errors must be a finite number"),
    ],
)
def test_constants_without_meaning_are_refused(given, words) -> None:
    with pytest.raises(RollinError, match=words):
        GapConstants(**given)
