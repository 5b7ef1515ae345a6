"""How long a method takes until the last context is solved: gradient steps and samples.

A context is solved as soon as the *exact* probability to succeed within T steps from the start is
above a threshold. Sampled learners are judged by the same exact number, so that the measure has no
noise of its own.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rollin.checks import at_least, check_alpha, check_beta, positive
from rollin.curriculum.rules import SuccessRate
from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.constants import largest_ratio
from rollin.tabular.elimination import (
    I64,
    Elimination,
    climb,
    log_policy,
    success_from,
    visitation_of,
)
from rollin.tabular.learner import StepInfo, TabularLearner
from rollin.tabular.mdp import Array, ContextualMDP
from rollin.tabular.policy_gradient import RandomHorizonSPG, constant_schedule
from rollin.tabular.provable import rollin
from rollin.tabular.start import Start, roll_in

THRESHOLD = 0.5  # of the success probability, as in the paper's four rooms
NEWTON_STEPS = 10  # between two looks at whether soft policy iteration has converged
NEAR = 1e-4  # change of a probability below which it converges as far as float64 goes


@dataclass(frozen=True)
class Goal:
    """When a context counts as solved: success within `horizon` steps from `start` > threshold."""

    start: Array
    horizon: int
    threshold: float = THRESHOLD

    @classmethod
    def of(cls, mdp: ContextualMDP) -> "Goal":
        """From state 0, within twice the steps that the last context takes."""
        return cls(np.eye(mdp.n_states)[0], 2 * (mdp.K + 1))


@dataclass(frozen=True)
class Walk:
    """How a run ended.

    solved: whether the last context was; reached: the context that it ended in;
    gradient_steps, env_steps (roll-in included), rollin_steps: what was spent, up to the cap;
    predictor: R = Σ_k ‖d_ρ^{π*_k} / d_{μ_k}^{π_θ}‖_∞ over the contexts that were begun, with the
        parameters θ that each began with; NaN if it was not asked for;
    start: μ_K of the last context, None if it was not begun.
    """

    solved: bool
    reached: int
    gradient_steps: int
    env_steps: int = 0
    rollin_steps: int = 0
    predictor: float = math.nan
    start: Array | None = None


def walk_exactly(
    mdp: ContextualMDP,
    alpha: float,
    learning_rate: float,
    cap: int,
    *,
    goal: Goal,
    beta: float = 0.0,
    recursive: bool = False,
    scratch: bool = False,
    natural: bool = False,
    predict: bool = False,
) -> Walk:
    """Algorithm 1 with the exact gradient, or the natural one, until the last context is solved.

    The same as `rollin.ExactPG` and `rollin.NaturalPG` under Algorithm 1, in compiled code.
    scratch: learn the last context alone, from uniform; predict: compute R, too.
    """
    check_alpha(alpha)
    check_beta(beta)
    positive("learning_rate", learning_rate)
    at_least(1, "cap", cap)
    structure = Elimination.of(mdp).arrays
    theta = np.zeros((mdp.n_states, mdp.n_actions))
    start = Start(mdp.rho)
    steps, R = 0, 0.0 if predict else math.nan
    first = mdp.K if scratch else 0
    for k in range(first, mdp.K + 1):
        if k > first:  # lines 5 and 6 of Algorithm 1
            log_pi = soft.log_softmax(theta)
            start = roll_in(mdp, start, log_pi, beta, recursive=recursive)
        if predict:
            d = visitation_of(theta, start.mu, mdp.gamma, structure)
            R += _ratio(mdp, alpha, k, d, structure)
        taken, solved = climb(
            theta, mdp.rewards[k], mdp.success[k], start.mu, goal.start, alpha, mdp.gamma,
            learning_rate, natural, goal.horizon, goal.threshold, cap - steps, structure,
        )  # fmt: skip
        steps += taken
        if not solved or k == mdp.K:
            return Walk(solved, k, steps, predictor=R, start=start.mu if k == mdp.K else None)
    raise AssertionError("the last context ends the loop")


def _ratio(mdp: ContextualMDP, alpha: float, k: int, d: Array, structure: tuple[I64, ...]) -> float:
    """‖d_ρ^{π*_k} / d‖_∞ with the soft-optimal policy of context k."""
    wanted = visitation_of(_optimum(mdp, alpha, k, structure), mdp.rho, mdp.gamma, structure)
    where = wanted > 0
    return float((wanted[where] / d[where]).max())


def _optimum(mdp: ContextualMDP, alpha: float, k: int, structure: tuple[I64, ...]) -> Array:
    """Parameters of the soft-optimal policy of context k.

    A natural gradient step of η = (1-γ)/α is soft policy iteration, which is Newton's method: it is
    done when a round of steps changes the probabilities by rounding errors alone.
    """
    theta = np.zeros((mdp.n_states, mdp.n_actions))
    never, before, change = 2.0, np.exp(soft.log_softmax(theta)), math.inf
    while True:
        climb(
            theta, mdp.rewards[k], mdp.success[k], mdp.rho, mdp.rho, alpha, mdp.gamma,
            (1 - mdp.gamma) / alpha, True, 1, never, NEWTON_STEPS, structure,
        )  # fmt: skip
        pi = np.exp(soft.log_softmax(theta))
        last, change = change, float(np.abs(pi - before).max())
        if change == 0 or last / 2 <= change < NEAR:
            return theta
        before = pi


def mismatch_of(mdp: ContextualMDP, alpha: float, mu: Array) -> float:
    """ln ‖d_μ^{π*_K} / μ‖_∞ on the last context, the ratio in Lemma A.1 and Theorem 4.1."""
    log_pi = soft.log_softmax(_optimum(mdp, alpha, mdp.K, Elimination.of(mdp).arrays))
    with np.errstate(divide="ignore"):
        log_mu = np.log(mu)
    return largest_ratio(soft.log_visitation(mdp, log_pi, log_mu), log_mu).log


class JudgedFromOutside(RandomHorizonSPG):
    """RandomHorizonSPG with a compiled softmax, which leaves it to others to measure success.

    It takes the same steps in a quarter of the time: most of that went into these two.
    """

    @property
    def log_pi(self) -> Array:
        """log π_θ, (S, A)."""
        return log_policy(self.theta)

    def success(self) -> float:
        """Not measured here."""
        return math.nan


def walk_sampled(
    mdp: ContextualMDP,
    alpha: float,
    learning_rate: float,
    cap: int,
    *,
    goal: Goal,
    batch: int,
    seed: int,
    beta: float = 0.0,
    recursive: bool = False,
    scratch: bool = False,
) -> Walk:
    """Algorithm 1 with random-horizon SPG (Algorithms 5 – 7) and a fixed batch.

    Roll-ins are walked in the environment, and their steps counted.
    """
    learner = JudgedFromOutside(mdp, alpha, constant_schedule(batch, learning_rate), seed)
    return walk_with(
        mdp, learner, cap, goal=goal, beta=beta, recursive=recursive, scratch=scratch, sampled=True
    )


def walk_with(
    mdp: ContextualMDP,
    learner: TabularLearner,
    cap: int,
    *,
    goal: Goal,
    beta: float = 0.0,
    recursive: bool = False,
    scratch: bool = False,
    sampled: bool = False,
) -> Walk:
    """The same with any of the learners, one step at a time."""
    at_least(1, "cap", cap)
    if not mdp.deterministic:
        raise RollinError("Walks until solved take deterministic MDPs, got probabilities.")
    structure = Elimination.of(mdp).arrays
    rule = SuccessRate(goal.threshold)

    def exact_success(learner: TabularLearner, info: StepInfo) -> float:
        hits = learner.task.success
        return success_from(learner.theta, hits, goal.start, goal.horizon, structure)

    def steps() -> Iterator[tuple[int, StepInfo, str | None]]:
        if not scratch:
            for step in rollin(
                mdp, learner, beta, rule, measure=exact_success, recursive=recursive,
                sampled=sampled, stop_when_mastered=True,
            ):  # fmt: skip
                yield step.k, step.info, step.advance
            return
        learner.begin(mdp.task(mdp.K), Start(mdp.rho))
        while True:
            info = learner.step()
            yield mdp.K, info, rule.mastered(exact_success(learner, info))

    env_steps = rollin_steps = 0
    for taken, (k, info, mastered) in enumerate(steps(), 1):
        env_steps += info.env_steps
        rollin_steps += info.rollin_steps
        solved = mastered is not None and k == mdp.K
        if solved or taken == cap:
            return Walk(solved, k, taken, env_steps, rollin_steps)
    raise AssertionError("a walk ends solved or at its cap")
