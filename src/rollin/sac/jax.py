"""The learner for accelerators (extra `rollin[jax]`): pure functions, gradients by autodiff.

The oracle of `cpu.py`: the same mathematics written a second time, in the form of the equations.
`update` takes and gives a whole state.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollin.arrays import Float
from rollin.errors import MissingExtraError
from rollin.sac.config import SACConfig
from rollin.sac.learner import (
    UpdateInfo,
    check_batch,
    check_noise,
    check_observation,
    check_state,
    diverged,
    first_state,
)
from rollin.sac.network import Layout
from rollin.streams import Streams

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise MissingExtraError(
        "The learner jax needs JAX, which is not installed: pip install 'rollin[jax]', "
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


def mlp(layers: Layers, x: Array) -> Array:
    """A network with ReLU between its layers."""
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer[:-1] + layer[-1])
    return x @ layers[-1][:-1] + layers[-1][-1]


def q_values(critics: Layers, action: Array, observation: Array) -> Array:
    """Q_1 and Q_2, (2, B)."""
    x = jnp.concatenate([action, observation], axis=-1)
    return jax.vmap(mlp, in_axes=(0, None))(critics, x)[..., 0]


def sample(config: SACConfig, actor: Layers, observation: Array, noise: Array) -> Any:
    """a = tanh(μ + σε) and log π(a), with log(1 - tanh²u) = 2 (log 2 - u - softplus(-2u))."""
    mean, log_std = jnp.split(mlp(actor, observation), 2, axis=-1)
    log_std = jnp.clip(log_std, config.log_std_min, config.log_std_max)
    u = mean + jnp.exp(log_std) * noise
    gaussian = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
    squash = 2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))
    return jnp.tanh(u), (gaussian - squash).sum(-1)


def adam(
    config: SACConfig, count: Array, weight: Array, gradient: Array, m: Array, v: Array
) -> Any:
    """One step of Adam: new weight, m, v."""
    m = BETA1 * m + (1 - BETA1) * gradient
    v = BETA2 * v + (1 - BETA2) * gradient**2
    m_hat = m / -jnp.expm1(count * jnp.log(BETA1))
    v_hat = v / -jnp.expm1(count * jnp.log(BETA2))
    return weight - config.learning_rate * m_hat / (jnp.sqrt(v_hat) + EPSILON), m, v


def update(
    layout: Layout, config: SACConfig, state: State, rows: Array, noise: Array
) -> tuple[State, Array]:
    """One update; the second result holds the fields of `UpdateInfo`.

    Where a loss is not finite, the state stays as it was.
    """
    batch = split(layout, rows)
    weights, count = state.weights, state.updates + 1
    temperature = jnp.exp(weights.log_temperature)

    next_action, next_log_prob = sample(config, weights.actor, batch.next_observation, noise[1].T)
    next_q = q_values(state.target, next_action, batch.next_observation).min(0)
    y = batch.reward + config.gamma * batch.mask * (next_q - temperature * next_log_prob)

    def critic_loss(critics: Layers) -> Any:
        q = q_values(critics, batch.action, batch.observation)
        return ((q - y) ** 2).mean(1).sum(), q.mean()

    (loss, q_mean), gradient = jax.value_and_grad(critic_loss, has_aux=True)(weights.critics)
    step = partial(adam, config, count)
    critics, m_critics, v_critics = _unzip(step, weights, state, gradient, "critics")
    target = [
        old + config.tau * (new - old) for old, new in zip(state.target, critics, strict=True)
    ]

    def actor_loss(actor: Layers) -> Any:
        action, log_prob = sample(config, actor, batch.observation, noise[0].T)
        q = q_values(critics, action, batch.observation).min(0)
        return (temperature * log_prob - q).mean(), -log_prob.mean()

    (loss_pi, entropy), gradient = jax.value_and_grad(actor_loss, has_aux=True)(weights.actor)
    actor, m_actor, v_actor = _unzip(step, weights, state, gradient, "actor")

    slope = temperature * (entropy - config.entropy_target(layout.action_size))
    log_temperature, m_temperature, v_temperature = step(
        weights.log_temperature, slope, state.m.log_temperature, state.v.log_temperature
    )
    new = State(
        Weights(actor, critics, log_temperature),
        Weights(m_actor, m_critics, m_temperature),
        Weights(v_actor, v_critics, v_temperature),
        target,
        count,
    )
    fine = jnp.isfinite(loss) & jnp.isfinite(loss_pi)
    kept = jax.tree.map(lambda after, before: jnp.where(fine, after, before), new, state)
    return kept, jnp.stack([loss, q_mean, loss_pi, entropy, temperature])


def split(layout: Layout, rows: Array) -> Batch:
    """The columns of packed rows."""
    a, o = layout.action_size, layout.observation_size
    action, observation, following, rest = jnp.split(rows, [a, a + o, a + 2 * o], axis=-1)
    return Batch(action, observation, following, rest[..., 0], rest[..., 1])


def _unzip(step: Any, weights: Weights, state: State, gradient: Layers, name: str) -> Any:
    """Adam on every layer of one network: its new weights, m and v."""
    layers, m, v = (getattr(part, name) for part in (weights, state.m, state.v))
    return map(list, zip(*map(step, layers, gradient, m, v), strict=True))


_update = jax.jit(update, static_argnums=(0, 1), donate_argnums=2)


@partial(jax.jit, static_argnums=0)
def _act(config: SACConfig, actor: Layers, observation: Array, noise: Array) -> Array:
    return sample(config, actor, observation, noise)[0]


def unflatten(layout: Layout, theta: Float) -> Weights:
    """A flat vector in the order of `Layout` as weights."""
    actor = [jnp.asarray(layer) for layer in layout.layers(theta, layout.actor)]
    first, second = (layout.layers(theta, table) for table in layout.critics)
    critics = [jnp.asarray(np.stack(pair)) for pair in zip(first, second, strict=True)]
    return Weights(actor, critics, jnp.asarray(theta[layout.log_temperature]))


def flatten(layout: Layout, weights: Weights) -> Float:
    """Weights as a flat vector in the order of `Layout`."""
    theta = np.empty(layout.size, np.float32)
    for view, layer in zip(layout.layers(theta, layout.actor), weights.actor, strict=True):
        view[:] = layer
    for i, table in enumerate(layout.critics):
        for view, layer in zip(layout.layers(theta, table), weights.critics, strict=True):
            view[:] = layer[i]
    theta[layout.log_temperature] = weights.log_temperature
    return theta


def to_state(layout: Layout, saved: dict[str, Any]) -> State:
    """A state from the arrays that every learner saves."""
    check_state(saved, layout)
    target = np.zeros(layout.size, np.float32)
    target[layout.critic_begin : layout.log_temperature] = saved["target"]
    weights, m, v = (unflatten(layout, saved[name]) for name in ("theta", "m", "v"))
    count = jnp.asarray(int(saved["count"]), jnp.int32)
    return State(weights, m, v, unflatten(layout, target).critics, count)


def from_state(layout: Layout, state: State) -> dict[str, Any]:
    """The arrays that every learner saves."""
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
    """The first state, the same to the bit as the CPU learner's."""
    return to_state(layout, first_state(layout, config, streams))


