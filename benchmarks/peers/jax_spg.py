"""One gradient step of the four-room experiment in JAX: one jit, state donated.

Actions come from the inverse CDF by a branch-free binary search in the state's row of the
cumulative policy (log2 A gathers per draw), random bits from the fast `unsafe_rbg` generator, the
rewards-to-go from a reverse scan, the gradient from one scatter-add: no autodiff is needed.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from rollin.tabular.mdp import TabularTask


class JaxSPG:
    """Batch SPG with Adam, float32."""

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
        S, A = task.mdp.n_states, task.mdp.n_actions
        self.S, self.A, self.batch, self.horizon = S, A, batch, horizon
        self.gamma, self.alpha = float(task.mdp.gamma), float(alpha)
        self.next_state = jnp.asarray(task.mdp.transitions.ravel(), jnp.int32)
        self.reward = jnp.asarray(task.r, jnp.float32)
        self.success = jnp.asarray(task.success.ravel())
        self.start_cdf = jnp.asarray(np.cumsum(mu) / mu.sum(), jnp.float32)
        key = jax.random.key(seed, impl="unsafe_rbg")
        m, v = jnp.zeros((S, A)), jnp.zeros((S, A))
        self.state: Any = (jnp.array(theta), m, v, jnp.int32(0), key)

    def estimate(self, theta: Any, key: Any) -> tuple[Any, Any]:
        """One batch's gradient and success rate."""
        S, A, B, T = self.S, self.A, self.batch, self.horizon
        log_pi = jax.nn.log_softmax(theta)
        pi = jnp.exp(log_pi)
        bonus = (self.reward - self.alpha * log_pi).ravel()
        bits = int(np.ceil(np.log2(A)))
        pad = (1 << bits) - A
        cdf = jnp.pad(jnp.cumsum(pi, axis=1), ((0, 0), (0, pad)), constant_values=2.0).ravel()
        uniforms = jax.random.uniform(key, (T + 1, B))

        def advance(s: Any, u: Any) -> tuple[Any, Any]:
            low = jnp.zeros_like(s)
            for bit in reversed(range(bits)):
                middle = low + (1 << bit)
                low = jnp.where(cdf[(s << bits) + middle - 1] <= u, middle, low)
            pair = s * A + jnp.minimum(low, A - 1)
            return self.next_state[pair], pair

        first = jnp.searchsorted(self.start_cdf, uniforms[T], side="right").astype(jnp.int32)
        _, pairs = lax.scan(advance, jnp.minimum(first, S - 1), uniforms[:T])

        def backward(later: Any, r: Any) -> tuple[Any, Any]:
            now = r + self.gamma * later
            return now, now

        _, to_go = lax.scan(backward, jnp.zeros(B), bonus[pairs], reverse=True)
        summed = jnp.zeros(S * A).at[pairs.ravel()].add(to_go.ravel()).reshape(S, A)
        gradient = (summed - pi * summed.sum(1, keepdims=True)) / (B * T)
        return gradient, self.success[pairs].any(0).mean()

    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def update(self, state: Any) -> tuple[Any, Any]:
        """Sample, estimate, ascend."""
        theta, m, v, t, key = state
        key, sub = jax.random.split(key)
        gradient, success = self.estimate(theta, sub)
        t += 1
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
        theta += 1e-3 * m_hat / (jnp.sqrt(v_hat) + 1e-8)
        return (theta, m, v, t, key), success

    def gradient(self) -> tuple[NDArray[np.float32], float]:
        """One batch's gradient and success rate, without taking the step."""
        theta, m, v, t, key = self.state
        key, sub = jax.random.split(key)
        self.state = (theta, m, v, t, key)
        gradient, success = self._estimate(theta, sub)
        return np.asarray(gradient), float(success)

    @partial(jax.jit, static_argnums=0)
    def _estimate(self, theta: Any, key: Any) -> tuple[Any, Any]:
        return self.estimate(theta, key)

    def step(self) -> float:
        """One gradient step; returns the success rate."""
        self.state, success = self.update(self.state)
        return float(success)
