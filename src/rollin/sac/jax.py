"""The learner for accelerators (extra `jax`): pure functions, gradients by autodiff.

The readable reference, and the oracle in tests, of the compiled learner in `cpu`, whose kernels
have the names of the functions here. `update` takes and gives a whole state.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollin.errors import MissingExtraError, install_hint
from rollin.sac.config import SACConfig
from rollin.sac.learner import (
    Float,
    Layout,
    UpdateInfo,
    check_batch,
    check_noise,
    check_observation,
    check_state,
    diverged,
    first_state,
)
from rollin.streams import Streams

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise MissingExtraError(
        f"The learner jax needs JAX, which is not installed: {install_hint('jax')}, "
        "or use --learner cpu."
    ) from error

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam

Array = jax.Array
Layers = list[Array]  # (inputs + 1, outputs) each, the bias as the last row


class Weights(NamedTuple):
    """What Adam moves: the actor, both critics (stacked along the first axis), log τ."""

    actor: Layers
    critics: Layers
    log_temperature: Array


class State(NamedTuple):
    """All that an update changes."""

    weights: Weights
    m: Weights
    v: Weights
    target: Layers
    updates: Array


class Batch(NamedTuple):
    """The columns of a batch."""

    action: Array
    observation: Array
    next_observation: Array
    reward: Array
    mask: Array


def take_inputs(layout: Layout, rows: Array) -> Batch:
    """Return the columns of packed rows."""
    a, o = layout.action_size, layout.observation_size
    action, observation, following, rest = jnp.split(rows, [a, a + o, a + 2 * o], axis=-1)
    return Batch(action, observation, following, rest[..., 0], rest[..., 1])


def mlp(layers: Layers, x: Array) -> Array:
    """Compute a network with ReLU between its layers."""
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer[:-1] + layer[-1])
    return x @ layers[-1][:-1] + layers[-1][-1]


def policy_heads(config: SACConfig, actor: Layers, observation: Array) -> tuple[Array, Array]:
    """Return μ and log σ of the policy, the latter clipped."""
    mean, log_std = jnp.split(mlp(actor, observation), 2, axis=-1)
    return mean, jnp.clip(log_std, config.log_std_min, config.log_std_max)


def choose_actions(mean: Array, log_std: Array, noise: Array) -> tuple[Array, Array]:
    """Return a = tanh(μ + σε) and log π(a); log(1 - tanh²u) = 2 (log 2 - u - softplus(-2u))."""
    u = mean + jnp.exp(log_std) * noise
    gaussian = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
    squash = 2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))
    return jnp.tanh(u), (gaussian - squash).sum(-1)


def critic_values(critics: Layers, action: Array, observation: Array) -> Array:
    """Return Q_1 and Q_2, (2, B)."""
    x = jnp.concatenate([action, observation], axis=-1)
    return jax.vmap(mlp, in_axes=(0, None))(critics, x)[..., 0]


def bellman_errors(
    config: SACConfig, batch: Batch, q: Array, next_q: Array, next_log_prob: Array, tau: Array
) -> Array:
    """Return Q - y of both critics; y = r + γ (min Q'(s', a') - τ log π(a')), a' = π(s')."""
    y = batch.reward + config.gamma * batch.mask * (next_q - tau * next_log_prob)
    return q - y


def critic_loss(errors: Array) -> Array:
    """Return Σ_c mean (Q_c - y)²."""
    return (errors**2).mean(1).sum()


def actor_loss(log_prob: Array, q: Array, tau: Array) -> Array:
    """Return mean(τ log π - min Q)."""
    return (tau * log_prob - q.min(0)).mean()


def adam(
    config: SACConfig, count: Array, weight: Array, gradient: Array, m: Array, v: Array
) -> Any:
    """Make one step of Adam: return new weight, m, v."""
    m = BETA1 * m + (1 - BETA1) * gradient
    v = BETA2 * v + (1 - BETA2) * gradient**2
    m_hat = m / -jnp.expm1(count * jnp.log(BETA1))
    v_hat = v / -jnp.expm1(count * jnp.log(BETA2))
    return weight - config.learning_rate * m_hat / (jnp.sqrt(v_hat) + EPSILON), m, v


def follow(config: SACConfig, target: Layers, critics: Layers) -> Layers:
    """Move the target critics by τ towards the critics."""
    return [old + config.tau * (new - old) for old, new in zip(target, critics, strict=True)]


def network_step(config: SACConfig, state: State, count: Array, gradient: Layers, name: str) -> Any:
    """Make Adam's step on every layer of one network: return its new weights, m and v."""
    layers, m, v = (getattr(part, name) for part in (state.weights, state.m, state.v))
    step = partial(adam, config, count)
    return map(list, zip(*map(step, layers, gradient, m, v), strict=True))


