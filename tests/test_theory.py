"""Constants by hand, bounds on random MDPs, magnitudes beyond floats."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.complexity import log_min_probability, mismatch_ratio
from rollin.tabular.four_rooms import four_rooms
from rollin.tabular.magnitude import Magnitude
from rollin.tabular.mdp import ContextualMDP
from rollin.tabular.theory import (
    analyse,
    lemma_bounds,
    lipschitz_constant,
    optimal_starts,
)
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
    found = analyse(same_place, 0.5, 0.5).assumptions
    assert not found.lipschitz_holds


def test_constants_by_hand() -> None:
    mdp, alpha, delta, zeta = small(), 0.5, 0.1, 0.5
    found = analyse(mdp, alpha, 0.5, delta=delta, zeta=zeta, epsilon=1e-13).constants[-1]
    best = soft.soft_value_iteration(mdp.task(2), alpha)
    eps0 = (alpha * 0.5 / (6 * math.log(2))) ** 2 * (zeta * math.exp(-1 / (0.5 * alpha))) ** 4
    assert math.exp(found.eps0.log) == pytest.approx(eps0)
    sigma2 = 8 / 0.25 * (1 + (alpha * math.log(2)) ** 2) / (1 - math.sqrt(0.5)) ** 2
    assert found.sigma2 == pytest.approx(sigma2)
    assert pytest.approx((8 + alpha * (4 + 8 * math.log(2))) / 0.125) == found.L
    t0 = math.sqrt(3 * sigma2 / (2 * delta * eps0))
    assert math.exp(found.t0.log) == pytest.approx(t0)
    d = soft.visitation(mdp, best.log_pi, mdp.rho)
    mismatch = (d / mdp.rho).max()
    assert math.exp(found.mismatch.log) == pytest.approx(mismatch)
    C_zeta = 2 * alpha / 2 / mismatch * 0.5 * 0.25 * np.exp(best.log_pi).min() ** 2
    assert math.exp(found.C_zeta.log) == pytest.approx(C_zeta)
    T2 = (eps0 / (6 * delta * 1e-13) - 1) * t0
    assert math.exp(found.T2.log) == pytest.approx(T2)
    B2 = sigma2 * math.log(T2 + t0) / (6 * C_zeta * delta * 1e-13)
    assert math.exp(found.B2.log) == pytest.approx(B2)
    assert (
        pytest.approx(
            float(
                mdp.rho
                @ (best.v - soft.evaluate(mdp.task(2), np.log(np.full((2, 2), 0.5)), alpha).v)
            )
        )
        == found.D0
    )
    log_T1 = 8 * found.L / math.log(2) / math.exp(found.C_delta.log)
    log_T1 *= math.log(6 * found.D0 / (delta * eps0))
    assert found.T1.log == pytest.approx(log_T1)
    scale = 6 * math.sqrt(sigma2) / (math.exp(found.delta_bar.log) * found.L)
    assert found.B1.log == pytest.approx(math.log(scale) + log_T1 + math.log(log_T1))


def test_phase_two_is_empty_when_epsilon_is_large() -> None:
    assert str(analyse(small(), 0.5, 0.5, epsilon=0.1).constants[0].T2) == "0"


@given(st.integers(0, 999), st.floats(0.01, 6.0))
@settings(max_examples=8)
def test_smallest_probability_over_a_ball_against_an_optimiser(seed: int, radius: float) -> None:
    log_pi = random_log_pi(random_mdp(seed, S=1, A=4), seed)
    found = log_min_probability(log_pi, radius)
    rng = np.random.default_rng(seed)

    def value(u: np.ndarray, a: int) -> float:
        return float(soft.log_softmax(log_pi[0] + radius * u / np.linalg.norm(u))[a])

    best = min(
        optimize.minimize(value, rng.normal(size=4), args=(a,), method="BFGS").fun
        for a in range(4)
        for _ in range(4)
    )
    assert found <= best + 2e-3  # the optimiser may stop at a local minimum
    assert found >= log_pi.min() - math.sqrt(2) * radius  # the gradient's norm is at most √2


@given(mdps(), st.sampled_from([0.02, 0.3, 2.0]), st.sampled_from([0.1, 0.5, 0.9]))
@settings(max_examples=40)
def test_unconditional_lemmas_hold_on_random_mdps(
    mdp: ContextualMDP, alpha: float, beta: float
) -> None:
    """Q, policy and value gap need Assumption 3.1 alone, which L_r of the curriculum grants."""
    optima = [soft.soft_value_iteration(mdp.task(k), alpha, 1e-9) for k in range(mdp.K + 1)]
    starts = optimal_starts(mdp, optima, beta)
    bounds = lemma_bounds(mdp, alpha, beta, optima, starts)
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
        assert mismatch_ratio(mdp, log_pi, np.log(mdp.rho)).log == math.inf
    constants = analyse(mdp, 0.5, 0.5).constants[0]
    assert math.isnan(constants.B2.log)
    assert str(constants.B2) == "–"


def test_four_rooms_mismatch_grows_with_roll_in_at_the_last_context() -> None:
    """A finding: with 1 % smoothing the ratio is better on the first contexts, worse at last."""
    theory = analyse(four_rooms("easy").smooth_rho(0.01), 0.01, 0.75)
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
        found = soft.log_visitation(mdp, log_pi, np.log(mdp.rho))
    # d(s) = (1-γ) Σ_t γ^t C(t, s) p^s (1-p)^{t-s} → (γp)^s / (1-γ)^s for tiny p and s < 29
    np.testing.assert_allclose(np.diff(found)[:-1], -100.0, atol=1e-6)


def test_four_rooms_without_smoothing_gains_from_roll_in() -> None:
    """From ρ the ratio is infinite; from μ_k it is finite, if beyond floats at first sight."""
    theory = analyse(four_rooms("easy"), 0.01, 0.75)
    assert all(c.mismatch.log == math.inf for c in theory.constants)
    found = [c.mismatch.log for c in theory.constants_rollin]
    assert found[1] == pytest.approx(273.55, abs=0.01)
    assert found[2] == pytest.approx(188.59, abs=0.01)
    assert all(math.isfinite(x) for x in found[1:])


def test_equal_rewards_need_no_small_steps() -> None:
    mdp = small()
    same = mdp.replace(rewards=np.repeat(mdp.rewards[:1], 3, axis=0))
    assert analyse(same, 0.5, 0.5).assumptions.steps_hold


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
