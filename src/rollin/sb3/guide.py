"""Guides of Stable-Baselines3 and SBX: an actor as it is now, with its normaliser as it is now.

The environment gives raw observations, and the actor knows normalised ones whose statistics go on
changing. So a guide is the actor and the statistics of its time, both copied.
"""

import copy
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecNormalize

from rollin.errors import RollinError

Arrays = dict[str, NDArray[Any]]
WHOLE = ""  # key of observations that are no Dict


class Statistics:
    """What `VecNormalize` makes of observations, frozen."""

    def __init__(self, moments: Mapping[str, tuple[Any, Any]], epsilon: float, clip: float) -> None:
        self.moments = {key: (np.array(m), np.array(v)) for key, (m, v) in moments.items()}
        self.epsilon, self.clip = float(epsilon), float(clip)

    @classmethod
    def of(cls, normaliser: VecNormalize | None) -> "Statistics | None":
        """A copy of the statistics; None if observations are not normalised."""
        if normaliser is None or not normaliser.norm_obs:
            return None
        rms: Any = normaliser.obs_rms
        parts = rms if isinstance(rms, dict) else {WHOLE: rms}
        moments = {key: (part.mean, part.var) for key, part in parts.items()}
        return cls(moments, normaliser.epsilon, normaliser.clip_obs)

    def __call__(self, observation: Any) -> Any:
        """A normalised observation."""
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
        """Everything, by name."""
        found = {"epsilon": np.array(self.epsilon), "clip": np.array(self.clip)}
        for key, (mean, var) in self.moments.items():
            found |= {f"mean.{key}": mean, f"var.{key}": var}
        return found

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Any]) -> "Statistics | None":
        """From what `tensors` gave; None if that is empty."""
        if not tensors:
            return None
        keys = [name.removeprefix("mean.") for name in tensors if name.startswith("mean.")]
        moments = {key: (tensors[f"mean.{key}"], tensors[f"var.{key}"]) for key in keys}
        return cls(moments, float(tensors["epsilon"]), float(tensors["clip"]))


class TorchGuide:
    """A frozen actor of Stable-Baselines3; it draws from a stream of its own, not torch's."""

    def __init__(self, net: Any, statistics: Statistics | None) -> None:
        self.net, self.statistics = net, statistics
        self.action_space = net.action_space
        self._draws = torch.random.get_rng_state()

    @classmethod
    def of(cls, model: Any) -> "TorchGuide":
        """The actor of a model, and the statistics of its normaliser."""
        net = actor_of(model.policy)
        frozen = copy.deepcopy(net, _left_behind(net)).to("cpu")
        frozen.set_training_mode(False)
        for parameter in frozen.parameters():
            parameter.requires_grad_(False)
        return cls(frozen, Statistics.of(model.get_vec_normalize_env()))

    def begin(self, seed: int) -> None:
        """Draw from here on as this seed says."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._draws = torch.random.get_rng_state()

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

    def __getstate__(self) -> dict[str, Any]:
        # only for pipes to worker processes of one's own, which pickle all that they send, never
        # for a file: left to torch, they would share the net's memory instead of sending a copy
        return {
            "net": pickle.dumps(self.net),
            "statistics": self.statistics,
            "draws": self._draws.numpy(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(pickle.loads(state["net"]), state["statistics"])
        self._draws = torch.from_numpy(state["draws"])


def _left_behind(net: Any) -> dict[int, Any]:
    """What a copy has instead of some parts: no optimiser, no graph of the last update."""
    memo: dict[int, Any] = {id(net.optimizer): None} if getattr(net, "optimizer", None) else {}
    for name, part in vars(getattr(net, "action_dist", None) or object).items():
        if name == "distribution":
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


class JaxGuide:
    """A frozen policy of SBX: its states are immutable, so a shallow copy stays as it is."""

    def __init__(self, policy: Any, statistics: Statistics | None) -> None:
        self.policy, self.statistics = policy, statistics
        self.action_space = policy.action_space

    @classmethod
    def of(cls, model: Any) -> "JaxGuide":
        """The policy of a model, and the statistics of its normaliser."""
        return cls(copy.copy(model.policy), Statistics.of(model.get_vec_normalize_env()))

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

    def __getstate__(self) -> dict[str, Any]:
        raise RollinError(
            "A guide of SBX cannot be sent to another process: use DummyVecEnv instead of "
            "SubprocVecEnv."
        )


Frozen = TorchGuide | JaxGuide


def freeze(model: Any) -> Frozen:
    """The guide that a model is now."""
    return JaxGuide.of(model) if is_jax(model) else TorchGuide.of(model)


def is_jax(model: Any) -> bool:
    """Whether a model is one of SBX's, whose policies are torch modules without parameters."""
    return any(hasattr(model.policy, name) for name in ("actor_state", "qf_state"))
