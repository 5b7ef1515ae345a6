"""A curriculum of visited places, worked out by hand on a line, and as a run that resumes."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rollin
from rollin import RollinError
from rollin.curriculum.teacher import EpisodeEnd
from rollin.curriculum.visited import Visited

WAY = rollin.Curriculum.between(start=[0.0], goal=[9.0])  # K = 96
LENGTH = 12  # steps of an episode: a κ of 1/96 is an eighth of a step


def near(outcomes, contexts):
    return np.abs(outcomes[:, None, 0] - contexts[None, :, 0]) <= 0.5


def teacher_of(beta=0.0, **options):
    parts = {"to_context": lambda outcomes: np.asarray(outcomes, float), "fulfils": near}
    return Visited(WAY, beta, **{**parts, **options})


def play(teacher, *places, total=0.0, rolled=False):
    """An episode that comes by these places, then stays; returns what the teacher said."""
    plan = teacher.sample()
    trace = np.array([*places, *[places[-1]] * (LENGTH - len(places))], np.float32)[:, None]
    success = bool(near(trace, plan.context[None]).any())
    return teacher.update(
        EpisodeEnd(plan.ticket, 1, 0, plan.context, "train", rolled, 0, 0, 0.0, total, LENGTH,
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


def test_late_and_abandoned_episodes_count_their_steps_alone():
    teacher, _ = started()
    late = EpisodeEnd(1, 1, 0, [0.0], "train", False, 0, 0, 0.0, 5.0, 3, True, False, True)
    before = teacher.steps, teacher.window.seen
    assert teacher.update(late) is None
    assert (teacher.steps, teacher.window.seen) == (before[0] + 3, before[1])
    assert teacher.late == 1
    with pytest.raises(RollinError, match="each teacher must be told of its own plans"):
        teacher.update(replace(late, ticket=999))


@pytest.mark.parametrize("at", [0, 7, 19, 20, 25, 31])
def test_a_state_goes_on_as_it_was(at):
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
        Visited(wrong, to_context=np.asarray, fulfils=near)
