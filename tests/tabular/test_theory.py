"""Constants by hand, bounds on random MDPs, magnitudes beyond floats."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from rollin.curriculum.contexts import SuccessRate
from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.algorithm1 import TabularState, rollin
from rollin.tabular.families import combination_lock, four_rooms
from rollin.tabular.learners import ExactPG
from rollin.tabular.mdp import ContextualMDP
from rollin.tabular.start import Start, roll_in, roll_in_discount
from rollin.tabular.theory.analysis import (
    Theory,
    analyse,
    learned_terms,
    lemma_bounds,
    lipschitz_constant,
    optimal_starts,
    visits_of,
)
from rollin.tabular.theory.constants import (
    Magnitude,
    StepSizeCondition,
    default_step_size,
    largest_ratio,
    log_min_probability,
    smoothness,
)
from rollin.tabular.theory.totals import is_below, scaling, total
from tests.conftest import mdps, random_log_pi, random_mdp


def small(gamma: float = 0.5, uniform: bool = True) -> ContextualMDP:
    """Two states, two actions, three close contexts."""
    rewards = np.array([[[0.5, 0.2], [0.1, 0.4]]] * 3)
    rewards[1, 0, 0] += 0.01
    rewards[2, 0, 0] += 0.03
    rho = np.array([0.5, 0.5]) if uniform else np.array([1.0, 0.0])
    contexts = np.array([0.0, 0.1, 0.3])
    return ContextualMDP(np.array([[0, 1], [1, 0]]), rewards, gamma, rho, contexts)


def test_lipschitz_constant_by_hand() -> None:
    assert lipschitz_constant(small()) == pytest.approx(0.1)  # 0.01/0.1, 0.02/0.2, 0.03/0.3
    same_place = small().replace(contexts=np.array([0.0, 0.0, 1.0]))
    assert lipschitz_constant(same_place) == math.inf
    result = analyse(same_place, 0.5, 0.5).assumptions
    assert not result.lipschitz_holds


def test_constants_by_hand() -> None:
    mdp, alpha, delta, zeta = small(), 0.5, 0.1, 0.5
    result = analyse(mdp, alpha, 0.5, delta=delta, zeta=zeta, epsilon=1e-13).constants[-1]
    best = soft.soft_value_iteration(mdp.task(2), alpha)
    eps0 = (alpha * 0.5 / (6 * math.log(2))) ** 2 * (zeta * math.exp(-1 / (0.5 * alpha))) ** 4
    assert math.exp(result.eps0.log) == pytest.approx(eps0)
    sigma2 = 8 / 0.25 * (1 + (alpha * math.log(2)) ** 2) / (1 - math.sqrt(0.5)) ** 2
    assert result.sigma2 == pytest.approx(sigma2)
    assert pytest.approx((8 + alpha * (4 + 8 * math.log(2))) / 0.125) == result.L
    t0 = math.sqrt(3 * sigma2 / (2 * delta * eps0))
    assert math.exp(result.t0.log) == pytest.approx(t0)
    d = soft.visitation(mdp, best.log_pi, mdp.rho)
    mismatch = (d / mdp.rho).max()
    assert math.exp(result.mismatch.log) == pytest.approx(mismatch)
    C_zeta = 2 * alpha / 2 / mismatch * 0.5 * 0.25 * np.exp(best.log_pi).min() ** 2
    assert math.exp(result.C_zeta.log) == pytest.approx(C_zeta)
    T2 = (eps0 / (6 * delta * 1e-13) - 1) * t0
    assert math.exp(result.T2.log) == pytest.approx(T2)
    B2 = sigma2 * math.log(T2 + t0) / (6 * C_zeta * delta * 1e-13)
    assert math.exp(result.B2.log) == pytest.approx(B2)
    uniform = soft.evaluate(mdp.task(2), np.log(np.full((2, 2), 0.5)), alpha)
    assert pytest.approx(float(mdp.rho @ (best.v - uniform.v))) == result.D0
    log_T1 = 8 * result.L / math.log(2) / math.exp(result.C_delta.log)
    log_T1 *= math.log(6 * result.D0 / (delta * eps0))
    assert result.T1.log == pytest.approx(log_T1)
    scale = 6 * math.sqrt(sigma2) / (math.exp(result.delta_bar.log) * result.L)
    assert result.B1.log == pytest.approx(math.log(scale) + log_T1 + math.log(log_T1))


def test_phase_two_is_empty_when_epsilon_is_large() -> None:
    assert str(analyse(small(), 0.5, 0.5, epsilon=0.1).constants[0].T2) == "0"


@given(st.integers(0, 999), st.floats(0.01, 6.0))
@settings(max_examples=8)
def test_smallest_probability_over_a_ball_against_an_optimiser(seed: int, radius: float) -> None:
    log_pi = random_log_pi(random_mdp(seed, S=1, A=4), seed)
    result = log_min_probability(log_pi, radius)
    rng = np.random.default_rng(seed)

    def value(u: np.ndarray, a: int) -> float:
        return float(soft.log_softmax(log_pi[0] + radius * u / np.linalg.norm(u))[a])

    best = min(
        optimize.minimize(value, rng.normal(size=4), args=(a,), method="BFGS").fun
        for a in range(4)
        for _ in range(4)
    )
    assert result <= best + 2e-3  # the optimiser may stop at a local minimum
    assert result >= log_pi.min() - math.sqrt(2) * radius  # the gradient's norm is at most √2


@given(mdps(), st.sampled_from([0.02, 0.3, 2.0]), st.sampled_from([0.1, 0.5, 0.9]))
@settings(max_examples=40)
def test_unconditional_lemmas_hold_on_random_mdps(
    mdp: ContextualMDP, alpha: float, beta: float
) -> None:
    """Q, policy and value gap need Assumption 3.1 alone, which L_r of the curriculum grants."""
    optima = [soft.soft_value_iteration(mdp.task(k), alpha, 1e-9) for k in range(mdp.K + 1)]
    starts = optimal_starts(mdp, optima, beta)
    visits = visits_of(mdp, optima, starts)
    bounds = lemma_bounds(mdp, alpha, beta, optima, starts, visits)
    assert len(bounds) == 5 * mdp.K
    for bound in bounds:
        if bound.lemma in ("Q difference", "policy difference", "value gap"):
            assert bound.holds, bound


@given(mdps(), st.sampled_from([0.3, 2.0]), st.sampled_from([0.1, 0.5, 0.9]))
@settings(max_examples=40)
def test_visitation_lemmas_hold_where_their_condition_does(
    mdp: ContextualMDP, alpha: float, beta: float
) -> None:
    theory = analyse(mdp, alpha, beta)
    if not theory.assumptions.shift_holds:
        return
    for bound in theory.bounds:
        assert bound.holds, bound


def test_a_violated_lemma_is_reported() -> None:
    """Equal rewards leave no room for the visitation to change; ρ far from d makes it change."""
    mdp = small(gamma=0.9, uniform=False)
    mdp = mdp.replace(rewards=np.repeat(mdp.rewards[:1], 3, axis=0), contexts=[0, 1e-6, 2e-6])
    theory = analyse(mdp.smooth_rho(0.1), 0.5, 0.5)
    assert not theory.assumptions.shift_holds
    verdicts = {b.lemma: b.verdict for b in theory.bounds if b.k == 1}
    assert verdicts["visitation difference"] == "VIOLATED"
    assert verdicts["policy difference"] == "holds"


def test_mismatch_ratio_is_infinite_off_the_support() -> None:
    mdp = small(uniform=False)
    log_pi = np.log(np.full((2, 2), 0.5))
    with np.errstate(divide="ignore"):
        log_rho = np.log(mdp.rho)
        log_d = soft.log_visitation(mdp, log_pi, log_rho)
        assert largest_ratio(log_d, log_rho).log == math.inf
    constants = analyse(mdp, 0.5, 0.5).constants[0]
    assert math.isnan(constants.B2.log)
    assert str(constants.B2) == "–"


@cache
def smoothed_rooms() -> Theory:
    return analyse(four_rooms("easy").smooth_rho(0.01), 0.01, 0.75)


def test_four_rooms_mismatch_grows_with_roll_in_at_the_last_context() -> None:
    """A finding: with 1 % smoothing the ratio is better on the first contexts, worse at last."""
    theory = smoothed_rooms()
    plain, rolled = theory.constants, theory.constants_rollin
    assert rolled[1].mismatch < plain[1].mismatch
    assert plain[16].mismatch < rolled[16].mismatch
    assert math.exp(plain[16].mismatch.log) == pytest.approx(6.4e3, rel=0.02)
    assert math.exp(rolled[16].mismatch.log) == pytest.approx(2.2e4, rel=0.02)
    assert theory.identity_error < 1e-8
    assert not theory.assumptions.steps_hold
    assert all(b.holds for b in theory.bounds)


def test_log_visitation_equals_the_plain_one_and_goes_on_where_it_underflows() -> None:
    for mdp in (random_mdp(3), random_mdp(4, deterministic=True), random_mdp(5, gamma=0.0)):
        log_pi = random_log_pi(mdp, 1, spread=3.0)
        with np.errstate(divide="ignore"):
            expected = np.log(soft.visitation(mdp, log_pi, mdp.rho))
            np.testing.assert_allclose(
                soft.log_visitation(mdp, log_pi, np.log(mdp.rho)), expected, atol=1e-8
            )
    # a chain of 30 states whose steps forward have probability e^-100 each
    chain = np.minimum(np.arange(30)[:, None] + [0, 1], 29)
    mdp = ContextualMDP(chain, np.zeros((2, 30, 2)), 0.5, np.eye(30)[0])
    log_pi = np.tile([math.log1p(-math.exp(-100)), -100.0], (30, 1))
    with np.errstate(divide="ignore"):
        result = soft.log_visitation(mdp, log_pi, np.log(mdp.rho))
    # d(s) = (1-γ) Σ_t γ^t C(t, s) p^s (1-p)^{t-s} → (γp)^s / (1-γ)^s for tiny p and s < 29
    np.testing.assert_allclose(np.diff(result)[:-1], -100.0, atol=1e-6)


def test_four_rooms_without_smoothing_gains_from_roll_in() -> None:
    """From ρ the ratio is infinite; from μ_k it is finite, if beyond floats at first sight."""
    theory = analyse(four_rooms("easy"), 0.01, 0.75)
    assert all(c.mismatch.log == math.inf for c in theory.constants)
    result = [c.mismatch.log for c in theory.constants_rollin]
    assert result[1] == pytest.approx(273.55, abs=0.01)
    assert result[2] == pytest.approx(188.59, abs=0.01)
    assert all(math.isfinite(x) for x in result[1:])


def test_equal_rewards_need_no_small_steps() -> None:
    mdp = small()
    same = mdp.replace(rewards=np.repeat(mdp.rewards[:1], 3, axis=0))
    assert analyse(same, 0.5, 0.5).assumptions.steps_hold


# ------------------------------------------------------------------ by hand, on two states


def by_hand() -> ContextualMDP:
    """Action a leads to state a; π* is (½, ½), then (¼, ¾), then (¾, ¼) in both states."""
    rewards = np.zeros((3, 2, 2))
    rewards[1, :, 1] = rewards[2, :, 0] = math.log(3) / 2
    return ContextualMDP(np.array([[0, 1], [0, 1]]), rewards, 0.5, np.array([2 / 3, 1 / 3]))


@pytest.fixture(scope="module")
def theory() -> Theory:
    return analyse(by_hand(), 0.5, 0.5)


def value(number: Magnitude) -> float:
    return math.exp(number.log)


def test_ratio_and_sub_optimality_by_hand(theory: Theory) -> None:
    plain, rolled = theory.constants, theory.constants_rollin
    np.testing.assert_allclose(np.exp(theory.optima[1].log_pi), [[0.25, 0.75]] * 2)
    assert value(plain[1].eps0) == pytest.approx(1.13e-11, rel=1e-3)
    assert value(plain[1].mismatch) == pytest.approx(13 / 8)
    assert value(rolled[1].mismatch) == pytest.approx(3 / 2)
    np.testing.assert_allclose(np.exp(theory.log_starts[1]), [5 / 8, 3 / 8])
    np.testing.assert_allclose(np.exp(theory.log_starts[2]), [53 / 96, 43 / 96])
    assert theory.roll_in_discount == pytest.approx(2 / 3)


def test_the_warm_start_is_the_previous_optimum_and_may_be_the_worse_one(theory: Theory) -> None:
    cold, warm = math.log(4 / 3) / 2, math.log(3) / 2  # KL(½ ‖ π*), KL(π*_1 ‖ π*_2); α/(1-γ) = 1
    assert [c.D0 for c in theory.constants] == pytest.approx([0, cold, cold], abs=1e-12)
    assert [c.D0 for c in theory.constants_rollin] == pytest.approx([0, cold, warm], abs=1e-12)
    starts = theory.totals.contexts
    assert [(s.cold, s.warm) for s in starts] == [
        (p.D0, r.D0) for p, r in zip(theory.constants, theory.constants_rollin, strict=True)
    ]
    assert [value(c.c) for c in theory.constants_rollin] == pytest.approx([0.5, 0.25, 0.25])
    assert theory.constants_rollin[2].T1.log > 0


def test_four_rooms_warm_start() -> None:
    theory = smoothed_rooms()
    last = theory.totals.contexts[16]
    assert (last.cold, last.warm) == pytest.approx((7.98, 0.477), abs=0.005)
    assert {s.verdict for s in theory.totals.contexts} == {"no"}
    assert all(s.vacuous for s in theory.totals.contexts[1:])


def test_totals_by_hand() -> None:
    delta = 0.1
    theory = analyse(by_hand(), 0.5, 0.5, delta=delta)
    eps0 = (0.5 / 3 / (6 * math.log(2))) ** 2 * (0.5 * math.exp(-4)) ** 4
    sigma2 = 32 * (1 + (0.5 * math.log(2)) ** 2) / (1 - math.sqrt(0.5)) ** 2
    t0 = math.sqrt(3 * sigma2 / (2 * delta * eps0))
    T2 = (2 / (6 * delta) - 1) * t0  # ε = ε_0/2

    def B2(mismatch: float, smallest: float) -> float:
        C_zeta = 0.5 / mismatch * smallest * 0.25 / 16  # 2α/S = ½, min π* = ¼
        return sigma2 * math.log(T2 + t0) / (6 * C_zeta * delta * eps0 / 2)

    # ‖d/μ‖ of k = 2: from ρ (17/24) / (2/3), from μ_2 ½ + ½ (¾) / (53/96)
    rho = [B2(13 / 8, 1 / 3), B2(17 / 16, 1 / 3)]
    mu = [B2(3 / 2, 3 / 8), B2(0.5 + 0.375 * 96 / 53, 43 / 96)]
    totals = theory.totals
    assert value(totals.steps) == pytest.approx(2 * T2)
    assert value(totals.samples_rho) == pytest.approx(T2 * sum(rho))
    assert value(totals.samples_mu) == pytest.approx(T2 * sum(mu))
    assert totals.failure == pytest.approx(3 * delta)


@pytest.mark.parametrize(
    ("change", "verdict"), [(0.0, "yes"), (1e-13, "yes"), (1e-8, "from π* only"), (1e-3, "no")]
)
def test_whether_a_context_begins_in_phase_two(change: float, verdict: str) -> None:
    """The gap of π*_{k-1} is quadratic in the change of the reward, that of others linear."""
    mdp = by_hand()
    rewards = np.repeat(mdp.rewards[1:2], 3, axis=0)
    rewards[1:, 0, 0] += change
    theory = analyse(mdp.replace(rewards=rewards), 0.5, 0.5)
    first, second, third = theory.totals.contexts
    assert first.verdict == "no"  # D(θ = 0) = ½ ln(4/3)
    assert second.verdict == verdict
    assert third.verdict == "yes"  # nothing changes any more
    assert theory.totals.entering == (verdict != "no") + 1
    assert second.warm == pytest.approx(0, abs=change**2 / (2 * 0.5 * 0.125) + 1e-15)


@pytest.mark.parametrize(
    ("change", "verdict"), [(0.0, "yes"), (1e-15, "not resolved"), (1e-6, "no"), (1e-3, "no")]
)
def test_a_gap_far_above_a_tiny_threshold_is_not_taken_for_zero(
    change: float, verdict: str
) -> None:
    """α = 0.02: ε_0 = 10^-180, and D is quadratic in the change down to rounding errors."""
    mdp = small()
    rewards = np.repeat(mdp.rewards[:1], 3, axis=0)
    rewards[1:, 0, 0] += change
    theory = analyse(mdp.replace(rewards=rewards), 0.02, 0.5)
    _, second, third = theory.totals.contexts
    assert second.eps0.log / math.log(10) == pytest.approx(-180, abs=1)
    assert (second.verdict, third.verdict) == (verdict, "yes")
    assert theory.totals.unresolved == (verdict == "not resolved")
    assert theory.totals.entering == (verdict == "yes") + 1
    if change >= 1e-6:
        assert second.warm == pytest.approx(2.197e-6 * change**2, rel=0.03)
        assert second.floor < 1e-6 * second.warm


def test_near_optimal_start_is_strict_and_says_where_it_is_not_resolved() -> None:
    """Definition 4.2 has <; equal rewards make θ = 0 optimal, but for the optimum's errors."""
    threshold = Magnitude.of(0.25)
    assert is_below(0.24, 0.0, threshold) is True
    assert is_below(0.25, 0.0, threshold) is False
    assert is_below(0.24, 0.01, threshold) is None
    assert is_below(0.1, 0.0, Magnitude(math.nan)) is None
    mdp = small()
    flat = mdp.replace(rewards=np.full_like(mdp.rewards, 0.3))
    assert analyse(flat, 0.5, 0.5).assumptions.gap_holds is True
    assert analyse(flat, 0.02, 0.5).assumptions.gap_holds is None


