"""ALP-GMM: learning progress by hand, when it fits, what it draws, and its mixtures."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from rollin.teachers.alp_gmm import FLOOR, GaussianMixture, fit, fit_best
from tests.teachers.student import Student, teacher_of, tell


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
    teacher.mixture = GaussianMixture(np.full(3, 1 / 3), means, narrow)
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
    teacher.mixture = GaussianMixture(np.full(2, 0.5), means, np.array([np.eye(2) * 1e-8] * 2))
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


# ------------------------------------------------------------------ mixtures of Gaussians

normal: Any = stats.multivariate_normal  # its stubs know no covariance


def two_clusters(count: int = 300) -> np.ndarray:
    stream = np.random.default_rng(0)
    left = stream.multivariate_normal([0.2, 0.1], [[0.002, 0.0005], [0.0005, 0.001]], count)
    right = stream.multivariate_normal([0.8, 0.6], [[0.001, 0.0], [0.0, 0.004]], 2 * count)
    return np.vstack([left, right])


def test_one_component_is_mean_and_covariance_of_the_data():
    data = np.random.default_rng(0).normal(size=(50, 2)) @ [[1.0, 0.5], [0.0, 2.0]]
    mixture = fit(data, 1, np.random.default_rng(1))
    assert mixture.weights == pytest.approx([1.0])
    assert mixture.means[0] == pytest.approx(data.mean(0))
    wide = np.cov(data.T, bias=True) + FLOOR * np.eye(2)
    assert mixture.covariances[0] == pytest.approx(wide)
    known = normal(data.mean(0), wide).logpdf(data).sum()
    assert mixture.log_likelihood(data) == pytest.approx(known)
    assert mixture.aic(data) == pytest.approx(2 * 5 - 2 * known)


def test_densities_are_those_of_scipy():
    mixture = GaussianMixture(
        np.array([0.3, 0.7]),
        np.array([[0.0, 1.0], [2.0, -1.0]]),
        np.array([[[1.0, 0.2], [0.2, 0.5]], [[0.3, 0.0], [0.0, 2.0]]]),
    )
    data = np.array([[0.1, 0.2], [3.0, -2.0], [1.0, 1.0]])
    parts = zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
    each = np.stack([np.log(w) + normal(m, c).logpdf(data) for w, m, c in parts], 1)
    assert mixture.log_densities(data) == pytest.approx(each)
    assert mixture.log_likelihood(data) == pytest.approx(np.log(np.exp(each).sum(1)).sum())
    free = 2 * 2 + 2 * 3 + 1  # means, covariances, one weight
    assert mixture.aic(data) == pytest.approx(2 * free - 2 * mixture.log_likelihood(data))


@pytest.mark.parametrize("seed", range(5))
def test_two_clusters_are_found_again(seed):
    mixture = fit(two_clusters(), 2, np.random.default_rng(seed))
    order = np.argsort(mixture.means[:, 0])
    assert mixture.weights[order] == pytest.approx([1 / 3, 2 / 3], abs=0.01)
    assert mixture.means[order] == pytest.approx(np.array([[0.2, 0.1], [0.8, 0.6]]), abs=0.01)
    assert mixture.covariances[order[0]][0, 1] == pytest.approx(0.0005, abs=0.0002)
    assert mixture.covariances[order[1]][1, 1] == pytest.approx(0.004, abs=0.0006)


def test_overlapping_clusters_are_a_fixed_point_of_the_two_steps():
    stream = np.random.default_rng(3)
    data = np.vstack([stream.normal(0, 1, (300, 1)), stream.normal(2.5, 0.7, (300, 1))])
    mixture = fit(data, 2, stream)
    logs = np.exp(mixture.log_densities(data))
    shares = logs / logs.sum(1, keepdims=True)
    weighted = (shares * data).sum(0) / shares.sum(0)
    assert mixture.means[:, 0] == pytest.approx(weighted, abs=0.02)
    assert mixture.weights == pytest.approx(shares.mean(0), abs=0.01)


def test_akaike_takes_as_many_as_there_are():
    data = two_clusters()
    mixture = fit_best(data, range(1, 6), np.random.default_rng(0))
    assert len(mixture.weights) == 2
    assert mixture.aic(data) < fit(data, 1, np.random.default_rng(0)).aic(data) - 100


def test_equal_points_and_fewer_points_than_components_are_no_trouble():
    for data in (np.full((20, 2), 0.5), np.array([[0.0, 0.0], [1.0, 1.0]])):
        mixture = fit(data, 5, np.random.default_rng(0))
        assert np.isfinite(mixture.means).all()
        assert mixture.weights.sum() == pytest.approx(1.0)
        assert np.isfinite(mixture.aic(data))
