"""The rule without a threshold: cases by hand, what must not matter, and what is kept."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollin import RollinError
from rollin.curriculum.step_gap import GapConstants, StepGap

BY_HAND = GapConstants(share=0.5, first=2, window=2, errors=1.0, rise=0.1, floor=0.5)


def fed(rule: StepGap, measures) -> list[str | None]:
    return [rule.mastered(measured) for measured in measures]


def after_the_first() -> StepGap:
    """A rule that has left a first context at R = 4, with the aim 8."""
    rule = StepGap(BY_HAND)
    fed(rule, [0, 0, 4, 8, 8, 8, 8, 8, 8, 8])
    assert (rule.aim, rule.last) == (8, 4)
    return rule


def test_the_first_context_must_settle() -> None:
    """Base 0; the best has last risen at step 5, to 8, and as many steps later it has settled."""
    told = fed(StepGap(BY_HAND), [0, 0, 4, 8, 8, 8, 8, 8, 8, 8])
    assert told == [None] * 9 + ["measure 8 > 4 = 0 + 0.5 (8 - 0), settled"]


def test_later_contexts_need_a_share_of_the_gap_to_the_aim() -> None:
    """Base 1, aim 8: R = 4.5, which the mean of the last two first exceeds at step 4."""
    told = fed(after_the_first(), [1, 1, 5, 5])
    assert told == [None, None, None, "measure 5 > 4.5 = 1 + 0.5 (8 - 1)"]


def test_a_context_whose_base_is_good_enough_is_left_at_once() -> None:
    rule = after_the_first()
    assert fed(rule, [5, 5]) == [None, "base 5 > 4, which mastered the context before"]
    assert (rule.aim, rule.last, rule.n) == (8, 4, 0)
    assert fed(rule, [4, 4]) == [None, None]  # not greater than 4


def test_a_lower_plateau_is_taken_if_it_is_not_too_low() -> None:
    """4 of 8 are the floor; last risen at step 4, settled at 8. 3 of 8 are never enough."""
    told = fed(after_the_first(), [0, 0, 4, 4, 4, 4, 4, 4])
    assert told == [None] * 7 + ["measure 4 > 2 = 0 + 0.5 (4 - 0), settled"]
    assert fed(after_the_first(), [0, 0] + [3] * 500) == [None] * 502


def test_the_aim_falls_with_a_lower_plateau_and_rises_with_a_higher_best() -> None:
    rule = after_the_first()
    fed(rule, [0, 0, 4, 4, 4, 4, 4, 4])
    assert rule.aim == 4
    rule = after_the_first()
    fed(rule, [0, 0, 20, 20])
    assert rule.aim == 20


def test_what_grows_steadily_has_not_settled() -> None:
    assert not any(fed(StepGap(), range(5000)))


def test_noise_alone_is_no_mastery() -> None:
    """Success rates of 2,000 trajectories each, at the same chance all the time."""
    for chance in (0.0, 2e-4, 0.01, 0.5):
        rates = np.random.default_rng(7).binomial(2000, chance, 20_000) / 2000
        assert not any(fed(StepGap(), rates))


def test_a_real_rise_in_noise_is_seen_soon_after_its_plateau() -> None:
    """From 1 % to 30 % in 500 steps, then level: settled by step 1,000, mastered there."""
    chances = np.clip(0.01 + 0.29 * np.arange(1500) / 500, None, 0.3)
    rates = np.random.default_rng(3).binomial(2000, chances) / 2000
    first = next(t for t, why in enumerate(fed(StepGap(), rates)) if why)
    assert 900 < first < 1100


def test_what_is_learned_in_a_few_steps_is_seen_too() -> None:
    """All of the rise lies in the first steps, as with large exact steps on a small MDP."""
    told = fed(StepGap(), [0.5, 0.6, 0.8, 0.95] + [0.99] * 60)
    assert next(t for t, why in enumerate(told) if why) < 50


def test_nothing_to_go_by_is_told() -> None:
    rule = StepGap(BY_HAND)
    fed(rule, [0.3] * 3)
    assert not rule.flat  # too early to say
    fed(rule, [0.3])
    assert rule.flat
    fed(rule, [0.4])
    assert not rule.flat


def test_a_context_whose_every_trajectory_succeeds_is_left_at_once() -> None:
    """On the first context there is no R yet, and nothing can rise above 1."""
    assert fed(StepGap(most=1.0), [1.0] * 3) == [None, None, "base 1, the largest possible"]
    assert not any(fed(StepGap(), [1.0] * 5000))  # of a measure whose largest value is not known
    assert not any(fed(StepGap(most=1.0), [0.99] * 5000))


def test_a_rate_that_stays_where_it_began_is_found_stuck() -> None:
    rule = StepGap()
    fed(rule, [0.98, 0.97] * 150)
    assert rule.stuck
    assert not rule.flat
    fed(rule, np.linspace(0.975, 2, 20))
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
    plain = [why is not None for why in fed(StepGap(constants), measures)]
    changed = [why is not None for why in fed(StepGap(constants), scale * measures + shift)]
    assert plain == changed


def test_the_walks_of_that_property_have_advances_of_all_kinds() -> None:
    told = [
        why
        for s in range(40)
        for why in fed(StepGap(GapConstants(first=2, window=5)), walk(s, 600))
    ]
    kinds = ["settled" in why or why.split()[0] for why in told if why]
    assert {kind: kinds.count(kind) > 3 for kind in (True, "base", "measure")} == {
        True: True,
        "base": True,
        "measure": True,
    }


@given(st.integers(0, 2**32), st.integers(0, 400))
def test_a_rule_goes_on_from_its_saved_state(seed, cut) -> None:
    measures, constants = walk(seed, 400), GapConstants(first=2, window=5)
    whole, first, second = (StepGap(constants) for _ in range(3))
    expected = fed(whole, measures)
    begun = fed(first, measures[:cut])
    second.set_state(json.loads(json.dumps(first.get_state(), allow_nan=False)))
    assert begun + fed(second, measures[cut:]) == expected


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
