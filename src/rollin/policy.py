"""A trained policy: `act(observation, context)` in NumPy, without training code or compiler.

Reads the policy.safetensors of a run. ONNX files need the extra `onnx`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from rollin.checks import shown
from rollin.errors import RollinError, install_hint, one_line, reason
from rollin.untrusted import LARGEST_POLICY, read_bounded

Float = NDArray[np.float32]
LAST = "last"  # of the contexts of the curriculum
OPSET = 17  # of ONNX, 2022: Gemm, Relu, Tanh and Clip have not changed since


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """The actor of a SAC agent: observation and context in, an action of the env's box out.

    layers: (inputs + 1, outputs) each, the bias as last row; low, high: (A,) of the action's box;
    log_std: (2,) bounds of log σ; contexts: (K + 1, C) of the curriculum it was trained on, empty
    for plain SAC; k: the context that training reached; context_space: (2, C) bounds of the env's
    contexts, None if not recorded.

    >>> import numpy as np
    >>> import rollin
    >>> few = {"steps": 400, "warmup": 200, "hidden": (8, 8), "batch": 16}
    >>> policy = rollin.train("point-umaze", **few).policy
    >>> policy.act([0.0, 0.0, 0.0, 0.0], context=[2.0, 0.0]).shape
    (2,)
    >>> policy.act(np.zeros((5, 4)), "last", generator=np.random.default_rng(0)).shape
    (5, 2)
    """

    layers: tuple[Float, ...]
    low: Float
    high: Float
    log_std: Float
    contexts: Float
    k: int
    context_space: Float | None = None

    def __repr__(self) -> str:
        hidden = tuple(layer.shape[1] for layer in self.layers[:-1])
        reached = f", k={self.k}, K={len(self.contexts) - 1}" if len(self.contexts) else ""
        return (
            f"Policy(observation={self.observation_size}, context={self.contexts.shape[1]}, "
            f"action={len(self.low)}, hidden={hidden}{reached})"
        )

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        """Read a policy.safetensors, or the one in a run directory (links there are refused)."""
        if not isinstance(path, str | os.PathLike):
            raise RollinError(
                "Policy.load takes the path of a policy.safetensors or of a run directory, got "
                f"{shown(path)}."
            )
        path = Path(path)
        inside = path.is_dir()
        path = path / "policy.safetensors" if inside else path
        try:
            tensors = load(read_bounded(path, LARGEST_POLICY, follow=not inside))
        except (SafetensorError, KeyError, ValueError) as error:  # also of dtypes NumPy lacks
            raise RollinError(
                f"{path} is not a policy of a deep run, or is damaged: {error}."
            ) from error
        return cls.of(tensors, str(path))

    @classmethod
    def of(cls, tensors: dict[str, Any], source: str = "The policy") -> "Policy":
        """Make a policy of tensors by name, as in the file."""
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
        space = tensors.get("context_space")
        if wrong := _fault(layers, *box, tensors["log_std"], contexts, k, space):
            raise RollinError(f"{source} is damaged: {wrong}. Restore the file that the run wrote.")
        return cls(layers, *box, tensors["log_std"], contexts, int(k[0]), space)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file for `load`; an existing file is replaced."""
        _write(Path(path), save(self.tensors()))

    def save_onnx(self, path: str | Path) -> None:
        """Write the mode of the policy as an ONNX graph (needs the extra onnx).

        Inputs: observation (N, O) and, if there is one, context (N, C), in float32; output: action
        (N, A), scaled to the env's box.
        """
        _write(Path(path), _onnx_bytes(self))

    def tensors(self) -> dict[str, Float]:
        """Return the tensors by name, as in the file."""
        tensors = {f"actor.{i}": layer for i, layer in enumerate(self.layers)}
        tensors |= {"action_low": self.low, "action_high": self.high, "log_std": self.log_std}
        if len(self.contexts):
            tensors |= {"contexts": self.contexts, "k": np.array([self.k], np.float32)}
        if self.context_space is not None:
            tensors |= {"context_space": self.context_space}
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
        """Return the policy's mode, or a random action if a generator is given.

        observation: a vector (O,), a batch (N, O), or the dict that a contextual env returns.
        context: a vector of the env's context space, or a batch of them; "last" is the final
        context of the curriculum, even if training has not reached it (`policy.contexts[policy.k]`
        is the one it reached). A dict brings its own context.
        """
        action = self._squashed(*self._inputs(observation, context, within=True), generator)
        scaled = (self.high + self.low) / 2 + (self.high - self.low) / 2 * action
        return np.clip(scaled, self.low, self.high).astype(np.float32)

    def predict(
        self,
        observation: ArrayLike | Mapping[str, ArrayLike],
        state: None = None,
        episode_start: Any = None,
        deterministic: bool = True,
        *,
        generator: Generator | None = None,
    ) -> tuple[Float, None]:
        """Return an action and None, as the models of Stable-Baselines3 do.

        Takes the observations of `act` under the final context; the dicts of contextual envs bring
        their own. deterministic: whether to return the mode; otherwise a draw from `generator`, or
        from an unseeded one. state, episode_start: ignored; the policy has no memory. Evaluate one
        context with `env.set_context(context)` and `evaluate_policy(policy, env)`.
        """
        if deterministic:
            return self.act(observation), None
        return self.act(observation, generator=generator or np.random.default_rng()), None

    def squashed(
        self,
        observation: ArrayLike | Mapping[str, ArrayLike],
        context: ArrayLike | Literal["last"] = LAST,
        generator: Generator | None = None,
    ) -> Float:
        """Return the action in [-1, 1]^A, before it is scaled to the env's box."""
        return self._squashed(*self._inputs(observation, context), generator)

    def _inputs(
        self, observation: Any, context: Any, *, within: bool = False
    ) -> tuple[Float, Float]:
        """Observation and context as arrays; within: also refuse contexts outside their space."""
        if isinstance(observation, Mapping):
            observation, own = _entries(observation)
            context = own if _is_last(context) else context
        if _is_last(context):
            context = self.contexts[-1] if len(self.contexts) else np.zeros(0)
        observation = _numbers("observation", observation)
        context = _numbers("context", context)
        expected = self.observation_size, self.contexts.shape[1]
        try:
            np.broadcast_shapes(observation.shape[:-1], context.shape[:-1])
            fits = (*observation.shape[-1:], *context.shape[-1:]) == expected
        except ValueError:
            fits = False
        if not fits:
            raise RollinError(
                f"This policy takes an observation of {expected[0]} numbers and a context of "
                f"{expected[1]}, or batches of them, got shapes {observation.shape} and "
                f"{context.shape}: pass the observation as the environment returns it."
            )
        if within and self.context_space is not None:
            low, high = self.context_space
            if ((context < low) | (context > high)).any():
                raise RollinError(
                    f"context must lie between {low.tolist()} and {high.tolist()}, the "
                    f"environment's context space, got {_short(context)}: choose one inside."
                )
        return observation, context

    def _squashed(self, observation: Float, context: Float, generator: Generator | None) -> Float:
        leading = np.broadcast_shapes(observation.shape[:-1], context.shape[:-1])
        parts = [
            np.broadcast_to(part, (*leading, part.shape[-1])) for part in (observation, context)
        ]
        h = np.concatenate(parts, -1)
        for layer in self.layers[:-1]:
            h = np.maximum(h @ layer[:-1] + layer[-1], 0)
        out = h @ self.layers[-1][:-1] + self.layers[-1][-1]
        size = len(self.low)
        mean = out[..., :size]
        if generator is not None:
            log_std = np.clip(out[..., size:], *self.log_std)
            mean = mean + np.exp(log_std) * generator.standard_normal(mean.shape, np.float32)
        return np.tanh(mean).astype(np.float32)


