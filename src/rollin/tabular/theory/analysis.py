"""The paper's assumptions, constants and bounds, evaluated on a given MDP and curriculum.

Everything is computed from the exact soft-optimal policies π*_ω. Quantities that the paper bounds
are returned with their bounds; a bound that does not hold is reported as violated. Appendix numbers
follow the paper: A.1 mismatch ratio, A.2 complexity theorem, A.5 value gap, B.2 policy difference,
B.3 sub-optimality.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from rollin.checks import check_alpha, require_number
from rollin.errors import RollinError, short_repr
from rollin.tabular import soft
from rollin.tabular.mdp import Array, ContextualMDP, check_mdp
from rollin.tabular.soft import SoftOptimum
from rollin.tabular.start import log_roll_ins, roll_in_discount
from rollin.tabular.theory.constants import (
    Constants,
    Magnitude,
    SmallestProbability,
    Tolerances,
    constants_of,
    largest_ratio,
    log_epsilon0,
    total,
)
from rollin.tabular.theory.totals import Scaling, Totals, is_below, scaling, totals_of


@dataclass(frozen=True)
class Bound:
    """One lemma on one context: exact value, bound, and the trivial bound of any policy."""

    lemma: str
    k: int
    exact: float
    bound: float
    trivial: float

    @property
    def holds(self) -> bool:
        """Return whether the bound holds, up to rounding."""
        return self.exact <= self.bound * (1 + 1e-9) + 1e-12

    @property
    def vacuous(self) -> bool:
        """Return whether the bound is no smaller than the trivial one."""
        return self.bound >= self.trivial

    @property
    def verdict(self) -> str:
        """Return the result in one word."""
        if not self.holds:
            return "VIOLATED"
        return "vacuous" if self.vacuous else "holds"


@dataclass(frozen=True)
class Assumptions:
    """Assumptions 3.1 and 3.2 and the near-optimal initialisation (Definition 4.2)."""

    lipschitz: float
    steps: Array
    step_needed: Magnitude
    initial_gap: float
    gap_floor: float
    eps0: Magnitude
    visitation_shift: float

    @property
    def lipschitz_holds(self) -> bool:
        """Return Assumption 3.1: L_r is finite (no equal contexts with different rewards)."""
        return math.isfinite(self.lipschitz)

    @property
    def steps_hold(self) -> bool:
        """Return Assumption 3.2 as its proof uses it: 2 L_r Δ / (1-γ)² ≤ ε_0 / 2."""
        return not self.step_needed < Magnitude.of(float(self.steps.max()))

    @property
    def gap_holds(self) -> bool | None:
        """Return Definition 4.2, first half: V*(ρ) - V^{θ_0}(ρ) < ε_0 on ω_0; see `is_below`."""
        return is_below(self.initial_gap, self.gap_floor, self.eps0)

    @property
    def shift_holds(self) -> bool:
        """Return Definition 4.2, second half: ‖ρ - d_ρ^{π*_0}‖_1 ≤ ‖ω_1 - ω_0‖_2."""
        return self.visitation_shift <= float(self.steps[0])


@dataclass(frozen=True)
class Predictor:
    """The terms of R = Σ_k ‖d_ρ^{π*_k} / d_{μ_k}^{π_θ}‖_∞ by context.

    R compares how often the next optimal policy visits a state with how often training does at
    first; π_θ is the exact π*_{k-1}, or θ = 0 for k = 0. R is our extension and an observation: on
    locks with γ = 1 - 1/n the gradient steps of exact PG grow with R of the learned policies
    (`learned_terms`); the ratio of Lemma A.1 does not predict them. With the exact optimum, which
    for small α explores nothing, R is far larger and predicts nothing. It fails on the lock with
    γ = 0.9, and from scratch under a uniform ρ.

    scratch: only the final context, from θ = 0 and ρ; plain, rolled: the curriculum without and
    with roll-in.
    """

    scratch: Magnitude
    plain: list[Magnitude]
    rolled: list[Magnitude]

    @property
    def R_plain(self) -> Magnitude:
        """Return R of the curriculum without roll-in."""
        return total(self.plain)

    @property
    def R_rolled(self) -> Magnitude:
        """Return R of the curriculum with roll-in."""
        return total(self.rolled)


@dataclass(frozen=True, repr=False)
class Theory:
    """Optima, start distributions, assumptions, constants, bounds and totals of a curriculum.

    recursive: whether μ_k rolls in from μ_{k-1} (equation 1) or from ρ.
    constants: from ρ and θ = 0; constants_rollin: from μ_k and the warm start π*_{k-1}.
    smallest: the stand-in for c of Lemma C.2 in constants_rollin, beside a run's own.
    roll_in_discount: γ' = γ / (1 - β (1-γ)), which recursive roll-in tends to.
    """

    mdp: ContextualMDP
    alpha: float
    beta: float
    recursive: bool
    optima: list[SoftOptimum]
    log_starts: list[Array]
    assumptions: Assumptions
    constants: list[Constants]
    constants_rollin: list[Constants]
    smallest: list[SmallestProbability]
    totals: Totals
    scaling: list[Scaling]
    predictor: Predictor
    roll_in_discount: float
    bounds: list[Bound]
    identity_error: float

    def __repr__(self) -> str:
        return short_repr(self, mdp=self.mdp, alpha=self.alpha, beta=self.beta)


def lipschitz_constant(mdp: ContextualMDP) -> float:
    """Return the smallest L_r of Assumption 3.1: max ‖r_ω - r_ω'‖_∞ / ‖ω - ω'‖_2."""
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
    """Return log μ_0 … log μ_K of equation 1 with the exact optimal policies."""
    return log_roll_ins(mdp, [o.log_pi for o in optima[:-1]], beta, recursive=recursive)


def visits_of(
    mdp: ContextualMDP, optima: list[SoftOptimum], log_starts: list[Array]
) -> list[Array]:
    """Return log d_{μ_k}^{π*_k} of every context."""
    return [
        soft.log_visitation(mdp, optimum.log_pi, log_mu)
        for optimum, log_mu in zip(optima, log_starts, strict=True)
    ]


def analyse(
    mdp: ContextualMDP,
    alpha: float,
    beta: float,
    *,
    delta: float = 0.1,
    zeta: float = 0.5,
    epsilon: float | None = None,
    recursive: bool = True,
    log_min_pi: Sequence[float | None] = (),
) -> Theory:
    """Evaluate the theory on an MDP, from θ = 0 and from the previous context's exact optimum.

    epsilon: ε of the theorem. Default: ε_0 / 2, as in the induction of Theorem 4.3.
    log_min_pi: ln of the smallest π_θt(a|s) along a run, by context, as in its result.json, to
        show beside the stand-in for c; no constant uses it.

    >>> import rollin
    >>> goals = [(x, 0) for x in range(5)]
    >>> mdp = rollin.grid_world(rollin.Grid(5, 1), goals, reward=lambda d: (d == 0) * 1.0)
    >>> theory = rollin.analyse(mdp.smooth_rho(0.1), alpha=0.1, beta=0.5)
    >>> sorted({bound.verdict for bound in theory.bounds})
    ['holds', 'vacuous']
    >>> theory.assumptions.lipschitz_holds, theory.assumptions.steps_hold
    (True, False)
    """
    check_mdp(mdp)
    for name, value in (("delta", delta), ("zeta", zeta), ("beta", beta)):
        require_number(name, value)
    for name, value in (("delta", delta), ("zeta", zeta)):
        if not 0 < value < 1:
            raise RollinError(f"{name} must lie in (0, 1), got {value}.")
    if epsilon is not None and not epsilon > 0:
        raise RollinError(f"epsilon must be greater than 0, got {epsilon}.")
    if not 0 < beta < 1:
        raise RollinError(f"The theory needs beta in (0, 1), got {beta}: its bounds divide by β.")
    check_alpha(alpha)
    with threadpool_limits(1):  # many small solves, which threads only slow down
        log_eps0 = log_epsilon0(mdp, alpha, zeta)
        log_eps = log_eps0 - math.log(2) if epsilon is None else math.log(epsilon)
        tolerances = Tolerances(delta, zeta, log_eps0, log_eps)
        return _analyse(mdp, alpha, beta, tolerances, recursive, log_min_pi)


def _analyse(
    mdp: ContextualMDP,
    alpha: float,
    beta: float,
    tolerances: Tolerances,
    recursive: bool,
    log_min_pi: Sequence[float | None],
) -> Theory:
    contexts = range(mdp.K + 1)
    optima = [soft.soft_value_iteration(mdp.task(k), alpha) for k in contexts]
    starts = optimal_starts(mdp, optima, beta, recursive=recursive)
    uniform = np.full_like(optima[0].log_pi, -math.log(mdp.n_actions))  # θ = 0
    warm = [uniform, *(optimum.log_pi for optimum in optima[:-1])]
    tracked = [*log_min_pi, *[None] * (mdp.K + 1 - len(log_min_pi))]
    smallest = [SmallestProbability(k, _proxy(warm[k], optima[k]), tracked[k]) for k in contexts]

    from_rho = [soft.log_visitation(mdp, optimum.log_pi, starts[0]) for optimum in optima]
    from_mu = visits_of(mdp, optima, starts)

    def constants(k: int, log_mu: Array, log_d: Array, log_pi0: Array, log_c: float) -> Constants:
        task = mdp.task(k)
        best = optima[k]
        return constants_of(task, alpha, best, log_mu, log_d, log_pi0, log_c, tolerances)

    plain = [
        constants(k, starts[0], from_rho[k], uniform, _proxy(uniform, optima[k])) for k in contexts
    ]
    floors = [_floor(mdp, alpha, k, optima) for k in contexts]
    rolled = [constants(k, starts[k], from_mu[k], warm[k], smallest[k].proxy) for k in contexts]
    return Theory(
        mdp,
        alpha,
        beta,
        recursive,
        optima,
        starts,
        _assumptions(mdp, alpha, optima[0], floors[0], tolerances.log_eps0),
        plain,
        rolled,
        smallest,
        totals_of(mdp, plain, rolled, floors, tolerances.delta, largest_value(mdp, alpha)),
        scaling(mdp.n_states, mdp.K),
        predictor_of(mdp, warm, starts, from_rho),
        roll_in_discount(mdp.gamma, beta),
        lemma_bounds(mdp, alpha, beta, optima, starts, from_mu),
        max(_identity_error(mdp, alpha, k, optima) for k in range(1, mdp.K + 1)),
    )


def _proxy(log_pi0: Array, optimum: SoftOptimum) -> float:
    """Return ln min(π_θ0, π*), the stand-in for c."""
    return float(min(log_pi0.min(), optimum.log_pi.min()))


def _floor(mdp: ContextualMDP, alpha: float, k: int, optima: list[SoftOptimum]) -> float:
    """Return the largest D of context k's warm start by rounding; 0 if rewards are unchanged."""
    if k > 0 and np.array_equal(mdp.rewards[k], mdp.rewards[k - 1]):
        return 0.0
    involved = optima[max(k - 1, 0) : k + 1]  # θ = 0, with which ω_0 begins, is exact
    error = sum(optimum.log_pi_error(alpha, mdp.gamma) for optimum in involved)
    return soft.gap_floor(mdp, alpha, error)


