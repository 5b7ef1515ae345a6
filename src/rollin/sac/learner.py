"""What the learners have in common: contract, layout of parameters, checks of what comes in."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.checks import MOST_PARAMETERS, at_least
from rollin.errors import RollinError
from rollin.sac.config import SACConfig
from rollin.streams import Streams

Float = NDArray[np.float32]
_FLOAT32 = np.dtype(np.float32)


# ------------------------------------------------------------------ parameters


@dataclass(frozen=True)
class Layout:
    """The order of parameters in one flat vector: actor, critic 1, critic 2, log temperature.

    A layer is a matrix (inputs + 1, outputs): weights, and the bias as the last row. The actor's
    last layer gives means and log standard deviations side by side; a critic reads action,
    observation.
    """

    observation_size: int
    action_size: int
    hidden: tuple[int, ...]

    def __post_init__(self) -> None:
        at_least(1, "observation_size", self.observation_size)
        at_least(1, "action_size", self.action_size)
        if self.size > MOST_PARAMETERS:
            raise RollinError(
                f"hidden {' '.join(map(str, self.hidden))} makes networks of {self.size:,} "
                f"parameters, and at most {MOST_PARAMETERS:,} can be trained: choose smaller "
                "layers."
            )

    @property
    def actor(self) -> NDArray[np.int64]:
        """Table of the actor's layers: inputs, outputs, offset."""
        return _table([self.observation_size, *self.hidden, 2 * self.action_size], 0)

    @property
    def critics(self) -> NDArray[np.int64]:
        """Tables of both critics' layers, (2, layers, 3)."""
        sizes = [self.action_size + self.observation_size, *self.hidden, 1]
        first = _table(sizes, _end(self.actor))
        return np.stack([first, _table(sizes, _end(first))])

    @property
    def critic_begin(self) -> int:
        """Where the critics' parameters begin, which the target critics copy."""
        return _end(self.actor)

    @property
    def log_temperature(self) -> int:
        """Where the logarithm of the temperature lies: last of all."""
        return _end(self.critics[1])

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.log_temperature + 1

    @property
    def row(self) -> int:
        """Width of a row of a batch: action, observation, next observation, reward, mask."""
        return self.action_size + 2 * self.observation_size + 2

    def layers(self, theta: Float, table: NDArray[np.int64]) -> list[Float]:
        """Return views of a network's layers, (inputs + 1, outputs) each."""
        return [
            theta[offset : offset + (inputs + 1) * outputs].reshape(inputs + 1, outputs)
            for inputs, outputs, offset in table
        ]

    def initial(self, generator: Generator, temperature: float, head_gain: float) -> Float:
        """Return first parameters: orthogonal weights of gain √2 and biases of 0.

        The actor's two heads differ: means have a gain of their own, log standard deviations 1.
        """
        theta = np.zeros(self.size, np.float32)
        gain = np.sqrt(2.0)
        for table in (self.actor, *self.critics):
            for layer in self.layers(theta, table):
                layer[:-1] = orthogonal(generator, layer.shape[0] - 1, layer.shape[1], gain)
        head = self.layers(theta, self.actor)[-1]
        size = self.action_size
        head[:-1, :size] = orthogonal(generator, self.hidden[-1], size, head_gain)
        head[:-1, size:] = orthogonal(generator, self.hidden[-1], size, 1.0)
        theta[self.log_temperature] = np.log(temperature)
        return theta


def orthogonal(generator: Generator, rows: int, columns: int, gain: float) -> Float:
    """Return a random matrix with orthonormal rows or columns, the fewer, times the gain."""
    normal = generator.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(normal)
    q *= np.sign(np.diag(r))  # uniform over orthogonal matrices
    return (gain * (q if rows >= columns else q.T)).astype(np.float32)


def _table(sizes: list[int], begin: int) -> NDArray[np.int64]:
    rows = []
    for inputs, outputs in pairwise(sizes):
        rows.append((inputs, outputs, begin))
        begin += (inputs + 1) * outputs
    return np.array(rows, np.int64)


def _end(table: NDArray[np.int64]) -> int:
    inputs, outputs, begin = (int(n) for n in table[-1])
    return begin + (inputs + 1) * outputs


# ------------------------------------------------------------------ the contract


@dataclass(slots=True)  # made at every step: a frozen one takes three times as long
class UpdateInfo:
    """What one update saw, before its steps: losses, mean Q, entropy -E log π, temperature."""

    critic_loss: float
    q_mean: float
    actor_loss: float
    entropy: float
    temperature: float


