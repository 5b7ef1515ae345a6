"""Products and transpositions against NumPy; the squashed Gaussian against its definition."""

import hashlib
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numba.core.dispatcher import Dispatcher
from scipy import stats

from rollin.sac import gaussian, kernels, replay, vector
from rollin.tabular import kernels as tabular_kernels

SIZES = st.integers(1, 140)


@njit(error_model="numpy")
def product(a, b, c, mode, gate):
    vector.multiply(
        vector.base(a),
        a.strides[0] // 4,
        a.strides[1] // 4,
        vector.base(b),
        b.strides[0] // 4,
        vector.base(c),
        c.strides[0] // 4,
        a.shape[0],
        b.shape[1],
        a.shape[1],
        mode,
        vector.base(gate),
    )


@given(SIZES, SIZES, SIZES, st.sampled_from("CF"), st.sampled_from([0, 1, 2]), st.integers(0, 99))
def test_products_agree_with_numpy_and_write_nothing_else(rows, inner, columns, order, mode, seed):
    rng = np.random.default_rng(seed)
    a = np.asarray(rng.standard_normal((rows, inner)), np.float32, order=order)
    b = rng.standard_normal((inner, columns + 3)).astype(np.float32)[:, :columns]
    c = np.full((rows + 2, columns + 5), 7, np.float32)
    gate = rng.standard_normal(c.shape).astype(np.float32)
    product(a, b, c[:rows, :columns], np.int64(mode), gate[:rows, :columns])
    exact = a.astype(float) @ b.astype(float)
    if mode == vector.RELU:
        exact = np.maximum(exact, 0)
    if mode == vector.GATE:
        exact = np.where(gate[:rows, :columns] > 0, exact, 0)
    np.testing.assert_allclose(c[:rows, :columns], exact, atol=1e-6 * inner, rtol=1e-5)
    assert (c[rows:] == 7).all()
    assert (c[:, columns:] == 7).all()


def test_a_number_of_a_product_is_the_same_wherever_it_is_computed():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((50, 77)).astype(np.float32)
    b = rng.standard_normal((77, 150)).astype(np.float32)
    whole, part = np.empty((50, 150), np.float32), np.empty((50, 150), np.float32)
    product(a, b, whole, vector.STORE, whole)
    for i in (0, 3, 17, 41):
        for j in (0, 5, 64, 100):
            out = part[i:, j:]
            product(a[i:], b[:, j:], out, vector.STORE, out)
            np.testing.assert_array_equal(out, whole[i:, j:])


def test_relu_lets_nan_pass():
    a, b = np.ones((1, 1), np.float32), np.array([[np.nan, -1, 1]], np.float32)
    c = np.empty((1, 3), np.float32)
    product(a, b, c, vector.RELU, c)
    np.testing.assert_array_equal(c, [[np.nan, 0, 1]])


@given(SIZES, SIZES)
def test_transpose(rows, columns):
    source = np.random.default_rng(0).standard_normal((rows, columns + 2)).astype(np.float32)
    target = np.full((columns + 1, rows + 3), 7, np.float32)
    vector.transpose(source, target, rows, columns)
    np.testing.assert_array_equal(target[:columns, :rows], source[:, :columns].T)
    assert (target[columns:] == 7).all()
    assert (target[:, rows:] == 7).all()


@given(st.integers(1, 500), st.integers(1, 16), st.integers(1, 9))
def test_shares_cover_everything_once(total, grain, threads):
    end = 0
    for rank in range(threads):
        begin, count = vector.share(total, grain, rank, threads)
        assert begin == end
        assert count >= 0
        end = begin + count
    assert end == total


def test_the_cache_of_the_kernels_knows_their_helpers():
    sources = [Path(str(module.__file__)).read_bytes() for module in (vector, gaussian)]
    digest = hashlib.sha256(b"".join(sources)).hexdigest()[:16]
    assert digest == kernels.HELPERS, (
        f'a helper has changed: write HELPERS = "{digest}" in kernels.py, so that numba compiles '
        "the kernels anew"
    )


@njit(error_model="numpy")
def exponentials(x, out):
    for i in range(len(x)):
        out[i] = gaussian.exp(x[i])


@njit(error_model="numpy")
def logarithms(x, out):
    for i in range(len(x)):
        out[i] = gaussian.log1p(x[i])


def test_exp_and_log1p():
    x = np.linspace(-86, 87, 100_001).astype(np.float32)
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x.astype(float)), rtol=3e-7)
    e = np.linspace(0, 1, 10_001).astype(np.float32)
    out = np.empty_like(e)
    logarithms(e, out)
    np.testing.assert_allclose(out, np.log1p(e.astype(float)), rtol=4e-7)


def squash(mean, log_std, noise):
    """Actions and log-probabilities of a one-dimensional policy at many draws."""
    count = len(noise)
    heads = np.empty((2, count), np.float32)
    heads[0], heads[1] = mean, log_std
    action, log_prob = np.empty((1, count), np.float32), np.empty(count, np.float32)
    low, high = np.float32(-10), np.float32(2)
    gaussian.squash(heads, action, noise[None], low, high, log_prob, 0, count)
    return action[0], log_prob


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.7, -1.5), (-1.2, 0.4), (2.0, -0.5)])
def test_the_density_of_the_squashed_gaussian_integrates_to_the_normal_distribution(mean, log_std):
    noise = np.linspace(-7, 7, 200_001).astype(np.float32)
    action, log_prob = squash(mean, log_std, noise)
    inside = np.abs(action) < 0.9999  # beyond, float32 actions lie too close together
    a, density = action[inside].astype(float), np.exp(log_prob[inside].astype(float))
    mass = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(a))])
    u = np.arctanh(a)
    cdf = stats.norm.cdf((u - mean) / math.exp(log_std))
    np.testing.assert_allclose(mass, cdf - cdf[0], atol=2e-4)


def test_the_squashed_gaussian_far_out():
    noise = np.array([-60, -8, 0, 8, 60], np.float32)
    action, log_prob = squash(0.5, 1.0, noise)
    u = 0.5 + math.e * noise.astype(float)
    np.testing.assert_allclose(action, np.tanh(u), atol=1e-6)
    exact = stats.norm.logpdf(noise.astype(float)) - 1.0
    exact -= 2 * (math.log(2) - u - np.logaddexp(0, -2 * u))
    np.testing.assert_allclose(log_prob, exact, rtol=1e-6, atol=1e-5)


def test_compiled_functions_have_names_of_their_own():
    """Numba tells cached machine code apart by module, name and types, and by a count that two
    processes may share: functions of one name, made by a factory, would be mixed up."""
    found = {
        id(value): (value.py_func.__module__, value.py_func.__qualname__)
        for module in (vector, gaussian, kernels, replay, tabular_kernels)
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    }
    assert len(found) > 20
    assert [name for name, count in Counter(found.values()).items() if count > 1] == []
