"""Exact quantities of entropy-regularised (soft) reinforcement learning, by dynamic programming.

Names follow Appendix A of the paper: Q and V include the entropy bonus of all later steps,
V^π(s) = Σ_a π(a|s) [Q^π(s,a) - α log π(a|s)]. Policies are passed as log π, (S, A), so that
nothing underflows for small α.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollin.checks import at_least, check_alpha
from rollin.errors import RollinError
from rollin.tabular.mdp import Array, ContextualMDP, TabularTask

MAX_NEWTON_STEPS = 100
SERIES_BELOW = 0.5  # |x| for which e^x - 1 - x is summed as a series
SERIES_TERMS = 16  # of it; the next is x^16/17! · 2 < 1e-19 of the first


def logsumexp(x: Array) -> Array:
    """Return log Σ exp(x) along the last axis, without overflow.

    The largest terms are counted and the others added by log1p, as in SciPy's function, which takes
    two to five times as long for arrays of a tabular MDP.
    """
    largest = x.max(-1, keepdims=True)
    is_largest = x == largest
    shift = np.where(np.isfinite(largest), largest, 0.0)
    others = np.exp(np.where(is_largest, -np.inf, x - shift)).sum(-1)
    count = is_largest.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN has no largest term; stays NaN
        return np.log1p(others / count) + np.log(count) + largest[..., 0]


def log_softmax(theta: NDArray[np.floating]) -> Array:
    """Return log π_θ of the softmax parameterisation, along the last axis."""
    theta = np.asarray(theta, dtype=np.float64)
    return theta - logsumexp(theta)[..., None]


@dataclass(frozen=True)
class SoftOptimum:
    """The soft-optimal Q*, V*, log π* of one task, within `error` of the fixed point in ‖·‖_∞."""

    q: Array
    v: Array
    log_pi: Array
    error: float
    iterations: int

    def log_pi_error(self, alpha: float, gamma: float) -> float:
        """Return the largest error of log π* = (Q - V)/α: by `error` and by the rounding of Q."""
        rounding = float(np.finfo(np.float64).eps * np.abs(self.q).max()) / (1 - gamma)
        return 2 / alpha * (self.error + rounding)


def soft_backup(task: TabularTask, alpha: float, q: Array) -> Array:
    """Return 𝒯Q = r + γ α E_{s'} log Σ_a' exp(Q(s',a')/α) (Lemma C.1), a γ-contraction."""
    v = alpha * logsumexp(q / alpha)
    return task.r + task.mdp.gamma * task.mdp.expected_next(v)


def soft_value_iteration(task: TabularTask, alpha: float, tolerance: float = 1e-10) -> SoftOptimum:
    """Return Q* to within `tolerance` in the maximum norm.

    ‖Q - Q*‖ ≤ γ/(1-γ) ‖𝒯Q' - Q'‖ certifies the result. Plain iteration needs 1/(1-γ) sweeps per
    digit, so soft policy iteration (Newton's method for 𝒯Q = Q) brings it near the fixed point
    first; the sweeps of 𝒯 then only certify.
    """
    check_alpha(alpha)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported below
        return _iterate(task, alpha, tolerance)


def _iterate(task: TabularTask, alpha: float, tolerance: float) -> SoftOptimum:
    gamma = task.mdp.gamma
    q = soft_backup(task, alpha, task.r)
    iterations = 0
    residual = np.inf
    for _ in range(MAX_NEWTON_STEPS):
        improved = evaluate(task, log_softmax(q / alpha), alpha).q
        iterations += 1
        before = residual
        residual = float(np.abs(improved - q).max())
        q = improved
        if residual >= before / 2 and residual < 1:  # as near as float64 gets this way
            break
    while True:
        backed_up = soft_backup(task, alpha, q)
        iterations += 1
        before = residual
        residual = float(np.abs(backed_up - q).max())
        q = backed_up
        if not math.isfinite(residual):
            raise RollinError(
                f"Soft value iteration overflows at alpha = {alpha:g}: use a larger alpha."
            )
        error = gamma / (1 - gamma) * residual
        if error <= tolerance:
            v = alpha * logsumexp(q / alpha)
            return SoftOptimum(q, v, (q - v[:, None]) / alpha, error, iterations)
        if residual < 1e-13 * max(1.0, float(np.abs(q).max())) and residual >= before:
            raise RollinError(
                f"tolerance {tolerance:g} is finer than float64 resolves at gamma = {gamma} "
                f"(about {error:.1g}): pass a larger tolerance."
            )


@dataclass(frozen=True)
class Values:
    """V^π (S,) and Q^π (S, A) of a policy."""

    v: Array
    q: Array


def evaluate(
    task: TabularTask, log_pi: Array, alpha: float = 0.0, horizon: int | None = None
) -> Values:
    """Return V^π and Q^π, with entropy if α > 0; horizon None: of endless trajectories."""
    mdp = task.mdp
    gamma = mdp.gamma
    pi = np.exp(log_pi)
    immediate = (pi * (task.r - alpha * log_pi)).sum(1)
    kernel = mdp.policy_kernel(pi)
    if horizon is None:
        v = np.linalg.solve(np.eye(mdp.n_states) - gamma * kernel, immediate)
        return Values(v, task.r + gamma * mdp.expected_next(v))
    at_least(1, "horizon", horizon)
    later = np.zeros(mdp.n_states)
    for _ in range(horizon - 1):
        later = immediate + gamma * (kernel @ later)
    return Values(immediate + gamma * (kernel @ later), task.r + gamma * mdp.expected_next(later))


def expected_sum(
    mdp: ContextualMDP, log_pi: Array, table: Array, horizon: int, discount: float = 1.0
) -> float:
    """Return E Σ_{t<T} discount^t table(s_t, a_t) from ρ: of rewards a return, of flags a count.

    The discount need not be γ, which is below 1: a discount of 1 gives plain sums.
    """
    at_least(1, "horizon", horizon)
    pi = np.exp(log_pi)
    immediate = (pi * table).sum(1)
    kernel = mdp.policy_kernel(pi)
    total = np.zeros(mdp.n_states)
    for _ in range(horizon):
        total = immediate + discount * (kernel @ total)
    return float(mdp.rho @ total)


def visitation(mdp: ContextualMDP, log_pi: Array, mu: Array) -> Array:
    """Return d_μ^π(s) = (1-γ) Σ_t γ^t P^π(s_t = s | s_0 ~ μ), by one linear solve: (S,)."""
    kernel = mdp.policy_kernel(np.exp(log_pi))
    d = np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * kernel.T, (1 - mdp.gamma) * mu)
    d = np.maximum(d, 0.0)  # the solve may leave -1e-18 where the visitation is 0
    return d / d.sum()


def log_visitation(mdp: ContextualMDP, log_pi: Array, log_mu: Array) -> Array:
    """Return log d_μ^π also where d underflows: d = (1-γ) μ + γ (P^π)ᵀ d, iterated on logarithms.

    The linear solve gives all entries that a float can hold; the iteration corrects them and finds
    the others, down to states that are reached with probability e^-2000.
    """
    S = mdp.n_states
    gamma = mdp.gamma
    log_kernel = np.full((S, S), -np.inf)
    with np.errstate(divide="ignore"):
        if mdp.deterministic:
            for a in range(mdp.n_actions):
                at = (np.arange(S), mdp.transitions[:, a])
                log_kernel[at] = np.logaddexp(log_kernel[at], log_pi[:, a])
        else:
            log_kernel = logsumexp(np.moveaxis(log_pi[:, :, None] + np.log(mdp.transitions), 1, 2))
        log_d = np.log(visitation(mdp, log_pi, np.exp(log_mu)))
        source = np.log1p(-gamma) + log_mu
        step = log_kernel.T + (np.log(gamma) if gamma > 0 else -np.inf)
    while True:
        with np.errstate(invalid="ignore"):
            updated = np.logaddexp(source, logsumexp(step + log_d))
            change = np.abs(np.where(updated == log_d, 0.0, updated - log_d)).max()
        log_d = updated
        if change < 1e-10:
            return log_d


def policy_gradient(task: TabularTask, log_pi: Array, alpha: float, mu: Array) -> Array:
    """Return ∂V^π(μ)/∂θ(s,a) = d_μ^π(s) π(a|s) A^π(s,a) / (1-γ) of a softmax: (S, A)."""
    value = evaluate(task, log_pi, alpha)
    advantage = value.q - alpha * log_pi - value.v[:, None]
    d = visitation(task.mdp, log_pi, mu)
    return d[:, None] * np.exp(log_pi) * advantage / (1 - task.mdp.gamma)


def batch_gradient(
    task: TabularTask, log_pi: Array, alpha: float, mu: Array, horizon: int
) -> Array:
    """Return the limit of the experiment's batch gradient (Appendix F.3) as B → ∞: (S, A).

    (1/T) Σ_t Σ_s P(s_t = s) π(a|s) [Q_{T-t}(s,a) - α log π(a|s) - V_{T-t}(s)], where Q_n, V_n look
    n steps ahead. With p_t(s) and V_n(s) as (T, S) matrices the sum over t is one product.
    """
    mdp = task.mdp
    gamma = mdp.gamma
    pi = np.exp(log_pi)
    r_entropy = task.r - alpha * log_pi
    immediate = (pi * r_entropy).sum(1)
    kernel = mdp.policy_kernel(pi)
    at = np.empty((horizon, mdp.n_states))  # at[t] = law of s_t
    ahead = np.zeros((horizon + 1, mdp.n_states))  # ahead[n] = V_n
    at[0] = mu
    for t in range(1, horizon):
        at[t] = at[t - 1] @ kernel
    for n in range(horizon):
        ahead[n + 1] = immediate + gamma * (kernel @ ahead[n])
    later = at.T @ ahead[horizon - 1 :: -1]  # Σ_t p_t(s) V_{T-t-1}(s')
    now = (at * ahead[:0:-1]).sum(0)  # Σ_t p_t(s) V_{T-t}(s)
    if mdp.deterministic:
        expected = np.take_along_axis(later, mdp.transitions, axis=1)
    else:
        expected = np.einsum("sat,st->sa", mdp.transitions, later)
    visits = at.sum(0)
    return pi * (visits[:, None] * r_entropy + gamma * expected - now[:, None]) / horizon


def success_probability(task: TabularTask, log_pi: Array, mu: Array, horizon: int) -> float:
    """Return P(some pair of `task.success` is used within `horizon` steps | s_0 ~ μ)."""
    pi = np.exp(log_pi)
    miss = pi * ~task.success
    missed = np.ones(task.mdp.n_states)
    for _ in range(horizon):
        missed = (miss * task.mdp.expected_next(missed)).sum(1)
    return float(np.clip(1 - mu @ missed, 0.0, 1.0))  # rounding may leave -1e-16


def most_success(task: TabularTask, horizon: int) -> Array:
    """Return the largest success probability within `horizon` steps from each state: (S,).

    Maximised over all policies, also those that look at the time left.
    """
    most = np.zeros(task.mdp.n_states)
    for _ in range(horizon):
        most = np.where(task.success, 1.0, task.mdp.expected_next(most)).max(1)
    return most


def _divergence(log_p: Array, log_q: Array) -> Array:
    """Return KL(p ‖ q) along the last axis as Σ p (e^x - 1 - x) with x = ln q - ln p.

    The plain sum of p (ln p - ln q) has terms of both signs; close to p = q only their rounding
    errors remain. Here each term is ≥ 0: a series from x²/2 on where e^x - 1 would cancel
    against x.
    """
    p = np.exp(log_p)
    x = np.where(p > 0, log_q - np.where(p > 0, log_p, 0.0), 0.0)
    small = np.abs(x) < SERIES_BELOW
    near = np.where(small, x, 0.0)
    series = np.ones_like(near)
    for n in range(SERIES_TERMS, 2, -1):  # 2 (e^x - 1 - x) / x² = 1 + x/3 (1 + x/4 (1 + …))
        series = 1 + near / n * series
    far = np.exp(log_q) - p - p * x
    return np.where(small & (p > 0), p * near**2 / 2 * series, far).sum(-1)


def gap_floor(mdp: ContextualMDP, alpha: float, log_pi_error: float) -> float:
    """Return the largest `sub_optimality` that rounding may give two equal policies.

    log_pi_error: the error e of ln π* - ln π. By the divergence's expansion it contributes
    α/(1-γ) e²/2, and moves the root of a larger gap by no more than the root of this.
    """
    return alpha / (1 - mdp.gamma) * log_pi_error**2 / 2


def sub_optimality(
    task: TabularTask, log_pi: Array, alpha: float, mu: Array, optimum: SoftOptimum
) -> float:
    """Return V*(μ) - V^π(μ) = α/(1-γ) Σ_s d_μ^π(s) KL(π(·|s) ‖ π*(·|s)) (Lemma B.3).

    The right-hand side keeps its digits when π is nearly optimal, and is never negative.
    """
    kl = _divergence(log_pi, optimum.log_pi)
    return float(alpha / (1 - task.mdp.gamma) * visitation(task.mdp, log_pi, mu) @ kl)
