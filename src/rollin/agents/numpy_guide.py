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

Arrays = dict[str, NDArray[Any]]
Float = NDArray[np.float32]
WHOLE = ""  # key of observations that are no Dict
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


class Statistics:
    """The normalisation of observations by Stable-Baselines3's `VecNormalize`, frozen."""

    def __init__(self, moments: Mapping[str, tuple[Any, Any]], epsilon: float, clip: float) -> None:
        self.moments = {key: (np.array(m), np.array(v)) for key, (m, v) in moments.items()}
        self.epsilon = float(epsilon)
        self.clip = float(clip)

    @classmethod
    def of(cls, normaliser: Any) -> "Statistics | None":
        """Return a copy of the statistics of a `VecNormalize`; None if it changes none."""
        if normaliser is None or not normaliser.norm_obs:
            return None
        rms: Any = normaliser.obs_rms
        parts = rms if isinstance(rms, dict) else {WHOLE: rms}
        moments = {key: (part.mean, part.var) for key, part in parts.items()}
        return cls(moments, normaliser.epsilon, normaliser.clip_obs)

    def __call__(self, observation: Any) -> Any:
        """Return a normalised observation."""
        if not isinstance(observation, Mapping):
            return self._normalised(WHOLE, observation)
        return {
            key: self._normalised(key, part) if key in self.moments else part
            for key, part in observation.items()
        }

    def _normalised(self, key: str, part: Any) -> Any:
        mean, var = self.moments[key]
        scaled = (part - mean) / np.sqrt(var + self.epsilon)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)

    def tensors(self) -> Arrays:
        """Return everything, by name."""
        found = {"epsilon": np.array(self.epsilon), "clip": np.array(self.clip)}
        for key, (mean, var) in self.moments.items():
            found |= {f"mean.{key}": mean, f"var.{key}": var}
        return found

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Any]) -> "Statistics | None":
        """Return the statistics of such tensors; None if there are none."""
        if not tensors:
            return None
        keys = [name.removeprefix("mean.") for name in tensors if name.startswith("mean.")]
        moments = {key: (tensors[f"mean.{key}"], tensors[f"var.{key}"]) for key in keys}
        return cls(moments, float(tensors["epsilon"]), float(tensors["clip"]))


@dataclass(frozen=True)
class Entry:
    """An entry of observations, or the whole; sizes: of the one-hot codes of its whole numbers."""

    key: str = WHOLE
    sizes: tuple[int, ...] = ()

    def vector(self, observation: Any) -> Float:
        """Return the part of an observation as the first layer takes it."""
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
    """Return two layers of the same inputs as one, without activation."""
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
        self.action_space = action_space
        self.entries = tuple(entries)
        self.head = head
        self.layers = [
            Layer(np.array(one.weights, np.float32), np.array(one.bias, np.float32), one.activation)
            for one in layers
        ]
        self.log_std = np.array(log_std, np.float32)
        self.statistics = statistics
        self._draws = np.random.default_rng(0)

    def begin(self, seed: int) -> None:
        """Draw from this seed from here on."""
        self._draws = np.random.default_rng(seed)

    def __call__(self, observation: Any, context: Any) -> Any:
        """Return a draw for a raw observation, which shows the context already."""
        return self.act(observation, self._draws)

    def act(self, observation: Any, draws: Generator | None = None) -> Any:
        """Return the action for a raw observation: a draw from a generator, or the mode."""
        space: Any = self.action_space
        out = self.outputs(observation)
        if self.head == "gaussian":
            action = _drawn(out, self.log_std, draws)
            return np.clip(action.reshape(space.shape), space.low, space.high).astype(np.float32)
        if self.head in ("squashed", "tanh"):
            if self.head == "squashed":
                mean, log_std = np.split(out, 2)
                out = _drawn(mean, np.clip(log_std, *self.log_std), draws)
            low, high = space.low, space.high
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
        """Return the outputs of the last layer for a raw observation."""
        if self.statistics is not None:
            observation = self.statistics(observation)
        x = np.concatenate([entry.vector(observation) for entry in self.entries])
        if len(x) != len(self.layers[0].weights):
            raise RollinError(
                f"The guide was trained on observations of {len(self.layers[0].weights)} numbers "
                f"and receives {len(x)}: what stacks or flattens observations must lie inside "
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
        """Return all parameters, by name, without `statistics`."""
        found: Arrays = {"log_std": self.log_std}
        for i, layer in enumerate(self.layers):
            found |= {f"{i}.weights": layer.weights, f"{i}.bias": layer.bias}
        return found

    def take(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set the parameters that `tensors` returned."""
        own = {name: value.shape for name, value in self.tensors().items()}
        saved = {name: value.shape for name, value in tensors.items()}
        if own != saved:
            raise RollinError(
                f"The guide was saved with the parameters {saved}, and the model has {own}: make "
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
