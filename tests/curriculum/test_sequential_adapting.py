"""A walk with a rule that needs no threshold, and steps that adapt themselves."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollin
from rollin.curriculum.sequential import Halving
from rollin.curriculum.teacher import EpisodeEnd
from rollin.errors import RollinError

WAY = rollin.Curriculum.between(start=[0.0], goal=[96.0])


def adapting(curriculum=WAY, beta=0.5, relabelled=None, **options):
    parts = {"when": rollin.Gap(), "where": Halving(), "counted": "main"}
    return rollin.SequentialTeacher(curriculum, beta, relabelled=relabelled, **{**parts, **options})


def end_of(plan, total, *, rolled=False, place=None, length=10):
    trace = None if place is None else np.full((length, 1), place, np.float32)
    return EpisodeEnd(plan.plan_id, 1, 0, plan.context, "train", rolled, 0, 0, 0.0, total, length,
                      total > 0, False, True, trace=trace)  # fmt: skip


def play(walk, totals, **how):
    return [walk.update(end_of(walk.sample(), total, **how)) for total in totals]


def mastered_first(**options):
    """A walk that has left ω_0."""
    walk = adapting(**options)
    reasons = play(walk, [1.0] * 10 + [10.0] * 10, place=0.0)
    assert reasons[-1] is not None
    assert walk.k == 8
    return walk


def test_it_advances_and_goes_back_with_reasons():
    walk = mastered_first()
    assert walk.progress.advances[0].reason.startswith("mean return 10 of the last 10 episodes > ")
    reasons = play(walk, [0.0] * 10)
    assert reasons[-1] == "no reward in 10 episodes under context 8: back to context 4"
    assert (walk.k, walk.previous, walk.progress.kappa) == (4, 0, 4 / 96)
    assert [a.k for a in walk.progress.advances] == [8, 4]


def test_the_guide_observes_the_last_mastered_context():
    walk = mastered_first()
    play(walk, [0.0] * 10)
    plan = walk.sample()
    assert plan.context.tolist() == [4.0]
    assert plan.guide_context.tolist() == [0.0]
    assert plan.guide == 1  # on the way back the guide stays


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
    with pytest.raises(RollinError, match=r"give the teacher when=rollin.Gap\(\)"):
        rollin.SequentialTeacher(WAY)
    with pytest.raises(RollinError, match="when must be a MasteryRule"):
        rollin.SequentialTeacher(WAY, when=Halving())  # pyright: ignore[reportArgumentType]


def test_start_and_goal_must_differ():
    with pytest.raises(RollinError, match="must differ from its start"):
        rollin.Curriculum.between([1.0, 2.0], [1.0, 2.0])


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 5.0, 9.0, 10.0]), st.booleans()), max_size=120),
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 5.0, 9.0, 10.0]), st.booleans()), max_size=60),
    st.booleans(),
)
def test_a_state_restored_from_json_continues_bit_for_bit(before, after, relabels):
    def earned(outcomes, context):
        return max(0.0, 10.0 - abs(float(outcomes[0, 0]) - float(context[0])))

    def feed(walk, episodes):
        reasons = []
        for total, rolled in episodes:
            plan = walk.sample()
            rolls = rolled and plan.beta > 0
            reasons.append((plan.plan_id, plan.context.tolist(), plan.beta))
            reasons.append(
                walk.update(end_of(plan, total, rolled=rolls, place=float(plan.context[0])))
            )
        return reasons

    one, other = (adapting(relabelled=earned if relabels else None) for _ in range(2))
    feed(one, before)
    other.set_state(json.loads(json.dumps(one.get_state())))
    assert feed(other, after) == feed(one, after)
    assert other.get_state() == one.get_state()


def test_a_state_of_other_parts_is_refused():
    plain = rollin.SequentialTeacher(replace(WAY, rule=rollin.ReturnThreshold(5.0)))
    with pytest.raises(RollinError, match="'when' in the saved state of a Seq"):
        adapting().set_state(plain.get_state())


def test_outcomes_are_relabelled_alike_before_and_after_a_resume():
    """Wrappers tell lists of the env's own arrays, mostly of float64."""
    seen = []

    def relabelled(outcomes, context):
        seen.append((type(outcomes), outcomes.dtype, outcomes.tolist()))
        return 0.0

    def update(walk, total):
        trace = [np.array([0.1]), np.array([0.2])]
        return walk.update(replace(end_of(walk.sample(), total), trace=trace))

    walk = adapting(relabelled=relabelled)
    for total in [1.0] * 10 + [10.0] * 9:
        update(walk, total)
    again = adapting(relabelled=relabelled)
    again.set_state(json.loads(json.dumps(walk.get_state())))
    both = []
    for one in (walk, again):
        seen.clear()
        assert update(one, 10.0) is not None
        both.append(list(seen))
    assert both[0] == both[1] != []