def critic_step(
    config: SACConfig, state: State, batch: Batch, noise: Array
) -> tuple[State, Array, Array]:
    """Make a step of the critics, and of their targets; return also the loss and the mean of Q."""
    weights = state.weights
    tau = jnp.exp(weights.log_temperature)
    mean, log_std = policy_heads(config, weights.actor, batch.next_observation)
    next_action, next_log_prob = choose_actions(mean, log_std, noise.T)
    next_q = critic_values(state.target, next_action, batch.next_observation).min(0)

    def loss(critics: Layers) -> tuple[Array, Array]:
        q = critic_values(critics, batch.action, batch.observation)
        return critic_loss(bellman_errors(config, batch, q, next_q, next_log_prob, tau)), q.mean()

    (value, q_mean), gradient = jax.value_and_grad(loss, has_aux=True)(weights.critics)
    critics, m, v = network_step(config, state, state.updates + 1, gradient, "critics")
    state = State(
        weights._replace(critics=critics),
        state.m._replace(critics=m),
        state.v._replace(critics=v),
        follow(config, state.target, critics),
        state.updates,
    )
    return state, value, q_mean


def actor_step(
    config: SACConfig, state: State, batch: Batch, noise: Array
) -> tuple[State, Array, Array]:
    """Make a step of the actor, by the new critics; return also the loss and -mean log π."""
    weights = state.weights
    tau = jnp.exp(weights.log_temperature)

    def loss(actor: Layers) -> tuple[Array, Array]:
        mean, log_std = policy_heads(config, actor, batch.observation)
        action, log_prob = choose_actions(mean, log_std, noise.T)
        q = critic_values(weights.critics, action, batch.observation)
        return actor_loss(log_prob, q, tau), -log_prob.mean()

    (value, entropy), gradient = jax.value_and_grad(loss, has_aux=True)(weights.actor)
    actor, m, v = network_step(config, state, state.updates + 1, gradient, "actor")
    state = state._replace(
        weights=weights._replace(actor=actor),
        m=state.m._replace(actor=m),
        v=state.v._replace(actor=v),
    )
    return state, value, entropy


def temperature_step(layout: Layout, config: SACConfig, state: State, entropy: Array) -> State:
    """Make a step of log τ for the loss τ (entropy - target entropy)."""
    weights, m, v = state.weights, state.m, state.v
    slope = jnp.exp(weights.log_temperature)
    slope = slope * (entropy - config.entropy_target(layout.action_size))
    log_temperature, m_new, v_new = adam(
        config,
        state.updates + 1,
        weights.log_temperature,
        slope,
        m.log_temperature,
        v.log_temperature,
    )
    return state._replace(
        weights=weights._replace(log_temperature=log_temperature),
        m=m._replace(log_temperature=m_new),
        v=v._replace(log_temperature=v_new),
    )


def update(
    layout: Layout, config: SACConfig, state: State, rows: Array, noise: Array
) -> tuple[State, Array]:
    """Make one update; the second result holds the fields of `UpdateInfo`.

    Where a loss is not finite, the state stays as it was.
    """
    batch = take_inputs(layout, rows)
    new, loss, q_mean = critic_step(config, state, batch, noise[1])
    new, loss_pi, entropy = actor_step(config, new, batch, noise[0])
    new = temperature_step(layout, config, new, entropy)
    new = new._replace(updates=state.updates + 1)
    fine = jnp.isfinite(loss) & jnp.isfinite(loss_pi)
    result = jax.tree.map(lambda after, before: jnp.where(fine, after, before), new, state)
    temperature = jnp.exp(state.weights.log_temperature)
    return result, jnp.stack([loss, q_mean, loss_pi, entropy, temperature])


@partial(jax.jit, static_argnums=0)
def act(config: SACConfig, actor: Layers, observation: Array, noise: Array) -> Array:
    """Return an action; noise: ε."""
    mean, log_std = policy_heads(config, actor, observation)
    return choose_actions(mean, log_std, noise)[0]


_update = jax.jit(update, static_argnums=(0, 1), donate_argnums=2)


