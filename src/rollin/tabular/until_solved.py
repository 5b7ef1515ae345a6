"""How long a method takes until the last context is solved: gradient steps and samples.

A context is solved as soon as the *exact* probability to succeed within T steps from the start is
above a threshold. Sampled learners are judged by the same exact number, so that the measure has no
noise of its own.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rollin.checks import at_least, check_alpha, check_beta, positive
from rollin.curriculum.progress import Progress
from rollin.curriculum.rules import SuccessRate
from rollin.curriculum.step_gap import StepGap
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
from rollin.tabular.provable import TabularState, rollin
from rollin.tabular.start import Start, roll_in

THRESHOLD = 0.5  # of the success probability, as in the paper's four rooms
NEWTON_STEPS = 10  # between two looks at whether soft policy iteration has converged
NEVER = 2.0  # a probability that is not exceeded
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


class Ascent(ABC):
    """A method on its way to solve the last context.

    progress: the context that it is on, and when it left the others; start: μ_k of that context;
    gradient_steps, env_steps (roll-in included), rollin_steps: what was spent so far.
    scratch: learn the last context alone. gap: leave the contexts before it by `StepGap`.
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
        self.mdp, self.goal, self.beta = mdp, goal, check_beta(beta)
        self.recursive, self.scratch = recursive, scratch
        self.gap = StepGap(most=1.0) if gap else None
        self.structure = Elimination.of(mdp).arrays
        self.progress = Progress(mdp.K, mdp.K if scratch else 0)
        self.start = Start(mdp.rho)
        self.gradient_steps: int = 0
        self.env_steps: int = 0
        self.rollin_steps: int = 0

    @property
    def solved(self) -> bool:
        """Whether the last context is."""
        return self.progress.completed is not None

    @abstractmethod
    def go(self, most: int) -> None:
        """Take gradient steps: at most so many, and none on the next context."""

    def mastered(self, measured: float) -> str | None:
        """Why the current context is left, if its exact chance of success is this."""
        if self.gap and not self.progress.finished:
            return self.gap.mastered(measured)
        return SuccessRate(self.goal.threshold).mastered(measured)

    def until(self, cap: int) -> Self:
        """Go until the last context is solved, or the cap is reached."""
        at_least(1, "cap", cap)
        while not self.solved and self.gradient_steps < cap:
            self.go(cap - self.gradient_steps)
        return self

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        start = self.start
        return {
            "progress": self.progress.get_state(),
            "start": {
                "mu": start.mu,
                "beta": start.beta,
                "chain": {str(i): policy for i, policy in enumerate(start.chain)},
            },
            "gradient_steps": self.gradient_steps,
            "env_steps": self.env_steps,
            "rollin_steps": self.rollin_steps,
            **({"gap": self.gap.get_state()} if self.gap else {}),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.progress.set_state(state["progress"])
        saved, chain = state["start"], state["start"]["chain"]
        policies = tuple(chain[str(i)] for i in range(len(chain)))
        self.start = Start(saved["mu"], policies, float(saved["beta"]))
        for name in ("gradient_steps", "env_steps", "rollin_steps"):
            setattr(self, name, at_least(0, name, int(state[name])))
        if self.gap:
            self.gap.set_state(state["gap"])


class ExactAscent(Ascent):
    """Algorithm 1 with the exact gradient, or the natural one.

    The same as `rollin.ExactPG` and `rollin.NaturalPG` under Algorithm 1, in compiled code.
    predict: whether to compute R, too.
    predictor: R = Σ_k ‖d_ρ^{π*_k} / d_{μ_k}^{π_θ}‖_∞ over the contexts that were begun, with the
        parameters θ that each began with; NaN if it is not computed.
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
        self.natural, self.predict = natural, predict
        self.theta = np.zeros((mdp.n_states, mdp.n_actions))
        self.predictor = 0.0 if predict else math.nan
        self._predict()

    def _predict(self) -> None:
        """Add what the context that begins now has of R."""
        if self.predict:
            d = visitation_of(self.theta, self.start.mu, self.mdp.gamma, self.structure)
            self.predictor += _ratio(self.mdp, self.alpha, self.progress.k, d, self.structure)

    def go(self, most: int) -> None:
        """Climb on the current context; if that is solved, begin the next one."""
        mdp, k = self.mdp, self.progress.k
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
        """Climb until the chance of success exceeds a threshold, the goal's if not given."""
        mdp, goal, k = self.mdp, self.goal, self.progress.k
        threshold = goal.threshold if threshold is None else threshold
        taken, solved = climb(
            self.theta, mdp.rewards[k], mdp.success[k], self.start.mu, goal.start, self.alpha,
            mdp.gamma, self.learning_rate, self.natural, goal.horizon, threshold, most,
            self.structure,
        )  # fmt: skip
        self.gradient_steps += taken
        return f"success probability > {threshold:g}" if solved else None

    def _climb_by_gap(self, most: int) -> str | None:
        """The same one step at a time, each of them judged."""
        hits, goal = self.mdp.success[self.progress.k], self.goal
        for _ in range(most):
            self._climb(1, NEVER)
            success = success_from(self.theta, hits, goal.start, goal.horizon, self.structure)
            if why := self.mastered(success):
                return why
        return None

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        return {
            **super().get_state(),
            "theta": self.theta.copy(),
            "predictor": self.predictor if self.predict else 0.0,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        super().set_state(state)
        self.theta[:] = state["theta"]
        self.predictor = float(state["predictor"]) if self.predict else math.nan


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
    before, change = np.exp(soft.log_softmax(theta)), math.inf
    while True:
        climb(
            theta, mdp.rewards[k], mdp.success[k], mdp.rho, mdp.rho, alpha, mdp.gamma,
            (1 - mdp.gamma) / alpha, True, 1, NEVER, NEWTON_STEPS, structure,
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


class LearnerAscent(Ascent):
    """The same with any of the learners, one step at a time.

    sampled: whether roll-ins are walked in the environment, and their steps counted.
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
        self.learner, self.sampled = learner, sampled
        self._steps: Iterator[tuple[StepInfo, str | None]] | None = None

    def go(self, most: int) -> None:
        """One gradient step."""
        if self._steps is None:
            self._steps = self._from_scratch() if self.scratch else self._algorithm()
        k = self.progress.k
        info, mastered = next(self._steps)
        self.gradient_steps += 1
        self.env_steps += info.env_steps
        self.rollin_steps += info.rollin_steps
        if mastered is not None and k == self.mdp.K:
            self.progress.complete(self.gradient_steps, mastered)

    def _success(self, learner: TabularLearner, info: StepInfo) -> float:
        hits, goal = learner.task.success, self.goal
        return success_from(learner.theta, hits, goal.start, goal.horizon, self.structure)

    def _algorithm(self) -> Iterator[tuple[StepInfo, str | None]]:
        state = TabularState(self.progress, self.start, [], self.gradient_steps)
        for step in rollin(
            self.mdp, self.learner, self.beta, self, state, measure=self._success,
            recursive=self.recursive, sampled=self.sampled, stop_when_mastered=True,
        ):  # fmt: skip
            self.start = state.start
            yield step.info, step.advance

    def _from_scratch(self) -> Iterator[tuple[StepInfo, str | None]]:
        if self.gradient_steps == 0:
            self.learner.begin(self.mdp.task(self.mdp.K), self.start)
        while True:
            info = self.learner.step()
            yield info, self.mastered(self._success(self.learner, info))

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        return {**super().get_state(), "learner": self.learner.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
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
    """Algorithm 1 with random-horizon SPG (Algorithms 5 – 7) and a fixed batch."""
    learner = JudgedFromOutside(mdp, alpha, constant_schedule(batch, learning_rate), seed)
    return LearnerAscent(mdp, learner, goal=goal, sampled=True, **method)
