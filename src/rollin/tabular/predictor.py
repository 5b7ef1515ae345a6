"""R = Σ_k ‖d_ρ^{π*_k} / d_{μ_k}^{π_θ}‖_∞, with θ as it is when context k begins.

How much more often the next optimal policy visits a state than training does at first. Ours, and an
observation: on locks with γ = 1 - 1/n the gradient steps of exact PG grow with it if θ is what was
learned by the switch, where the ratio of Lemma A.1 does not tell. It is no theorem. With the exact
optimum for θ, which for small α tries nothing, it is far larger and foretells nothing. It
fails on the lock with γ = 0.9, and from scratch under a uniform ρ.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollin.tabular import soft
from rollin.tabular.constants import largest_ratio
from rollin.tabular.magnitude import Magnitude
from rollin.tabular.mdp import Array, ContextualMDP
from rollin.tabular.soft import SoftOptimum
from rollin.tabular.start import log_roll_ins
from rollin.tabular.totals import total


@dataclass(frozen=True)
class Predictor:
    """The terms of R by context, with the exact π*_{k-1} for π_θ and θ = 0 for k = 0.

    scratch: the last context alone, from θ = 0 and ρ; plain: the curriculum without roll-in;
    rolled: with it.
    """

    scratch: Magnitude
    plain: list[Magnitude]
    rolled: list[Magnitude]

    @property
    def R_plain(self) -> Magnitude:
        """R of the curriculum without roll-in."""
        return total(self.plain)

    @property
    def R_rolled(self) -> Magnitude:
        """R of the curriculum with roll-in."""
        return total(self.rolled)


def predictor_of(
    mdp: ContextualMDP, warm: Sequence[Array], log_starts: Sequence[Array], wanted: Sequence[Array]
) -> Predictor:
    """R on every context; wanted: log d_ρ^{π*_k}.

    warm: log π_θ when it begins, which is π*_{k-1} after the first.
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
    """R's terms on the contexts that a run reached, from the policies at its switches."""
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