def unflatten(layout: Layout, theta: Float) -> Weights:
    """Return a flat vector in the order of `Layout` as weights."""
    actor = [jnp.asarray(layer) for layer in layout.layers(theta, layout.actor)]
    first, second = (layout.layers(theta, table) for table in layout.critics)
    critics = [jnp.asarray(np.stack(pair)) for pair in zip(first, second, strict=True)]
    return Weights(actor, critics, jnp.asarray(theta[layout.log_temperature]))


def flatten(layout: Layout, weights: Weights) -> Float:
    """Return weights as a flat vector in the order of `Layout`."""
    theta = np.empty(layout.size, np.float32)
    for view, layer in zip(layout.layers(theta, layout.actor), weights.actor, strict=True):
        view[:] = layer
    for i, table in enumerate(layout.critics):
        for view, layer in zip(layout.layers(theta, table), weights.critics, strict=True):
            view[:] = layer[i]
    theta[layout.log_temperature] = weights.log_temperature
    return theta


def to_state(layout: Layout, saved: dict[str, Any]) -> State:
    """Return a state from the arrays that every learner saves."""
    check_state(saved, layout)
    target = np.zeros(layout.size, np.float32)
    target[layout.critic_begin : layout.log_temperature] = saved["target"]
    weights, m, v = (unflatten(layout, saved[name]) for name in ("theta", "m", "v"))
    count = jnp.asarray(int(saved["count"]), jnp.int32)
    return State(weights, m, v, unflatten(layout, target).critics, count)


def from_state(layout: Layout, state: State) -> dict[str, Any]:
    """Return the arrays that every learner saves."""
    state = jax.device_get(state)
    target = flatten(layout, state.weights._replace(critics=state.target))
    return {
        "theta": flatten(layout, state.weights),
        "m": flatten(layout, state.m),
        "v": flatten(layout, state.v),
        "target": target[layout.critic_begin : layout.log_temperature],
        "count": int(state.updates),
    }


def initial_state(layout: Layout, config: SACConfig, streams: Streams) -> State:
    """Return the first state: bit for bit that of the CPU learner."""
    return to_state(layout, first_state(layout, config, streams))


class JaxLearner:
    """SAC by JAX on its default device; the contract of `rollin.sac.learner.SACLearner`."""

    starts_early = False  # JAX has threads of its own

    def __init__(self, layout: Layout, config: SACConfig, streams: Streams) -> None:
        self.layout = layout
        self.config = config
        self.streams = streams
        self.count = 0
        self.state = initial_state(layout, config, streams)
        self.batch = np.empty((config.batch, layout.row), np.float32)
        self._noise = np.empty((2, layout.action_size, config.batch), np.float32)

    def act(self, observation: NDArray[Any], *, deterministic: bool = False) -> Float:
        """Return an action in (-1, 1)^A for one observation: a draw, or the squashed mean."""
        observation = check_observation(observation, self.layout)
        noise = np.zeros(self.layout.action_size, np.float32)
        if not deterministic:
            self.streams["act"].standard_normal(out=noise, dtype=np.float32)
        return np.array(act(self.config, self.state.weights.actor, observation, noise))

    def begin(self) -> None:
        """Do nothing: see `SACLearner.begin`."""

    def update(self, batch: Float, noise: Float | None = None) -> UpdateInfo:
        """Make one step of critics, targets, actor, temperature; see `SACLearner.update`."""
        check_batch(batch, self.layout, self.config)
        if noise is None:
            noise = self.streams["noise"].standard_normal(out=self._noise, dtype=np.float32)
        else:
            check_noise(noise, self.layout, self.config)
        self.state, info = _update(self.layout, self.config, self.state, batch, noise)
        info = UpdateInfo(*np.asarray(info).tolist())
        if not np.isfinite(info.critic_loss):
            raise diverged("critics'", self.count + 1)
        if not np.isfinite(info.actor_loss):
            raise diverged("actor's", self.count + 1)
        self.count += 1
        return info

    def get_state(self) -> dict[str, Any]:
        """Return copies of theta, m, v and target, and the count of updates."""
        return from_state(self.layout, self.state)

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that any learner of this layout gave."""
        self.state = to_state(self.layout, state)
        self.count = int(state["count"])

    def reset(self) -> None:
        """Reinitialise the parameters from the stream `init`."""
        self.set_state(first_state(self.layout, self.config, self.streams))

    def close(self) -> None:
        """Do nothing: arrays go with the learner."""
