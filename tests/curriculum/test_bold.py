"""Steps that grow boldly, decisions on clear evidence, and episodes that look ahead."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollin
from rollin.curriculum.mastery import CLEAR, EarlyGap
from rollin.curriculum.progress import Window
from rollin.curriculum.sequential import CONFIRMED, Bold, Halving
from rollin.curriculum.teacher import EpisodeEnd
from rollin.errors import RollinError

WAY = rollin.Curriculum.between(start=[0.0], goal=[96.0])
AT = [j / 96 for j in range(97)]
LOST, SEEN = [False] * 10, [True] * 5


def bold(beta=0.0, successes=True, look_every=0, **options):
    parts = {"when": EarlyGap(), "where": Bold(), "counted": "main", **options}
    return rollin.SequentialTeacher(WAY, beta, successes=successes, look_every=look_every, **parts)


def play(walk, good, *, ends=True, length=10):
    """An episode that succeeds, and ends with it, or fails."""
    plan = walk.sample()
    end = EpisodeEnd(plan.plan_id, 1, 0, plan.context, "train", total=float(good), length=length,
                     success=good, terminated=good and ends, truncated=not good)  # fmt: skip
    return plan, walk.update(end)


# ------------------------------------------------------------------ steps


def test_steps_double_up_to_the_whole_path_until_one_fails():
    steps = Bold(first=1 / 12)
    found = [steps.forward(AT, 0, [])]
    for _ in range(3):
        found.append(steps.forward(AT, found[-1], SEEN))
    assert found == [8, 24, 56, 96]  # steps of 1/12, 1/6, 1/3, 2/3
    steps.back(AT, 96, LOST)
    assert steps.most == 1 / 12


def test_a_long_step_that_works_is_kept_after_another_failed():
    steps = Bold(first=1 / 12)
    steps.step = 1.0
    assert steps.forward(AT, 0, []) == 96
    assert steps.back(AT, 96, LOST) == 48
    assert steps.forward(AT, 48, SEEN) == 96  # half of the path again, neither more nor less


@pytest.mark.parametrize("far", [False, True])
def test_half_the_patience_is_enough_for_a_long_step(far):
    steps = Bold(first=1 / 12, patience=10)
    steps.step = (2 if far else 1) / 12
    k = steps.forward(AT, 0, [])
    enough = 5 if far else 10
    assert steps.back(AT, k, [False] * (enough - 1)) == k
    assert steps.back(AT, k, [False] * enough) == k // 2


@given(st.lists(st.booleans(), max_size=200))
def test_it_moves_between_the_mastered_context_and_the_end(luck):
    steps = Bold()
    k = steps.forward(AT, 0, [])
    mastered = 0
    for good in luck:
        if good and k == 96:
            break
        if good:
            mastered, k = k, steps.forward(AT, k, SEEN)
        else:
            k = steps.back(AT, k, LOST)
        assert steps.previous == mastered < k <= 96


# ------------------------------------------------------------------ evidence


def odds_of(successes):
    """Wald's ratio in exact fractions, which begins again at 1."""
    odds = Fraction(1)
    for success in successes:
        ratio = Fraction(9, 10) / Fraction(1, 2) if success else Fraction(1, 10) / Fraction(1, 2)
        odds = min(max(odds * ratio, Fraction(1)), Fraction(18))
    return odds


@given(st.lists(st.booleans(), max_size=60))
def test_the_sequential_test_is_walds(successes):
    window = Window(10)
    for success in successes:
        window.add(float(success), success=success, ended=success)
    assert window.odds == pytest.approx(float(odds_of(successes)))
    assert window.certain == (odds_of(successes) == 18)


def test_five_successes_in_a_row_or_eight_of_nine_are_enough():
    assert odds_of([True] * 4) < 18 == odds_of([True] * 5)
    assert odds_of([True] * 4 + [False] + [True] * 3) < 18
    assert odds_of([True] * 4 + [False] + [True] * 4) == 18


def test_successes_that_do_not_end_the_episode_are_not_enough():
    walk = bold()
    for _ in range(20):
        play(walk, True, ends=False)
    assert walk.k == 0
    walk = bold()
    for _ in range(5):
        play(walk, True)
    assert walk.k == 8


def rule_after(totals, base=(0.0,) * 10, before=10.0):
    rule, window = EarlyGap(), Window(10)
    rule.begin(base=list(base), before=before)
    for total in totals:
        rule.add(total)
        window.add(total)
    return rule.mastered(window)


