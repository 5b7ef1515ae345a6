"""The reverse curriculum on the path: starts, rounds and random walks by hand."""

import numpy as np
import pytest

from tests.curriculum.teachers.student import ended, taught, teacher_of


def judged(teacher, tried: dict[int, tuple[int, int]]):
    """The starts from which the next round walks, after these episodes and successes."""
    found = []
    teacher._begin_round = found.append
    first, (episodes, successes) = next(iter(tried.items()))
    teacher.starts = [first]
    plan = teacher.sample()
    teacher.starts, teacher.trials = list(tried), 1
    teacher._tried = {start: list(counts) for start, counts in tried.items()}
    teacher._tried[first] = [episodes - 1, successes]  # a failure is still to come
    teacher.update(ended(plan, 0.0))
    return found[0]


def test_good_starts_are_those_of_some_success_but_not_always():
    teacher = teacher_of("reverse")
    assert judged(teacher, {3: (4, 2), 5: (4, 0), 7: (4, 4), 9: (10, 1), 2: (10, 9)}) == [2, 3, 9]
    assert teacher.good == [0, 2, 3, 9]


def test_if_all_is_mastered_walks_begin_at_the_farthest_start():
    teacher = teacher_of("reverse", least=0.1, most=0.7)
    assert judged(teacher, {7: (10, 8), 3: (4, 4)}) == [7]
    assert teacher.good == [0]


def test_if_all_fail_walks_begin_at_earlier_good_ones():
    teacher = teacher_of("reverse")
    teacher.good = [0, 4]
    assert judged(teacher, {7: (4, 0), 9: (4, 0)}) == [0, 4]


def test_a_round_has_new_starts_and_old_ones():
    teacher = teacher_of("reverse", new=4, old=2, walk=1)
    teacher.good = [40]
    teacher._begin_round([20])
    assert len(teacher.starts) == 6
    assert set(teacher.starts[:4]) <= {19, 21}
    assert teacher.starts[4:] == [40, 40]


def test_random_walks_have_the_variance_of_their_steps_and_stay_on_the_path():
    teacher = teacher_of("reverse", seed=1, walk=16)
    ends = np.array([teacher._walked([48]) for _ in range(4000)])
    assert ends.mean() == pytest.approx(48, abs=0.3)
    assert ends.var() == pytest.approx(16, rel=0.08)
    assert (ends % 2 == 0).all()
    assert min(teacher._walked([0]) for _ in range(100)) == 0
    assert max(teacher._walked([96]) for _ in range(100)) == 96


def test_the_last_context_is_played_from_starts_near_the_goal_at_first():
    teacher = teacher_of("reverse")
    for _ in range(50):
        plan = teacher.sample()
        assert plan.context.tolist() == [1.0]
        assert plan.start.tolist()[0] >= 1 - 16 / 96
        assert (plan.beta, plan.guide) == (0.0, 0)


def test_the_farthest_start_is_the_environment_s_own():
    teacher = teacher_of("reverse")
    teacher.starts = [96]
    assert teacher.sample().start is None
    teacher.starts = [95]
    assert teacher.sample().start.tolist() == [pytest.approx(1 / 96)]


def test_ends_of_an_earlier_round_do_not_count_for_this_one():
    teacher = teacher_of("reverse", new=1, old=0, trials=2)
    plans = [teacher.sample() for _ in range(4)]
    for plan in plans:
        teacher.update(ended(plan, 1.0))
    assert teacher._round == 2
    assert teacher._tried == {}


def test_starts_go_back_along_the_path_and_progress_counts_backwards():
    teacher = teacher_of("reverse")
    student = taught(teacher, 1500)
    assert max(teacher.good) > 60
    assert student.skill > 0.8
    assert teacher.progress.k > 60


def test_it_stands_at_the_last_context_which_alone_is_practised():
    teacher = teacher_of("reverse")
    teacher.progress.move(0, 15, "for the test")
    assert teacher.here.tolist() == [1.0]
