"""A trained policy: a small object with `act(observation, context)`, in NumPy alone.

Reads the policy.safetensors that a run leaves; needs neither the training code nor its compiler.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from rollin.errors import RollinError, reason
from rollin.regular import LARGEST_DATA, read_bounded

Float = NDArray[np.float32]
LAST = "last"  # of the contexts of the curriculum


@dataclass(frozen=True, eq=False)
class Policy:
    """The actor of a SAC agent: observation and context in, an action of the env's box out.

    layers: (inputs + 1, outputs) each, the bias as last row; low, high: (A,) of the action's box;
    log_std: (2,) bounds of log σ; contexts: (K + 1, C) of the curriculum it was trained on, empty
    for plain SAC; k: the context that training reached.

    >>> import numpy as np
    >>> import rollin
    >>> few = {"steps": 400, "warmup": 200, "hidden": (8, 8), "batch": 16}
    >>> policy = rollin.train("point-umaze", **few).policy
    >>> policy.act([0.0, 0.0, 0.0, 0.0], context=[2.0, 0.0]).shape
    (2,)
    >>> policy.act(np.zeros((5, 4)), "last", generator=np.random.default_rng(0)).shape
    (5, 2)
    """

    layers: tuple[Float, ...] = field(repr=False)
    low: Float
    high: Float
    log_std: Float = field(repr=False)
    contexts: Float = field(repr=False)
    k: int

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        """Read a policy.safetensors, or the one in a run directory (links there are refused)."""
        path = Path(path)
        inside = path.is_dir()
        path = path / "policy.safetensors" if inside else path
        try:
            tensors = load(read_bounded(path, LARGEST_DATA, follow=not inside))
        except (SafetensorError, KeyError, ValueError) as error:  # also of dtypes NumPy lacks
            raise RollinError(
                f"{path} is not a policy of a deep run, or is damaged: {error}."
            ) from error
        return cls.of(tensors, str(path))

    @classmethod
    def of(cls, tensors: dict[str, Any], source: str = "The policy") -> "Policy":
        """From tensors by name, as in the file."""
        count = sum(name.startswith("actor.") for name in tensors)
        needed = {f"actor.{i}" for i in range(count)} | {"action_low", "action_high", "log_std"}
        if not count or not needed <= tensors.keys():
            raise RollinError(
                f"{source} is not a policy of a deep run: it holds {', '.join(sorted(tensors))}."
            )
        layers = tuple(tensors[f"actor.{i}"] for i in range(count))
        contexts = tensors.get("contexts", np.zeros((0, 0), np.float32))
        k = tensors.get("k", np.zeros(1, np.float32))
        box = tensors["action_low"], tensors["action_high"]
        if wrong := _wrong(layers, *box, tensors["log_std"], contexts, k):
            raise RollinError(f"{source} is damaged: {wrong}. Restore the file that the run wrote.")
        return cls(layers, *box, tensors["log_std"], contexts, int(k[0]))

    def save(self, path: str | Path) -> None:
        """Write it to a file, as safetensors, for `load`; a file that is there is replaced."""
        _write(Path(path), save(self.tensors()))

    def save_onnx(self, path: str | Path) -> None:
        """Write the mode of the policy as an ONNX graph (needs the extra rollin[onnx]).

        Inputs: observation (N, O) and, if there is one, context (N, C), in float32; output: action
        (N, A), scaled to the env's box.
        """
        from rollin.policy_onnx import onnx_bytes  # needs an extra

        sizes = {"observation": self.observation_size, "context": self.contexts.shape[1]}
        _write(Path(path), onnx_bytes(self.layers, self.low, self.high, sizes))

    def tensors(self) -> dict[str, Float]:
        """By name, as in the file."""
        tensors = {f"actor.{i}": layer for i, layer in enumerate(self.layers)}
        tensors |= {"action_low": self.low, "action_high": self.high, "log_std": self.log_std}
        if len(self.contexts):
            tensors |= {"contexts": self.contexts, "k": np.array([self.k], np.float32)}
        return {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}

    @property
    def observation_size(self) -> int:
        """Numbers of an observation, without the context."""
        return len(self.layers[0]) - 1 - self.contexts.shape[1]

    def act(
        self,
        observation: ArrayLike | Mapping[str, ArrayLike],
        context: ArrayLike | Literal["last"] = LAST,
        generator: Generator | None = None,
    ) -> Float:
        """The action for one observation: the policy's mode, or a draw if a generator is given.

        observation: a vector, or the dict that a contextual env gives. context: "last" is the last
        one of the curriculum it was trained on, also if training has not come that far
        (`policy.contexts[policy.k]` is the one it reached); not needed with a dict, which has its
        own. Leading axes are kept.
        """
        action = self.squashed(observation, context, generator)
        scaled = (self.high + self.low) / 2 + (self.high - self.low) / 2 * action
        return np.clip(scaled, self.low, self.high).astype(np.float32)

    def squashed(
        self,
        observation: ArrayLike | Mapping[str, ArrayLike],
        context: ArrayLike | Literal["last"] = LAST,
        generator: Generator | None = None,
    ) -> Float:
        """The action in [-1, 1]^A, before it is scaled to the env's box."""
        if isinstance(observation, Mapping):  # as a contextual env gives it
            context = observation["context"] if _is_last(context) else context
            observation = observation["observation"]
        seen = np.asarray(observation, np.float32)
        if _is_last(context):
            context = self.contexts[-1] if len(self.contexts) else np.zeros(0)
        told = np.asarray(context, np.float32)
        expected = self.observation_size, self.contexts.shape[1]
        try:
            leading = np.broadcast_shapes(seen.shape[:-1], told.shape[:-1])
            fits = (*seen.shape[-1:], *told.shape[-1:]) == expected
        except ValueError:
            leading, fits = (), False
        if not fits:
            raise RollinError(
                f"This policy takes an observation of {expected[0]} numbers and a context of "
                f"{expected[1]}, got shapes {seen.shape} and {told.shape}."
            )
        parts = [np.broadcast_to(part, (*leading, part.shape[-1])) for part in (seen, told)]
        h = np.concatenate(parts, -1)
        for layer in self.layers[:-1]:
            h = np.maximum(h @ layer[:-1] + layer[-1], 0)
        out = h @ self.layers[-1][:-1] + self.layers[-1][-1]
        size = len(self.low)
        mean, log_std = out[..., :size], np.clip(out[..., size:], *self.log_std)
        if generator is not None:
            mean = mean + np.exp(log_std) * generator.standard_normal(mean.shape, np.float32)
        return np.tanh(mean).astype(np.float32)