def test_five_returns_in_a_row_above_R_are_enough():
    assert rule_after([8.0, 9.0, 8.0, 9.0]) is None
    reason = rule_after([8.0, 9.0, 8.0, 9.0, 8.0])
    assert reason == f"the last {CLEAR} returns > 6, 60 % of the way from 0 to 10"
    assert rule_after([8.0, 9.0, 5.0, 9.0, 8.0]) is None  # one of them is below


def test_the_first_context_waits_for_its_base():
    assert rule_after([9.0] * 9, base=[0.0] * 10, before=math.nan) is None


def test_clear_returns_must_exceed_what_came_before_by_three_standard_errors():
    scattered = [-40.0, 40.0] * 5  # mean 0, standard error of about 13
    assert rule_after([9.0, 9.1, 9.0, 9.1, 9.0], base=scattered) is None


def test_behaviour_that_earns_enough_at_once_masters_a_context():
    """Half of the earlier episodes earn all there is: no mean is three standard errors above."""
    half = [0.0, 10.0] * 5

    def played(rule):
        window = Window(10)
        rule.begin(base=None, before=math.nan)
        for total in [0.0] * 10 + [10.0] * 10:  # which begins with nothing
            rule.add(total)
        rule.begin(base=half, before=10.0)
        for total in [10.0] * 8 + [2.0, 10.0]:
            rule.add(total)
            window.add(total)
        return rule.mastered(window)

    assert played(rollin.Gap()) is None
    assert played(EarlyGap()) is not None


# ------------------------------------------------------------------ looking ahead


def test_one_episode_in_ten_is_played_under_the_final_context():
    walk = bold(look_every=10)
    places = [play(walk, False)[0].context[0] for _ in range(40)]
    assert [i for i, place in enumerate(places, 1) if place == 96.0] == [10, 20, 30, 40]
    assert set(places) == {0.0, 96.0}
    assert walk.steps == 400  # looks cost steps
    assert walk.window.seen == 36  # and count for no rule


def test_three_successes_there_lead_there():
    walk = bold(look_every=10)
    for _ in range(9):
        play(walk, False)
    reasons = [play(walk, True)[1] for _ in range(CONFIRMED)]
    assert reasons[:2] == [None, None]
    assert reasons[2] == "3 episodes in a row succeeded under the final context, looked at ahead"
    assert (walk.k, walk.previous) == (96, 0)
    assert play(walk, True)[0].context[0] == 96.0
    for _ in range(4):
        play(walk, True)
    assert walk.progress.completed is not None


def test_a_failure_there_ends_the_look():
    walk = bold(look_every=10)
    for _ in range(9):
        play(walk, False)
    play(walk, True)
    assert play(walk, False)[0].context[0] == 96.0
    assert play(walk, False)[0].context[0] == 0.0
    assert walk.k == 0


def test_looks_do_not_roll_in_and_every_plan_is_for_one_episode():
    walk = bold(beta=0.5, look_every=100)
    for _ in range(5):
        play(walk, True)
    walk.look_every = 3
    plans = [play(walk, False)[0] for _ in range(9)]
    assert {plan.beta for plan in plans if plan.context[0] == 96.0} == {0.0}
    assert {plan.beta for plan in plans if plan.context[0] != 96.0} == {0.5}
    assert not any(plan.standing for plan in plans)
    assert bold().sample().standing


def test_the_mastered_final_context_is_not_left():
    walk = bold(look_every=10)
    while walk.progress.completed is None:
        play(walk, True)
    for _ in range(30):
        play(walk, False)
    assert walk.k == 96


def test_a_task_within_reach_takes_few_episodes():
    """Everything succeeds at once: the final context is mastered in 20 episodes, not in 130."""
    counts = {}
    for name, parts in {
        "bold": {}, "halving": {"when": rollin.Gap(), "where": Halving(), "look_every": 0},
    }.items():  # fmt: skip
        walk = bold(**{"look_every": 10, **parts})
        counts[name] = 0
        while walk.progress.completed is None:
            play(walk, True)
            counts[name] += 1
    assert counts["bold"] <= 20
    assert counts["halving"] > 5 * counts["bold"]


@given(st.lists(st.booleans(), max_size=80), st.lists(st.booleans(), max_size=40))
def test_a_state_restored_from_json_continues_bit_for_bit(before, after):
    one, other = bold(look_every=4), bold(look_every=4)
    for good in before:
        play(one, good)
    other.set_state(json.loads(json.dumps(one.get_state())))
    for good in after:
        (plan, reason), (again, same) = play(one, good), play(other, good)
        assert (plan.plan_id, plan.context.tolist(), reason) == (
            again.plan_id, again.context.tolist(), same,
        )  # fmt: skip
    assert other.get_state() == one.get_state()


def test_how_often_to_look_is_a_whole_number():
    with pytest.raises(RollinError, match="look_every must be"):
        bold(look_every=-1)