@given(mdps(), st.integers(0, 99), st.sampled_from([0.3, 2.0]))
@settings(max_examples=25)
def test_no_policy_that_is_near_optimal_before_is_farther_off_than_said(
    mdp: ContextualMDP, seed: int, alpha: float
) -> None:
    """ε + 2‖r_k - r_{k-1}‖/(1-γ), with ε the gap of a random policy on the context before."""
    log_pi = random_log_pi(mdp, seed)
    before, after = (
        soft.sub_optimality(
            mdp.task(k), log_pi, alpha, mdp.rho, soft.soft_value_iteration(mdp.task(k), alpha)
        )
        for k in (0, 1)
    )
    if before > 1e-9:
        result = analyse(mdp, alpha, 0.5, epsilon=before).totals.contexts[1]
        assert after <= value(result.any_warm) * (1 + 1e-9)


def test_step_size_condition_by_hand(theory: Theory) -> None:
    last = theory.constants_rollin[-1]
    L = 80 + 32 * math.log(2)  # (8 + ½ (4 + 8 ln 2)) / (½)³
    assert smoothness(theory.mdp, 0.5) == pytest.approx(L)
    condition = StepSizeCondition(100, last.L, last.C_delta)
    first, second, third = condition.terms.values()
    assert value(first) == pytest.approx(math.log(100) / (100 * L)) == condition.limit
    assert second.log == pytest.approx(math.log(8) - last.C_delta.log)
    assert value(third) == pytest.approx(1 / (2 * L))
    assert condition.binding == "log T_1/(T_1 L)"
    assert default_step_size(100, last.L) == condition.limit
    assert StepSizeCondition(0, L).limit == pytest.approx(1 / (2 * L))  # no t with 1 ≤ t ≤ T_1
    assert StepSizeCondition(1, L).limit == 0
    with pytest.raises(RollinError, match="--phase1-steps of at least 2"):
        default_step_size(1, L)


