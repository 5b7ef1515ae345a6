"""Gradient steps and samples that a method takes until it solves the final context.

A context is solved as soon as the *exact* probability of success within T steps from the start is
above a threshold, also with sampled learners, so that the measure adds no noise.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rollin.checks import at_least, check_alpha, check_beta, positive
from rollin.curriculum.contexts import SuccessRate
from rollin.curriculum.mastery import StepGap
from rollin.curriculum.progress import Progress
from rollin.errors import RollinError
from rollin.tabular import soft
from rollin.tabular.algorithm1 import GradientStep, TabularState, rollin
from rollin.tabular.kernels.exact import (
    Structure,
    climb,
    log_policy,
    structure_of,
    success_from,
    visitation_of,
)
from rollin.tabular.learners import RandomHorizonSPG, StepInfo, TabularLearner, constant_schedule
from rollin.tabular.mdp import Array, ContextualMDP
from rollin.tabular.start import Start, roll_in
from rollin.tabular.theory.constants import largest_ratio

THRESHOLD = 0.5  # of the success probability, as in the paper's four rooms
NEWTON_STEPS = 10  # between two checks whether soft policy iteration has converged
NEVER = 2.0  # as a threshold of a probability
NEAR = 1e-4  # change of a probability from which on it converges to float64 precision


@dataclass(frozen=True)
class Goal:
    """The definition of solved: success within `horizon` steps from `start` > threshold."""

    start: Array
    horizon: int
    threshold: float = THRESHOLD

    @classmethod
    def of(cls, mdp: ContextualMDP) -> "Goal":
        """Return the goal from state 0, within twice the steps that the final context takes."""
        return cls(np.eye(mdp.n_states)[0], 2 * (mdp.K + 1))


class Ascent(ABC):
    """Training with one method until the final context is solved.

    progress: the current context and the advances so far; start: μ_k;
    gradient_steps, env_steps (roll-in included), rollin_steps: costs so far.
    scratch: learn the final context only. gap: advance to the final context by `StepGap`.
    """

    def __init__(
        self,
        mdp: ContextualMDP,
        goal: Goal,
        beta: float = 0.0,
        *,
        recursive: bool = False,
        scratch: bool = False,
        gap: bool = False,
    ) -> None:
        self.mdp = mdp
        self.goal = goal
        self.beta = check_beta(beta)
        self.recursive = recursive
        self.scratch = scratch
        self.gap = StepGap(most=1.0) if gap else None
        self.structure = structure_of(mdp)
        self.progress = Progress(mdp.K, mdp.K if scratch else 0)
        self.start = Start(mdp.rho)
        self.gradient_steps = 0
        self.env_steps = 0
        self.rollin_steps = 0

    @property
    def solved(self) -> bool:
        """Return whether the final context is solved."""
        return self.progress.completed is not None

    @abstractmethod
    def go(self, most: int) -> None:
        """Take at most `most` gradient steps, and none on the next context."""

    def mastered(self, measured: float) -> str | None:
        """Return why the current context is mastered at an exact success probability, or None."""
        if self.gap and not self.progress.finished:
            return self.gap.mastered(measured)
        return SuccessRate(self.goal.threshold).mastered(measured)

    def until(self, cap: int) -> Self:
        """Take steps until the final context is solved, or the cap is reached."""
        at_least(1, "cap", cap)
        while not self.solved and self.gradient_steps < cap:
            self.go(cap - self.gradient_steps)
        return self

    def get_state(self) -> dict[str, Any]:
        """Return the state that `set_state` resumes from."""
        return {
            "progress": self.progress.get_state(),
            "start": self.start.get_state(),
            "gradient_steps": self.gradient_steps,
            "env_steps": self.env_steps,
            "rollin_steps": self.rollin_steps,
            **({"gap": self.gap.get_state()} if self.gap else {}),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        self.progress.set_state(state["progress"])
        self.start = Start.of_state(state["start"])
        for name in ("gradient_steps", "env_steps", "rollin_steps"):
            setattr(self, name, at_least(0, name, int(state[name])))
        if self.gap:
            self.gap.set_state(state["gap"])


class ExactAscent(Ascent):
    """Algorithm 1 with `ExactPG` or `NaturalPG`, in compiled code.

    predictor: R = Σ_k ‖d_ρ^{π*_k} / d_{μ_k}^{π_θ}‖_∞ over the contexts so far, with the parameters
        θ at the start of each; NaN unless `predict`.
    """

    def __init__(
        self,
        mdp: ContextualMDP,
        alpha: float,
        learning_rate: float,
        *,
        goal: Goal,
        natural: bool = False,
        predict: bool = False,
        **method: Any,
    ) -> None:
        self.alpha = check_alpha(alpha)
        self.learning_rate = positive("learning_rate", learning_rate)
        super().__init__(mdp, goal, **method)
        self.natural = natural
        self.predict = predict
        self.theta = np.zeros((mdp.n_states, mdp.n_actions))
        self.predictor = 0.0 if predict else math.nan
        self._predict()

    def _predict(self) -> None:
        """Add the current context's term of R."""
        if self.predict:
            d = visitation_of(self.theta, self.start.mu, self.mdp.gamma, self.structure)
            self.predictor += _ratio(self.mdp, self.alpha, self.progress.k, d, self.structure)

    def go(self, most: int) -> None:
        """Ascend on the current context; advance if it is solved."""
        mdp = self.mdp
        k = self.progress.k
        why = self._climb(most) if self.gap is None or k == mdp.K else self._climb_by_gap(most)
        if why is None:
            return
        if k == mdp.K:
            self.progress.complete(self.gradient_steps, why)
            return
        log_pi = soft.log_softmax(self.theta)  # lines 5 and 6 of Algorithm 1
        self.start = roll_in(mdp, self.start, log_pi, self.beta, recursive=self.recursive)
        self.progress.advance(self.gradient_steps, why)
        self._predict()

    def _climb(self, most: int, threshold: float | None = None) -> str | None:
        """Ascend until the success probability exceeds a threshold. Default: the goal's."""
        mdp = self.mdp
        goal = self.goal
        k = self.progress.k
        threshold = goal.threshold if threshold is None else threshold
        taken, solved = climb(
            self.theta, mdp.rewards[k], mdp.success[k], self.start.mu, goal.start, self.alpha,
            mdp.gamma, self.learning_rate, self.natural, goal.horizon, threshold, most,
            self.structure,
        )  # fmt: skip
        self.gradient_steps += taken
        return f"success probability > {threshold:g}" if solved else None

    def _climb_by_gap(self, most: int) -> str | None:
        """Ascend one step at a time until the rule says to advance."""
        hits = self.mdp.success[self.progress.k]
        goal = self.goal
        for _ in range(most):
            self._climb(1, NEVER)
            success = success_from(self.theta, hits, goal.start, goal.horizon, self.structure)
            if why := self.mastered(success):
                return why
        return None

    def get_state(self) -> dict[str, Any]:
        """Return the state that `set_state` resumes from."""
        return {
            **super().get_state(),
            "theta": self.theta.copy(),
            "predictor": self.predictor if self.predict else 0.0,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        super().set_state(state)
        self.theta[:] = state["theta"]
        self.predictor = float(state["predictor"]) if self.predict else math.nan


def _ratio(mdp: ContextualMDP, alpha: float, k: int, d: Array, structure: Structure) -> float:
    """Return ‖d_ρ^{π*_k} / d‖_∞ with the soft-optimal policy of context k."""
    optimal = visitation_of(_optimum(mdp, alpha, k, structure), mdp.rho, mdp.gamma, structure)
    where = optimal > 0
    return float((optimal[where] / d[where]).max())


def _optimum(mdp: ContextualMDP, alpha: float, k: int, structure: Structure) -> Array:
    """Return parameters of the soft-optimal policy of context k.

    A natural gradient step of η = (1-γ)/α is soft policy iteration, which is Newton's method: it
    has converged when a round of steps changes the probabilities only by rounding errors.
    """
    theta = np.zeros((mdp.n_states, mdp.n_actions))
    before = np.exp(soft.log_softmax(theta))
    change = math.inf
    while True:
        climb(
            theta, mdp.rewards[k], mdp.success[k], mdp.rho, mdp.rho, alpha, mdp.gamma,
            (1 - mdp.gamma) / alpha, True, 1, NEVER, NEWTON_STEPS, structure,
        )  # fmt: skip
        pi = np.exp(soft.log_softmax(theta))
        last = change
        change = float(np.abs(pi - before).max())
        if change == 0 or last / 2 <= change < NEAR:
            return theta
        before = pi


def mismatch_of(mdp: ContextualMDP, alpha: float, mu: Array) -> float:
    """Return ln ‖d_μ^{π*_K} / μ‖_∞, the final context's ratio in Lemma A.1 and Theorem 4.1."""
    log_pi = soft.log_softmax(_optimum(mdp, alpha, mdp.K, structure_of(mdp)))
    with np.errstate(divide="ignore"):
        log_mu = np.log(mu)
    return largest_ratio(soft.log_visitation(mdp, log_pi, log_mu), log_mu).log


class UnmeasuredSPG(RandomHorizonSPG):
    """RandomHorizonSPG with a compiled softmax and without its own measure of success.

    It takes the same steps in a quarter of the time.
    """

    @property
    def log_pi(self) -> Array:
        """Return log π_θ, (S, A)."""
        return log_policy(self.theta)

    def success(self) -> float:
        """Return NaN; `LearnerAscent` measures success."""
        return math.nan


class LearnerAscent(Ascent):
    """Algorithm 1 with any learner, one step at a time.

    sampled: whether roll-ins act in the environment, so that their steps count.
    """

    def __init__(
        self,
        mdp: ContextualMDP,
        learner: TabularLearner,
        *,
        goal: Goal,
        sampled: bool = False,
        **method: Any,
    ) -> None:
        if not mdp.deterministic:
            raise RollinError("Ascents until solved take deterministic MDPs, got probabilities.")
        super().__init__(mdp, goal, **method)
        self.learner = learner
        self.sampled = sampled
        self._steps: Iterator[GradientStep] | None = None

    def go(self, most: int) -> None:
        """Take one gradient step."""
        if self._steps is None:
            self._state = TabularState(self.progress, self.start, [], self.gradient_steps)
            self._steps = rollin(
                self.mdp, self.learner, self.beta, self, self._state, measure=self._success,
                recursive=self.recursive, sampled=self.sampled, stop_when_mastered=True,
            )  # fmt: skip
        info = next(self._steps).info
        self.start = self._state.start
        self.gradient_steps += 1
        self.env_steps += info.env_steps
        self.rollin_steps += info.rollin_steps

    def _success(self, learner: TabularLearner, info: StepInfo) -> float:
        hits = learner.task.success
        goal = self.goal
        return success_from(learner.theta, hits, goal.start, goal.horizon, self.structure)

    def get_state(self) -> dict[str, Any]:
        """Return the state that `set_state` resumes from."""
        return {**super().get_state(), "learner": self.learner.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        super().set_state(state)
        self.learner.begin(self.mdp.task(self.progress.k), self.start)
        self.learner.set_state(state["learner"])
        self._steps = None


def sampled_ascent(
    mdp: ContextualMDP,
    alpha: float,
    learning_rate: float,
    *,
    goal: Goal,
    batch: int,
    seed: int,
    **method: Any,
) -> LearnerAscent:
    """Return Algorithm 1 with random-horizon SPG (Algorithms 5 – 7) and a fixed batch."""
    learner = UnmeasuredSPG(mdp, alpha, constant_schedule(batch, learning_rate), seed)
    return LearnerAscent(mdp, learner, goal=goal, sampled=True, **method)
