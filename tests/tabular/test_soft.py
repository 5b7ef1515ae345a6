"""Exact tools against series, enumeration, finite differences and fixed points."""

import itertools
from collections.abc import Iterator
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp as scipy_logsumexp

from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.families import four_rooms
from rollin.tabular.mdp import ContextualMDP, TabularTask
from tests.conftest import mdps, random_log_pi, random_mdp


@given(arrays(np.float64, (3, 5), elements=st.floats(-1e4, 1e4) | st.just(-np.inf)))
def test_log_sums_of_exponentials_are_those_of_scipy(x: np.ndarray) -> None:
    expected = np.asarray(scipy_logsumexp(x, axis=-1))
    np.testing.assert_allclose(soft.logsumexp(x), expected, rtol=1e-15, atol=1e-15)


def test_a_log_sum_is_exact_where_one_term_is_far_above_the_others_and_keeps_nan() -> None:
    x = np.array([[0.0, -40.0], [5.0, 5.0], [-np.inf, -np.inf], [np.nan, 0.0]])
    result = soft.logsumexp(x)
    np.testing.assert_allclose(result[:2], [np.exp(-40.0), 5 + np.log(2)], rtol=1e-15)
    np.testing.assert_array_equal(result[2:], [-np.inf, np.nan])


@given(mdps(), st.sampled_from([1e-4, 1e-2, 0.3, 5.0]))
@settings(max_examples=60)
def test_soft_value_iteration_reaches_its_fixed_point(mdp: ContextualMDP, alpha: float) -> None:
    task = mdp.task(mdp.K)
    result = soft.soft_value_iteration(task, alpha, tolerance=1e-9)
    assert result.error <= 1e-9
    np.testing.assert_allclose(soft.soft_backup(task, alpha, result.q), result.q, atol=1e-9)
    np.testing.assert_allclose(np.exp(result.log_pi).sum(1), 1, atol=1e-9)
    value = soft.evaluate(task, soft.log_softmax(result.log_pi), alpha)
    np.testing.assert_allclose(value.v, result.v, atol=1e-7)


def test_plain_iteration_agrees_within_the_stated_tolerance() -> None:
    task = random_mdp(3, gamma=0.9).task(1)
    q = np.zeros_like(task.r)
    for _ in range(2000):
        q = soft.soft_backup(task, 0.1, q)
    result = soft.soft_value_iteration(task, 0.1, tolerance=1e-6)
    assert np.abs(result.q - q).max() <= 1e-6


def test_four_rooms_is_stable_at_alpha_1e_4_and_close_to_the_hard_maximum() -> None:
    task = four_rooms("easy").task(16)
    result = soft.soft_value_iteration(task, 1e-4)
    assert np.isfinite(result.q).all()
    assert np.isfinite(result.log_pi).all()
    v = np.zeros(144)
    for _ in range(2000):
        v = (task.r + 0.95 * v[task.mdp.transitions]).max(1)
    gap = result.v - v  # 0 ≤ V_soft - V_hard ≤ α log A / (1-γ)
    assert gap.min() >= -1e-9
    assert gap.max() <= 1e-4 * np.log(105) / 0.05


def test_a_tolerance_below_float64_is_refused() -> None:
    task = random_mdp(0, gamma=0.9999).task(0)
    with pytest.raises(RollinError, match="finer than float64"):
        soft.soft_value_iteration(task, 0.1, tolerance=1e-16)


def test_an_overflow_ends_with_a_sentence(mdp: ContextualMDP) -> None:
    with pytest.raises(RollinError, match="overflows at alpha = 1e-308"):
        soft.soft_value_iteration(mdp.task(0), 1e-308)


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf])
def test_alpha_must_be_positive(alpha: float, mdp: ContextualMDP) -> None:
    with pytest.raises(RollinError, match="alpha must be greater than 0"):
        soft.soft_value_iteration(mdp.task(0), alpha)