@given(
    st.integers(2, 10**9), st.integers(1, 50), st.integers(1, 50),
    st.floats(1e-6, 1e6), st.floats(0, 0.99),
)  # fmt: skip
def test_the_first_term_of_the_step_size_always_binds(
    T1: int, S: int, A: int, alpha: float, gamma: float
) -> None:
    """With the largest C_δ⁰ there is: ‖d/μ‖ = 1, min ρ = 1/S, min π = 1/A."""
    mdp = ContextualMDP(np.zeros((S, A), int), np.zeros((2, S, A)), gamma, np.full(S, 1 / S))
    largest = Magnitude.of(2 * alpha / S / S / A**2)
    condition = StepSizeCondition(T1, smoothness(mdp, alpha), largest)
    assert condition.binding == "log T_1/(T_1 L)"


def test_predictor_by_hand(theory: Theory) -> None:
    predictor = theory.predictor
    assert [value(x) for x in predictor.plain] == pytest.approx([1, 13 / 10, 17 / 11])
    assert [value(x) for x in predictor.rolled] == pytest.approx([1, 26 / 21, 136 / 77])
    assert value(predictor.scratch) == pytest.approx(17 / 14)
    assert value(predictor.R_plain) == pytest.approx(1 + 13 / 10 + 17 / 11)
    assert value(predictor.R_rolled) == pytest.approx(1 + 26 / 21 + 136 / 77)


