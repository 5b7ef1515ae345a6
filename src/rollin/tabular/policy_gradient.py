"""The policy-gradient algorithms that ROLLIN runs on each context (Appendix D and F.3).

A learner holds the softmax parameters θ and improves them one gradient step at a time. `begin`
hands it a task and a start distribution and keeps θ: that is ROLLIN's warm start.

    BatchSPG          the experiment: B trajectories × T steps, reward-to-go, Adam
    ExactPG           Algorithm 3, the exact gradient
    RandomHorizonSPG  Algorithms 4 – 7: SamSA and EstEntQ, one or two phases
    NaturalPG         the exact natural gradient, the paper's future work
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.checks import at_least, positive
from rollin.errors import RollinError
from rollin.tabular import kernels, soft, walks
from rollin.tabular.learner import StepInfo, TabularLearner
from rollin.tabular.mdp import Array, ContextualMDP, TabularTask
from rollin.tabular.packing import Dynamics, Seed, Stream
from rollin.tabular.start import Start, StartSampler


class ExactPG(TabularLearner):
    """Algorithm 3: θ ← θ + η ∂V^{π_θ}(μ)/∂θ with the exact gradient.

    >>> import rollin
    >>> goals = [(x, 0) for x in range(5)]
    >>> mdp = rollin.grid_world(rollin.Grid(5, 1), goals, reward=lambda d: (d == 0) * 1.0)
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
        """One exact gradient step."""
        gradient = soft.policy_gradient(self.task, self.log_pi, self.alpha, self.start.mu)
        self.theta += self.learning_rate * gradient
        return StepInfo(self.success())


