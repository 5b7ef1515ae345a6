"""One gradient step of the four-room experiment in vectorised NumPy.

All trajectories advance together. Actions come from the inverse CDF: the rows of the cumulative
policy, shifted by s, form one sorted array, so that a single `searchsorted` draws all actions of a
time step. The gradient is analytic: a `bincount` of rewards-to-go, minus π times its row sums.
"""

import numpy as np
from numpy.typing import NDArray

from rollin.tabular.mdp import TabularTask


class NumpySPG:
    """Batch SPG with Adam, float32 tables."""

    def __init__(
        self,
        task: TabularTask,
        alpha: float,
        batch: int,
        horizon: int,
        seed: int,
        mu: NDArray[np.float64],
        theta: NDArray[np.float32],
    ) -> None:
        self.S, self.A = task.mdp.n_states, task.mdp.n_actions
        self.batch, self.horizon = batch, horizon
        self.gamma, self.alpha = np.float32(task.mdp.gamma), np.float32(alpha)
        self.next_state = task.mdp.transitions.ravel()
        self.reward = task.r.astype(np.float32)
        self.success = task.success.ravel()
        self.start_cdf = np.cumsum(mu) / mu.sum()
        self.rng = np.random.Generator(np.random.SFC64(seed))
        self.theta = theta.copy()
        self.m, self.v = np.zeros_like(theta), np.zeros_like(theta)
        self.t = 0

    def gradient(self) -> tuple[NDArray[np.float32], float]:
        """One batch's gradient and success rate."""
        S, A, B, T = self.S, self.A, self.batch, self.horizon
        shifted = self.theta - self.theta.max(1, keepdims=True)
        exp = np.exp(shifted)
        total = exp.sum(1, keepdims=True)
        pi = exp / total
        bonus = (self.reward - self.alpha * (shifted - np.log(total))).ravel()
        cdf = np.cumsum(pi, axis=1, dtype=np.float64)
        cdf /= cdf[:, -1:]
        ladder = (cdf + np.arange(S)[:, None]).ravel()
        uniforms = self.rng.random((T, B))
        pairs = np.empty((T, B), np.int64)
        state = np.searchsorted(self.start_cdf, self.rng.random(B), side="right")
        for t in range(T):
            pair = np.searchsorted(ladder, state + uniforms[t], side="right")
            pairs[t] = pair
            state = self.next_state[pair]
        succeeded = self.success[pairs].any(0).mean()
        to_go = bonus[pairs]
        for t in range(T - 2, -1, -1):
            to_go[t] += self.gamma * to_go[t + 1]
        summed = np.bincount(pairs.ravel(), to_go.ravel(), S * A).reshape(S, A)
        gradient = (summed - pi * summed.sum(1, keepdims=True)) / (B * T)
        return gradient.astype(np.float32), float(succeeded)

    def step(self) -> float:
        """One gradient step; returns the success rate."""
        gradient, succeeded = self.gradient()
        self.t += 1
        self.m += 0.1 * (gradient - self.m)
        self.v += 0.001 * (gradient * gradient - self.v)
        m_hat, v_hat = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        self.theta += 1e-3 * m_hat / (np.sqrt(v_hat) + 1e-8)
        return succeeded