@given(mdps(), st.integers(0, 99), st.sampled_from([0.0, 0.2]))
@settings(max_examples=40)
def test_evaluation_and_visitation_equal_their_series(
    mdp: ContextualMDP, seed: int, alpha: float
) -> None:
    task, log_pi = mdp.task(0), random_log_pi(mdp, seed)
    pi, kernel = np.exp(log_pi), mdp.policy_kernel(np.exp(log_pi))
    immediate = (pi * (task.r - alpha * log_pi)).sum(1)
    value, d, weight = np.zeros(mdp.n_states), np.zeros(mdp.n_states), 1.0
    state = np.eye(mdp.n_states)
    law = mdp.rho.copy()
    for _ in range(1200):
        value += weight * state @ immediate
        d += (1 - mdp.gamma) * weight * law
        state, law, weight = state @ kernel, law @ kernel, weight * mdp.gamma
    result = soft.evaluate(task, log_pi, alpha)
    np.testing.assert_allclose(result.v, value, atol=1e-8)
    np.testing.assert_allclose((pi * (result.q - alpha * log_pi)).sum(1), value, atol=1e-8)
    np.testing.assert_allclose(soft.visitation(mdp, log_pi, mdp.rho), d, atol=1e-10)


def test_t_step_values() -> None:
    mdp = random_mdp(5, gamma=0.9)
    task, log_pi = mdp.task(0), random_log_pi(mdp, 1)
    one = soft.evaluate(task, log_pi, 0.3, horizon=1)
    np.testing.assert_allclose(one.v, (np.exp(log_pi) * (task.r - 0.3 * log_pi)).sum(1))
    np.testing.assert_allclose(one.q, task.r)
    endless = soft.evaluate(task, log_pi, 0.3)
    np.testing.assert_allclose(soft.evaluate(task, log_pi, 0.3, horizon=400).v, endless.v)
    with pytest.raises(RollinError, match="at least 1"):
        soft.evaluate(task, log_pi, horizon=0)


@given(mdps(max_states=4, max_actions=4), st.integers(0, 99))
@settings(max_examples=25)
def test_policy_gradient_equals_finite_differences(mdp: ContextualMDP, seed: int) -> None:
    task, alpha = mdp.task(1), 0.1
    theta = random_log_pi(mdp, seed)

    def value(t: np.ndarray) -> float:
        return float(mdp.rho @ soft.evaluate(task, soft.log_softmax(t), alpha).v)

    result = soft.policy_gradient(task, soft.log_softmax(theta), alpha, mdp.rho)
    step = 1e-5
    for s, a in itertools.product(range(mdp.n_states), range(mdp.n_actions)):
        bump = np.zeros_like(theta)
        bump[s, a] = step
        slope = (value(theta + bump) - value(theta - bump)) / (2 * step)
        assert result[s, a] == pytest.approx(slope, abs=1e-7)


