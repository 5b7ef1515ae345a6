"""ALP-GMM: learning progress by hand, when it fits, and what it draws."""

import numpy as np
import pytest

from rollin.curriculum.teachers.mixture import Mixture
from tests.curriculum.teachers.student import Student, teacher_of, tell


def test_progress_is_the_change_since_the_nearest_earlier_context():
    teacher = teacher_of("alp-gmm")
    for index, total in ((48, 2.0), (50, 5.0), (48, 2.0), (49, 1.0), (96, 9.0), (50, 4.0)):
        tell(teacher, index, total)
    # 48: none before; 50 by 48; 48 by itself; 49 by 48, later than 50; 96 by 50; 50 by itself
    assert [alp for _, alp in teacher.history] == [0.0, 3.0, 0.0, 1.0, 4.0, 1.0]
    assert [at for at, _ in teacher.history] == pytest.approx(
        [0.5, 50 / 96, 0.5, 49 / 96, 1.0, 50 / 96]
    )


def test_episodes_with_roll_in_tell_no_progress():
    teacher = teacher_of("alp-gmm")
    tell(teacher, 3, 2.0, rolled_in=True)
    assert teacher.history == []


def test_it_fits_every_so_many_episodes_to_the_last_ones():
    teacher = teacher_of("alp-gmm", every=10, window=15)
    stream, fits = np.random.default_rng(0), []
    for _ in range(30):
        tell(teacher, int(stream.integers(97)), float(stream.random()))
        fits.append(teacher.mixture)
    changes = [n + 1 for n in range(1, 30) if fits[n] is not fits[n - 1]]
    assert (fits[0], changes) == (None, [10, 20, 30])
    assert len(teacher.history) == 15
    assert 2 <= len(teacher.mixture.weights) <= 10


def test_components_are_drawn_by_their_mean_progress_and_a_fifth_uniformly():
    teacher = teacher_of("alp-gmm", seed=1)
    narrow = np.array([np.eye(2) * 1e-8] * 3)
    means = np.array([[0.25, 0.1], [0.75, 0.3], [0.5, 0.0]])
    teacher.mixture = Mixture(np.full(3, 1 / 3), means, narrow)
    found = [teacher._draw() for _ in range(6000)]
    share = {index: np.mean([f == index for f in found]) for index in (24, 48, 72)}
    uniform = 0.2 / 97
    assert share[24] == pytest.approx(0.8 * 0.25 + uniform, abs=0.02)
    assert share[72] == pytest.approx(0.8 * 0.75 + uniform, abs=0.02)
    assert share[48] == pytest.approx(uniform, abs=0.005)
    rest = sum(f not in (24, 48, 72) for f in found) / 6000
    assert rest == pytest.approx(0.2 * 94 / 97, abs=0.02)


def test_without_any_progress_all_components_are_alike():
    teacher = teacher_of("alp-gmm", seed=1, uniform=0.0)
    means = np.array([[0.25, 0.0], [0.75, 0.0]])
    teacher.mixture = Mixture(np.full(2, 0.5), means, np.array([np.eye(2) * 1e-8] * 2))
    found = [teacher._draw() for _ in range(1000)]
    assert np.mean([f == 24 for f in found]) == pytest.approx(0.5, abs=0.05)


def test_it_stays_near_where_a_student_changes():
    teacher, student, near = teacher_of("alp-gmm", every=100, window=100), Student(0), []
    for _ in range(500):
        plan = teacher.sample()
        near.append(abs(float(plan.context[0]) - student.skill) < 0.15)
        teacher.update(student.play(plan))
    assert np.mean(near[:100]) < 0.35  # drawn uniformly
    assert np.mean(near[100:]) > 0.5
