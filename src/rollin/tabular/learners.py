"""The policy-gradient algorithms that ROLLIN runs on each context (Appendix D and F.3).

A learner holds the softmax parameters θ and improves them one gradient step at a time. `begin`
takes a task and a start distribution and keeps θ: that is ROLLIN's warm start.

    BatchSPG          the experiment: B trajectories × T steps, reward-to-go, Adam
    ExactPG           Algorithm 3, the exact gradient
    RandomHorizonSPG  Algorithms 4 – 7: SamSA and EstEntQ, one or two phases
    NaturalPG         the exact natural gradient, the paper's future work
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.checks import at_least, check_alpha, positive
from rollin.errors import RollinError, short_repr
from rollin.tabular import soft
from rollin.tabular.kernels import rollouts
from rollin.tabular.kernels.tables import Dynamics, Seed, Stream
from rollin.tabular.mdp import Array, ContextualMDP, TabularTask, check_mdp
from rollin.tabular.start import Start, StartSampler

LEAST_LOG_PI = -1e30  # no policy's; float32 overflows not far below
SAFE_FLOAT32 = 1e-30  # smaller probabilities lose digits


@dataclass(frozen=True)
class StepInfo:
    """The report of one gradient step.

    success: share of the batch's trajectories that succeeded, before the update (BatchSPG);
        exact probability of success after it (the others).
    trajectories: number of trajectories, 0 for exact gradients; env_steps: environment steps,
        including `rollin_steps` of the roll-in.
    """

    success: float
    trajectories: int = 0
    env_steps: int = 0
    rollin_steps: int = 0


class TabularLearner(ABC):
    """Softmax parameters θ (S, A) and a way to improve them on the current task.

    learning_rate: η of the first step on a task.
    """

    task: TabularTask
    start: Start
    learning_rate: float

    def __init__(
        self, mdp: ContextualMDP, alpha: float, horizon: int, theta: NDArray[Any] | None
    ) -> None:
        self.mdp = check_mdp(mdp)
        self.alpha = check_alpha(alpha)
        self.horizon = at_least(1, "horizon", horizon)
        shape = (mdp.n_states, mdp.n_actions)
        self.theta: NDArray[Any] = np.zeros(shape) if theta is None else np.array(theta, np.float64)
        if self.theta.shape != shape or not np.isfinite(self.theta).all():
            raise RollinError(
                f"theta must be finite and have shape {shape}, got {self.theta.shape}."
            )

    def __repr__(self) -> str:
        return short_repr(self, mdp=self.mdp, alpha=self.alpha)

    @property
    def log_pi(self) -> Array:
        """Return log π_θ, (S, A) float64."""
        return soft.log_softmax(self.theta)

    def least_log_pi(self) -> float:
        """Return log min_{s,a} π_θ(a|s), which Lemma C.2 bounds along a run."""
        return float(self.log_pi.min())

    def check(self, step: int, least: float | None = None) -> None:
        """Raise if the learner has diverged; least: log min π_θ, if that is known already."""
        least = self.least_log_pi() if least is None else least
        if not least > LEAST_LOG_PI:  # also for NaN
            raise RollinError(
                f"The policy is no longer one of finite numbers at step {step}: the learner "
                "diverged. A smaller learning rate or α may help; the last good checkpoint of a "
                "run is kept."
            )

    def begin(self, task: TabularTask, start: Start) -> None:
        """Take another task or start distribution; θ stays."""
        self.task = task
        self.start = start

    @abstractmethod
    def step(self) -> StepInfo:
        """Take one gradient step."""

    def success(self) -> float:
        """Return the exact probability of success within the horizon from the current μ."""
        return soft.success_probability(self.task, self.log_pi, self.start.mu, self.horizon)

    def get_state(self) -> dict[str, Any]:
        """Return all that a step changes; task and start belong to the loop."""
        return {"theta": self.theta.copy()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned, after `begin`."""
        self.theta[:] = state["theta"]


