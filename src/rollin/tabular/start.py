"""Where trajectories start: ρ, or the roll-in distribution μ_k = β d + (1-β) ρ (equation 1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollin.checks import check_beta
from rollin.tabular import walks
from rollin.tabular.draws import U32
from rollin.tabular.mdp import Array, ContextualMDP
from rollin.tabular.packing import Dynamics, Stream, alias_table
from rollin.tabular.soft import log_visitation, visitation
from rollin.tabular.vectors import STREAMS


@dataclass(frozen=True, eq=False)
class Start:
    """The law of the first state, and the policies to roll in with if it is to be sampled.

    mu: (S,) the law itself, exact.
    chain: log-policies (S, A), oldest first: with probability β a trajectory rolls in with the
        newest for Geom(1-γ) steps from the start that the older ones give, else it starts from ρ.
        Empty if first states are drawn from `mu` directly, which is the same in distribution.
    """

    mu: Array
    chain: tuple[Array, ...] = ()
    beta: float = 0.0


def roll_in(
    mdp: ContextualMDP,
    previous: Start,
    log_pi: Array,
    beta: float,
    *,
    recursive: bool = False,
    sampled: bool = False,
) -> Start:
    """μ_k from the policy of context k-1.

    recursive: roll in from μ_{k-1}, as equation 1 is printed; otherwise from ρ.
    sampled: keep the policies, so that first states are found by acting in the environment.
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
    """log μ_0 … log μ_n of equation 1 from the policies of contexts 0 … n-1, without underflow."""
    with np.errstate(divide="ignore"):
        log_rho, log_beta = np.log(mdp.rho), np.log(beta)
    starts = [log_rho]
    for log_pi in log_pis:
        log_d = log_visitation(mdp, log_pi, starts[-1] if recursive else log_rho)
        starts.append(np.logaddexp(log_beta + log_d, np.log1p(-beta) + log_rho))
    return starts


def roll_in_discount(gamma: float, beta: float) -> float:
    """γ' = γ / (1 - β (1-γ)): the discount that recursive roll-in tends to.

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
        """(batch,) premultiplied first states, valid until the next draw; roll-in steps spent."""
        if self.first.size != batch:
            self.first = np.empty(batch, np.uint32)
            self.words = np.empty(-(-batch // STREAMS) * STREAMS, np.uint32)
        if self.chain is None:
            walks.draw_starts(
                stream.words, self.alias, self.bits, self.dynamics.P, self.words, self.first
            )
            return self.first, 0
        spent = walks.roll_in_starts(
            stream.words,
            self.alias,
            self.bits,
            self.chain,
            self.start.beta,
            self.dynamics.mdp.gamma,
            self.dynamics.plain_successors,
            self.dynamics.fan_alias,
            self.dynamics.bits,
            self.dynamics.fan,
            self.first,
        )
        return self.first, spent
