"""Where the parameters of actor and critics lie in one flat vector, and how they begin.

A layer is a matrix (inputs + 1, outputs): weights, and the bias as the last row. The actor's last
layer gives means and log standard deviations side by side; a critic reads action, observation.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.checks import MOST_PARAMETERS, at_least
from rollin.errors import RollinError

Float = NDArray[np.float32]


@dataclass(frozen=True)
class Layout:
    """The order of parameters: actor, critic 1, critic 2, log temperature."""

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
        """Views of a network's layers, (inputs + 1, outputs) each."""
        return [
            theta[offset : offset + (inputs + 1) * outputs].reshape(inputs + 1, outputs)
            for inputs, outputs, offset in table
        ]

    def initial(self, generator: Generator, temperature: float, head_gain: float) -> Float:
        """First parameters: orthogonal weights of gain √2 and biases of 0.

        The actor's two heads differ: means have a gain of their own, log standard deviations 1.
        """
        theta = np.zeros(self.size, np.float32)
        gain = np.sqrt(2.0)
        for table in (self.actor, *self.critics):
            for layer in self.layers(theta, table):
                layer[:-1] = orthogonal(generator, layer.shape[0] - 1, layer.shape[1], gain)
        head, size = self.layers(theta, self.actor)[-1], self.action_size
        head[:-1, :size] = orthogonal(generator, self.hidden[-1], size, head_gain)
        head[:-1, size:] = orthogonal(generator, self.hidden[-1], size, 1.0)
        theta[self.log_temperature] = np.log(temperature)
        return theta


def orthogonal(generator: Generator, rows: int, columns: int, gain: float) -> Float:
    """A random matrix with orthonormal rows or columns (whichever are fewer), times the gain."""
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
