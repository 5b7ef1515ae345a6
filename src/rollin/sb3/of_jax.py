"""The actors of SBX as guides in NumPy: its policies cannot be pickled, their parameters can."""

from typing import Any

import numpy as np
from gymnasium import spaces

from rollin.sb3.of_torch import NotDenseError
from rollin.wrapper.numpy_guide import ACTIVATIONS, Entry, Head, Layer, NumpyGuide, beside
from rollin.wrapper.statistics import Statistics

NETWORKS = {  # the classes of SBX's policies, and of what acts in each
    "SACPolicy": "SquashedGaussianActor",
    "TQCPolicy": "SquashedGaussianActor",
    "TD3Policy": "Actor",
    "PPOPolicy": "Actor",
    "DQNPolicy": "QNetwork",
}


def numpy_guide(policy: Any, statistics: Statistics | None) -> NumpyGuide:
    """The guide that a policy is now."""
    kind = type(policy).__name__
    net = policy.actor if hasattr(policy, "actor") else policy.qf
    if NETWORKS.get(kind) != type(net).__name__:
        raise NotDenseError(f"the class {kind} with the network {type(net).__name__}")
    if getattr(policy, "use_sde", False):
        raise NotDenseError("state-dependent noise (use_sde)")
    state = policy.actor_state if hasattr(policy, "actor_state") else policy.qf_state
    layers, rest = _layers(state.params["params"], policy.activation_fn)
    head: Head = "greedy"
    log_std: Any = ()
    if kind in ("SACPolicy", "TQCPolicy"):
        head, log_std = "squashed", (net.log_std_min, net.log_std_max)
        layers = [*layers[:-2], beside(*layers[-2:])]  # both follow the last hidden layer
    elif kind == "TD3Policy":
        head = "tanh"
    elif kind == "PPOPolicy":
        if isinstance(policy.action_space, spaces.MultiBinary):  # two logits a bit
            raise NotDenseError(f"actions in {policy.action_space}")
        log_std = rest.pop("log_std", ())
        head = "gaussian" if isinstance(policy.action_space, spaces.Box) else "categorical"
    if rest:
        raise NotDenseError(f"the parameters {', '.join(rest)}")
    told: dict[str, Any] = {"log_std": log_std, "statistics": statistics}
    return NumpyGuide(policy.action_space, _entries(policy), layers, head, **told)


def _layers(parameters: Any, activation: Any) -> tuple[list[Layer], dict[str, Any]]:
    """Dense layers in their order, all but the last with the activation; and what else there is."""
    name = getattr(activation, "__name__", "")
    if name not in ACTIVATIONS:
        raise NotDenseError(f"the activation {name}")
    rest, layers = dict(parameters), []
    while (found := rest.pop(f"Dense_{len(layers)}", None)) is not None:
        if found.keys() != {"kernel", "bias"}:
            raise NotDenseError("dense layers without a bias")
        layers.append(Layer(np.asarray(found["kernel"]), np.asarray(found["bias"]), name))
    if not layers:
        raise NotDenseError("no dense layers")
    layers[-1] = Layer(layers[-1].weights, layers[-1].bias)
    return layers, rest


def _entries(policy: Any) -> list[Entry]:
    """SBX joins the entries of a Dict as they are."""
    space = policy.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    for part in parts.values():
        if not isinstance(part, spaces.Box):
            raise NotDenseError(f"observations in {part}")
    return [Entry(key) for key in parts]
