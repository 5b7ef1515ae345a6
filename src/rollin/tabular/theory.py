"""The paper's assumptions, constants and bounds, evaluated on a given MDP and curriculum.

Everything is computed from the exact soft-optimal policies π*_ω. Quantities that the paper bounds
are returned beside their bounds, and a bound that does not hold is reported as violated.
Appendix numbers follow the paper: A.1 mismatch ratio, A.2 complexity theorem, A.5 value gap,
B.2 policy difference, B.3 sub-optimality.
"""

import math
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.magnitude import Magnitude
from rollin.tabular.mdp import Array, ContextualMDP
from rollin.tabular.soft import SoftOptimum


@dataclass(frozen=True)
class Bound:
    """One lemma on one context: exact value, bound, and what it cannot exceed anyway."""

    lemma: str
    k: int
    exact: float
    bound: float
    trivial: float

    @property
    def holds(self) -> bool:
        """Whether the bound holds, up to rounding."""
        return self.exact <= self.bound * (1 + 1e-9) + 1e-12

    @property
    def vacuous(self) -> bool:
        """Whether the bound says no more than what is true of any policy."""
        return self.bound >= self.trivial

    @property
    def verdict(self) -> str:
        """In one word."""
        if not self.holds:
            return "VIOLATED"
        return "vacuous" if self.vacuous else "holds"


@dataclass(frozen=True)
class Assumptions:
    """Assumptions 3.1 and 3.2 and the near-optimal initialisation (Definition 4.2)."""

    lipschitz: float
    steps: Array
    step_needed: Magnitude
    initial_gap: Magnitude
    eps0: Magnitude
    visitation_shift: float

    @property
    def lipschitz_holds(self) -> bool:
        """Assumption 3.1: a finite L_r exists (no two equal contexts with different rewards)."""
        return math.isfinite(self.lipschitz)

    @property
    def steps_hold(self) -> bool:
        """Assumption 3.2, as its proof uses it: 2 L_r Δ / (1-γ)² ≤ ε_0 / 2."""
        return not self.step_needed < Magnitude.of(float(self.steps.max()))

    @property
    def gap_holds(self) -> bool:
        """Definition 4.2, first half: V*(ρ) - V^{θ_0}(ρ) < ε_0 on ω_0."""
        return self.initial_gap < self.eps0

    @property
    def shift_holds(self) -> bool:
        """Definition 4.2, second half: ‖ρ - d_ρ^{π*_0}‖_1 ≤ ‖ω_1 - ω_0‖_2."""
        return self.visitation_shift <= float(self.steps[0])


@dataclass(frozen=True)
class Constants:
    """Constants of Theorem A.2 for one context and one start distribution.

    C_δ^0 takes c = min(π_θ0, π*) for the unknown infimum over the iterates, which is an upper
    bound of it: C_δ^0 is then an upper bound, T_1 and B_1 are lower bounds.
    """

    D0: float
    eps0: Magnitude
    epsilon: Magnitude
    sigma2: float
    L: float
    t0: Magnitude
    mismatch: Magnitude
    C_zeta: Magnitude
    C_delta: Magnitude
    delta_bar: Magnitude
    T1: Magnitude
    T2: Magnitude
    B1: Magnitude
    B2: Magnitude


@dataclass(frozen=True)
class Theory:
    """All of it: optima, start distributions, assumptions, constants, bounds."""

    mdp: ContextualMDP
    alpha: float
    beta: float
    optima: list[SoftOptimum]
    log_starts: list[Array]
    assumptions: Assumptions
    constants: list[Constants]
    constants_rollin: list[Constants]
    bounds: list[Bound]
    identity_error: float


def lipschitz_constant(mdp: ContextualMDP) -> float:
    """Smallest L_r of Assumption 3.1 on these contexts: max ‖r_ω - r_ω'‖_∞ / ‖ω - ω'‖_2."""
    largest = 0.0
    for i in range(mdp.K + 1):
        for j in range(i):
            change = float(np.abs(mdp.rewards[i] - mdp.rewards[j]).max())
            distance = float(np.linalg.norm(mdp.contexts[i] - mdp.contexts[j]))
            if change > 0:
                largest = max(largest, change / distance if distance > 0 else math.inf)
    return largest