def _is_last(context: Any) -> bool:
    return context is None or (isinstance(context, str) and context == LAST)


def _write(path: Path, data: bytes) -> None:
    """All of a file or nothing of it; a link in its place is replaced, not followed."""
    temporary = path.with_name(f".rollin-{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RollinError(f"{path} could not be written: {reason(error)}.") from error


def _wrong(
    layers: Sequence[Float], low: Float, high: Float, log_std: Float, contexts: Float, k: Float
) -> str:
    """What cannot be in the tensors of a policy, in words; empty if nothing."""
    for name, tensor in {
        **{f"actor.{i}": layer for i, layer in enumerate(layers)},
        **{"action_low": low, "action_high": high, "log_std": log_std},
        **{"contexts": contexts, "k": k},
    }.items():
        if tensor.dtype != np.float32 or not np.isfinite(tensor).all():
            return f"{name} must be finite numbers of float32"
    if any(layer.ndim != 2 for layer in layers) or any(
        after.shape[0] != before.shape[1] + 1 for before, after in pairwise(layers)
    ):
        return "its layers do not follow from each other"
    if low.ndim != 1 or {low.shape, high.shape} != {(layers[-1].shape[1] // 2,)}:
        return f"actions of shape {low.shape} do not go with {layers[-1].shape[1]} outputs"
    if layers[-1].shape[1] != 2 * len(low) or (low > high).any():
        return "the bounds of its actions cannot be"
    if log_std.shape != (2,) or log_std[0] > log_std[1]:
        return "log_std must be two rising numbers"
    if contexts.ndim != 2 or contexts.shape[1] >= len(layers[0]) or k.shape != (1,):
        return "its contexts do not go with its first layer"
    if not 0 <= k[0] <= max(len(contexts) - 1, 0):
        return f"context {k[0]:g} of {len(contexts)} cannot be"
    return ""
