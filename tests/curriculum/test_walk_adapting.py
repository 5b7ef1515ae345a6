"""A walk with a rule that needs no threshold, steps that adapt themselves, and β by need."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollin
from rollin.curriculum.teacher import EpisodeEnd

WAY = rollin.Curriculum.between(start=[0.0], goal=[96.0])


def adapting(curriculum=WAY, beta=0.5, relabelled=None, **options):
    parts = {"when": rollin.Gap(), "where": rollin.Halving(), "need": True, "counted": "main"}
    return rollin.Walk(curriculum, beta, relabelled=relabelled, **{**parts, **options})


def end_of(plan, total, *, rolled=False, place=None, length=10):
    trace = None if place is None else np.full((length, 1), place, np.float32)
    return EpisodeEnd(plan.ticket, 1, 0, plan.context, "train", rolled, 0, 0, 0.0, total, length,
                      total > 0, False, True, trace=trace)  # fmt: skip


def play(walk, totals, **how):
    return [walk.update(end_of(walk.sample(), total, **how)) for total in totals]


def mastered_first(**options):
    """A walk that has left ω_0."""
    walk = adapting(**options)
    told = play(walk, [1.0] * 10 + [10.0] * 10, place=0.0)
    assert told[-1] is not None
    assert walk.k == 8
    return walk


def test_it_goes_on_goes_back_and_tells_why():
    walk = mastered_first()
    assert walk.progress.advances[0].reason.startswith("mean return 10 of the last 10 episodes > ")
    told = play(walk, [0.0] * 10)
    assert told[-1] == "no reward in 10 episodes under context 8: back to context 4"
    assert (walk.k, walk.previous, walk.progress.kappa) == (4, 0, 4 / 96)
    assert [a.k for a in walk.progress.advances] == [8, 4]


def test_the_guide_is_told_the_last_mastered_context():
    walk = mastered_first()
    play(walk, [0.0] * 10)
    plan = walk.sample()
    assert plan.context.tolist() == [4.0]
    assert plan.guide_context.tolist() == [0.0]
    assert plan.guide == 1  # on the way back the guide stays


def test_beta_follows_need():
    walk = mastered_first()
    shares = [walk.sample().beta]
    for total in [0.0] * 5 + [9.0] * 5:
        play(walk, [total])
        shares.append(round(walk.sample().beta, 9))
    # nothing known: all of β; then 5 of 5, … failures, 5 of 10 in the end
    assert shares[0] == shares[5] == 0.5
    assert shares[-1] == 0.25
    play(walk, [0.0] * 3, rolled=True)  # the explorer's say nothing of π_main
    assert walk.sample().beta == 0.25


def test_the_base_is_what_earlier_episodes_earn_under_the_next_context():
    seen = []

    def relabelled(outcomes, context):
        seen.append((float(outcomes[0, 0]), float(context[0])))
        return 2.0

    walk = mastered_first(relabelled=relabelled)
    assert walk.wants == {"trace"}
    assert walk.sample().trace
    assert set(seen) == {(0.0, 8.0)}
    # L = 2, M = 10: R = 2 + 0.6 · 8
    assert walk.threshold == pytest.approx(6.8)


def test_contexts_that_are_earned_already_are_left_out():
    walk = adapting(relabelled=lambda outcomes, context: 10.0 if context[0] < 20 else 0.0)
    play(walk, [1.0] * 10 + [10.0] * 10, place=0.0)
    assert [a.k for a in walk.progress.advances] == [24]
    assert walk.progress.advances[0].reason.endswith("; so do they under 8, 16, which is left out")
    assert walk.previous == 16


def test_a_curriculum_without_a_rule_needs_one_who_decides():
    with pytest.raises(rollin.RollinError, match=r"give the walk when=rollin.Gap\(\)"):
        rollin.Walk(WAY)
    with pytest.raises(rollin.RollinError, match="when must be a Mastery"):
        rollin.Walk(WAY, when=rollin.Halving())  # pyright: ignore[reportArgumentType]


def test_start_and_goal_must_differ():
    with pytest.raises(rollin.RollinError, match="must differ from its start"):
        rollin.Curriculum.between([1.0, 2.0], [1.0, 2.0])


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 5.0, 9.0, 10.0]), st.booleans()), max_size=120),
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 5.0, 9.0, 10.0]), st.booleans()), max_size=60),
    st.booleans(),
)
def test_a_state_that_went_through_json_goes_on_as_it_would_have(before, after, relabels):
    def earned(outcomes, context):
        return max(0.0, 10.0 - abs(float(outcomes[0, 0]) - float(context[0])))

    def feed(walk, episodes):
        told = []
        for total, rolled in episodes:
            plan = walk.sample()
            rolls = rolled and plan.beta > 0
            told.append((plan.ticket, plan.context.tolist(), plan.beta))
            told.append(
                walk.update(end_of(plan, total, rolled=rolls, place=float(plan.context[0])))
            )
        return told

    one, other = (adapting(relabelled=earned if relabels else None) for _ in range(2))
    feed(one, before)
    other.set_state(json.loads(json.dumps(one.get_state())))
    assert feed(other, after) == feed(one, after)
    assert other.get_state() == one.get_state()


def test_a_state_of_another_kind_of_walk_is_refused():
    plain = rollin.Walk(replace(WAY, rule=rollin.ReturnThreshold(5.0)))
    with pytest.raises(rollin.RollinError, match="another rule or other steps"):
        adapting().set_state(plain.get_state())


def test_a_state_does_not_change_when_episodes_are_played_on():
    walk = mastered_first()
    play(walk, [1.0])
    state = walk.get_state()
    before = json.dumps(state)
    play(walk, [1.0, 0.0])
    assert json.dumps(state) == before


def test_outcomes_are_relabelled_alike_before_and_after_a_resume():
    """Wrappers tell lists of the env's own arrays, mostly of float64."""
    seen = []

    def relabelled(outcomes, context):
        seen.append((type(outcomes), outcomes.dtype, outcomes.tolist()))
        return 0.0

    def told(walk, total):
        trace = [np.array([0.1]), np.array([0.2])]
        return walk.update(replace(end_of(walk.sample(), total), trace=trace))

    walk = adapting(relabelled=relabelled)
    for total in [1.0] * 10 + [10.0] * 9:
        told(walk, total)
    again = adapting(relabelled=relabelled)
    again.set_state(json.loads(json.dumps(walk.get_state())))
    both = []
    for one in (walk, again):
        seen.clear()
        assert told(one, 10.0) is not None
        both.append(list(seen))
    assert both[0] == both[1] != []


def test_it_tells_how_many_episodes_showed_nothing():
    walk = mastered_first(where=rollin.Halving(patience=3))
    told = play(walk, [5.0, 0.0, 0.0, 0.0])
    assert told[-1] is not None
    assert told[-1].startswith("no reward in 3 episodes under context 8")


def test_successes_in_a_row_advance_where_the_environment_defines_them():
    for successes, k in ((True, 8), (False, 0)):
        walk = adapting(successes=successes)
        told = play(walk, [5.0] * 31)  # all succeed, and no return rises
        assert walk.k == k
    assert told == [None] * 31


def test_a_row_of_successes_survives_a_resume():
    walk, again = adapting(successes=True), adapting(successes=True)
    play(walk, [5.0] * 30)
    again.set_state(json.loads(json.dumps(walk.get_state())))
    assert play(again, [5.0]) == play(walk, [5.0]) == ["success in the last 30 episodes"]