class JaxLearner:
    """SAC by JAX on its default device; the contract of `rollin.sac.learner.Learner`."""

    starts_early = False  # JAX has threads of its own

    def __init__(self, layout: Layout, config: SACConfig, streams: Streams) -> None:
        self.layout, self.config, self.streams = layout, config, streams
        self.count = 0
        self.state = initial_state(layout, config, streams)
        self.batch = np.empty((config.batch, layout.row), np.float32)
        self._noise = np.empty((2, layout.action_size, config.batch), np.float32)

    def act(self, observation: NDArray[Any], *, deterministic: bool = False) -> Float:
        """An action in (-1, 1)^A for one observation: a draw, or the squashed mean."""
        observation = check_observation(observation, self.layout)
        noise = np.zeros(self.layout.action_size, np.float32)
        if not deterministic:
            self.streams["act"].standard_normal(out=noise, dtype=np.float32)
        return np.array(_act(self.config, self.state.weights.actor, observation, noise))

    def begin(self) -> None:
        """Nothing: see `Learner.begin`."""

    def update(self, batch: Float, noise: Float | None = None) -> UpdateInfo:
        """One step of critics, targets, actor and temperature; see `Learner.update`."""
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
        """Copies of theta, m, v and target, and the count of updates."""
        return from_state(self.layout, self.state)

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to a state that any learner of this layout gave."""
        self.state = to_state(self.layout, state)
        self.count = int(state["count"])

    def reset(self) -> None:
        """Begin anew with other first parameters, from where the stream `init` stands."""
        self.set_state(first_state(self.layout, self.config, self.streams))

    def close(self) -> None:
        """Nothing to release: arrays go with the learner."""