def optimal_starts(
    mdp: ContextualMDP, optima: list[SoftOptimum], beta: float, *, recursive: bool = True
) -> list[Array]:
    """log μ_0 … log μ_K of equation 1 with the exact optimal policies."""
    with np.errstate(divide="ignore"):
        log_rho = np.log(mdp.rho)
    starts = [log_rho]
    for optimum in optima[:-1]:
        log_d = soft.log_visitation(mdp, optimum.log_pi, starts[-1] if recursive else log_rho)
        starts.append(np.logaddexp(math.log(beta) + log_d, math.log1p(-beta) + log_rho))
    return starts


def mismatch_ratio(mdp: ContextualMDP, log_pi: Array, log_mu: Array) -> Magnitude:
    """‖d_μ^π / μ‖_∞; infinite where a state is visited that μ excludes."""
    log_d = soft.log_visitation(mdp, log_pi, log_mu)
    visited = log_d > -math.inf
    return Magnitude(float((log_d[visited] - log_mu[visited]).max()))


def analyse(
    mdp: ContextualMDP,
    alpha: float,
    beta: float,
    *,
    delta: float = 0.1,
    zeta: float = 0.5,
    epsilon: float | None = None,
    recursive: bool = True,
) -> Theory:
    """Evaluate everything with θ_0 = 0.

    epsilon: ε of the theorem; ε_0 / 2 if None, as in the induction of Theorem 4.3.
    """
    for name, value in (("delta", delta), ("zeta", zeta)):
        if not 0 < value < 1:
            raise RollinError(f"{name} must lie in (0, 1), got {value}.")
    if epsilon is not None and not epsilon > 0:
        raise RollinError(f"epsilon must be greater than 0, got {epsilon}.")
    if not 0 < beta < 1:
        raise RollinError(f"The theory needs beta in (0, 1), got {beta}: its bounds divide by β.")
    with threadpool_limits(1):  # many small solves, which threads only slow down
        return _analyse(mdp, alpha, beta, delta, zeta, epsilon, recursive=recursive)


def _analyse(
    mdp: ContextualMDP,
    alpha: float,
    beta: float,
    delta: float,
    zeta: float,
    epsilon: float | None,
    *,
    recursive: bool,
) -> Theory:
    optima = [soft.soft_value_iteration(mdp.task(k), alpha) for k in range(mdp.K + 1)]
    starts = optimal_starts(mdp, optima, beta, recursive=recursive)
    log_eps0 = _log_eps0(mdp, alpha, zeta)
    log_eps = log_eps0 - math.log(2) if epsilon is None else math.log(epsilon)

    def constants(log_mu: Array, k: int) -> Constants:
        return _constants(mdp, alpha, k, optima[k], log_mu, delta, zeta, log_eps0, log_eps)

    return Theory(
        mdp,
        alpha,
        beta,
        optima,
        starts,
        _assumptions(mdp, alpha, optima[0], log_eps0),
        [constants(starts[0], k) for k in range(mdp.K + 1)],
        [constants(starts[k], k) for k in range(mdp.K + 1)],
        lemma_bounds(mdp, alpha, beta, optima, starts),
        max(_identity_error(mdp, alpha, k, optima) for k in range(1, mdp.K + 1)),
    )