class ExactPG(TabularLearner):
    """Algorithm 3: θ ← θ + η ∂V^{π_θ}(μ)/∂θ with the exact gradient.

    >>> import rollin
    >>> mdp = rollin.corridor(5)
    >>> learner = rollin.ExactPG(mdp, alpha=0.05, horizon=8)
    >>> rollin.solve(mdp, beta=0.5, steps=100, learner=learner).kappa
    1.0
    """

    def __init__(
        self,
        mdp: ContextualMDP,
        alpha: float,
        *,
        learning_rate: float = 1.0,
        horizon: int = 50,
        theta: NDArray[Any] | None = None,
    ) -> None:
        super().__init__(mdp, alpha, horizon, theta)
        self.learning_rate = positive("learning_rate", learning_rate)

    def step(self) -> StepInfo:
        """Take one exact gradient step."""
        gradient = soft.policy_gradient(self.task, self.log_pi, self.alpha, self.start.mu)
        self.theta += self.learning_rate * gradient
        return StepInfo(self.success())


class NaturalPG(TabularLearner):
    """θ ← θ + η F⁺ ∂V/∂θ, which for a softmax is θ ← θ + η A^π / (1-γ) (soft advantage).

    η = (1-γ)/α is soft policy iteration; smaller steps converge linearly (Cen et al. 2022). Near
    the optimum, where Q is stationary, log π errs by 1 - ηα/(1-γ) times as much after a step:
    larger steps converge from there as well, up to 2 (1-γ)/α.

    >>> import rollin
    >>> mdp = rollin.corridor(5)
    >>> learner = rollin.NaturalPG(mdp, alpha=0.05, horizon=8)
    >>> rollin.solve(mdp, beta=0.5, steps=100, learner=learner).kappa
    1.0
    """

    def __init__(
        self,
        mdp: ContextualMDP,
        alpha: float,
        *,
        learning_rate: float | None = None,
        horizon: int = 50,
        theta: NDArray[Any] | None = None,
    ) -> None:
        super().__init__(mdp, alpha, horizon, theta)
        self.safe_rate = (1 - mdp.gamma) / alpha
        default = 0.1 * self.safe_rate
        rate = default if learning_rate is None else positive("learning_rate", learning_rate)
        if rate >= 2 * self.safe_rate:
            raise RollinError(
                "The natural gradient moves away from the optimum at learning rates of 2 (1-γ)/α = "
                f"{2 * self.safe_rate:.3g} or more, got {rate}: choose a smaller one. Up to "
                f"(1-γ)/α = {self.safe_rate:.3g} it converges from everywhere."
            )
        self.learning_rate = rate

    def step(self) -> StepInfo:
        """Take one natural gradient step."""
        log_pi = self.log_pi
        value = soft.evaluate(self.task, log_pi, self.alpha)
        advantage = value.q - self.alpha * log_pi - value.v[:, None]
        self.theta += self.learning_rate / (1 - self.mdp.gamma) * advantage
        return StepInfo(self.success())


Schedule = Callable[[int], tuple[int, float]]


def constant_schedule(batch: int, rate: float) -> Schedule:
    """Return a schedule with the same batch size B and step size η at every t."""
    at_least(1, "batch", batch)
    positive("learning_rate", rate)
    return lambda t: (batch, rate)


def two_phase_schedule(T1: int, B1: int, B2: int, eta: float, t0: float) -> Schedule:
    """Return Algorithm 4's schedule: η up to T_1, then 1/(t - T_1 + t_0) (Theorem A.2)."""
    for least, name, value in ((0, "T1", T1), (1, "B1", B1), (1, "B2", B2)):
        at_least(least, name, value)
    positive("eta", eta)
    positive("t0", t0)
    return lambda t: (B1, eta) if t <= T1 else (B2, 1.0 / (t - T1 + t0))


