"""Gradient estimators against dynamic programming; updates against plain references."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.families import four_rooms
from rollin.tabular.kernels import rollouts
from rollin.tabular.learners import (
    BatchSPG,
    ExactPG,
    NaturalPG,
    RandomHorizonSPG,
    constant_schedule,
    two_phase_schedule,
)
from rollin.tabular.mdp import ContextualMDP
from rollin.tabular.start import Start
from tests.conftest import mdps, random_log_pi, random_mdp


def begun(learner: Any, k: int = 0) -> Any:
    """A learner that has begun context k from ρ."""
    learner.begin(learner.mdp.task(k), Start(learner.mdp.rho))
    return learner


def assert_unbiased(samples: np.ndarray, exact: np.ndarray, where: np.ndarray) -> None:
    """z-scores of the mean over repetitions, on entries that were sampled often enough."""
    n = len(samples)
    spread = samples.std(0, ddof=1) / np.sqrt(n)
    assert where.any()
    z = (samples.mean(0) - exact)[where] / spread[where]
    assert np.abs(z).max() < stats.t.isf(1e-4 / (2 * where.sum()), n - 1)


def batch_samples(
    mdp: ContextualMDP, theta: np.ndarray, k: int, *, batch: int, horizon: int, n: int
) -> tuple[np.ndarray, np.ndarray]:
    learner = begun(BatchSPG(mdp, 0.1, 11, batch=batch, horizon=horizon, theta=theta), k)
    found = [learner.sampled_gradient() for _ in range(n)]
    return np.array([g for g, _ in found], np.float64), np.array([s for _, s in found])


def test_four_rooms_gradient_equals_dynamic_programming() -> None:
    mdp = four_rooms("easy")
    theta = 0.5 * np.random.default_rng(1).normal(size=(144, 105))
    theta[:, :5] += 3  # so that trajectories get about
    samples, success = batch_samples(mdp, theta, 6, batch=2000, horizon=50, n=60)
    log_pi = soft.log_softmax(theta.astype(np.float32))
    exact = soft.batch_gradient(mdp.task(6), log_pi, 0.1, mdp.rho, 50)
    visits = np.zeros(144)
    law = mdp.rho
    for _ in range(50):
        visits += law
        law = law @ mdp.policy_kernel(np.exp(log_pi))
    expected_samples = 60 * 2000 * visits[:, None] * np.exp(log_pi)
    assert_unbiased(samples, exact, expected_samples > 100)
    chance = soft.success_probability(mdp.task(6), log_pi, mdp.rho, 50)
    assert abs(success.mean() - chance) < 5 * np.sqrt(chance * (1 - chance) / (60 * 2000))


@given(mdps(), st.integers(0, 999), st.integers(1, 130))
@settings(max_examples=15)
def test_batch_gradient_is_unbiased_on_random_mdps(
    mdp: ContextualMDP, seed: int, batch: int
) -> None:
    theta = random_log_pi(mdp, seed).astype(np.float32)
    samples, success = batch_samples(mdp, theta, 1, batch=batch + 40, horizon=6, n=300)
    log_pi = soft.log_softmax(theta)
    exact = soft.batch_gradient(mdp.task(1), log_pi, 0.1, mdp.rho, 6)
    if mdp.n_actions == 1:
        np.testing.assert_allclose(samples, 0, atol=1e-6)
    else:
        seen = (samples != 0).mean(0) > 0.9
        if seen.any():
            assert_unbiased(samples, exact, seen)
    chance = soft.success_probability(mdp.task(1), log_pi, mdp.rho, 6)
    error = np.sqrt(max(chance * (1 - chance), 1e-9) / (300 * (batch + 40)))
    assert abs(success.mean() - chance) < 5 * error + 1e-7


def spg_samples(mdp: ContextualMDP, theta: np.ndarray, n: int, *, printed: bool) -> np.ndarray:
    learner = begun(
        RandomHorizonSPG(mdp, 0.3, constant_schedule(1, 1.0), 4, printed=printed, theta=theta)
    )
    return np.array([learner.gradient(400)[0] for _ in range(n)])


@pytest.mark.parametrize("deterministic", [True, False])
def test_samsa_and_estentq_are_unbiased_and_the_printed_form_is_not(deterministic: bool) -> None:
    mdp = random_mdp(21, S=3, A=3, gamma=0.8, deterministic=deterministic)
    theta = random_log_pi(mdp, 5)
    exact = soft.policy_gradient(mdp.task(0), theta, 0.3, mdp.rho)
    everywhere = np.ones_like(exact, bool)
    assert_unbiased(spg_samples(mdp, theta, 400, printed=False), exact, everywhere)
    printed = spg_samples(mdp, theta, 400, printed=True)
    z = (printed.mean(0) - exact) / (printed.std(0, ddof=1) / 20)
    assert np.abs(z).max() > 10


def test_policy_tables_against_float64() -> None:
    mdp = four_rooms("hard")
    theta = 3 * np.random.default_rng(0).normal(size=(144, 105))
    learner = begun(BatchSPG(mdp, 0.01, theta=theta), 16)
    log_pi = soft.log_softmax(theta.astype(np.float32))
    np.testing.assert_allclose(learner._pi, np.exp(log_pi), rtol=3e-6)
    np.testing.assert_allclose(learner._bonus[:, :105], mdp.task(16).r - 0.01 * log_pi, atol=1e-6)


def test_a_step_is_its_parts_and_passing_over_unvisited_states_changes_nothing() -> None:
    mdp = four_rooms("easy")
    one, two = (begun(BatchSPG(mdp, 0.01, 3, batch=50), 3) for _ in range(2))
    for t in range(1, 6):
        one.step()
        gradient, _ = two.sampled_gradient()
        rollouts.adam_ascent(np.arange(144), two.theta, gradient, two.m, two.v, t, 1e-3)
        two._refresh()
    np.testing.assert_array_equal(one.theta, two.theta)
    assert 0 < (one.theta != 0).any(1).sum() < 60


def test_exact_gradient_is_the_limit_of_the_sampled_one() -> None:
    mdp = random_mdp(2, deterministic=True)
    exact = begun(BatchSPG(mdp, 0.1, exact=True, horizon=10))
    sampled = begun(BatchSPG(mdp, 0.1, 1, batch=40_000, horizon=10))
    for learner in (exact, sampled):
        for _ in range(200):
            learner.step()
    assert np.abs(exact.theta).max() > 0.05
    np.testing.assert_allclose(exact.theta, sampled.theta, atol=0.03)


def test_adam_restarts_on_a_new_context_only_if_asked() -> None:
    mdp = four_rooms("easy")
    for reset in (True, False):
        learner = begun(BatchSPG(mdp, 0.01, batch=20, reset_adam=reset))
        learner.step()
        theta = learner.theta.copy()
        learner.begin(mdp.task(1), Start(mdp.rho))
        np.testing.assert_array_equal(learner.theta, theta)  # the warm start
        assert (learner.t == 0) == reset
        assert (not learner.v.any()) == reset


def test_natural_gradient_is_the_fisher_preconditioned_gradient() -> None:
    mdp = random_mdp(9, S=3, A=3)
    task, alpha, theta = mdp.task(0), 0.2, random_log_pi(mdp, 1)
    learner = begun(NaturalPG(mdp, alpha, learning_rate=0.05, theta=theta))
    learner.step()
    pi, d = np.exp(theta), soft.visitation(mdp, theta, mdp.rho)
    fisher = np.zeros((9, 9))
    for s in range(3):
        block = np.diag(pi[s]) - np.outer(pi[s], pi[s])
        fisher[3 * s : 3 * s + 3, 3 * s : 3 * s + 3] = d[s] * block
    gradient = soft.policy_gradient(task, theta, alpha, mdp.rho).ravel()
    direction = (np.linalg.pinv(fisher, rcond=1e-12) @ gradient).reshape(3, 3)
    # equal up to a shift of each row, which a softmax does not see
    expected = soft.log_softmax(theta + 0.05 * direction)
    np.testing.assert_allclose(learner.log_pi, expected, atol=1e-9)


def test_natural_gradient_with_the_largest_step_is_soft_policy_iteration() -> None:
    mdp = random_mdp(4)
    learner = begun(NaturalPG(mdp, 0.2, learning_rate=(1 - mdp.gamma) / 0.2))
    q = soft.evaluate(mdp.task(0), learner.log_pi, 0.2).q
    learner.step()
    np.testing.assert_allclose(learner.log_pi, soft.log_softmax(q / 0.2), atol=1e-10)
    for _ in range(20):
        learner.step()
    best = soft.soft_value_iteration(mdp.task(0), 0.2)
    np.testing.assert_allclose(learner.log_pi, best.log_pi, atol=1e-8)


@pytest.mark.parametrize("share", [0.4, 1.5, 2.2])
def test_a_natural_gradient_step_near_the_optimum_multiplies_the_error(share: float) -> None:
    """By 1 - ηα/(1-γ): it shrinks up to η = 2 (1-γ)/α, and grows beyond."""
    mdp, alpha = random_mdp(4), 0.2
    best = soft.soft_value_iteration(mdp.task(0), alpha)
    wrong = 1e-5 * np.random.default_rng(0).standard_normal(best.log_pi.shape)
    learner = begun(NaturalPG(mdp, alpha, theta=best.log_pi + wrong))
    before = learner.log_pi - best.log_pi
    learner.learning_rate = share * (1 - mdp.gamma) / alpha
    learner.step()
    np.testing.assert_allclose(learner.log_pi - best.log_pi, (1 - share) * before, atol=1e-8)


def test_exact_pg_climbs_monotonically_to_the_soft_optimum() -> None:
    mdp = random_mdp(6)
    learner = begun(ExactPG(mdp, 0.3, learning_rate=0.5), 1)
    best = soft.soft_value_iteration(mdp.task(1), 0.3)
    gaps = []
    for _ in range(3000):
        learner.step()
        gaps.append(soft.sub_optimality(mdp.task(1), learner.log_pi, 0.3, mdp.rho, best))
    assert (np.diff(gaps) <= 1e-12).all()
    assert gaps[-1] < 1e-3 * gaps[0]


def test_random_horizon_spg_learns() -> None:
    mdp = random_mdp(6)
    learner = begun(
        RandomHorizonSPG(mdp, 0.3, two_phase_schedule(300, 1000, 2000, 0.1, 10.0), 0), 1
    )
    best = soft.soft_value_iteration(mdp.task(1), 0.3)
    gap = lambda: soft.sub_optimality(mdp.task(1), learner.log_pi, 0.3, mdp.rho, best)  # noqa: E731
    before = gap()
    infos = [learner.step() for _ in range(500)]
    assert gap() < 0.2 * before
    assert all(info.env_steps >= 1000 for info in infos)


def test_two_phase_schedule() -> None:
    schedule = two_phase_schedule(T1=10, B1=5, B2=50, eta=0.2, t0=4.0)
    assert schedule(0) == (5, 0.2)
    assert schedule(10) == (5, 0.2)
    assert schedule(11) == (50, 1 / 5)
    assert schedule(16) == (50, 1 / 10)
    assert RandomHorizonSPG(random_mdp(0), 0.1, schedule).learning_rate == 0.2


@pytest.mark.parametrize("spread", [1.0, 60.0, 300.0])
def test_the_smallest_probability_is_found_also_where_float32_underflows(spread: float) -> None:
    mdp = random_mdp(3)
    theta = np.zeros((mdp.n_states, mdp.n_actions))
    theta[1, 0] = spread
    for learner in (
        BatchSPG(mdp, 0.1, 5, batch=70, horizon=7, theta=theta),
        ExactPG(mdp, 0.1, theta=theta),
    ):
        begun(learner)
        for _ in range(3):
            expected = soft.log_softmax(learner.theta).min()
            assert learner.least_log_pi() == pytest.approx(expected, abs=1e-5)
            learner.step()


@pytest.mark.parametrize(
    "make",
    [
        lambda mdp: BatchSPG(mdp, 0.1, 5, batch=70, horizon=7),
        lambda mdp: BatchSPG(mdp, 0.1, 5, batch=70, horizon=7, exact=True),
        lambda mdp: RandomHorizonSPG(mdp, 0.1, two_phase_schedule(3, 8, 9, 0.1, 2.0), 5),
        lambda mdp: ExactPG(mdp, 0.1),
    ],
    ids=["batch", "exact", "spg", "pg"],
)
def test_learner_state_round_trips_bit_for_bit(make) -> None:
    whole, first, second = (begun(make(random_mdp(3))) for _ in range(3))
    for _ in range(5):
        whole.step()
        first.step()
    second.set_state(first.get_state())
    for _ in range(5):
        whole.step()
        second.step()
    np.testing.assert_array_equal(whole.theta, second.theta)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m: BatchSPG(m, 0.1, batch=0), "batch must be at least 1"),
        (lambda m: BatchSPG(m, 0.1, horizon=0), "horizon must be at least 1"),
        (lambda m: BatchSPG(m, -0.1), "alpha must be greater than 0"),
        (lambda m: BatchSPG(m, 0.1, learning_rate=0.0), "learning_rate"),
        (lambda m: BatchSPG(m, 0.1, theta=np.zeros((2, 2))), "theta must be finite"),
        (lambda m: NaturalPG(m, 0.1, learning_rate=100.0), "moves away from the optimum"),
        (lambda m: two_phase_schedule(1, 0, 1, 0.1, 1.0), "B1"),
    ],
)
def test_bad_learner_options_are_named(make, words: str, mdp: ContextualMDP) -> None:
    with pytest.raises(RollinError, match=words):
        make(mdp)