def lemma_bounds(
    mdp: ContextualMDP,
    alpha: float,
    beta: float,
    optima: list[SoftOptimum],
    log_starts: list[Array],
    log_visits: list[Array],
) -> list[Bound]:
    """Return every lemma's exact value and bound on every context k ≥ 1."""
    gamma = mdp.gamma
    L_r = lipschitz_constant(mdp)
    lengths = _step_lengths(mdp)
    visits = [np.exp(log_d) for log_d in log_visits]
    most = largest_value(mdp, alpha)
    rows: list[Bound] = []
    for k in range(1, mdp.K + 1):
        now = optima[k]
        before = optima[k - 1]
        step = float(lengths[k - 1])
        longest = float(lengths[:k].max())  # Δ_ω^k
        task = mdp.task(k)
        # L_r ‖ω_k - ω_{k-1}‖; without a finite L_r the lemmas say nothing
        change = L_r * step if math.isfinite(L_r) else math.inf

        q_change = float(np.abs(now.q - before.q).max())
        rows.append(Bound("Q difference", k, q_change, change / (1 - gamma), most))

        pi_change = float(np.abs(np.exp(now.log_pi) - np.exp(before.log_pi)).max())
        rows.append(Bound("policy difference", k, pi_change, change / (alpha * (1 - gamma)), 1.0))

        gap = soft.sub_optimality(task, before.log_pi, alpha, mdp.rho, now)
        rows.append(Bound("value gap", k, gap, 2 * change / (1 - gamma) ** 2, most))

        shift = float(np.abs(visits[k] - visits[k - 1]).sum())
        c1 = L_r / (alpha * (1 - gamma))
        factor = gamma * c1 / ((1 - gamma) * (1 - beta)) + 1
        shift_bound = factor * longest if math.isfinite(L_r) else math.inf
        rows.append(Bound("visitation difference", k, shift, shift_bound, 2.0))

        # min μ may be e^-2000, and the bound divides by it
        ratio = largest_ratio(log_visits[k], log_starts[k])
        spread = _exp(-float(log_starts[k].min()))
        bound = shift_bound * spread if shift_bound > 0 else 0.0
        rows.append(Bound("mismatch ratio", k, _exp(ratio.log), bound + 1 / beta, spread))
    return rows


