"""Theorem 4.3's sums over K contexts, and the growth of the complexities with S.

The induction of Theorem 4.3 needs every context to begin in phase 2, with V*(ρ) - V(ρ) below ε_0,
when SPG starts from the policy of the previous context. Corollary A.3 takes ε, δ ~ 1/S and a
uniform ρ, and gives only powers of S. Where a printed power does not follow from the constants of
Theorem A.2, `scaling` has the one that does beside it; phase 2 stays polynomial.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rollin.tabular.mdp import ContextualMDP
from rollin.tabular.theory.constants import Constants, Magnitude, total


@dataclass(frozen=True)
class ContextStart:
    """The initial sub-optimality D of context k, compared with ε_0, and the cost of its phase 2.

    cold: D(θ = 0). warm: D of the previous context's π*, of θ = 0 for k = 0.
    floor: the largest `warm` by errors of the optima (`soft.gap_floor`).
    any_warm: upper bound of D for every policy that is ε-optimal on the previous context.
    trivial: upper bound of D for any policy.
    samples_rho, samples_mu: T_2 B_2 with trajectories from ρ and from μ_k.
    """

    k: int
    cold: float
    warm: float
    floor: float
    any_warm: Magnitude
    trivial: float
    eps0: Magnitude
    T2: Magnitude
    samples_rho: Magnitude
    samples_mu: Magnitude

    @property
    def enters(self) -> bool | None:
        """Return whether π*_{k-1} begins in phase 2, D < ε_0 as in Definition 4.2.

        None where ε_0 is undefined, and where float64 does not resolve which is smaller.
        """
        if self.k > 0 and self.any_warm < self.eps0:  # a proof, which needs no D
            return True
        return is_below(self.warm, self.floor, self.eps0)

    @property
    def vacuous(self) -> bool:
        """Return whether `any_warm` is no smaller than the bound of any policy."""
        return Magnitude.of(self.trivial).log <= self.any_warm.log

    @property
    def verdict(self) -> str:
        """Return the answer as text: for every ε-optimal policy, only for the optimum, or not."""
        if math.isnan(self.eps0.log):
            return "–"
        if self.enters is None:
            return "not resolved"
        if not self.enters:
            return "no"
        return "yes" if self.any_warm < self.eps0 else "from π* only"


@dataclass(frozen=True)
class Totals:
    """Theorem 4.3's sums over k = 1 … K, without ω_0, which Algorithm 1 learns first.

    failure: (K+1) δ, the chance that some context misses its ε, by the union bound.
    """

    contexts: list[ContextStart]
    failure: float

    @property
    def steps(self) -> Magnitude:
        """Return the K T_2 gradient steps if every context begins in phase 2."""
        return total([c.T2 for c in self.contexts[1:]])

    @property
    def samples_rho(self) -> Magnitude:
        """Return Σ_k T_2 B_2 without roll-in."""
        return total([c.samples_rho for c in self.contexts[1:]])

    @property
    def samples_mu(self) -> Magnitude:
        """Return Σ_k T_2 B_2 with roll-in."""
        return total([c.samples_mu for c in self.contexts[1:]])

    @property
    def entering(self) -> int | None:
        """Return the number of contexts k ≥ 1 whose π*_{k-1} begins in phase 2, if ε_0 exists."""
        if math.isnan(self.contexts[0].eps0.log):
            return None
        return sum(c.enters is True for c in self.contexts[1:])

    @property
    def unresolved(self) -> int:
        """Return the number of contexts k ≥ 1 where float64 does not resolve D < ε_0."""
        return sum(c.verdict == "not resolved" for c in self.contexts[1:])


def is_below(gap: float, floor: float, eps0: Magnitude) -> bool | None:
    """Return whether gap < ε_0; None if an error of √floor of √gap could change the answer.

    None also where ε_0 is undefined.
    """
    if math.isnan(eps0.log):
        return None
    root = math.sqrt(gap)
    off = math.sqrt(floor)
    if Magnitude.of((root + off) ** 2) < eps0:
        return True
    return None if Magnitude.of(max(root - off, 0.0) ** 2) < eps0 else False


def totals_of(
    mdp: ContextualMDP,
    plain: Sequence[Constants],
    rolled: Sequence[Constants],
    floors: Sequence[float],
    delta: float,
    largest_value: float,
) -> Totals:
    """Return the totals of the constants from ρ and θ = 0, and from μ_k and the warm start.

    floors: of the warm start's D, by context.
    """
    contexts = [
        ContextStart(
            k,
            cold=left.D0,
            warm=right.D0,
            floor=floors[k],
            any_warm=_any_warm(mdp, k, right),
            trivial=largest_value,
            eps0=right.eps0,
            T2=right.T2,
            samples_rho=Magnitude(left.T2.log + left.B2.log),
            samples_mu=Magnitude(right.T2.log + right.B2.log),
        )
        for k, (left, right) in enumerate(zip(plain, rolled, strict=True))
    ]
    return Totals(contexts, (mdp.K + 1) * delta)


def _any_warm(mdp: ContextualMDP, k: int, constants: Constants) -> Magnitude:
    """Return ε + 2 ‖r_k - r_{k-1}‖_∞ / (1-γ), which corrects a step of the induction.

    V*_k - V^π_k = (V*_k - V*_{k-1}) + (V*_{k-1} - V^π_{k-1}) + (V^π_{k-1} - V^π_k): the middle one
    is at most ε, each of the others ‖r_k - r_{k-1}‖_∞ / (1-γ).
    """
    if k == 0:
        return Magnitude.of(constants.D0)
    change = float(np.abs(mdp.rewards[k] - mdp.rewards[k - 1]).max())
    return total([constants.epsilon, Magnitude.of(2 * change / (1 - mdp.gamma))])


@dataclass(frozen=True)
class Power:
    """A power S^s K^k."""

    s: Fraction = Fraction(0)
    k: Fraction = Fraction(0)

    def __str__(self) -> str:
        return " ".join(
            f"{name}{_raised(power)}" for name, power in (("K", self.k), ("S", self.s)) if power
        )

    def at(self, S: int, K: int) -> Magnitude:
        """Return its value without constants."""
        return Magnitude(float(self.s) * math.log(S) + float(self.k) * math.log(K))


@dataclass(frozen=True)
class Scaling:
    """One complexity of the paper: as printed and as it follows, with values at this S and K.

    where: A.3, the corollary; 4.1 and 4.3, the theorems, the latter for one context and for all.
    """

    where: str
    quantity: str
    printed: str
    printed_value: Magnitude
    follows: str
    follows_value: Magnitude
    why: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Return whether the printed one does not follow."""
        return self.printed != self.follows