def trajectories(
    mdp: ContextualMDP, log_pi: np.ndarray, mu: np.ndarray, T: int
) -> Iterator[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    """Every trajectory of T steps with its probability."""
    S, A = mdp.n_states, mdp.n_actions
    P = np.eye(S)[mdp.transitions] if mdp.deterministic else mdp.transitions
    pi = np.exp(log_pi)
    for states in itertools.product(range(S), repeat=T):
        for actions in itertools.product(range(A), repeat=T):
            chance = mu[states[0]]
            for t in range(T):
                chance *= pi[states[t], actions[t]]
                if t + 1 < T:
                    chance *= P[states[t], actions[t], states[t + 1]]
            if chance > 0:
                yield chance, states, actions


def enumerate_batch(
    task: TabularTask, log_pi: np.ndarray, alpha: float, mu: np.ndarray, T: int
) -> tuple[np.ndarray, float]:
    """E[(1/T) Σ_t ∇ log π(a_t|s_t) R_t] and P(success), over every trajectory of T steps."""
    pi = np.exp(log_pi)
    gradient, success = np.zeros_like(task.r), 0.0
    for chance, states, actions in trajectories(task.mdp, log_pi, mu, T):
        to_go = 0.0
        hit = False
        for t in reversed(range(T)):
            s, a = states[t], actions[t]
            to_go = task.r[s, a] - alpha * log_pi[s, a] + task.mdp.gamma * to_go
            gradient[s] -= chance * to_go * pi[s] / T
            gradient[s, a] += chance * to_go / T
            hit |= bool(task.success[s, a])
        success += chance * hit
    return gradient, success


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("discount", [1.0, 0.7, 0.0])
def test_expected_sums_equal_full_enumeration(deterministic: bool, discount: float) -> None:
    mdp = random_mdp(11, S=3, A=2, gamma=0.7, deterministic=deterministic)
    log_pi, table, T = random_log_pi(mdp, 3), mdp.task(1).r, 4
    expected = sum(
        chance * sum(discount**t * table[states[t], actions[t]] for t in range(T))
        for chance, states, actions in trajectories(mdp, log_pi, mdp.rho, T)
    )
    assert soft.expected_sum(mdp, log_pi, table, T, discount) == pytest.approx(expected)


@given(mdps(), st.integers(1, 60))
@settings(max_examples=30)
def test_an_expected_sum_with_discount_gamma_is_the_value(mdp: ContextualMDP, horizon: int) -> None:
    task, log_pi = mdp.task(mdp.K), random_log_pi(mdp, 1)
    value = float(mdp.rho @ soft.evaluate(task, log_pi, 0.0, horizon).v)
    assert soft.expected_sum(mdp, log_pi, task.r, horizon, mdp.gamma) == pytest.approx(value)
    ones = np.ones_like(task.r)
    assert soft.expected_sum(mdp, log_pi, ones, horizon) == pytest.approx(horizon)


def test_an_expected_sum_over_no_steps_is_refused(mdp: ContextualMDP) -> None:
    with pytest.raises(RollinError, match="horizon"):
        soft.expected_sum(mdp, random_log_pi(mdp, 0), mdp.task(0).r, 0)


@pytest.mark.parametrize("deterministic", [True, False])
def test_batch_gradient_and_success_equal_full_enumeration(deterministic: bool) -> None:
    mdp = random_mdp(7, S=3, A=2, gamma=0.7, deterministic=deterministic)
    task, log_pi = mdp.task(2), random_log_pi(mdp, 3)
    gradient, success = enumerate_batch(task, log_pi, 0.2, mdp.rho, T=4)
    result = soft.batch_gradient(task, log_pi, 0.2, mdp.rho, horizon=4)
    np.testing.assert_allclose(result, gradient, atol=1e-12)
    assert soft.success_probability(task, log_pi, mdp.rho, 4) == pytest.approx(success, abs=1e-12)


@given(mdps(), st.integers(0, 99), st.sampled_from([1e-3, 0.05, 1.0]))
@settings(max_examples=40)
def test_sub_optimality_lemma_is_an_identity(mdp: ContextualMDP, seed: int, alpha: float) -> None:
    task, log_pi = mdp.task(0), random_log_pi(mdp, seed)
    optimum = soft.soft_value_iteration(task, alpha, tolerance=1e-9)
    left = float(mdp.rho @ (optimum.v - soft.evaluate(task, log_pi, alpha).v))
    right = soft.sub_optimality(task, log_pi, alpha, mdp.rho, optimum)
    assert left == pytest.approx(right, rel=1e-8, abs=1e-8)
    assert right >= -1e-12


@given(mdps(), st.integers(0, 99), st.integers(100, 199))
@settings(max_examples=25)
def test_soft_performance_difference_lemma(mdp: ContextualMDP, one: int, two: int) -> None:
    """Lemma 25 of Mei et al., restated in the proof of Lemma B.3."""
    task, alpha = mdp.task(0), 0.3
    log_new, log_old = random_log_pi(mdp, one), random_log_pi(mdp, two)
    new, old = soft.evaluate(task, log_new, alpha), soft.evaluate(task, log_old, alpha)
    d = soft.visitation(mdp, log_old, mdp.rho)
    change = (np.exp(log_new) - np.exp(log_old)) * (new.q - alpha * log_new)
    kl = (np.exp(log_old) * (log_old - log_new)).sum(1)
    right = d @ (change.sum(1) + alpha * kl) / (1 - mdp.gamma)
    assert float(mdp.rho @ (new.v - old.v)) == pytest.approx(right, abs=1e-8)


@given(mdps(), st.integers(0, 99), st.integers(100, 199))
@settings(max_examples=25)
def test_soft_backup_is_a_contraction(mdp: ContextualMDP, one: int, two: int) -> None:
    task = mdp.task(0)
    q1, q2 = 10 * random_log_pi(mdp, one), 10 * random_log_pi(mdp, two)
    moved = np.abs(soft.soft_backup(task, 0.2, q1) - soft.soft_backup(task, 0.2, q2)).max()
    assert moved <= mdp.gamma * np.abs(q1 - q2).max() + 1e-12


@pytest.mark.parametrize("shift", [1e-12, 1e-8, 1e-4, 0.1, 0.49, 0.51, 3.0, 900.0])
def test_sub_optimality_keeps_its_digits_near_the_optimum(shift: float) -> None:
    """One state, log-odds 0.3 and 0.3 + shift, against 50 digits of decimal arithmetic."""
    mdp = ContextualMDP(np.zeros((1, 2), int), np.zeros((2, 1, 2)), 0.5, np.ones(1))

    def log_policy(odds: Decimal) -> list[Decimal]:
        norm = (1 + odds.exp()).ln()
        return [-norm, odds - norm]

    # what the two floats differ by, exactly
    base = 0.3
    odds = (Decimal(base + shift), Decimal(base))
    with localcontext(prec=50):
        p, q = (log_policy(o) for o in odds)
        exact = sum(a.exp() * (a - b) for a, b in zip(p, q, strict=True))
    log_p, log_q = (np.array([[float(x) for x in law]]) for law in (p, q))
    optimum = soft.SoftOptimum(log_q, np.zeros(1), log_q, 0.0, 0)
    result = soft.sub_optimality(mdp.task(0), log_p, 1.0, mdp.rho, optimum)
    # α/(1-γ) = 2; ln π is rounded to 1e-16, of which shift is what it is
    assert result == pytest.approx(2 * float(exact), rel=1e-14 + 1e-15 / shift)
    same = soft.SoftOptimum(log_p, np.zeros(1), log_p, 0.0, 0)
    assert soft.sub_optimality(mdp.task(0), log_p, 1.0, mdp.rho, same) == 0.0


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_largest_chance_of_success_is_that_of_the_best_plan(deterministic: bool) -> None:
    """Against all plans of which action to take in which state at which time."""
    mdp = random_mdp(28, 2, 2, 2, deterministic=deterministic)
    task, horizon = mdp.task(1), 3
    kernel = np.stack([mdp.policy_kernel(np.eye(2)[[a, a]]) for a in range(2)])
    best = np.zeros(2)
    for flat in itertools.product(range(2), repeat=2 * horizon):
        plan = np.reshape(flat, (horizon, 2))
        missed = np.ones(2)
        for actions in plan[::-1]:
            missed = np.array(
                [(not task.success[s, a]) * kernel[a, s] @ missed for s, a in enumerate(actions)]
            )
        best = np.maximum(best, 1 - missed)
    np.testing.assert_allclose(soft.most_success(task, horizon), best)
    assert 0 < best.min() < 1 or deterministic


@given(mdps(), st.integers(0, 99), st.integers(1, 20))
@settings(max_examples=25)
def test_no_policy_succeeds_more_often_than_the_largest_chance(mdp, seed, horizon) -> None:
    log_pi, task = random_log_pi(mdp, seed), mdp.task(mdp.K)
    most = float(mdp.rho @ soft.most_success(task, horizon))
    assert soft.success_probability(task, log_pi, mdp.rho, horizon) <= most + 1e-12