def lemma_bounds(
    mdp: ContextualMDP,
    alpha: float,
    beta: float,
    optima: list[SoftOptimum],
    log_starts: list[Array],
) -> list[Bound]:
    """Every lemma's exact value beside its bound, on every context k ≥ 1."""
    gamma, L_r = mdp.gamma, lipschitz_constant(mdp)
    lengths = _step_lengths(mdp)
    visits = [
        soft.visitation(mdp, o.log_pi, np.exp(s)) for o, s in zip(optima, log_starts, strict=True)
    ]
    largest_value = (1 + alpha * math.log(mdp.n_actions)) / (1 - gamma)
    rows: list[Bound] = []
    for k in range(1, mdp.K + 1):
        now, before, step = optima[k], optima[k - 1], float(lengths[k - 1])
        longest = float(lengths[:k].max())  # Δ_ω^k
        task = mdp.task(k)
        # L_r ‖ω_k - ω_{k-1}‖; without a finite L_r the lemmas say nothing
        change = L_r * step if math.isfinite(L_r) else math.inf

        q_change = float(np.abs(now.q - before.q).max())
        rows.append(Bound("Q difference", k, q_change, change / (1 - gamma), largest_value))

        pi_change = float(np.abs(np.exp(now.log_pi) - np.exp(before.log_pi)).max())
        rows.append(Bound("policy difference", k, pi_change, change / (alpha * (1 - gamma)), 1.0))

        gap = soft.sub_optimality(task, before.log_pi, alpha, mdp.rho, now)
        rows.append(Bound("value gap", k, gap, 2 * change / (1 - gamma) ** 2, largest_value))

        shift = float(np.abs(visits[k] - visits[k - 1]).sum())
        c1 = L_r / (alpha * (1 - gamma))
        factor = gamma * c1 / ((1 - gamma) * (1 - beta)) + 1
        shift_bound = factor * longest if math.isfinite(L_r) else math.inf
        rows.append(Bound("visitation difference", k, shift, shift_bound, 2.0))

        # min μ may be e^-2000, and the bound divides by it
        ratio = mismatch_ratio(mdp, now.log_pi, log_starts[k])
        spread = _exp(-float(log_starts[k].min()))
        bound = shift_bound * spread if shift_bound > 0 else 0.0
        rows.append(Bound("mismatch ratio", k, _exp(ratio.log), bound + 1 / beta, spread))
    return rows


def _exp(x: float) -> float:
    """exp, infinite where it overflows."""
    return math.exp(x) if x < 709 else math.inf


def _step_lengths(mdp: ContextualMDP) -> Array:
    return np.linalg.norm(np.diff(mdp.contexts, axis=0), axis=1)


def _log_eps0(mdp: ContextualMDP, alpha: float, zeta: float) -> float:
    """ln ε_0 = min{2 ln(α min ρ / (6 ln 2)) + 4 [ln ζ - 1/((1-γ)α)], 0}."""
    smallest = float(mdp.rho.min())
    if smallest == 0:
        return -math.inf
    first = 2 * math.log(alpha * smallest / (6 * math.log(2)))
    return min(first + 4 * (math.log(zeta) - 1 / ((1 - mdp.gamma) * alpha)), 0.0)


def _assumptions(
    mdp: ContextualMDP, alpha: float, first: SoftOptimum, log_eps0: float
) -> Assumptions:
    uniform = np.full_like(first.log_pi, -math.log(mdp.n_actions))
    gap = soft.sub_optimality(mdp.task(0), uniform, alpha, mdp.rho, first)
    shift = float(np.abs(mdp.rho - soft.visitation(mdp, first.log_pi, mdp.rho)).sum())
    L_r = lipschitz_constant(mdp)
    # the largest Δ with 2 L_r Δ/(1-γ)² ≤ ε_0/2; any will do if the rewards are all the same
    log_needed = log_eps0 + 2 * math.log(1 - mdp.gamma) - math.log(4)
    log_needed = log_needed - math.log(L_r) if L_r > 0 else math.inf
    return Assumptions(
        L_r,
        _step_lengths(mdp),
        Magnitude(log_needed),
        Magnitude.of(max(gap, 0.0)),
        Magnitude(log_eps0),
        shift,
    )


