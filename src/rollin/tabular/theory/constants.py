"""The constants of the complexity theorem of stochastic PG (Theorem A.2), in log space.

They range from e^-8000 to beyond e^(e^1000), so a number is held as ln x, or as ln ln x where ln x
overflows. Phase 1's step size must meet

    η ≤ min{log T_1 / (T_1 L), 8 / C_δ⁰, 1 / (2L)}

The first term is the smallest whenever T_1 ≥ 2: log T / T ≤ 1/e < 1/2; and 8/C_δ⁰ ≥ 4 S² A²/α, as a
mismatch ratio is at least 1, min ρ at most 1/S and min π at most 1/A, while 1/L ≤ 1/(4α).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.mdp import Array, ContextualMDP, TabularTask
from rollin.tabular.soft import SoftOptimum


@dataclass(frozen=True)
class Magnitude:
    """A number x ≥ 0 as ln x; `loglog` is ln ln x where ln x overflows.

    ln x is -inf for 0 and nan for an undefined number.
    """

    log: float
    loglog: float | None = None

    @classmethod
    def of(cls, x: float) -> "Magnitude":
        """Return the magnitude of an ordinary number ≥ 0."""
        if x < 0:
            raise ValueError(f"a magnitude is ≥ 0, got {x}")
        return cls(math.log(x) if x > 0 else -math.inf)

    @classmethod
    def from_loglog(cls, loglog: float) -> "Magnitude":
        """Return the magnitude of x, given ln ln x."""
        if loglog < 700:
            return cls(math.exp(loglog))
        return cls(math.inf, loglog)

    def __lt__(self, other: "Magnitude") -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[float, float]:
        return self.log, self.loglog if self.loglog is not None else -math.inf

    def __str__(self) -> str:
        if math.isnan(self.log):
            return "–"
        if self.loglog is not None:
            return f"10^(10^{(self.loglog - math.log(math.log(10))) / math.log(10):.6g})"
        if self.log == -math.inf:
            return "0"
        if self.log == math.inf:
            return "∞"
        if abs(self.log) < math.log(1e6):
            return f"{math.exp(self.log):.4g}"
        exponent = self.log / math.log(10)
        if abs(exponent) < 15:
            whole = math.floor(exponent)
            return f"{10 ** (exponent - whole):.3f}e{whole:+d}"
        return f"10^{exponent:.6g}"


def total(numbers: Sequence[Magnitude]) -> Magnitude:
    """Return the sum of numbers whose logarithms are floats."""
    return Magnitude(float(soft.logsumexp(np.array([number.log for number in numbers]))))


@dataclass(frozen=True)
class Constants:
    """Constants of Theorem A.2 for one context, one start distribution and one θ_0.

    c stands for the unknown infimum of π_θt over the iterates (`SmallestProbability.proxy`) and is
    an upper bound of it: C_δ^0 is then an upper bound, T_1 and B_1 are lower bounds.
    """

    D0: float
    c: Magnitude
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
class Tolerances:
    """The parameters of the theorem: δ, ζ, and ε_0 and ε as logarithms."""

    delta: float
    zeta: float
    log_eps0: float
    log_eps: float


@dataclass(frozen=True)
class SmallestProbability:
    """ln c of Lemma C.2 on context k: c = inf_t min_{s,a} π_θt(a|s), over θ_0 and all iterates.

    proxy: min(π_θ0, π*), the first iterate and the limit of SPG from the exact π*_{k-1}, so that c
    of that trajectory is at most this. tracked: over the iterates of a run, if it recorded them; a
    run begins with its learned policy, so that its c differs for k ≥ 1.
    """

    k: int
    proxy: float
    tracked: float | None = None


def smoothness(mdp: ContextualMDP, alpha: float) -> float:
    """Return L = (8 + α (4 + 8 ln A)) / (1-γ)³ of Theorem A.2."""
    return (8 + alpha * (4 + 8 * math.log(mdp.n_actions))) / (1 - mdp.gamma) ** 3


def log_epsilon0(mdp: ContextualMDP, alpha: float, zeta: float) -> float:
    """Return ln ε_0 = min{2 ln(α min ρ / (6 ln 2)) + 4 [ln ζ - 1/((1-γ)α)], 0}."""
    smallest = float(mdp.rho.min())
    if smallest == 0:
        return -math.inf
    first = 2 * math.log(alpha * smallest / (6 * math.log(2)))
    return min(first + 4 * (math.log(zeta) - 1 / ((1 - mdp.gamma) * alpha)), 0.0)


def largest_ratio(log_p: Array, log_q: Array) -> Magnitude:
    """Return ‖p/q‖_∞, such as ‖d_μ^π/μ‖_∞; infinite where q excludes a state of p."""
    support = log_p > -math.inf
    return Magnitude(float((log_p[support] - log_q[support]).max()))


def constants_of(
    task: TabularTask,
    alpha: float,
    optimum: SoftOptimum,
    log_mu: Array,
    log_d: Array,
    log_pi0: Array,
    log_c: float,
    tolerances: Tolerances,
) -> Constants:
    """Return the constants of Theorem A.2 for SPG from θ_0 with trajectories from μ.

    log_d: of d_μ^{π*}; log_pi0: the policy of θ_0; log_c: the stand-in for ln c.
    As in the proof of Theorem 4.1, D(θ_0) and ε_0 stay those of ρ; μ enters through the mismatch
    ratio and its smallest entry, and so into C_ζ, C_δ^0, T_1, B_1 and B_2; θ_0 enters through
    D(θ_0) and c, and so into Δ̄, C_δ^0, T_1 and B_1.
    """
    mdp = task.mdp
    gamma = mdp.gamma
    delta = tolerances.delta
    log_eps0 = tolerances.log_eps0
    D0 = soft.sub_optimality(task, log_pi0, alpha, mdp.rho, optimum)
    entropy = alpha * math.log(mdp.n_actions)
    sigma2 = 8 / (1 - gamma) ** 2 * (1 + entropy**2) / (1 - gamma**0.5) ** 2
    L = smoothness(mdp, alpha)
    mismatch = largest_ratio(log_d, log_mu)
    known: dict[str, Any] = {"D0": D0, "sigma2": sigma2, "L": L, "mismatch": mismatch}
    known["c"] = Magnitude(log_c)
    if log_eps0 == -math.inf:  # the theorem needs ρ(s) > 0 everywhere
        names = [f.name for f in fields(Constants) if f.name not in known]
        undefined: dict[str, Any] = dict.fromkeys(names, Magnitude(math.nan))
        return Constants(**known, **undefined)
    log_t0 = 0.5 * (math.log(3 * sigma2 / (2 * delta)) - log_eps0)
    common = math.log(2 * alpha / mdp.n_states) - mismatch.log + float(log_mu.min())
    log_C_zeta = common + 2 * math.log(1 - tolerances.zeta) + 2 * float(optimum.log_pi.min())
    delta_bar = float(np.linalg.norm(log_c - optimum.log_pi))
    radius = (1 + 1 / delta) * delta_bar
    log_C_delta = common + 2 * log_min_probability(optimum.log_pi, radius)
    T1, B1 = _phase_one(D0, sigma2, L, delta, delta_bar, log_eps0, log_C_delta)
    T2, B2 = _phase_two(sigma2, delta, log_eps0, tolerances.log_eps, log_t0, log_C_zeta)
    return Constants(
        **known,
        eps0=Magnitude(log_eps0),
        epsilon=Magnitude(tolerances.log_eps),
        t0=Magnitude(log_t0),
        C_zeta=Magnitude(log_C_zeta),
        C_delta=Magnitude(log_C_delta),
        delta_bar=Magnitude.of(delta_bar),
        T1=T1,
        T2=T2,
        B1=B1,
        B2=B2,
    )


def _phase_one(
    D0: float,
    sigma2: float,
    L: float,
    delta: float,
    delta_bar: float,
    log_eps0: float,
    log_C_delta: float,
) -> tuple[Magnitude, Magnitude]:
    """Return T_1 = (6 D / (δ ε_0))^{8L / (C_δ^0 ln 2)} and B_1; even their logarithms overflow."""
    log_ratio = math.log(6 * D0 / delta) - log_eps0 if D0 > 0 else -math.inf
    batch = Magnitude(math.log(30 * sigma2 / delta) - log_C_delta - log_eps0)
    if log_ratio <= 0:
        return Magnitude(0.0), batch
    T1 = Magnitude.from_loglog(math.log(8 * L / math.log(2)) - log_C_delta + math.log(log_ratio))
    if T1.loglog is not None:  # T_1 log T_1 is T_1 at this size
        return T1, max(T1, batch)
    scale = 6 * math.sqrt(sigma2) / (delta_bar * L) if delta_bar > 0 else math.inf
    return T1, max(Magnitude(math.log(scale) + T1.log + math.log(T1.log)), batch)


def _phase_two(
    sigma2: float,
    delta: float,
    log_eps0: float,
    log_eps: float,
    log_t0: float,
    log_C_zeta: float,
) -> tuple[Magnitude, Magnitude]:
    """Return T_2 = (ε_0 / (6 δ ε) - 1) t_0, or 0, and B_2 = σ² ln(T_2 + t_0) / (6 C_ζ δ ε)."""
    log_excess = log_eps0 - log_eps - math.log(6 * delta)
    log_T2 = -math.inf
    if log_excess > 0:
        log_T2 = log_t0 + log_excess + math.log1p(-math.exp(-log_excess))
    log_steps = float(np.logaddexp(log_T2, log_t0))
    log_B2 = math.log(sigma2 / (6 * delta)) - log_C_zeta - log_eps
    log_B2 += math.log(log_steps) if log_steps > 0 else -math.inf
    return Magnitude(log_T2), Magnitude(log_B2)


def log_min_probability(log_pi: Array, radius: float, rounds: int = 100) -> float:
    """Return min log π_θ(a|s) over all (s, a) and all θ within `radius` (ℓ2) of those of π.

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
        before = p
        p = np.exp(log_p)
        if np.array_equal(p, before):  # a fixed point
            break
    return float(value.min())