def test_predictor_with_the_optima_as_learned_policies_is_the_same(theory: Theory) -> None:
    mdp = theory.mdp
    policies = [optimum.log_pi for optimum in theory.optima[:-1]]
    result = learned_terms(mdp, theory.optima, policies, 0.5, recursive=True)
    assert [x.log for x in result] == pytest.approx([x.log for x in theory.predictor.rolled])
    without = learned_terms(mdp, theory.optima, policies[:1], 0.0, recursive=True)
    assert [x.log for x in without] == pytest.approx([x.log for x in theory.predictor.plain[:2]])


@pytest.mark.parametrize("beta", [0.0, 0.9])
def test_steps_of_exact_pg_on_a_lock_grow_with_the_predictor(beta: float) -> None:
    """An observation: η · steps / R stays near 3, from n = 8 to 12, as steps grow threefold."""
    ratios, counts = [], []
    for n in (8, 12):
        mdp, alpha, eta = combination_lock(n), 1e-4, 8 / n
        learner = ExactPG(mdp, alpha, learning_rate=eta, horizon=2 * n)
        state = TabularState.initial(mdp)
        rule = SuccessRate(0.5)
        for _ in rollin(
            mdp, learner, beta, rule, state, recursive=True, stop_when_mastered=True,
            measure=lambda learner, info, n=n: soft.success_probability(
                learner.task, learner.log_pi, learner.mdp.rho, 2 * n
            ),
        ):  # fmt: skip
            pass
        optima = [soft.soft_value_iteration(mdp.task(k), alpha, 1e-9) for k in range(n)]
        terms = learned_terms(mdp, optima, state.policies, beta, recursive=True)
        ratios.append(eta * state.step / value(total(terms)))
        counts.append(state.step)
    assert counts[1] > 2.5 * counts[0]
    assert all(3.0 < ratio < 3.8 for ratio in ratios)


