"""Start distributions: ρ, or the roll-in distribution μ_k = β d + (1-β) ρ (equation 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollin.checks import check_beta
from rollin.tabular.kernels import rollouts
from rollin.tabular.kernels.draws import STREAMS, U32
from rollin.tabular.kernels.tables import Dynamics, Stream, alias_table
from rollin.tabular.mdp import Array, ContextualMDP
from rollin.tabular.soft import log_visitation, visitation


@dataclass(frozen=True, eq=False)
class Start:
    """The exact law μ (S,) of the first state, and the policies that sample it by rolling in.

    chain: log-policies (S, A), oldest first: with probability β a trajectory rolls in with the
        newest for Geom(1-γ) steps from the start that the older ones give, else it starts from ρ.
        Empty if first states are drawn from `mu` directly, which is the same in distribution.
    """

    mu: Array
    chain: tuple[Array, ...] = ()
    beta: float = 0.0

    def get_state(self) -> dict[str, Any]:
        """Return the fields, with the chain by number."""
        return {
            "mu": self.mu,
            "beta": self.beta,
            "chain": {str(i): p for i, p in enumerate(self.chain)},
        }

    @classmethod
    def of_state(cls, saved: Mapping[str, Any]) -> "Start":
        """Return the start that `get_state` described."""
        chain = tuple(saved["chain"][str(i)] for i in range(len(saved["chain"])))
        return cls(saved["mu"], chain, float(saved["beta"]))


def roll_in(
    mdp: ContextualMDP,
    previous: Start,
    log_pi: Array,
    beta: float,
    *,
    recursive: bool = False,
    sampled: bool = False,
) -> Start:
    """Return μ_k from the policy of context k-1.

    recursive: roll in from μ_{k-1}, as equation 1 is printed; otherwise from ρ.
    sampled: keep the policies, to find first states by acting in the environment.
    """
    check_beta(beta)
    if beta == 0:
        return Start(mdp.rho)
    begin = previous.mu if recursive else mdp.rho
    mu = beta * visitation(mdp, log_pi, begin) + (1 - beta) * mdp.rho
    chain: tuple[Array, ...] = ()
    if sampled:
        chain = (*(previous.chain if recursive else ()), np.array(log_pi))
    return Start(mu, chain, beta)


def log_roll_ins(
    mdp: ContextualMDP, log_pis: Sequence[Array], beta: float, *, recursive: bool
) -> list[Array]:
    """Return log μ_0 … log μ_n of equation 1 from the policies of contexts 0 … n-1."""
    with np.errstate(divide="ignore"):
        log_rho = np.log(mdp.rho)
        log_beta = np.log(beta)
    starts = [log_rho]
    for log_pi in log_pis:
        log_d = log_visitation(mdp, log_pi, starts[-1] if recursive else log_rho)
        starts.append(np.logaddexp(log_beta + log_d, np.log1p(-beta) + log_rho))
    return starts


def roll_in_discount(gamma: float, beta: float) -> float:
    """Return γ' = γ / (1 - β (1-γ)), the discount that recursive roll-in tends to.

    With an unchanged policy and μ = β d_μ + (1-β) ρ, d_μ is the visitation from ρ with discount γ':
    (I - γPᵀ) d_μ = (1-γ) μ is then (1 - β(1-γ)) (I - γ'Pᵀ) d_μ = (1-γ) (1-β) ρ.
    """
    return gamma / (1 - beta * (1 - gamma))


class StartSampler:
    """Draws first states for the kernels: from μ's alias table, or by rolling in."""

    def __init__(self, dynamics: Dynamics, start: Start) -> None:
        self.dynamics = dynamics
        self.start = start
        law = dynamics.mdp.rho if start.chain else start.mu
        self.alias, self.bits = alias_table(law)
        tables = [dynamics.policy_alias(log_pi) for log_pi in start.chain]
        self.chain = np.stack(tables) if tables else None
        self.first = np.empty(0, np.uint32)

    def draw(self, stream: Stream, batch: int) -> tuple[U32, int]:
        """Return premultiplied first states, valid until the next draw, and roll-in steps."""
        if self.first.size != batch:
            self.first = np.empty(batch, np.uint32)
            self.words = np.empty(-(-batch // STREAMS) * STREAMS, np.uint32)
        if self.chain is None:
            rollouts.draw_starts(
                stream.words, self.alias, self.bits, self.dynamics.P, self.words, self.first
            )
            return self.first, 0
        spent = rollouts.roll_in_starts(
            stream.words,
            self.alias,
            self.bits,
            self.chain,
            self.start.beta,
            self.dynamics.mdp.gamma,
            self.dynamics.tables,
            self.first,
        )
        return self.first, spent


def start_laws(
    mdp: ContextualMDP, policies: Sequence[Array], beta: float, *, recursive: bool = False
) -> list[Start]:
    """Return μ_0 … μ_k of a run, from the policies that mastered the contexts before."""
    starts = [Start(mdp.rho)]
    for log_pi in policies:
        starts.append(roll_in(mdp, starts[-1], log_pi, beta, recursive=recursive))
    return starts
