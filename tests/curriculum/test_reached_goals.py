"""A curriculum of visited places, worked out by hand on a line, and as a run that resumes."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rollin
from rollin import RollinError
from rollin.curriculum.reached_goals import GOAL, Places, ReachedGoalsTeacher
from rollin.curriculum.teacher import EpisodeEnd

WAY = rollin.Curriculum.between(start=[0.0], goal=[9.0])  # K = 96
LENGTH = 12  # steps of an episode: a κ of 1/96 is an eighth of a step


def near(outcomes, contexts):
    return np.abs(outcomes[:, None, 0] - contexts[None, :, 0]) <= 0.5


def teacher_of(beta=0.0, **options):
    parts = {"to_context": lambda outcomes: np.asarray(outcomes, float), "fulfils": near}
    return ReachedGoalsTeacher(WAY, beta, **{**parts, **options})


def play(teacher, *places, total=0.0, rolled=False):
    """An episode that comes by these places, then stays; returns what the teacher said."""
    plan = teacher.sample()
    trace = np.array([*places, *[places[-1]] * (LENGTH - len(places))], np.float32)[:, None]
    success = bool(near(trace, plan.context[None]).any())
    return teacher.update(
        EpisodeEnd(plan.plan_id, 1, 0, plan.context, "train", rolled, 0, 0, 0.0, total, LENGTH,
                   success, False, True, trace=trace)
    )  # fmt: skip


def started(**options):
    """A teacher that has mastered the start: 12 episodes came no farther than 1, 6 to 2, 2 to 3."""
    teacher = teacher_of(**options)
    for _ in range(10):
        assert play(teacher, 0, 1, total=1.0) is None
    said = [play(teacher, 0, 1, 2, total=10.0) for _ in range(6)]
    said += [play(teacher, 0, 1, 2, 3, total=10.0) for _ in range(2)]
    said += [play(teacher, 0, 1, total=10.0) for _ in range(2)]
    return teacher, said[-1]


def test_the_next_context_is_the_latest_hit_that_is_seen_now_and_then():
    teacher, said = started()
    # shares of the last 20 episodes: 1 all, 2 eight of them, 3 two
    assert teacher.places.shares().tolist() == [0.0, 1.0, 1.0, 0.4, 0.1]
    assert said is not None
    assert said.endswith("; on to (3), reached in 4 steps")
    assert teacher.sample().context.tolist() == [3.0]
    assert teacher.progress.kappa == 0.0  # the start takes no steps


def test_a_place_that_is_never_reached_again_is_left_for_one_half_way():
    teacher, _ = started()
    said = [play(teacher, 0, 1) for _ in range(10)]
    # between the start, 0 steps, and 3, four: the place 1, two steps
    assert said[-1] == "no success in 10 episodes: back to (1), reached in 2 steps"
    assert set(said[:-1]) == {None}
    assert teacher.sample().context.tolist() == [1.0]


def test_kappa_is_the_share_of_an_episode_that_the_way_takes_and_1_with_the_goal():
    teacher, _ = started()
    for _ in range(4):  # 3 is mastered, and 5 was seen on the way
        play(teacher, 0, 1, 2, 3, 4, 5, total=9.0)
    said = [play(teacher, 0, 1, 2, 3, total=9.0) for _ in range(6)]
    assert set(said[:-1]) == {None}
    assert str(said[-1]).endswith("; on to (5), reached in 6 steps")
    assert teacher.progress.k == 96 * 4 // LENGTH
    assert teacher.progress.kappa == pytest.approx(4 / 12)
    for _ in range(2):
        play(teacher, *range(10), total=9.5)  # nine steps on lies the goal, and 5 is on the way
    said = None
    while said is None:
        said = play(teacher, *range(6), total=9.5)
    assert said.endswith("; on to the goal (9)")
    assert not teacher.progress.finished
    said = None
    while said is None:
        said = play(teacher, *range(10), total=9.5)
    assert teacher.progress.finished
    assert teacher.progress.kappa == 1.0
    assert teacher.progress.completed is not None


def test_episodes_with_roll_in_show_places_and_nothing_of_the_learner():
    teacher, _ = started(beta=0.5)
    plan = teacher.sample()
    assert (plan.beta, plan.guide_context.tolist()) == (0.5, [0.0])
    seen = teacher.window.seen
    play(teacher, 0, 1, 2, 3, 4, 5, 6, total=3.0, rolled=True)
    assert teacher.window.seen == seen
    assert teacher.places.steps_to(len(teacher.places.contexts) - 1) == 7


def test_what_the_last_episodes_would_have_earned_is_the_base():
    asked = []

    def relabelled(trace, context):
        asked.append(context.item())
        return 2.0

    teacher, _ = started(relabelled=relabelled)
    assert asked == [3.0] * 10
    assert teacher.when.floor == 2.0


def test_successes_in_a_row_are_enough_where_returns_never_rise():
    teacher = teacher_of()
    said = [play(teacher, 0, 1, 2, total=5.0) for _ in range(30)]
    assert set(said[:-1]) == {None}
    # all came by 2, and nothing was seen now and then
    assert said[-1] == "success in the last 30 episodes; on to (2), reached in 3 steps"


def test_late_and_abandoned_episodes_count_only_their_steps():
    teacher, _ = started()
    late = EpisodeEnd(1, 1, 0, [0.0], "train", False, 0, 0, 0.0, 5.0, 3, True, False, True)
    before = teacher.steps, teacher.window.seen
    assert teacher.update(late) is None
    assert (teacher.steps, teacher.window.seen) == (before[0] + 3, before[1])
    assert teacher.late == 1
    with pytest.raises(RollinError, match="each teacher must receive the ends of its own plans"):
        teacher.update(replace(late, plan_id=999))


@pytest.mark.parametrize("at", [0, 7, 19, 20, 25, 31])
def test_a_restored_state_continues_bit_for_bit(at):
    def later(teacher, begin):
        for episode in range(begin, 60):
            far = 1 + (episode * 7) % 5
            play(teacher, *range(far + 1), total=float(far), rolled=episode % 9 == 4)
        return teacher.get_state()

    whole, first, second = teacher_of(0.1), teacher_of(0.1), teacher_of(0.1)
    for episode in range(at):
        for teacher in (whole, first):
            far = 1 + (episode * 7) % 5
            play(teacher, *range(far + 1), total=float(far), rolled=episode % 9 == 4)
    second.set_state(json.loads(json.dumps(first.get_state())))
    assert later(second, at) == later(whole, at)


def test_it_needs_a_curriculum():
    wrong: Any = [[0.0], [9.0]]
    with pytest.raises(RollinError, match=r"needs a rollin.Curriculum, got list"):
        ReachedGoalsTeacher(wrong, to_context=np.asarray, fulfils=near)


# ------------------------------------------------------------------ places


def line(*values):
    return np.array(values, float)[:, None]


def places_of(*episodes, recent=10, most=256):
    places = Places(np.array([9.0]), near, recent, most)
    for episode in episodes:
        places.add(episode, episode)
    return places


def test_a_place_is_new_where_nothing_known_is_fulfilled():
    places = places_of(line(0.0, 0.4, 1.0, 1.2, 0.0))
    # 0.4 is near 0.0, and 1.2 near 1.0
    assert [c.item() for c in places.contexts] == [9.0, 0.0, 1.0]
    assert places.fewest == [None, 1, 3]
    places.add(line(1.4, 9.2), line(1.4, 9.2))
    assert len(places.contexts) == 3  # 9.2 fulfils the goal, which is known
    assert places.fewest == [2, 1, 1]
    assert places.recent == [[1, 2], [0, 2]]
    assert places.shares().tolist() == [0.5, 0.5, 1.0]


def test_hidden_steps_count_and_contexts_outside_the_space_are_left_out():
    places = places_of()
    outcomes, contexts = line(1.0, 2.0), np.array([[np.nan], [2.0]])
    places.add(outcomes, contexts, before=7)
    assert [c.item() for c in places.contexts] == [9.0, 2.0]
    assert places.fewest == [None, 9]


def test_an_outcome_that_does_not_fulfil_its_own_context_makes_no_place():
    places = places_of()
    places.add(line(1.0), line(5.0))
    assert len(places.contexts) == 1
    assert places.recent == [[]]


def test_the_farthest_takes_the_most_steps_of_those_seen_now_and_then():
    always, sometimes, once = line(0, 1), line(0, 1, 2), line(0, 1, 2, 3)
    places = places_of(*[always] * 5, *[sometimes] * 4, once)
    assert places.shares().tolist() == [0.0, 1.0, 1.0, 0.5, 0.1]
    assert places.farthest(0.1, 0.9) == 4
    assert places.farthest(0.2, 0.9) == 3
    assert places.farthest(0.2, 0.9, above=3) is None
    assert places.farthest(0.1, 0.9, without=[4]) == 3
    assert places.between(1, 3) == 3
    assert places.between(1, 2.5) == 2
    assert places.between(4, 9) is None


def test_the_goal_comes_before_all_others_once_it_is_seen():
    places = places_of(line(9.0), line(0, 1, 2))
    assert places.farthest(0.1, 0.9) == GOAL


def test_a_full_net_lets_go_of_what_is_nearest():
    places = places_of(line(0, 1, 2), most=4)
    places.add(line(5, 6), line(5, 6), before=7, keep=[3])
    # 0 and then 1 take the fewest steps
    assert [c.item() for c in places.contexts] == [9.0, 5.0, 6.0, 2.0]
    assert places.fewest == [None, 8, 9, 3]
    assert places.recent == [[3], [1, 2]]
    places.add(line(7), line(7), keep=[1, 2, 3])
    assert len(places.contexts) == 4  # no room


@pytest.mark.parametrize("name", ["recent", "most"])
def test_sizes_must_be_positive(name):
    with pytest.raises(Exception, match=f"{name} must be at least"):
        Places(np.zeros(1), near, **{name: 0})


def test_the_goal_comes_first_however_few_steps_it_takes():
    """A branch that leads farther than the goal does not hide it."""
    branch, goal = line(0, 1, 2, 3, 4), line(0, 9)
    places = places_of(branch, goal)
    assert places.steps_to(GOAL) == 2
    assert places.farthest(0.1, 0.9, above=5) == GOAL
    assert places.farthest(0.1, 0.9, above=5, without=[GOAL]) is None
