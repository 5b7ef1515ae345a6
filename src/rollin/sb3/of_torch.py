"""The actors of Stable-Baselines3 as guides in NumPy: dense layers, and what reads their outputs.

What is no plain multilayer perceptron of Stable-Baselines3's own classes is not guessed at.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common import distributions
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, MlpExtractor
from stable_baselines3.dqn.policies import QNetwork
from stable_baselines3.sac import policies as sac
from stable_baselines3.td3 import policies as td3
from torch import nn

from rollin.wrapper.numpy_guide import Entry, Head, Layer, NumpyGuide, beside
from rollin.wrapper.statistics import Statistics

ACTIVATIONS = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.SiLU: "silu"}
HEADS: dict[type[Any], Head] = {
    distributions.DiagGaussianDistribution: "gaussian",
    distributions.CategoricalDistribution: "categorical",
    distributions.MultiCategoricalDistribution: "categorical",
    distributions.BernoulliDistribution: "bernoulli",
}


class NotDenseError(Exception):
    """Why an actor cannot be had in NumPy, as a noun."""


def numpy_guide(net: Any, statistics: Statistics | None) -> NumpyGuide:
    """The guide that an actor, a Q network or an actor-critic policy is now."""
    kind = type(net)
    if kind in (ActorCriticPolicy, MultiInputActorCriticPolicy):
        return _actor_critic(net, statistics)
    if kind not in (sac.Actor, td3.Actor, QNetwork):
        raise NotDenseError(f"the class {kind.__name__}")
    entries = entries_of(net.features_extractor, net.observation_space)
    if kind is QNetwork:
        layers, head, bounds = layers_of(net.q_net), "greedy", ()
    elif kind is td3.Actor:
        *hidden, last = layers_of(net.mu)
        if last.activation != "tanh":
            raise NotDenseError("an output without tanh")
        layers, head, bounds = [*hidden, Layer(last.weights, last.bias)], "tanh", ()
    else:
        if net.use_sde:
            raise NotDenseError("state-dependent noise (use_sde)")
        last = beside(Layer(*_dense(net.mu)), Layer(*_dense(net.log_std)))
        bounds = sac.LOG_STD_MIN, sac.LOG_STD_MAX
        layers, head = [*layers_of(net.latent_pi), last], "squashed"
    told: dict[str, Any] = {"log_std": bounds, "statistics": statistics}
    return NumpyGuide(net.action_space, entries, layers, head, **told)


def _actor_critic(policy: Any, statistics: Statistics | None) -> NumpyGuide:
    head = HEADS.get(type(policy.action_dist))
    if head is None:
        raise NotDenseError("state-dependent noise (use_sde)")
    if type(policy.mlp_extractor) is not MlpExtractor:
        raise NotDenseError(f"the network {type(policy.mlp_extractor).__name__}")
    entries = entries_of(policy.pi_features_extractor, policy.observation_space)
    layers = layers_of([*policy.mlp_extractor.policy_net, policy.action_net])
    log_std = policy.log_std.detach().cpu().numpy() if head == "gaussian" else ()
    told: dict[str, Any] = {"log_std": log_std, "statistics": statistics}
    return NumpyGuide(policy.action_space, entries, layers, head, **told)


def layers_of(modules: Iterable[nn.Module]) -> list[Layer]:
    """Dense layers with the activation that follows each, if one does."""
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
    return ACTIVATIONS.get(type(module))


def _dense(module: Any) -> tuple[Any, Any]:
    weights = module.weight.detach().cpu().numpy().T
    if module.bias is None:
        return weights, np.zeros(weights.shape[1], np.float32)
    return weights, module.bias.detach().cpu().numpy()


def entries_of(extractor: Any, space: spaces.Space[Any]) -> list[Entry]:
    """What the first layer takes of observations, in its order."""
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