def test_the_reason_counts_the_episodes_without_reward():
    walk = mastered_first(where=Halving(patience=3))
    reasons = play(walk, [5.0, 0.0, 0.0, 0.0])
    assert reasons[-1] is not None
    assert reasons[-1].startswith("no reward in 3 episodes under context 8")


def test_successes_in_a_row_advance_where_the_environment_defines_them():
    for successes, k in ((True, 8), (False, 0)):
        walk = adapting(successes=successes)
        reasons = play(walk, [5.0] * 31)  # all succeed, and no return rises
        assert walk.k == k
    assert reasons == [None] * 31


def test_a_row_of_successes_survives_a_resume():
    walk, again = adapting(successes=True), adapting(successes=True)
    play(walk, [5.0] * 30)
    again.set_state(json.loads(json.dumps(walk.get_state())))
    assert play(again, [5.0]) == play(walk, [5.0]) == ["success in the last 30 episodes"]


# ------------------------------------------------------------------ steps that adapt themselves

AT = [j / 96 for j in range(97)]
LOST, SEEN = [False] * 10, [True] * 5


def test_a_step_halves_down_to_the_next_context_and_stays():
    steps = Halving()
    k = steps.forward(AT, 0, [])
    assert k == 8
    found = []
    for _ in range(5):
        k = steps.back(AT, k, LOST)
        found.append(k)
    assert found == [4, 2, 1, 1, 1]


def test_a_step_doubles_after_success_at_once_up_to_the_largest():
    steps = Halving()
    k = steps.forward(AT, 0, [])
    k = steps.back(AT, steps.back(AT, k, LOST), LOST)
    found = [k]
    for _ in range(3):
        k = steps.forward(AT, k, SEEN)
        found.append(k)
    assert found == [2, 6, 14, 22]  # steps of 4, 8 and 8


def test_one_reward_or_too_few_episodes_keep_the_context():
    steps = Halving(patience=3)
    k = steps.forward(AT, 0, [])
    assert steps.back(AT, k, [False, False]) == k
    assert steps.back(AT, k, [False, True, False]) == k
    assert steps.back(AT, k, [True, False, False, False]) == 4


def test_the_first_context_is_never_left_backwards():
    assert Halving().back(AT, 0, LOST) == 0


@pytest.mark.parametrize("first", [0, 2, 0.2])
def test_a_first_step_that_cannot_be_is_refused(first):
    with pytest.raises(RollinError, match="The first step must lie in"):
        Halving(first, most=0.1)


@given(
    st.lists(st.floats(0.001, 0.5), min_size=1, max_size=40),
    st.lists(st.booleans(), max_size=200),
    st.floats(0.01, 1.0),
)
def test_it_stays_on_the_path_and_ends_at_its_end(gaps, luck, first):
    """Whatever is seen: contexts lie between the mastered one and a step beyond it."""
    at = [0.0]
    for gap in gaps:
        at.append(at[-1] + gap)
    at = [position / at[-1] for position in at]
    steps = Halving(first, first)
    k = mastered = 0
    for good in luck:
        if k == len(at) - 1 and good:
            break
        if good or k == 0:
            mastered, k = k, steps.forward(at, k, SEEN)
        else:
            k = steps.back(at, k, LOST)
        assert steps.previous == mastered < k < len(at)
        assert at[k] - at[mastered] <= first + 1e-9 or k == mastered + 1
        again = Halving(first, first)
        again.set_state(steps.get_state())
        assert again.back(at, k, LOST) == back_without_trace(steps, at, k)


def back_without_trace(steps, at, k):
    kept = steps.get_state()
    found = steps.back(at, k, LOST)
    steps.set_state(kept)
    return found
