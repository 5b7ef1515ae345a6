"""The structure of jaxrl's SAC, written anew: one jit, four gradients, optax, tfp's distributions.

As there: networks in flax, the squashed policy as a transformed distribution, the batch as separate
NumPy arrays drawn by index, a jitted call per action whose result is clipped in NumPy.
"""
# pyright: reportMissingImports=false

from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from tensorflow_probability.substrates import jax as tfp

from benchmarks.peers.sac.case import WARMUP, Case, make

GAMMA, TAU, RATE = 0.99, 0.005, 3e-4


def orthogonal(gain: float = np.sqrt(2.0)) -> Any:
    return nn.initializers.orthogonal(gain)


class Mlp(nn.Module):
    """Dense layers with ReLU between them."""

    sizes: tuple[int, ...]
    activate_last: bool = False
    dtype: Any = None

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Outputs of the last layer."""
        for i, size in enumerate(self.sizes):
            x = nn.Dense(size, kernel_init=orthogonal(), dtype=self.dtype)(x)
            if i + 1 < len(self.sizes) or self.activate_last:
                x = nn.relu(x)
        return x


class Policy(nn.Module):
    """A distribution over actions."""

    hidden: tuple[int, ...]
    actions: int
    dtype: Any = None

    @nn.compact
    def __call__(self, observation: Any) -> Any:
        """The distribution at an observation."""
        x = Mlp(self.hidden, activate_last=True, dtype=self.dtype)(observation)
        x = x.astype(jnp.float32)
        mean = nn.Dense(self.actions, kernel_init=orthogonal(1.0))(x)
        log_std = nn.Dense(self.actions, kernel_init=orthogonal(1.0))(x)
        log_std = jnp.clip(log_std, -10.0, 2.0)
        base = tfp.distributions.MultivariateNormalDiag(mean, jnp.exp(log_std))
        return tfp.distributions.TransformedDistribution(base, tfp.bijectors.Tanh())


class TwinCritic(nn.Module):
    """Two values of (s, a)."""

    hidden: tuple[int, ...]
    dtype: Any = None

    @nn.compact
    def __call__(self, observation: Any, action: Any) -> Any:
        """Q_1 and Q_2."""
        x = jnp.concatenate([observation, action], -1)
        sizes = (*self.hidden, 1)
        values = (Mlp(sizes, dtype=self.dtype)(x) for _ in range(2))
        return tuple(jnp.squeeze(value, -1).astype(jnp.float32) for value in values)


def descend(optimizer: Any, loss: Any, params: Any, state: Any) -> Any:
    gradient, info = jax.grad(loss, has_aux=True)(params)
    change, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, change), state, info


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def update(policy: Any, critic: Any, optimizer: Any, target_entropy: float, state: Any, batch: Any):
    key, actor, actor_state, critics, critic_state, target, log_t, t_state = state
    observation, action, reward, mask, following = batch
    temperature = jnp.exp(log_t)

    key, draw = jax.random.split(key)
    distribution = policy.apply(actor, following)
    next_action = distribution.sample(seed=draw)
    log_prob = distribution.log_prob(next_action)
    next_q = jnp.minimum(*critic.apply(target, following, next_action))
    y = reward + GAMMA * mask * next_q - GAMMA * mask * temperature * log_prob

    def critic_loss(params: Any) -> Any:
        q1, q2 = critic.apply(params, observation, action)
        loss = ((q1 - y) ** 2 + (q2 - y) ** 2).mean()
        return loss, {"critic_loss": loss, "q1": q1.mean(), "q2": q2.mean()}

    critics, critic_state, seen = descend(optimizer, critic_loss, critics, critic_state)
    target = jax.tree.map(lambda new, old: TAU * new + (1 - TAU) * old, critics, target)

    key, draw = jax.random.split(key)

    def actor_loss(params: Any) -> Any:
        distribution = policy.apply(params, observation)
        chosen = distribution.sample(seed=draw)
        log_prob = distribution.log_prob(chosen)
        q = jnp.minimum(*critic.apply(critics, observation, chosen))
        loss = (log_prob * temperature - q).mean()
        return loss, {"actor_loss": loss, "entropy": -log_prob.mean()}

    actor, actor_state, acted = descend(optimizer, actor_loss, actor, actor_state)
    entropy = acted["entropy"]

    def temperature_loss(value: Any) -> Any:
        loss = jnp.exp(value) * (entropy - target_entropy)
        return loss, {"temperature": jnp.exp(value)}

    log_t, t_state, heat = descend(optimizer, temperature_loss, log_t, t_state)
    new = key, actor, actor_state, critics, critic_state, target, log_t, t_state
    return new, {**seen, **acted, **heat}


@partial(jax.jit, static_argnums=0)
def sample(policy: Any, key: Any, actor: Any, observation: Any) -> Any:
    key, draw = jax.random.split(key)
    return key, policy.apply(actor, observation).sample(seed=draw)


class Jaxrl:
    """The script's loop around them."""

    libraries = ("jax", "flax", "optax", "tfp-nightly")
    dtype: Any = None

    def __init__(self, case: Case) -> None:
        self.case, self.env = case, make(case.env)
        observed, acted = self.env.observation_space.shape, self.env.action_space.shape
        assert observed is not None
        assert acted is not None
        self.rows = [np.empty((1_000_000, n), np.float32) for n in (*observed, *acted, *observed)]
        self.reward, self.mask = (np.empty(1_000_000, np.float32) for _ in range(2))
        self.filled, self.random = 0, np.random.default_rng(0)
        self.policy = Policy(case.hidden, *acted, dtype=self.dtype)
        self.critic = TwinCritic(case.hidden, dtype=self.dtype)
        self.optimizer, self.target_entropy = optax.adam(RATE), -acted[0] / 2
        key = jax.random.PRNGKey(0)
        o, a = np.zeros((1, *observed), np.float32), np.zeros((1, *acted), np.float32)
        actor, critics = self.policy.init(key, o), self.critic.init(key, o, a)
        log_t = jnp.zeros(())
        starts = [self.optimizer.init(part) for part in (actor, critics, log_t)]
        self.state = (key, actor, starts[0], critics, starts[1], critics, log_t, starts[2])
        self.act_key = key
        self.observation, _ = self.env.reset(seed=0)
        for _ in range(WARMUP):
            self._step(self.env.action_space.sample())

    def steps(self, count: int) -> None:
        """So many training steps."""
        for _ in range(count):
            self.act_key, action = sample(
                self.policy, self.act_key, self.state[1], self.observation
            )
            self._step(np.clip(np.asarray(action), -1, 1))
            self._update()
        jax.block_until_ready(self.state)

    def updates(self, count: int) -> None:
        """So many updates."""
        for _ in range(count):
            self._update()
        jax.block_until_ready(self.state)

    def _step(self, action: Any) -> None:
        following, reward, terminated, truncated, _ = self.env.step(action)
        i = self.filled % len(self.reward)
        for rows, value in zip(self.rows, (self.observation, action, following), strict=True):
            rows[i] = value
        self.reward[i], self.mask[i] = reward, 1.0 - terminated
        self.filled += 1
        self.observation = following
        if terminated or truncated:
            self.observation, _ = self.env.reset()

    def _update(self) -> None:
        held = min(self.filled, len(self.reward))
        picked = self.random.integers(held, size=self.case.batch)
        observation, action, following = (rows[picked] for rows in self.rows)
        batch = observation, action, self.reward[picked], self.mask[picked], following
        self.state, _ = update(  # nobody waits for the result before it is needed
            self.policy, self.critic, self.optimizer, self.target_entropy, self.state, batch
        )


class JaxrlBfloat16(Jaxrl):
    """Layers compute in bfloat16; parameters, Adam, distributions and losses stay float32."""

    dtype = jnp.bfloat16