RATIO = "the ratio d/μ is at least 1: of Lemma A.1's bound 1/β stays, however close the contexts"
TARGET = "the induction needs ε ≤ ε_0/2 ~ S⁻², not 1/S"
UNION = "that all K contexts succeed takes δ ~ 1/K; a path of fixed length has K ~ S²"
OFFSET = "t_0 = √(3σ²/(2δε_0)) with δ ~ 1/S and ε_0 ~ S⁻²; Section 3.2 also has T_2 ~ S^{3/2}"

PHASE_ONE = (
    "and B_1: the exponent holds 1/C_δ⁰, and C_δ⁰ the smallest π_θ in a ball of radius ~ S^{3/2}; "
    "Remark C.3 grants that C_δ⁰ may depend on S"
)

_S = Fraction(1)
_K = Fraction(1)
_ROWS = (
    # where, quantity, printed, as it follows, why
    ("A.3", "1/ε_0", Power(2 * _S), Power(2 * _S), ()),
    ("A.3", "t_0", Power(_S), Power(3 * _S / 2), (OFFSET,)),
    ("A.3", "1/C_ζ", Power(3 * _S), Power(3 * _S), ()),
    ("A.3", "T_2", Power(_S), Power(3 * _S / 2), (OFFSET,)),
    ("A.3", "B_2", Power(5 * _S), Power(5 * _S), ()),
    ("4.1", "T_2", Power(_S), Power(3 * _S / 2), (OFFSET,)),
    ("4.1", "B_2", Power(3 * _S), Power(4 * _S), (RATIO,)),
    ("4.3 one", "T_2", Power(_S), Power(5 * _S / 2), (OFFSET, TARGET)),
    ("4.3 one", "B_2", Power(3 * _S), Power(5 * _S), (RATIO, TARGET)),
    ("4.3 all", "K T_2", Power(_S, _K), Power(_S, 5 * _K / 2), (OFFSET, TARGET, UNION)),
    ("4.3 all", "B_2", Power(3 * _S), Power(4 * _S, _K), (RATIO, TARGET, UNION)),
)


def scaling(S: int, K: int) -> list[Scaling]:
    """Return every row for an MDP of S states and a curriculum of K steps."""
    # 𝒢 has radius (1 + 1/δ) Δ̄ ~ S · √S, within which π_θ falls to e^{-Ω(S^{3/2})}
    phase_one = Scaling(
        "A.3",
        "T_1",
        "S^{2S³}",
        Magnitude(2 * S**3 * math.log(S)),
        "exp(e^{S^{3/2}})",
        Magnitude.from_loglog(S**1.5),
        (PHASE_ONE,),
    )
    rows = [
        Scaling(where, what, str(printed), printed.at(S, K), str(true), true.at(S, K), why)
        for where, what, printed, true, why in _ROWS
    ]
    return [*rows[:3], phase_one, *rows[3:]]


def _raised(power: Fraction) -> str:
    if power == 1:
        return ""
    if power.denominator == 1:
        return str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"^{{{power}}}"