FIRST = "log T_1/(T_1 L)"
SECOND = "8/C_δ⁰"
THIRD = "1/(2L)"


@dataclass(frozen=True)
class StepSizeCondition:
    """The three terms for a given T_1; C_delta is not a number where ρ is 0 on some state."""

    T1: int
    L: float
    C_delta: Magnitude = field(default=Magnitude(math.nan))

    @property
    def terms(self) -> dict[str, Magnitude]:
        """Return each term by its printed form; T_1 = 0 leaves out the first."""
        first = {FIRST: Magnitude.of(math.log(self.T1) / (self.T1 * self.L))} if self.T1 else {}
        second = Magnitude(math.log(8) - self.C_delta.log)
        return {**first, SECOND: second, THIRD: Magnitude.of(0.5 / self.L)}

    @property
    def binding(self) -> str:
        """Return the name of the smallest term."""
        defined = {name: x for name, x in self.terms.items() if not math.isnan(x.log)}
        return min(defined, key=defined.__getitem__)

    @property
    def limit(self) -> float:
        """Return the largest η that meets the condition; 0 for T_1 = 1, as log 1 = 0."""
        return math.exp(self.terms[self.binding].log)

    def __str__(self) -> str:
        theorem = f"Theorem A.2, T_1 = {self.T1:,}, L = {self.L:.4g}"
        return f"η ≤ {self.binding} = {self.limit:.3g} ({theorem})"


def default_step_size(T1: int, L: float) -> float:
    """Return the largest step size of phase 1 that the theorem allows."""
    limit = StepSizeCondition(T1, L).limit
    if limit == 0:
        raise RollinError(
            "No step size meets Theorem A.2 with --phase1-steps 1, as log T_1 is 0: take "
            "--phase1-steps of at least 2, or give a --learning-rate."
        )
    return limit
