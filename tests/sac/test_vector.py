"""The squashed Gaussian against its definition; shares of work; names of compiled functions."""

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher
from scipy import stats

from rollin.compiling import cached_njit
from rollin.sac import cpu
from rollin.sac import jax as oracle
from rollin.sac.cpu import kernels, layers, memory, rng, simd, update_steps, update_steps_bf16
from rollin.tabular.kernels import rollouts

compiled = cached_njit(helpers=(cpu,), variant=simd.LANES, error_model="numpy")


@cached_njit(helpers=(cpu,), variant=simd.LANES)
def shared(total, grain, rank, members):
    return layers.share(total, grain, rank, members)


@given(st.integers(1, 500), st.integers(1, 16), st.integers(1, 9))
def test_shares_cover_everything_once(total, grain, threads):
    end = 0
    for rank in range(threads):
        begin, count = shared(total, grain, rank, threads)
        assert begin == end
        assert count >= 0
        end = begin + count
    assert end == total


@compiled
def exponentials(x, out):
    for i in range(len(x)):
        out[i] = update_steps.exp(x[i])


@compiled
def logarithms(x, out):
    for i in range(len(x)):
        out[i] = update_steps.log1p(x[i])


@compiled
def run_squash(heads, action, noise, low, high, log_prob, first, count):
    update_steps.squash(heads, action, noise, (low, high), log_prob, first, count)


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
    run_squash(heads, action, noise[None], low, high, log_prob, 0, count)
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


def dispatchers(value: object) -> Iterator[Dispatcher]:
    """A compiled function, and those that its closure holds."""
    if isinstance(value, Dispatcher):
        yield value
        for cell in value.py_func.__closure__ or ():
            yield from dispatchers(cell.cell_contents)


def test_compiled_functions_have_names_of_their_own():
    """Numba tells cached machine code apart by module, name and types, and by a count that two
    processes may share: functions of one name, made by a factory, would be mixed up."""
    parts = [name for name in sys.modules if name.startswith("rollin.sac.cpu.")]
    assert {kernels.__name__, rng.__name__, update_steps_bf16.__name__} <= set(parts)
    sac = [sys.modules[name] for name in parts]
    found = {
        id(each): (each.py_func.__module__, each.py_func.__qualname__)
        for module in (*sac, rollouts)
        for value in vars(module).values()
        for each in dispatchers(value)
    }
    assert len(found) > 60
    assert [name for name, count in Counter(found.values()).items() if count > 1] == []


def test_the_page_of_the_package_names_all_buffers_and_kernels_and_functions_that_exist():
    page = str(cpu.__doc__)
    patterns = page.split()
    assert all(any(fnmatchcase(name, each) for each in patterns) for name in memory.FIELDS)
    rows = re.findall(r"\| (\w.*?) +\| (\w.*?) +\|\n", page.partition("reference in jax.py")[2])
    assert len(rows) == 15
    for names, references in rows:
        for name in names.split(", "):
            module, _, function = name.rpartition(".")
            assert hasattr(sys.modules[f"rollin.sac.cpu.{module or 'update_steps'}"], function)
        for name in references.removeprefix("the gradient of ").split(", "):
            assert callable(getattr(oracle, name))
