"""Jump-start: the horizon's schedule by hand, who is the guide, and what is prepared."""

import numpy as np
import pytest

from tests.curriculum.teachers.student import ended, taught, teacher_of


def jumping(**options):
    """A teacher with two mastered cells that jump-starts nearly always."""
    teacher = teacher_of("jsrl", beta=0.999, **({"horizon": 100, "stages": 4} | options))
    teacher.cells.slow[:2] = [0.6, 0.6]
    return teacher


def jump(teacher, total):
    """One jump-started episode, and the length that it was planned with."""
    while (plan := teacher.sample()).context[0] != 1.0:
        pass
    teacher.update(ended(plan, total, rolled_in=plan.beta > 0))
    return plan.length


def test_the_horizon_shrinks_by_stages_when_returns_are_near_the_best():
    teacher = jumping(episodes=2)
    found = [jump(teacher, total) for total in (4, 4, 0, 8, 0, 0, 8, 4, 4, 4)]
    # stage 1: mean 4, the first; 2: mean 4; 3: 0 < 4 - 0.05 · 8, then (0 + 8) / 2; 4: no roll-in
    assert found == [75, 75, 50, 50, 25, 25, 25, None, None, None]
    assert (teacher.stage, teacher.length, teacher.best) == (4, 0, 4.0)


def test_the_tolerance_is_a_share_of_the_range_of_returns():
    for tolerance, stage in ((0.6, 3), (0.4, 2)):
        teacher = jumping(episodes=2, tolerance=tolerance)
        for total in (10, 10, 6, 10):  # 8 against 10, range 4
            jump(teacher, total)
        assert teacher.stage == stage


def test_the_guide_is_the_farthest_mastered_context_and_acts_for_exactly_h_steps():
    teacher = jumping()
    plan = teacher.sample()
    assert (plan.context.tolist(), plan.beta, plan.length) == ([1.0], 1.0, 75)
    assert (teacher.previous, plan.guide_context.tolist()) == (7, [pytest.approx(7 / 96)])


def test_a_farther_guide_begins_with_long_roll_ins_and_a_nearer_one_does_not():
    teacher = jumping(episodes=1)
    assert [jump(teacher, 1.0) for _ in range(2)] == [75, 50]
    teacher.cells.slow[1] = 0.0
    assert jump(teacher, 1.0) == 25
    teacher.cells.slow[5] = 0.6
    assert jump(teacher, 1.0) == 75


def test_ends_of_an_earlier_stage_do_not_count_for_this_one():
    teacher = jumping(episodes=1)
    plans = [teacher.sample() for _ in range(3)]
    for plan in plans:
        teacher.update(ended(plan, 1.0, rolled_in=True))
    assert teacher.stage == 2


def test_the_horizon_is_that_of_the_longest_episode_if_none_is_given():
    teacher = jumping(horizon=None, stages=10)
    teacher.update(ended(teacher.sample(), 0.0, rolled_in=True, hidden=80, length=120))
    assert teacher.length == 180


def test_or_it_is_drawn():
    teacher = jumping(schedule="random")
    lengths = []
    for _ in range(3000):
        plan = teacher.sample()
        if plan.context[0] == 1.0:
            lengths.append(plan.length or 0)
    assert set(lengths) <= set(range(100))
    assert np.mean(lengths) == pytest.approx(49.5, abs=2)


def test_other_episodes_prepare_the_guide_half_of_them_in_the_next_cell():
    teacher = teacher_of("jsrl", beta=0.0)
    assert {teacher.cells.of[teacher.context_of(teacher.sample().ticket)] for _ in range(50)} == {0}
    teacher.cells.slow[:2] = [0.6, 0.6]
    cells = [teacher.cells.of[teacher.context_of(teacher.sample().ticket)] for _ in range(4000)]
    shares = np.bincount(cells, minlength=24) / 4000
    assert shares[:3] == pytest.approx([0.25, 0.25, 0.5], abs=0.03)
    assert shares[3:].sum() == 0


def test_a_share_beta_is_jump_started():
    teacher = teacher_of("jsrl", seed=1, beta=0.3)
    teacher.cells.slow[0] = 0.6
    jumped = [teacher.sample().length is not None for _ in range(3000)]
    # the first horizon is that of an episode of one step: 0.9 of it is rounded to 1
    assert np.mean(jumped) == pytest.approx(0.3, abs=0.03)


def test_it_leads_a_student_to_the_end():
    teacher = teacher_of("jsrl", beta=0.2)
    student = taught(teacher, 1500)
    assert student.skill > 0.8
    assert teacher._number > 20  # stages, with all guides