def largest_value(mdp: ContextualMDP, alpha: float) -> float:
    """Return (1 + α ln A) / (1-γ), the largest possible V."""
    return (1 + alpha * math.log(mdp.n_actions)) / (1 - mdp.gamma)


def _exp(x: float) -> float:
    """Return exp(x), infinite where it overflows."""
    return math.exp(x) if x < 709 else math.inf


def _step_lengths(mdp: ContextualMDP) -> Array:
    return np.linalg.norm(np.diff(mdp.contexts, axis=0), axis=1)


def _assumptions(
    mdp: ContextualMDP, alpha: float, first: SoftOptimum, floor: float, log_eps0: float
) -> Assumptions:
    uniform = np.full_like(first.log_pi, -math.log(mdp.n_actions))
    gap = soft.sub_optimality(mdp.task(0), uniform, alpha, mdp.rho, first)
    shift = float(np.abs(mdp.rho - soft.visitation(mdp, first.log_pi, mdp.rho)).sum())
    L_r = lipschitz_constant(mdp)
    # the largest Δ with 2 L_r Δ/(1-γ)² ≤ ε_0/2; infinite if all rewards are the same
    log_needed = log_eps0 + 2 * math.log(1 - mdp.gamma) - math.log(4)
    log_needed = log_needed - math.log(L_r) if L_r > 0 else math.inf
    return Assumptions(
        L_r,
        _step_lengths(mdp),
        Magnitude(log_needed),
        gap,
        floor,
        Magnitude(log_eps0),
        shift,
    )