def _constants(
    mdp: ContextualMDP,
    alpha: float,
    k: int,
    optimum: SoftOptimum,
    log_mu: Array,
    delta: float,
    zeta: float,
    log_eps0: float,
    log_eps: float,
) -> Constants:
    """The constants of Theorem A.2 in log space, for trajectories that start from μ.

    As in the proof of Theorem 4.1, D(θ_0) and ε_0 stay those of ρ; μ enters through the mismatch
    ratio and its smallest entry, and so into C_ζ, C_δ^0, T_1, B_1 and B_2.
    """
    S, A, gamma = mdp.n_states, mdp.n_actions, mdp.gamma
    uniform = np.full_like(optimum.log_pi, -math.log(A))
    D0 = soft.sub_optimality(mdp.task(k), uniform, alpha, mdp.rho, optimum)
    sigma2 = 8 / (1 - gamma) ** 2 * (1 + (alpha * math.log(A)) ** 2) / (1 - gamma**0.5) ** 2
    L = (8 + alpha * (4 + 8 * math.log(A))) / (1 - gamma) ** 3
    mismatch = mismatch_ratio(mdp, optimum.log_pi, log_mu)
    if log_eps0 == -math.inf:  # the theorem needs ρ(s) > 0 everywhere
        none = Magnitude(math.nan)
        return Constants(
            D0, none, none, sigma2, L, none, mismatch, none, none, none, none, none, none, none
        )
    log_t0 = 0.5 * (math.log(3 * sigma2 / (2 * delta)) - log_eps0)
    common = math.log(2 * alpha / S) - mismatch.log + float(log_mu.min())
    log_C_zeta = common + 2 * math.log(1 - zeta) + 2 * float(optimum.log_pi.min())
    log_c = min(-math.log(A), float(optimum.log_pi.min()))
    delta_bar = float(np.linalg.norm(log_c - optimum.log_pi))
    radius = (1 + 1 / delta) * delta_bar
    log_C_delta = common + 2 * log_min_probability(optimum.log_pi, radius)

    # ln T_1 = 8L / (C_δ^0 ln 2) · ln(6 D / (δ ε_0)), itself kept as a logarithm
    log_ratio = math.log(6 * D0 / delta) - log_eps0 if D0 > 0 else -math.inf
    if log_ratio <= 0:
        T1 = Magnitude(0.0)
    else:
        T1 = Magnitude.from_loglog(
            math.log(8 * L / math.log(2)) - log_C_delta + math.log(log_ratio)
        )
    # T_2 = (ε_0 / (6 δ ε) - 1) t_0
    log_excess = log_eps0 - log_eps - math.log(6 * delta)
    if log_excess <= 0:
        T2 = Magnitude(-math.inf)
    else:
        T2 = Magnitude(log_t0 + log_excess + math.log1p(-math.exp(-log_excess)))
    first = math.log(30 * sigma2 / delta) - log_C_delta - log_eps0
    if T1.loglog is not None:
        B1 = max(T1, Magnitude(first))
    elif T1.log > 0:
        scale = 6 * math.sqrt(sigma2) / (delta_bar * L) if delta_bar > 0 else math.inf
        B1 = Magnitude(max(first, math.log(scale) + T1.log + math.log(T1.log)))
    else:
        B1 = Magnitude(first)
    log_steps = float(np.logaddexp(T2.log, log_t0))
    log_B2 = math.log(sigma2 / (6 * delta)) - log_C_zeta - log_eps
    log_B2 += math.log(log_steps) if log_steps > 0 else -math.inf
    return Constants(
        D0,
        Magnitude(log_eps0),
        Magnitude(log_eps),
        sigma2,
        L,
        Magnitude(log_t0),
        mismatch,
        Magnitude(log_C_zeta),
        Magnitude(log_C_delta),
        Magnitude.of(delta_bar),
        T1,
        T2,
        B1,
        Magnitude(log_B2),
    )


def log_min_probability(log_pi: Array, radius: float, rounds: int = 100) -> float:
    """min of log π_θ(a|s) over all θ within `radius` (ℓ2) of parameters of π, and over (s, a).

    -log π_θ(a|s) is convex in θ, so that it is largest on the sphere, where the displacement is
    parallel to its gradient p - e_a: a fixed point, reached from p = e_b of the likeliest action.
    """
    rarest = log_pi.argmin(1)
    rows = np.arange(len(log_pi))
    p = np.zeros_like(log_pi)
    p[rows, log_pi.argmax(1)] = 1.0
    value = log_pi[rows, rarest]
    for _ in range(rounds):
        direction = p.copy()
        direction[rows, rarest] -= 1.0
        norm = np.linalg.norm(direction, axis=1, keepdims=True)
        theta = log_pi + radius * direction / np.where(norm > 0, norm, 1.0)
        log_p = soft.log_softmax(theta)
        value = np.minimum(value, log_p[rows, rarest])
        p = np.exp(log_p)
    return float(value.min())


def _identity_error(mdp: ContextualMDP, alpha: float, k: int, optima: list[SoftOptimum]) -> float:
    """|left - right| of Lemma B.3 for π = π*_{k-1} on context k, relative to the left-hand side."""
    task, log_pi = mdp.task(k), optima[k - 1].log_pi
    left = float(mdp.rho @ (optima[k].v - soft.evaluate(task, log_pi, alpha).v))
    right = soft.sub_optimality(task, log_pi, alpha, mdp.rho, optima[k])
    return abs(left - right) / max(1.0, abs(left))