class SACLearner(Protocol):
    """A SAC learner. All have the same state, so that one can continue another's."""

    config: SACConfig
    layout: Layout
    streams: Streams
    count: int
    """Updates so far."""
    batch: Float
    """Where a batch may be gathered, (B, row), so that an update need not copy it."""

    def act(self, observation: NDArray[Any], *, deterministic: bool = False) -> Float:
        """Return an action in (-1, 1)^A for one observation: a draw, or the squashed mean."""
        ...

    @property
    def starts_early(self) -> bool:
        """Whether `begin` gives other threads something to do."""
        ...

    def begin(self) -> None:
        """Announce that the next update will be from what `batch` holds now."""
        ...

    def update(self, batch: Float, noise: Float | None = None) -> UpdateInfo:
        """Make one step of critics, targets, actor and temperature.

        batch: (B, row) of action, observation, next observation, reward, mask (0 where the
        episode terminated, else 1). noise: (2, A, B) standard normal numbers for π(s) and
        π(s'), drawn if not given.
        """
        ...

    def get_state(self) -> dict[str, Any]:
        """Return theta, m, v (float32, in the order of `Layout`), target, count."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that `get_state` of any learner of this layout gave."""
        ...

    def reset(self) -> None:
        """Reinitialise the parameters from the stream `init`."""
        ...

    def close(self) -> None:
        """Release threads and memory; the learner cannot be used afterwards."""
        ...


def first_state(layout: Layout, config: SACConfig, streams: Streams) -> dict[str, Any]:
    """Return a state before any update, with parameters drawn from the stream `init`."""
    theta = layout.initial(streams["init"], config.initial_temperature, config.head_gain)
    target = theta[layout.critic_begin : layout.log_temperature]
    m, v = np.zeros((2, layout.size), np.float32)
    return {"theta": theta, "m": m, "v": v, "target": target, "count": 0}


def check_batch(batch: Float, layout: Layout, config: SACConfig) -> None:
    """Refuse a batch of another shape or type."""
    expected = (config.batch, layout.row)
    if not isinstance(batch, np.ndarray) or batch.dtype != np.float32 or batch.shape != expected:
        raise RollinError(
            f"batch must be a float32 array of shape {expected} (action, observation, next "
            f"observation, reward, mask), got {describe(batch)}."
        )


def check_observation(observation: NDArray[Any], layout: Layout) -> Float:
    """Return an observation as float32; raise an error that describes it if it is none."""
    if type(observation) is np.ndarray and observation.dtype is _FLOAT32:
        array = observation
        if array.shape == (layout.observation_size,):  # as nearly always
            return array
    else:
        array = np.asarray(observation)
    if array.shape != (layout.observation_size,) or array.dtype.kind not in "fiu":
        raise RollinError(
            f"observation must hold {layout.observation_size} real numbers in one dimension, "
            f"got {describe(array)}."
        )
    return array.astype(np.float32, copy=False)


def check_state(state: dict[str, Any], layout: Layout) -> None:
    """Refuse the state of another network, or a damaged one."""
    sizes = {"theta": layout.size, "m": layout.size, "v": layout.size}
    sizes["target"] = layout.log_temperature - layout.critic_begin
    for name, size in sizes.items():
        array = np.asarray(state.get(name))
        if array.shape != (size,) or array.dtype != np.float32:
            raise RollinError(
                f"The learner's {name} must be float32 of shape {(size,)}, got {describe(array)}: "
                "the state belongs to a network of other sizes."
            )
        if not np.isfinite(array).all():
            raise RollinError(f"The learner's {name} holds NaN or infinity: the state is damaged.")
    if "count" not in state:
        raise RollinError("The learner's state lacks its count of updates: it is damaged.")


def diverged(what: str, count: int) -> RollinError:
    """Return the error of a step that was not made because its loss is not a finite number."""
    return RollinError(
        f"The {what} loss is not a finite number at update {count}: the learner diverged, and this "
        "step was not made. A smaller learning rate, or rewards of smaller scale, may help."
    )


def check_noise(noise: Float, layout: Layout, config: SACConfig) -> None:
    """Refuse noise of another shape."""
    expected = (2, layout.action_size, config.batch)
    if np.shape(noise) != expected:
        raise RollinError(f"noise must have shape {expected}, got {np.shape(noise)}.")


def describe(value: object) -> str:
    """Return type and shape, for errors."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