@given(mdps(), st.integers(0, 99), st.sampled_from([0.1, 0.5, 0.9]))
@settings(max_examples=25)
def test_recursive_roll_in_tends_to_visitation_with_a_larger_discount(
    mdp: ContextualMDP, seed: int, beta: float
) -> None:
    log_pi = random_log_pi(mdp, seed)
    start = Start(mdp.rho)
    for _ in range(400):
        start = roll_in(mdp, start, log_pi, beta, recursive=True)
    slower = mdp.replace(gamma=roll_in_discount(mdp.gamma, beta))
    result = soft.visitation(mdp, log_pi, start.mu)
    np.testing.assert_allclose(result, soft.visitation(slower, log_pi, mdp.rho), atol=1e-12)
    if mdp.gamma > 0:
        assert slower.gamma > mdp.gamma


# ------------------------------------------------------------------ powers of S


def ring(S: int) -> ContextualMDP:
    """Stay or go round; under a uniform ρ every visitation is uniform, so that ‖d/μ‖ = 1."""
    here = np.arange(S)
    rewards = np.zeros((2, S, 2))
    rewards[:, :, 1] = 0.5
    transitions = np.stack([here, (here + 1) % S], axis=1)
    return ContextualMDP(transitions, rewards, 0.5, np.full(S, 1 / S))


