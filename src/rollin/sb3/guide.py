"""Guides of Stable-Baselines3 and SBX: an actor as it is now, with its normaliser as it is now.

The environment gives raw observations, and the actor knows normalised ones whose statistics keep
changing. So a guide is the actor and the statistics of its time, both copied: in NumPy where the
actor is a multilayer perceptron, so that it can also act in other processes; else as the library's
own object, which stays in this one. Only plain multilayer perceptrons of the libraries' own classes
are taken to NumPy.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common import distributions
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, MlpExtractor
from stable_baselines3.dqn.policies import QNetwork
from stable_baselines3.sac import policies as sac
from stable_baselines3.td3 import policies as td3
from torch import nn

from rollin.agents.numpy_guide import (
    ACTIVATIONS,
    Arrays,
    Entry,
    Head,
    Layer,
    NumpyGuide,
    Statistics,
    beside,
)
from rollin.errors import RollinError

TORCH_ACTIVATIONS = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.SiLU: "silu"}
HEADS: dict[type[Any], Head] = {
    distributions.DiagGaussianDistribution: "gaussian",
    distributions.CategoricalDistribution: "categorical",
    distributions.MultiCategoricalDistribution: "categorical",
    distributions.BernoulliDistribution: "bernoulli",
}

NETWORKS = {  # the classes of SBX's policies, and of what acts in each
    "SACPolicy": "SquashedGaussianActor",
    "TQCPolicy": "SquashedGaussianActor",
    "TD3Policy": "Actor",
    "PPOPolicy": "Actor",
    "DQNPolicy": "QNetwork",
}


class NotDenseError(Exception):
    """Why an actor cannot be had in NumPy, as a noun."""


def from_torch(net: Any, statistics: Statistics | None) -> NumpyGuide:
    """Return the guide of an actor, a Q network or an actor-critic policy as it is now."""
    kind = type(net)
    if kind in (ActorCriticPolicy, MultiInputActorCriticPolicy):
        return _actor_critic(net, statistics)
    if kind not in (sac.Actor, td3.Actor, QNetwork):
        raise NotDenseError(f"the class {kind.__name__}")
    entries = entries_of(net.features_extractor, net.observation_space)
    head: Head
    if kind is QNetwork:
        layers = layers_of(net.q_net)
        head = "greedy"
        bounds = ()
    elif kind is td3.Actor:
        *hidden, last = layers_of(net.mu)
        if last.activation != "tanh":
            raise NotDenseError("an output without tanh")
        layers = [*hidden, Layer(last.weights, last.bias)]
        head = "tanh"
        bounds = ()
    else:
        if net.use_sde:
            raise NotDenseError("state-dependent noise (use_sde)")
        last = beside(Layer(*_dense(net.mu)), Layer(*_dense(net.log_std)))
        layers = [*layers_of(net.latent_pi), last]
        head = "squashed"
        bounds = sac.LOG_STD_MIN, sac.LOG_STD_MAX
    space = net.action_space
    return NumpyGuide(space, entries, layers, head, log_std=bounds, statistics=statistics)


def _actor_critic(policy: Any, statistics: Statistics | None) -> NumpyGuide:
    head = HEADS.get(type(policy.action_dist))
    if head is None:
        raise NotDenseError("state-dependent noise (use_sde)")
    if type(policy.mlp_extractor) is not MlpExtractor:
        raise NotDenseError(f"the network {type(policy.mlp_extractor).__name__}")
    entries = entries_of(policy.pi_features_extractor, policy.observation_space)
    layers = layers_of([*policy.mlp_extractor.policy_net, policy.action_net])
    log_std = policy.log_std.detach().cpu().numpy() if head == "gaussian" else ()
    space = policy.action_space
    return NumpyGuide(space, entries, layers, head, log_std=log_std, statistics=statistics)


def layers_of(modules: Iterable[nn.Module]) -> list[Layer]:
    """Return dense layers with the activation that follows each, if one does."""
    layers: list[Layer] = []
    for module in modules:
        if type(module) is nn.Linear:
            layers.append(Layer(*_dense(module)))
            continue
        name = _activation(module)
        if name is None or not layers or layers[-1].activation:
            raise NotDenseError(f"the layer {type(module).__name__}")
        layers[-1] = Layer(layers[-1].weights, layers[-1].bias, name)
    return layers


def _activation(module: Any) -> str | None:
    if type(module) is nn.ELU and module.alpha == 1.0:
        return "elu"
    return TORCH_ACTIVATIONS.get(type(module))


def _dense(module: Any) -> tuple[Any, Any]:
    weights = module.weight.detach().cpu().numpy().T
    if module.bias is None:
        return weights, np.zeros(weights.shape[1], np.float32)
    return weights, module.bias.detach().cpu().numpy()


def entries_of(extractor: Any, space: spaces.Space[Any]) -> list[Entry]:
    """Return what the first layer takes of observations, in its order."""
    if type(extractor) is FlattenExtractor:
        return [_entry(space)]
    if type(extractor) is not CombinedExtractor or not isinstance(space, spaces.Dict):
        raise NotDenseError(f"the features extractor {type(extractor).__name__}")
    for part in extractor.extractors.values():
        if type(part) is not nn.Flatten:
            raise NotDenseError(f"the features extractor {type(part).__name__}")
    return [_entry(space[key], key) for key in extractor.extractors]


def _entry(space: spaces.Space[Any], key: str = "") -> Entry:
    if isinstance(space, spaces.Discrete):
        return Entry(key, (int(space.n),))
    if isinstance(space, spaces.MultiDiscrete):
        return Entry(key, tuple(int(n) for n in space.nvec.reshape(-1)))
    if isinstance(space, spaces.Box | spaces.MultiBinary) and not is_image_space(space):
        return Entry(key)
    raise NotDenseError(f"observations in {space}")


# ------------------------------------------------------------------ SBX


def from_jax(policy: Any, statistics: Statistics | None) -> NumpyGuide:
    """Return the guide of a policy of SBX as it is now."""
    kind = type(policy).__name__
    net = policy.actor if hasattr(policy, "actor") else policy.qf
    if NETWORKS.get(kind) != type(net).__name__:
        raise NotDenseError(f"the class {kind} with the network {type(net).__name__}")
    if getattr(policy, "use_sde", False):
        raise NotDenseError("state-dependent noise (use_sde)")
    state = policy.actor_state if hasattr(policy, "actor_state") else policy.qf_state
    layers, rest = _flax_layers(state.params["params"], policy.activation_fn)
    head: Head = "greedy"
    log_std: Any = ()
    if kind in ("SACPolicy", "TQCPolicy"):
        head = "squashed"
        log_std = net.log_std_min, net.log_std_max
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
    space = policy.action_space
    return NumpyGuide(
        space, _flax_entries(policy), layers, head, log_std=log_std, statistics=statistics
    )


def _flax_layers(parameters: Any, activation: Any) -> tuple[list[Layer], dict[str, Any]]:
    """Return dense layers in order, all but the last with the activation, and other parameters."""
    name = getattr(activation, "__name__", "")
    if name not in ACTIVATIONS:
        raise NotDenseError(f"the activation {name}")
    rest = dict(parameters)
    layers: list[Layer] = []
    while (found := rest.pop(f"Dense_{len(layers)}", None)) is not None:
        if found.keys() != {"kernel", "bias"}:
            raise NotDenseError("dense layers without a bias")
        layers.append(Layer(np.asarray(found["kernel"]), np.asarray(found["bias"]), name))
    if not layers:
        raise NotDenseError("no dense layers")
    layers[-1] = Layer(layers[-1].weights, layers[-1].bias)
    return layers, rest


def _flax_entries(policy: Any) -> list[Entry]:
    """Return the entries of a Dict, which SBX joins as they are."""
    space = policy.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    for part in parts.values():
        if not isinstance(part, spaces.Box):
            raise NotDenseError(f"observations in {part}")
    return [Entry(key) for key in parts]


# ------------------------------------------------------------------ guides


def freeze(model: Any) -> "Frozen":
    """Return the guide that a model is now."""
    statistics = Statistics.of(model.get_vec_normalize_env())
    try:
        if is_jax(model):
            return from_jax(model.policy, statistics)
        return from_torch(actor_of(model.policy), statistics)
    except NotDenseError as unlike:
        kind = JaxGuide if is_jax(model) else TorchGuide
        return kind.of(model.policy, statistics, str(unlike))


def check_travels(model: Any) -> None:
    """Refuse a model whose guides cannot act in other processes."""
    guide = freeze(model)
    if isinstance(guide, StaysHere):
        raise guide.stays()


class StaysHere:
    """A frozen actor that is no dense network; why: what it is instead."""

    def __init__(self, statistics: Statistics | None, why: str) -> None:
        self.statistics = statistics
        self.why = why

    def stays(self) -> RollinError:
        """Return the error to raise if it is to act in another process."""
        return RollinError(
            f"A guide with {self.why} cannot act in another process, only multilayer perceptrons "
            "of Stable-Baselines3 and SBX can: use DummyVecEnv instead of SubprocVecEnv."
        )

    def __getstate__(self) -> dict[str, Any]:
        raise self.stays()


class TorchGuide(StaysHere):
    """A frozen actor of Stable-Baselines3; it draws from a stream of its own, not torch's."""

    def __init__(self, net: Any, statistics: Statistics | None, why: str) -> None:
        super().__init__(statistics, why)
        self.net = net
        self.action_space = net.action_space
        self._draws = torch.random.get_rng_state()

    @classmethod
    def of(cls, policy: Any, statistics: Statistics | None, why: str) -> "TorchGuide":
        """Return a copy of what acts in a policy."""
        net = actor_of(policy)
        frozen = copy.deepcopy(net, _left_behind(net)).to("cpu")
        frozen.set_training_mode(False)
        for parameter in frozen.parameters():
            parameter.requires_grad_(False)
        return cls(frozen, statistics, why)

    def begin(self, seed: int) -> None:
        """Draw from this seed from here on."""
        self._draws = torch.Generator().manual_seed(seed).get_state()

    def __call__(self, observation: Any, context: Any) -> Any:
        """Return an action for a raw observation, which shows the context already."""
        normalised = observation if self.statistics is None else self.statistics(observation)
        with torch.random.fork_rng(devices=[]):
            torch.random.set_rng_state(self._draws)
            action, _ = self.net.predict(normalised, deterministic=False)
            self._draws = torch.random.get_rng_state()
        return action

    def tensors(self) -> Arrays:
        """Return all parameters, by name."""
        return {name: value.numpy() for name, value in self.net.state_dict().items()}

    def take(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set the parameters that `tensors` returned."""
        self.net.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in tensors.items()})


def _left_behind(net: Any) -> dict[int, Any]:
    """Return what a copy has instead of some parts: no optimiser, no graph of the last update."""
    memo: dict[int, Any] = {id(net.optimizer): None} if getattr(net, "optimizer", None) else {}
    for name, part in vars(getattr(net, "action_dist", None) or object).items():
        if name in ("distribution", "weights_dist"):  # set again before it is drawn from
            memo[id(part)] = None
        elif isinstance(part, torch.Tensor) and not part.is_leaf:
            memo[id(part)] = part.detach().clone()
    return memo


def actor_of(policy: Any) -> Any:
    """Return what acts in a policy of Stable-Baselines3: actor, Q network, or the policy."""
    for name in ("actor", "q_net"):
        if isinstance(getattr(policy, name, None), torch.nn.Module):
            return getattr(policy, name)
    if not isinstance(policy, torch.nn.Module):
        raise RollinError(
            f"A guide is frozen from a policy of Stable-Baselines3 or SBX, got "
            f"{type(policy).__name__}."
        )
    return policy


class JaxGuide(StaysHere):
    """A frozen policy of SBX: its states are immutable, so a shallow copy stays as it is."""

    def __init__(self, policy: Any, statistics: Statistics | None, why: str) -> None:
        super().__init__(statistics, why)
        self.policy = policy
        self.action_space = policy.action_space

    @classmethod
    def of(cls, policy: Any, statistics: Statistics | None, why: str) -> "JaxGuide":
        """Return a copy of a policy."""
        return cls(copy.copy(policy), statistics, why)

    def begin(self, seed: int) -> None:
        """Draw from this seed from here on."""
        import jax

        self.policy.noise_key = self.policy.key = jax.random.PRNGKey(seed)

    def __call__(self, observation: Any, context: Any) -> Any:
        """Return an action for a raw observation, which shows the context already."""
        normalised = observation if self.statistics is None else self.statistics(observation)
        return self.policy.predict(normalised, deterministic=False)[0]

    def _state_name(self) -> str:
        return "actor_state" if hasattr(self.policy, "actor_state") else "qf_state"

    def tensors(self) -> Arrays:
        """Return all parameters, by number."""
        import jax

        leaves = jax.tree_util.tree_leaves(getattr(self.policy, self._state_name()).params)
        return {str(i): np.asarray(leaf) for i, leaf in enumerate(leaves)}

    def take(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set the parameters that `tensors` returned."""
        import jax

        state = getattr(self.policy, self._state_name())
        tree = jax.tree_util.tree_structure(state.params)
        leaves = [tensors[str(i)] for i in range(len(tensors))]
        params = jax.tree_util.tree_unflatten(tree, leaves)
        setattr(self.policy, self._state_name(), state.replace(params=params))


Frozen = NumpyGuide | TorchGuide | JaxGuide


def is_jax(model: Any) -> bool:
    """Return whether a model is of SBX, whose policies are torch modules without parameters."""
    return any(hasattr(model.policy, name) for name in ("actor_state", "qf_state"))