class NaturalPG(TabularLearner):
    """θ ← θ + η F⁺ ∂V/∂θ, which for a softmax is θ ← θ + η A^π / (1-γ) (soft advantage).

    η = (1-γ)/α is soft policy iteration; smaller steps converge linearly (Cen et al. 2022). Near
    the optimum, where Q is stationary, log π errs by 1 - ηα/(1-γ) times as much after a step:
    larger steps converge from there as well, up to 2 (1-γ)/α.

    >>> import rollin
    >>> goals = [(x, 0) for x in range(5)]
    >>> mdp = rollin.grid_world(rollin.Grid(5, 1), goals, reward=lambda d: (d == 0) * 1.0)
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
        """One natural gradient step."""
        log_pi = self.log_pi
        value = soft.evaluate(self.task, log_pi, self.alpha)
        advantage = value.q - self.alpha * log_pi - value.v[:, None]
        self.theta += self.learning_rate / (1 - self.mdp.gamma) * advantage
        return StepInfo(self.success())


SAFE_FLOAT32 = 1e-30  # below it, a probability soon loses digits
Schedule = Callable[[int], tuple[int, float]]


def constant_schedule(batch: int, rate: float) -> Schedule:
    """The same batch size B and step size η at every t."""
    at_least(1, "batch", batch)
    positive("learning_rate", rate)
    return lambda t: (batch, rate)


def two_phase_schedule(T1: int, B1: int, B2: int, eta: float, t0: float) -> Schedule:
    """Algorithm 4 with the step sizes of Theorem A.2: η up to T_1, then 1/(t - T_1 + t_0)."""
    for least, name, value in ((0, "T1", T1), (1, "B1", B1), (1, "B2", B2)):
        at_least(least, name, value)
    positive("eta", eta)
    positive("t0", t0)
    return lambda t: (B1, eta) if t <= T1 else (B2, 1.0 / (t - T1 + t0))


class RandomHorizonSPG(TabularLearner):
    """Algorithms 4 – 7: an unbiased stochastic gradient from SamSA and EstEntQ.

    schedule: t ↦ (B, η_t), counted anew on each context.
    printed: EstEntQ as the paper prints it (biased), instead of its unbiased form.

    >>> import rollin
    >>> goals = [(x, 0) for x in range(5)]
    >>> mdp = rollin.grid_world(rollin.Grid(5, 1), goals, reward=lambda d: (d == 0) * 1.0)
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
        """A new run of SPG: t starts from 0."""
        super().begin(task, start)
        self.starts = StartSampler(self.dynamics, start)
        self.t = 0

    def gradient(self, batch: int) -> tuple[Array, int, int]:
        """The estimate from `batch` samples; environment steps in all and in the roll-in."""
        log_pi, P = self.log_pi, self.dynamics.P
        pi = np.exp(log_pi)
        S, A = pi.shape
        padded = np.zeros((2, S, P))
        padded[:, :, :A] = log_pi, self.task.r
        weights = np.zeros(S * P)
        first, rolled = self.starts.draw(self.stream, batch)
        spent = walks.random_horizon(
            self.stream.words,
            first,
            self.dynamics.policy_alias(log_pi),
            padded[0].ravel(),
            padded[1].ravel(),
            self.dynamics.plain_successors,
            self.dynamics.fan_alias,
            self.dynamics.bits,
            self.dynamics.fan,
            self.mdp.gamma,
            self.alpha,
            self.printed,
            weights,
        )
        summed = weights.reshape(S, P)[:, :A]
        gradient = summed - pi * summed.sum(1, keepdims=True)
        return gradient / ((1 - self.mdp.gamma) * batch), spent + rolled, rolled

    def step(self) -> StepInfo:
        """θ_{t+1} ← θ_t + η_t · estimate (line 6 of Algorithm 5)."""
        batch, rate = self.schedule(self.t)
        gradient, env_steps, rollin_steps = self.gradient(batch)
        self.theta += rate * gradient
        self.t += 1
        return StepInfo(self.success(), batch, env_steps, rollin_steps)

    def get_state(self) -> dict[str, Any]:
        """Parameters, step count and random stream."""
        return {**super().get_state(), "t": self.t, "stream": self.stream.get_state()["words"]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave, after `begin`."""
        super().set_state(state)
        self.t = int(state["t"])
        self.stream.set_state({"words": state["stream"]})


class BatchSPG(TabularLearner):
    """The experiment's stochastic gradient (Appendix F.3) with Adam.

    (1/BT) Σ_b Σ_t ∇ log π(a_t|s_t) R_t, where R_t = Σ_{t'≥t} γ^{t'-t} (r - α log π)_{t'}.
    reset_adam: whether a new context starts with fresh Adam moments.
    exact: take the gradient's expectation, the limit of an infinite batch.

    >>> import rollin
    >>> goals = [(x, 0) for x in range(5)]
    >>> mdp = rollin.grid_world(rollin.Grid(5, 1), goals, reward=lambda d: (d == 0) * 1.0)
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
        self._policy = (
            self.theta,
            np.zeros_like(self.theta),
            np.zeros(shape, np.uint32),
            np.zeros(shape, np.float32),
        )
        to_go = np.zeros((kernels.REPLICAS, shape[0] * shape[1]), np.float32)
        active = np.zeros(shape[0], np.bool_)
        self._adam = (np.zeros_like(self.theta), self.m, self.v, to_go, active)

    def begin(self, task: TabularTask, start: Start) -> None:
        """Set the tables of the new task; θ stays, Adam's moments stay only if asked to."""
        super().begin(task, start)
        if self.reset_adam:
            self.m[:] = 0
            self.v[:] = 0
            self.t = 0
        if not self.exact:
            self.starts = StartSampler(self.dynamics, start)
            self._model = (
                self.dynamics.padded(task.r),
                self.dynamics.flagged(task),
                self.dynamics.fan_alias,
            )
            self._refresh()

    def least_log_pi(self) -> float:
        """log min π_θ, from the table of π unless it comes near the smallest float32."""
        least = 0.0 if self.exact else float(self._policy[1].min())
        return math.log(least) if least > SAFE_FLOAT32 else super().least_log_pi()

    def _refresh(self) -> None:
        self._adam[-1][:] = (self.v != 0).any(1)
        kernels.policy_tables(
            self.all_states, self.theta, self._model[0], self.alpha, *self._policy[1:]
        )

    def sampled_gradient(self) -> tuple[NDArray[np.float32], float]:
        """One batch's gradient estimate and success rate, without taking the step."""
        first, _ = self.starts.draw(self.stream, self.batch)
        _, pi, alias, bonus = self._policy
        _, successors, fan_alias = self._model
        gradient, _, _, to_go, active = self._adam
        successes = kernels.rollouts(
            self.stream.words,
            first,
            alias.ravel(),
            bonus.ravel(),
            successors,
            fan_alias,
            self.dynamics.bits,
            self.dynamics.fan,
            self.mdp.gamma,
            self.horizon,
            to_go,
        )
        scale = 1.0 / (self.batch * self.horizon)
        kernels.gradient_from(to_go, pi, scale, gradient, active)
        return gradient.copy(), successes / self.batch

    def step(self) -> StepInfo:
        """Sample, estimate, ascend."""
        self.t += 1
        if self.exact:
            return self._exact_step()
        first, rolled = self.starts.draw(self.stream, self.batch)
        successes = kernels.batch_step(
            self.stream.words,
            first,
            self._model,
            self._policy,
            self._adam,
            self.dynamics.bits,
            self.dynamics.fan,
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
        gradient = soft.batch_gradient(
            self.task, self.log_pi, self.alpha, self.start.mu, self.horizon
        )
        kernels.adam_ascent(
            self.all_states,
            self.theta,
            gradient.astype(np.float32),
            self.m,
            self.v,
            self.t,
            self.learning_rate,
        )
        return StepInfo(success)

    def get_state(self) -> dict[str, Any]:
        """Parameters, Adam's moments and count, random stream."""
        return {
            **super().get_state(),
            "m": self.m.copy(),
            "v": self.v.copy(),
            "t": self.t,
            "stream": self.stream.get_state()["words"],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave, after `begin`."""
        super().set_state(state)
        self.m[:], self.v[:], self.t = state["m"], state["v"], int(state["t"])
        self.stream.set_state({"words": state["stream"]})
        if not self.exact:
            self._refresh()