def slope(small: float, large: float) -> float:
    """The power of S, from logarithms at S = 32 and 64."""
    return (large - small) / math.log(2)


@pytest.mark.parametrize(
    ("where", "power", "target"),
    [
        ("4.1", 1, lambda S, eps0: S * eps0 / 12),  # ε ~ 1/S, ε_0/(6δε) = 2
        ("4.3 one", 1, lambda S, eps0: eps0 / 2),
        ("4.3 all", 2, lambda S, eps0: eps0 / 2),  # δ = 1/K with K = S²
    ],
)
def test_the_powers_that_follow_are_those_of_the_constants(where, power, target) -> None:
    result, expected = [], []
    for S in (32, 64):
        eps0 = value(analyse(ring(S), 0.5, 0.5).constants[1].eps0)
        delta = S**-power
        epsilon = target(S, eps0)
        c = analyse(ring(S), 0.5, 0.5, delta=delta, epsilon=epsilon).constants_rollin[1]
        assert value(c.mismatch) == pytest.approx(1)
        log_batch = c.B2.log - math.log(np.logaddexp(c.T2.log, c.t0.log))  # without its logarithm
        excess = eps0 / (6 * delta * epsilon)
        log_steps = c.T2.log - math.log(1 - 1 / excess)  # T_2 = excess · (1 - 1/excess) t_0
        log_steps += 2 * math.log(S) if where == "4.3 all" else 0  # K T_2
        result.append((log_steps, log_batch))
        rows = {r.quantity: r for r in scaling(S, S**2) if r.where == where}
        steps = rows["K T_2" if where == "4.3 all" else "T_2"]
        expected.append((steps.follows_value.log, rows["B_2"].follows_value.log))
    for i in range(2):
        assert slope(result[0][i], result[1][i]) == pytest.approx(
            slope(expected[0][i], expected[1][i])
        )


