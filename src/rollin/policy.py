"""A trained policy: a small object with `act(observation, context)`, in NumPy alone.

Reads the policy.safetensors that a run leaves; needs neither the training code nor its compiler.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from rollin.errors import RollinError, reason

Float = NDArray[np.float32]


@dataclass(frozen=True)
class Policy:
    """The actor of a SAC agent: observation and context in, an action of the env's box out.

    layers: (inputs + 1, outputs) each, the bias as last row; low, high: (A,) of the action's box;
    log_std: (2,) bounds of log σ; contexts: (K + 1, C) of the curriculum it was trained on, empty
    for plain SAC; kappas: (K + 1,); k: the context that training reached.
    """

    layers: tuple[Float, ...]
    low: Float
    high: Float
    log_std: Float
    contexts: Float
    kappas: Float
    k: int

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        """Read a policy.safetensors, or the one in a run directory."""
        path = Path(path)
        path = path / "policy.safetensors" if path.is_dir() else path
        try:
            tensors = load_file(path)
        except OSError as error:
            raise RollinError(f"{path} could not be read: {reason(error)}.") from error
        except SafetensorError as error:
            raise RollinError(f"{path} is no policy of a deep run, or damaged: {error}.") from error
        return cls.of(tensors, str(path))

    @classmethod
    def of(cls, tensors: dict[str, Any], source: str = "The policy") -> "Policy":
        """From tensors by name, as in the file."""
        count = sum(name.startswith("actor.") for name in tensors)
        if not count or not {"action_low", "action_high", "log_std"} <= tensors.keys():
            raise RollinError(
                f"{source} is no policy of a deep run: it holds {', '.join(sorted(tensors))}."
            )
        return cls(
            tuple(tensors[f"actor.{i}"] for i in range(count)),
            tensors["action_low"],
            tensors["action_high"],
            tensors["log_std"],
            tensors.get("contexts", np.zeros((0, 0), np.float32)),
            tensors.get("kappas", np.zeros(0, np.float32)),
            int(tensors["k"][0]) if "k" in tensors else 0,
        )

    @property
    def observation_size(self) -> int:
        """Numbers of an observation, without the context."""
        return len(self.layers[0]) - 1 - self.contexts.shape[1]

    def act(
        self,
        observation: ArrayLike,
        context: ArrayLike | None = None,
        generator: Generator | None = None,
    ) -> Float:
        """The action for one observation: the policy's mode, or a draw if a generator is given.

        context: the last one of the curriculum if not given. Leading axes are kept.
        """
        seen = np.asarray(observation, np.float32)
        if context is None:
            context = self.contexts[-1] if len(self.contexts) else np.zeros(0)
        told = np.asarray(context, np.float32)
        expected = self.observation_size, self.contexts.shape[1]
        if seen.ndim == 0 or (seen.shape[-1], *told.shape[-1:]) != expected:
            raise RollinError(
                f"This policy takes an observation of {expected[0]} numbers and a context of "
                f"{expected[1]}, got shapes {seen.shape} and {told.shape}."
            )
        told = np.broadcast_to(told, (*seen.shape[:-1], expected[1]))
        h = np.concatenate([seen, told], -1)
        for layer in self.layers[:-1]:
            h = np.maximum(h @ layer[:-1] + layer[-1], 0)
        out = h @ self.layers[-1][:-1] + self.layers[-1][-1]
        size = len(self.low)
        mean, log_std = out[..., :size], np.clip(out[..., size:], *self.log_std)
        if generator is not None:
            mean = mean + np.exp(log_std) * generator.standard_normal(mean.shape, np.float32)
        action = (self.high + self.low) / 2 + (self.high - self.low) / 2 * np.tanh(mean)
        return np.clip(action, self.low, self.high).astype(np.float32)
