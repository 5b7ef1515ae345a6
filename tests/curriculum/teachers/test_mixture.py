"""Mixtures of Gaussians: closed forms, clusters found again, Akaike's count."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from rollin.curriculum.teachers.mixture import FLOOR, Mixture, fit, fit_best

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
    mixture = Mixture(
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