def _entries(observation: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return observation and context of a dict; the goal of a goal env is its context."""
    for name in ("context", "desired_goal"):
        if "observation" in observation and name in observation:
            return observation["observation"], observation[name]
    raise RollinError(
        "observation must be a vector, or a dict with the entries observation and context, got "
        f"{', '.join(map(str, observation)) or 'an empty dict'}: pass what the contextual "
        "environment returns."
    )


def _numbers(name: str, given: Any) -> Float:
    """Return finite numbers as float32."""
    try:
        numbers = np.asarray(given, np.float32)
    except (TypeError, ValueError) as error:
        raise RollinError(
            f"{name} must hold real numbers, got {_short(given)}: pass a vector or a batch of "
            "vectors."
        ) from error
    if not np.isfinite(numbers).all():
        raise RollinError(
            f"{name} must hold finite numbers, got {_short(numbers)}: look for NaN or infinity in "
            "what the environment returns."
        )
    return numbers


def _short(given: Any) -> str:
    """Return numbers as text for an error, cut off where it is long."""
    return one_line(repr(given.tolist() if isinstance(given, np.ndarray) else given), 60)


def _is_last(context: Any) -> bool:
    return context is None or (isinstance(context, str) and context == LAST)


def _write(path: Path, data: bytes) -> None:
    """Write a file atomically; a link in its place is replaced and not followed."""
    temporary = path.with_name(f".rollin-{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RollinError(f"{path} could not be written: {reason(error)}.") from error


def _fault(
    layers: Sequence[Float],
    low: Float,
    high: Float,
    log_std: Float,
    contexts: Float,
    k: Float,
    space: Float | None,
) -> str:
    """Return what is wrong with the tensors of a policy; empty if nothing is."""
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
    if space is None:
        return ""
    shape = (2, contexts.shape[1])
    if space.dtype != np.float32 or space.shape != shape or not (space[0] <= space[1]).all():
        return f"context_space must be lower and upper bounds of float32, of shape {shape}"
    return ""


def _onnx_bytes(policy: Policy) -> bytes:
    """Return an ONNX file of concatenation, layers with ReLU, tanh of the means and scaling."""
    try:
        onnx: Any = import_module("onnx")
        numpy_helper: Any = import_module("onnx.numpy_helper")
    except ImportError as error:
        raise RollinError(f"Writing ONNX needs the extra onnx: {install_hint('onnx')}.") from error
    helper = onnx.helper
    number = onnx.TensorProto.FLOAT
    low, high = policy.low, policy.high
    size = len(low)
    constants: dict[str, Any] = {}
    nodes: list[Any] = []

    def node(kind: str, inputs: list[str], output: str, **more: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **more))
        return output

    widths = {"observation": policy.observation_size, "context": policy.contexts.shape[1]}
    inputs = [name for name, width in widths.items() if width]
    x = node("Concat", inputs, "inputs", axis=1)
    last = len(policy.layers) - 1
    for i, layer in enumerate(policy.layers):
        columns = layer if i < last else layer[:, :size]  # of the last layer only the means
        constants |= {f"weight{i}": columns[:-1], f"bias{i}": columns[-1]}
        x = node("Gemm", [x, f"weight{i}", f"bias{i}"], f"layer{i}")
        x = node("Relu", [x], f"hidden{i}") if i < last else node("Tanh", [x], "squashed")
    constants |= {"half": (high - low) / 2, "middle": (high + low) / 2}
    constants |= {"low": low, "high": high}
    scaled = node("Add", [node("Mul", [x, "half"], "spread"), "middle"], "scaled")
    node("Min", [node("Max", [scaled, "low"], "bounded"), "high"], "action")
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info(name, number, ["N", widths[name]]) for name in inputs],
        [helper.make_tensor_value_info("action", number, ["N", size])],
        [
            numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name)
            for name, value in constants.items()
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="rollin"
    )
    model.ir_version = 8  # of that opset, so that older readers accept it
    onnx.checker.check_model(model)
    return model.SerializeToString()
