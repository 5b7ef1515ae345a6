"""CURROT on a path: three particles by hand, the regression, and when it begins."""

import numpy as np
import pytest

from rollin.curriculum.teachers.currot import regressed, transported
from tests.curriculum.teachers.student import taught, teacher_of, tell

EPISODES = np.array([0.0, 0.05, 0.1, 0.2]), np.array([1.0, 1.0, 1.0, 0.0])


def test_the_regression_weighs_episodes_by_a_gaussian_kernel():
    # bandwidth 1: weights exp(-1/2) and exp(-2)
    at = regressed(np.array([1.0]), np.array([0.0, 3.0]), np.array([4.0, 8.0]), 1.0)
    near, far = np.exp(-0.5), np.exp(-2.0)
    assert at == pytest.approx([(4 * near + 8 * far) / (near + far)])
    assert regressed(np.array([500.0]), np.array([0.0, 3.0]), np.array([4.0, 8.0]), 1.0) == 8.0


def test_three_particles_step_by_hand():
    """Bandwidth 0.3 · 0.05; between 0.1 and 0.2 the log-odds of success are 444.4 (0.15 - x).

    0.6 or more up to x = 0.15 - ln(1.5) / 444.4 = 0.14909, and candidates lie 0.0025 apart: the
    farthest particle comes to 0.1475. The others take their whole step.
    """
    moved = transported(np.array([0.1, 0.0, 0.05]), np.ones(3), *EPISODES, 0.6, 0.05)
    assert moved == pytest.approx([0.05, 0.1, 0.1475])


def test_a_particle_among_failures_goes_back_to_the_nearest_good_episode_first():
    moved = transported(np.array([0.3]), np.ones(1), *EPISODES, 0.6, 0.05)
    assert moved == pytest.approx([0.1475])
    alone = transported(np.array([0.3]), np.ones(1), EPISODES[0], np.zeros(4), 0.6, 0.05)
    assert alone == pytest.approx([0.3])  # nothing was good yet


def test_sorted_particles_go_to_sorted_targets_and_not_past_them():
    everywhere = np.linspace(0, 1, 101), np.ones(101)
    moved = transported(
        np.array([0.9, 0.5, 0.93]), np.array([1.0, 0.52, 0.91]), *everywhere, 0.5, 0.05
    )
    assert moved == pytest.approx([0.52, 0.91, 0.98])


def test_particles_stay_on_the_path():
    everywhere = np.linspace(0, 1, 101), np.ones(101)
    moved = transported(np.array([0.12, 0.99]), np.array([0.0, 1.0]), *everywhere, 0.5, 0.05, 0.1)
    assert moved == pytest.approx([0.1, 1.0])


def test_particles_begin_on_the_first_tenth_and_are_drawn_alike():
    teacher = teacher_of("currot", particles=3)
    assert teacher.particles.tolist() == [0.0, 0.05, 0.1]
    assert teacher.targets.tolist() == [1.0, 1.0, 1.0]
    wide = teacher_of("currot", particles=3, target_width=1.0)
    assert wide.targets.tolist() == [0.0, 0.5, 1.0]
    counts = np.bincount([teacher._draw() for _ in range(3000)], minlength=97)
    assert {j for j in range(97) if counts[j]} == {0, 5, 10}
    assert counts[[0, 5, 10]] == pytest.approx(np.full(3, 1000), abs=100)


def test_nothing_moves_before_the_particles_were_good_enough_once():
    teacher = teacher_of("currot", particles=3, every=4, level=5.0)
    for total in (0.0, 6.0, 0.0, 0.0):  # mean 1.5
        tell(teacher, 5, total)
    assert teacher.particles.tolist() == [0.0, 0.05, 0.1]
    for _ in range(12):  # 3 of 16 failed: 4.9
        tell(teacher, 5, 6.0)
    assert teacher.particles.tolist() == [0.0, 0.05, 0.1]
    for _ in range(4):
        tell(teacher, 5, 6.0)
    assert teacher.particles == pytest.approx([0.05, 0.1, 0.15])


def test_it_leads_a_student_to_the_end():
    teacher = teacher_of("currot")
    student = taught(teacher, 1000)
    assert teacher.particles.min() > 0.9
    assert student.skill > 1.0


def test_too_high_a_level_keeps_the_particles_where_they_are():
    teacher = teacher_of("currot", level=50.0)
    taught(teacher, 300)
    assert teacher.particles.max() == pytest.approx(0.1)
