"""Guides of Stable-Baselines3 and SBX: an actor as it is now, with its normaliser as it is now.

The environment gives raw observations, and the actor knows normalised ones whose statistics go on
changing. So a guide is the actor and the statistics of its time, both copied: in NumPy where the
actor is a multilayer perceptron, so that it can act in other processes, too; else as the library's
own object, which stays in this one.
"""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rollin.errors import RollinError
from rollin.sb3 import of_jax, of_torch
from rollin.sb3.of_torch import NotDenseError
from rollin.wrapper.numpy_guide import NumpyGuide
from rollin.wrapper.statistics import Arrays, Statistics


def freeze(model: Any) -> "Frozen":
    """The guide that a model is now."""
    statistics = Statistics.of(model.get_vec_normalize_env())
    try:
        if is_jax(model):
            return of_jax.numpy_guide(model.policy, statistics)
        return of_torch.numpy_guide(actor_of(model.policy), statistics)
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
        self.statistics, self.why = statistics, why

    def stays(self) -> RollinError:
        """What to say if it is to act in another process."""
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
        """A copy of what acts in a policy."""
        net = actor_of(policy)
        frozen = copy.deepcopy(net, _left_behind(net)).to("cpu")
        frozen.set_training_mode(False)
        for parameter in frozen.parameters():
            parameter.requires_grad_(False)
        return cls(frozen, statistics, why)

    def begin(self, seed: int) -> None:
        """Draw from here on as this seed says."""
        self._draws = torch.Generator().manual_seed(seed).get_state()

    def __call__(self, observation: Any, context: Any) -> Any:
        """An action for a raw observation, which shows the context already."""
        seen = observation if self.statistics is None else self.statistics(observation)
        with torch.random.fork_rng(devices=[]):
            torch.random.set_rng_state(self._draws)
            action, _ = self.net.predict(seen, deterministic=False)
            self._draws = torch.random.get_rng_state()
        return action

    def tensors(self) -> Arrays:
        """All parameters, by name."""
        return {name: value.numpy() for name, value in self.net.state_dict().items()}

    def take(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Put parameters in that `tensors` gave."""
        self.net.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in tensors.items()})


def _left_behind(net: Any) -> dict[int, Any]:
    """What a copy has instead of some parts: no optimiser, no graph of the last update."""
    memo: dict[int, Any] = {id(net.optimizer): None} if getattr(net, "optimizer", None) else {}
    for name, part in vars(getattr(net, "action_dist", None) or object).items():
        if name in ("distribution", "weights_dist"):  # drawn from anew, if at all
            memo[id(part)] = None
        elif isinstance(part, torch.Tensor) and not part.is_leaf:
            memo[id(part)] = part.detach().clone()
    return memo


def actor_of(policy: Any) -> Any:
    """What acts in a policy of Stable-Baselines3: the actor, the Q network, or the policy."""
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
        """A copy of a policy."""
        return cls(copy.copy(policy), statistics, why)

    def begin(self, seed: int) -> None:
        """Draw from here on as this seed says."""
        import jax

        self.policy.noise_key = self.policy.key = jax.random.PRNGKey(seed)

    def __call__(self, observation: Any, context: Any) -> Any:
        """An action for a raw observation, which shows the context already."""
        seen = observation if self.statistics is None else self.statistics(observation)
        return self.policy.predict(seen, deterministic=False)[0]

    def _state_name(self) -> str:
        return "actor_state" if hasattr(self.policy, "actor_state") else "qf_state"

    def tensors(self) -> Arrays:
        """All parameters, by their number."""
        import jax

        leaves = jax.tree_util.tree_leaves(getattr(self.policy, self._state_name()).params)
        return {str(i): np.asarray(leaf) for i, leaf in enumerate(leaves)}

    def take(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Put parameters in that `tensors` gave."""
        import jax

        state = getattr(self.policy, self._state_name())
        tree = jax.tree_util.tree_structure(state.params)
        leaves = [tensors[str(i)] for i in range(len(tensors))]
        params = jax.tree_util.tree_unflatten(tree, leaves)
        setattr(self.policy, self._state_name(), state.replace(params=params))


Frozen = NumpyGuide | TorchGuide | JaxGuide


def is_jax(model: Any) -> bool:
    """Whether a model is one of SBX's, whose policies are torch modules without parameters."""
    return any(hasattr(model.policy, name) for name in ("actor_state", "qf_state"))