def test_powers_of_the_corollary() -> None:
    small, large = (analyse(ring(S), 0.5, 0.5, delta=1 / S).constants[1] for S in (32, 64))
    assert slope(small.t0.log, large.t0.log) == pytest.approx(3 / 2)
    assert slope(small.eps0.log, large.eps0.log) == pytest.approx(-2)
    # 1/C_δ⁰ is e^{Ω(S^{3/2})}, not S³
    doubled = math.log(-large.C_delta.log) - math.log(-small.C_delta.log)
    assert doubled / math.log(2) == pytest.approx(3 / 2, abs=0.06)
    rows = {(r.where, r.quantity): r for r in scaling(144, 16)}
    assert value(rows["A.3", "B_2"].printed_value) == pytest.approx(144**5)
    assert rows["A.3", "T_1"].printed_value.log == pytest.approx(2 * 144**3 * math.log(144))
    assert rows["4.3 all", "K T_2"].follows == "K^{5/2} S"
    assert value(rows["4.3 all", "K T_2"].follows_value) == pytest.approx(16**2.5 * 144)
    assert [r.quantity for r in rows.values() if not r.differs] == ["1/ε_0", "1/C_ζ", "B_2"]
    assert all(bool(r.why) == r.differs for r in rows.values())


def test_a_run_s_smallest_probability_is_shown_and_enters_no_constant(theory: Theory) -> None:
    """It belongs to another trajectory than the one from the exact π*_{k-1}."""
    after = analyse(by_hand(), 0.5, 0.5, log_min_pi=[math.log(0.4), math.log(0.01)])
    assert [value(c.c) for c in after.constants_rollin] == pytest.approx([0.5, 0.25, 0.25])
    assert [s.tracked for s in after.smallest] == [math.log(0.4), math.log(0.01), None]
    assert after.constants_rollin == theory.constants_rollin
    assert after.constants == theory.constants


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Magnitude.of(0.0), "0"),
        (Magnitude.of(2.5), "2.5"),
        (Magnitude(math.log(3e9)), "3.000e+9"),
        (Magnitude(-8000.0), "10^-3474.36"),
        (Magnitude.from_loglog(math.log(20.0)), "4.852e+8"),
        (Magnitude.from_loglog(1000 * math.log(10) + math.log(math.log(10))), "10^(10^1000)"),
        (Magnitude(math.inf), "∞"),
    ],
)
def test_magnitudes_print_as_numbers_or_powers(value: Magnitude, text: str) -> None:
    assert str(value) == text


def test_magnitudes_are_ordered() -> None:
    sizes = [Magnitude.of(0), Magnitude.of(3), Magnitude(900), Magnitude.from_loglog(800.0)]
    assert sorted(sizes, reverse=True)[::-1] == sizes
    assert Magnitude.from_loglog(800.0) < Magnitude.from_loglog(801.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beta": 0.0}, "divide by β"),
        ({"delta": 0.0}, "delta must lie"),
        ({"zeta": 1.0}, "zeta must lie"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"alpha": 0.0}, "alpha"),
    ],
)
def test_bad_options_are_named(options: Any, words: str) -> None:
    with pytest.raises(RollinError, match=words):
        analyse(small(), **{"alpha": 0.5, "beta": 0.5, **options})