def _identity_error(mdp: ContextualMDP, alpha: float, k: int, optima: list[SoftOptimum]) -> float:
    """Return the relative error |left - right| of Lemma B.3 for π = π*_{k-1} on context k."""
    task = mdp.task(k)
    log_pi = optima[k - 1].log_pi
    left = float(mdp.rho @ (optima[k].v - soft.evaluate(task, log_pi, alpha).v))
    right = soft.sub_optimality(task, log_pi, alpha, mdp.rho, optima[k])
    return abs(left - right) / max(1.0, abs(left))


def predictor_of(
    mdp: ContextualMDP, warm: Sequence[Array], log_starts: Sequence[Array], wanted: Sequence[Array]
) -> Predictor:
    """Return R on every context.

    warm: log π_θ at its start, π*_{k-1} after the first; wanted: log d_ρ^{π*_k}.
    """
    from_rho = [soft.log_visitation(mdp, warm[0], log_starts[0]), *wanted[:-1]]
    plain = [largest_ratio(*pair) for pair in zip(wanted, from_rho, strict=True)]
    return Predictor(
        largest_ratio(wanted[-1], from_rho[0]),
        plain,
        [plain[0], *_terms(mdp, warm[1:], log_starts[1:], wanted[1:])],
    )


def learned_terms(
    mdp: ContextualMDP,
    optima: Sequence[SoftOptimum],
    policies: Sequence[Array],
    beta: float,
    *,
    recursive: bool,
) -> list[Magnitude]:
    """Return R's terms on the contexts that a run reached, from the policies at its advances."""
    starts = log_roll_ins(mdp, policies, beta, recursive=recursive)
    uniform = np.full_like(optima[0].log_pi, -np.log(mdp.n_actions))
    reached = optima[: len(starts)]
    wanted = [soft.log_visitation(mdp, optimum.log_pi, starts[0]) for optimum in reached]
    return _terms(mdp, [uniform, *policies], starts, wanted)


def _terms(
    mdp: ContextualMDP, log_pis: Sequence[Array], log_mus: Sequence[Array], wanted: Sequence[Array]
) -> list[Magnitude]:
    return [
        largest_ratio(log_d, soft.log_visitation(mdp, log_pi, log_mu))
        for log_d, log_pi, log_mu in zip(wanted, log_pis, log_mus, strict=True)
    ]
