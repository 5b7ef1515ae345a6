"""A guide of dense layers in NumPy: it travels to other processes and needs no library there.

Pickled it is arrays and names alone; a worker that unpickles it imports neither torch nor JAX.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.errors import RollinError
from rollin.wrapper.statistics import WHOLE, Arrays, Statistics

Float = NDArray[np.float32]
Head = Literal["gaussian", "squashed", "tanh", "categorical", "bernoulli", "greedy"]
"""What the last layer gives: means, with σ of their own (PPO); means and log σ, squashed (SAC);
actions, squashed (TD3); logits of choices; logits of bits; values, whose largest is taken (DQN).
"""

ACTIVATIONS = {
    "": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


@dataclass(frozen=True)
class Entry:
    """An entry of observations, or the whole; sizes: of whole numbers as ones in zeros, if any."""

    key: str = WHOLE
    sizes: tuple[int, ...] = ()

    def vector(self, observation: Any) -> Float:
        """As the first layer takes it."""
        part = observation if self.key == WHOLE else observation[self.key]
        flat = np.asarray(part).reshape(-1)
        if not self.sizes:
            return flat.astype(np.float32)
        ones = [np.arange(n) == int(i) for n, i in zip(self.sizes, flat, strict=True)]
        return np.concatenate(ones).astype(np.float32)


@dataclass(frozen=True)
class Layer:
    """weights: (I, O); bias: (O,); activation: a name of `ACTIVATIONS`."""

    weights: Float
    bias: Float
    activation: str = ""


def beside(one: Layer, other: Layer) -> Layer:
    """Two layers of the same inputs as one, without activation."""
    weights = np.concatenate([one.weights, other.weights], -1)
    return Layer(weights, np.concatenate([one.bias, other.bias]))


class NumpyGuide:
    """An actor as it was when it was frozen, with its normaliser as it was.

    entries: what the first layer takes of observations; log_std: (A,) of the head gaussian, or the
    two bounds of the head squashed.
    """

    def __init__(
        self,
        action_space: spaces.Space[Any],
        entries: Sequence[Entry],
        layers: Sequence[Layer],
        head: Head,
        *,
        log_std: Any = (),
        statistics: Statistics | None = None,
    ) -> None:
        self.action_space, self.entries, self.head = action_space, tuple(entries), head
        self.layers = [
            Layer(np.array(one.weights, np.float32), np.array(one.bias, np.float32), one.activation)
            for one in layers
        ]
        self.log_std = np.array(log_std, np.float32)
        self.statistics = statistics
        self._draws = np.random.default_rng(0)

    def begin(self, seed: int) -> None:
        """Draw from here on as this seed says."""
        self._draws = np.random.default_rng(seed)

    def __call__(self, observation: Any, context: Any) -> Any:
        """A draw for a raw observation, which shows the context already."""
        return self.act(observation, self._draws)

    def act(self, observation: Any, draws: Generator | None = None) -> Any:
        """The action for a raw observation: a draw if a generator is given, else the mode."""
        out, space = self.outputs(observation), self.action_space
        if self.head == "gaussian":
            action = _drawn(out, self.log_std, draws)
            return np.clip(action.reshape(space.shape), *_box(space)).astype(np.float32)
        if self.head in ("squashed", "tanh"):
            if self.head == "squashed":
                mean, log_std = np.split(out, 2)
                out = _drawn(mean, np.clip(log_std, *self.log_std), draws)
            low, high = _box(space)
            scaled = low + 0.5 * (np.tanh(out).reshape(space.shape) + 1) * (high - low)
            return np.clip(scaled, low, high).astype(np.float32)
        if self.head == "bernoulli":
            bits = 1 / (1 + np.exp(-out)) > (0.5 if draws is None else draws.random(out.shape))
            return bits.astype(np.int8).reshape(space.shape)
        if self.head == "categorical" and draws is not None:
            out = out + draws.gumbel(size=out.shape)  # its largest is a draw of the softmax
        chosen = [int(np.argmax(part)) for part in self._choices(out)]
        return np.array(chosen).reshape(space.shape) if space.shape else np.int64(chosen[0])

    def outputs(self, observation: Any) -> Float:
        """What the last layer gives for a raw observation."""
        seen = observation if self.statistics is None else self.statistics(observation)
        x = np.concatenate([entry.vector(seen) for entry in self.entries])
        if len(x) != len(self.layers[0].weights):
            raise RollinError(
                f"The guide was trained on observations of {len(self.layers[0].weights)} numbers "
                f"and is shown {len(x)}: what stacks or flattens observations must lie inside "
                "RollIn, not outside."
            )
        for layer in self.layers:
            x = ACTIVATIONS[layer.activation](x @ layer.weights + layer.bias)
        return x

    def _choices(self, out: Any) -> list[Any]:
        space = self.action_space
        sizes = space.nvec.reshape(-1) if isinstance(space, spaces.MultiDiscrete) else [len(out)]
        return np.split(out, np.cumsum(sizes)[:-1])

    # ------------------------------------------------------------------ state

    def tensors(self) -> Arrays:
        """All parameters, by name; `statistics` are not among them."""
        found: Arrays = {"log_std": self.log_std}
        for i, layer in enumerate(self.layers):
            found |= {f"{i}.weights": layer.weights, f"{i}.bias": layer.bias}
        return found

    def take(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Put parameters in that `tensors` gave."""
        mine = {name: value.shape for name, value in self.tensors().items()}
        theirs = {name: value.shape for name, value in tensors.items()}
        if mine != theirs:
            raise RollinError(
                f"The guide was saved with the parameters {theirs}, and the model has {mine}: make "
                "the model as it was when it was saved."
            )
        self.log_std = np.array(tensors["log_std"])
        self.layers = [
            Layer(np.array(tensors[f"{i}.weights"]), np.array(tensors[f"{i}.bias"]), one.activation)
            for i, one in enumerate(self.layers)
        ]


def _drawn(mean: Float, log_std: Float, draws: Generator | None) -> Float:
    if draws is None:
        return mean
    return mean + np.exp(log_std) * draws.standard_normal(mean.shape, np.float32)


def _box(space: Any) -> tuple[Any, Any]:
    return space.low, space.high
