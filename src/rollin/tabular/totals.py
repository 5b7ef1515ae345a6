"""What Theorem 4.3 adds up: the gap that each context begins with, and K contexts of phase 2.

Its induction needs every context to begin in phase 2, with V*(ρ) - V(ρ) below ε_0, when SPG starts
from what it learned on the context before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollin.tabular import soft
from rollin.tabular.constants import Constants
from rollin.tabular.magnitude import Magnitude
from rollin.tabular.mdp import Array, ContextualMDP


@dataclass(frozen=True)
class ContextStart:
    """How far from optimal context k begins, against ε_0, and what its phase 2 costs.

    cold: D(θ = 0). warm: D of the previous context's π*, of θ = 0 for k = 0.
    floor: what warm may be by the errors of the optima alone (`soft.gap_floor`).
    any_warm: what D is at most for every policy that is ε-optimal on the previous context.
    trivial: what D is at most for any policy.
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
        """Whether π*_{k-1} begins in phase 2, D < ε_0 as in Definition 4.2.

        None where ε_0 is not defined, and where float64 does not resolve which is smaller.
        """
        if self.k > 0 and self.any_warm < self.eps0:  # a proof, which needs no D
            return True
        return is_below(self.warm, self.floor, self.eps0)

    @property
    def vacuous(self) -> bool:
        """Whether `any_warm` says no more than what is true of any policy."""
        return Magnitude.of(self.trivial).log <= self.any_warm.log

    @property
    def verdict(self) -> str:
        """In a few words: for every ε-optimal policy, for the exact optimum alone, or not."""
        if math.isnan(self.eps0.log):
            return "–"
        if self.enters is None:
            return "not resolved"
        if not self.enters:
            return "no"
        return "yes" if self.any_warm < self.eps0 else "from π* only"


@dataclass(frozen=True)
class Totals:
    """Theorem 4.3's sums over k = 1 … K; ω_0, which Algorithm 1 learns first, comes on top.

    failure: (K+1) δ, the chance that some context misses its ε, by the union bound.
    """

    contexts: list[ContextStart]
    failure: float

    @property
    def steps(self) -> Magnitude:
        """K T_2 gradient steps, if every context begins in phase 2."""
        return total([c.T2 for c in self.contexts[1:]])

    @property
    def samples_rho(self) -> Magnitude:
        """Σ_k T_2 B_2 without roll-in."""
        return total([c.samples_rho for c in self.contexts[1:]])

    @property
    def samples_mu(self) -> Magnitude:
        """Σ_k T_2 B_2 with roll-in."""
        return total([c.samples_mu for c in self.contexts[1:]])

    @property
    def entering(self) -> int | None:
        """On how many of the contexts 1 … K π*_{k-1} begins in phase 2; None without ε_0."""
        if math.isnan(self.contexts[0].eps0.log):
            return None
        return sum(c.enters is True for c in self.contexts[1:])

    @property
    def unresolved(self) -> int:
        """On how many of them D is too small for float64 to tell."""
        return sum(c.verdict == "not resolved" for c in self.contexts[1:])


def is_below(gap: float, floor: float, eps0: Magnitude) -> bool | None:
    """Whether gap < ε_0, if the floor, by which √gap may be off, leaves no doubt; None if it does.

    None, too, where ε_0 is not defined.
    """
    if math.isnan(eps0.log):
        return None
    root, off = math.sqrt(gap), math.sqrt(floor)
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
    """From the constants of every context: from ρ and θ = 0, and from μ_k and the warm start.

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
    """ε + 2 ‖r_k - r_{k-1}‖_∞ / (1-γ), which mends a step of the induction.

    V*_k - V^π_k = (V*_k - V*_{k-1}) + (V*_{k-1} - V^π_{k-1}) + (V^π_{k-1} - V^π_k): the middle one
    is at most ε, each of the others ‖r_k - r_{k-1}‖_∞ / (1-γ).
    """
    if k == 0:
        return Magnitude.of(constants.D0)
    change = float(np.abs(mdp.rewards[k] - mdp.rewards[k - 1]).max())
    return total([constants.epsilon, Magnitude.of(2 * change / (1 - mdp.gamma))])


def total(numbers: Sequence[Magnitude]) -> Magnitude:
    """Their sum, of numbers whose logarithm a float holds."""
    logs: Array = np.array([number.log for number in numbers])
    return Magnitude(float(soft.logsumexp(logs)))