class RandomHorizonSPG(TabularLearner):
    """Algorithms 4 – 7: an unbiased stochastic gradient from SamSA and EstEntQ.

    schedule: t ↦ (B, η_t), where t counts from 0 on each context.
    printed: EstEntQ as the paper prints it (biased), instead of its unbiased form.

    >>> import rollin
    >>> mdp = rollin.corridor(5)
    >>> batch_and_rate = lambda t: (500, 0.5)
    >>> learner = rollin.RandomHorizonSPG(mdp, 0.05, batch_and_rate, seed=0, horizon=8)
    >>> rollin.solve(mdp, beta=0.5, steps=100, learner=learner).kappa
    1.0
    """

    def __init__(
        self,
        mdp: ContextualMDP,
        alpha: float,
        schedule: Schedule,
        seed: Seed = 0,
        *,
        printed: bool = False,
        horizon: int = 50,
        theta: NDArray[Any] | None = None,
    ) -> None:
        super().__init__(mdp, alpha, horizon, theta)
        self.schedule = schedule
        self.learning_rate = schedule(0)[1]
        self.printed = printed
        self.stream = Stream(seed)
        self.dynamics = Dynamics.of(mdp)
        self.t = 0

    def begin(self, task: TabularTask, start: Start) -> None:
        """Begin a new run of SPG: t starts from 0."""
        super().begin(task, start)
        self.starts = StartSampler(self.dynamics, start)
        self.t = 0

    def gradient(self, batch: int) -> tuple[Array, int, int]:
        """Return an estimate from `batch` samples, and the steps in all and of the roll-in."""
        log_pi = self.log_pi
        P = self.dynamics.P
        pi = np.exp(log_pi)
        S, A = pi.shape
        padded = np.zeros((2, S, P))
        padded[:, :, :A] = log_pi, self.task.r
        weights = np.zeros(S * P)
        first, rolled = self.starts.draw(self.stream, batch)
        spent = rollouts.random_horizon(
            self.stream.words,
            first,
            self.dynamics.policy_alias(log_pi),
            padded[0].ravel(),
            padded[1].ravel(),
            self.dynamics.tables,
            self.mdp.gamma,
            self.alpha,
            self.printed,
            weights,
        )
        summed = weights.reshape(S, P)[:, :A]
        gradient = summed - pi * summed.sum(1, keepdims=True)
        return gradient / ((1 - self.mdp.gamma) * batch), spent + rolled, rolled

    def step(self) -> StepInfo:
        """Take one step: θ_{t+1} ← θ_t + η_t · estimate (line 6 of Algorithm 5)."""
        batch, rate = self.schedule(self.t)
        gradient, env_steps, rollin_steps = self.gradient(batch)
        self.theta += rate * gradient
        self.t += 1
        return StepInfo(self.success(), batch, env_steps, rollin_steps)

    def get_state(self) -> dict[str, Any]:
        """Return parameters, step count and random stream."""
        return {**super().get_state(), "t": self.t, "stream": self.stream.get_state()["words"]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned, after `begin`."""
        super().set_state(state)
        self.t = int(state["t"])
        self.stream.set_state({"words": state["stream"]})


class BatchSPG(TabularLearner):
    """The experiment's stochastic gradient (Appendix F.3) with Adam.

    (1/BT) Σ_b Σ_t ∇ log π(a_t|s_t) R_t, where R_t = Σ_{t'≥t} γ^{t'-t} (r - α log π)_{t'}.
    reset_adam: whether a new context starts with fresh Adam moments.
    exact: use the gradient's expectation, the limit of an infinite batch.

    >>> import rollin
    >>> mdp = rollin.corridor(5)
    >>> learner = rollin.BatchSPG(mdp, 0.05, seed=0, batch=200, horizon=8, learning_rate=0.05)
    >>> rollin.solve(mdp, beta=0.5, steps=100, learner=learner).kappa
    1.0
    """

    def __init__(
        self,
        mdp: ContextualMDP,
        alpha: float,
        seed: Seed = 0,
        *,
        batch: int = 2000,
        horizon: int = 50,
        learning_rate: float = 1e-3,
        reset_adam: bool = True,
        exact: bool = False,
        theta: NDArray[Any] | None = None,
    ) -> None:
        super().__init__(mdp, alpha, horizon, theta)
        self.theta = self.theta.astype(np.float32)
        self.batch = at_least(1, "batch", batch)
        self.learning_rate = positive("learning_rate", learning_rate)
        self.reset_adam = reset_adam
        self.exact = exact
        self.m = np.zeros_like(self.theta)
        self.v = np.zeros_like(self.theta)
        self.t = 0
        self.all_states = np.arange(mdp.n_states)
        self.stream = Stream(seed)
        if exact:
            return
        self.dynamics = Dynamics.of(mdp)
        shape = (mdp.n_states, self.dynamics.P)
        self._pi = np.zeros_like(self.theta)
        self._alias = np.zeros(shape, np.uint32)
        self._bonus = np.zeros(shape, np.float32)
        self._policy = (self.theta, self._pi, self._alias, self._bonus)
        self._gradient = np.zeros_like(self.theta)
        self._to_go = np.zeros((rollouts.REPLICAS, shape[0] * shape[1]), np.float32)
        self._active = np.zeros(shape[0], np.bool_)
        self._adam = (self._gradient, self.m, self.v, self._to_go, self._active)

    def begin(self, task: TabularTask, start: Start) -> None:
        """Set the tables of the new task; θ stays, Adam's moments only without `reset_adam`."""
        super().begin(task, start)
        if self.reset_adam:
            self.m[:] = 0
            self.v[:] = 0
            self.t = 0
        if not self.exact:
            self.starts = StartSampler(self.dynamics, start)
            self._reward = self.dynamics.padded(task.r)
            self._dynamics = self.dynamics.tables_of(task)
            self._refresh()

    def least_log_pi(self) -> float:
        """Return log min π_θ, from the table of π unless that is near the smallest float32."""
        least = 0.0 if self.exact else float(self._pi.min())
        return math.log(least) if least > SAFE_FLOAT32 else super().least_log_pi()

    def _refresh(self) -> None:
        self._active[:] = (self.v != 0).any(1)
        rollouts.policy_tables(self.all_states, *self._policy, self._reward, self.alpha)

    def sampled_gradient(self) -> tuple[NDArray[np.float32], float]:
        """Return a batch's gradient estimate and success rate without taking the step."""
        first, _ = self.starts.draw(self.stream, self.batch)
        successes = self.sample(first)
        scale = 1.0 / (self.batch * self.horizon)
        rollouts.gradient_from(self._to_go, self._pi, scale, self._gradient, self._active)
        return self._gradient.copy(), successes / self.batch

    def sample(self, first: NDArray[np.uint32]) -> int:
        """Add the rewards-to-go of trajectories from given first states; return successes."""
        return rollouts.rollouts(
            self.stream.words,
            first,
            self._alias.ravel(),
            self._bonus.ravel(),
            self._dynamics,
            self.mdp.gamma,
            self.horizon,
            self._to_go,
        )

    def step(self) -> StepInfo:
        """Sample a batch, estimate the gradient, ascend."""
        self.t += 1
        if self.exact:
            return self._exact_step()
        first, rolled = self.starts.draw(self.stream, self.batch)
        successes = rollouts.batch_step(
            self.stream.words,
            first,
            self._reward,
            self._dynamics,
            self._policy,
            self._adam,
            self.mdp.gamma,
            self.alpha,
            self.horizon,
            self.t,
            self.learning_rate,
        )
        env_steps = self.batch * self.horizon + rolled
        return StepInfo(successes / self.batch, self.batch, env_steps, rolled)

    def _exact_step(self) -> StepInfo:
        success = self.success()
        exact = soft.batch_gradient(self.task, self.log_pi, self.alpha, self.start.mu, self.horizon)
        gradient = exact.astype(np.float32)
        rate = self.learning_rate
        rollouts.adam_ascent(self.all_states, self.theta, gradient, self.m, self.v, self.t, rate)
        return StepInfo(success)

    def get_state(self) -> dict[str, Any]:
        """Return parameters, Adam's moments and count, and the random stream."""
        return {
            **super().get_state(),
            "m": self.m.copy(),
            "v": self.v.copy(),
            "t": self.t,
            "stream": self.stream.get_state()["words"],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned, after `begin`."""
        super().set_state(state)
        self.m[:] = state["m"]
        self.v[:] = state["v"]
        self.t = int(state["t"])
        self.stream.set_state({"words": state["stream"]})
        if not self.exact:
            self._refresh()
