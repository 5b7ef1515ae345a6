"""A Gymnasium env with real-vector observations and a bounded action box, as the algorithms see it.

Observations come out as float32 vectors; actions go in as the policy gives them, in [-1, 1].
"""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.imports import from_here
from rollin.sac.network import Float

Env = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class Step:
    """What a step of the environment gave."""

    observation: Float
    reward: float
    terminated: bool
    truncated: bool


class BoxEnv:
    """Checks the spaces of an env once and scales actions to its box."""

    def __init__(self, env: Env) -> None:
        self.env = env
        observed, acted = env.observation_space, env.action_space
        if not isinstance(observed, spaces.Box):
            raise RollinError(
                f"{_name(env)} must have observations in a Box of real numbers, "
                f"got {observed}: wrap it (gymnasium.wrappers.FlattenObservation may help)."
            )
        if not isinstance(acted, spaces.Box) or len(acted.shape) != 1:
            raise RollinError(
                f"{_name(env)} must have actions in a one-dimensional Box, got {acted}: "
                "soft actor-critic acts with real vectors."
            )
        if not (np.isfinite(acted.low).all() and np.isfinite(acted.high).all()):
            raise RollinError(
                f"{_name(env)} must bound its actions on both sides, got low {acted.low} and "
                f"high {acted.high}: use gymnasium.wrappers.RescaleAction or ClipAction."
            )
        self.observation_size = int(np.prod(observed.shape))
        self.action_size = int(acted.shape[0])
        if acted.dtype.kind != "f":
            raise RollinError(f"{_name(env)} must have actions of real numbers, got {acted}.")
        self._low, self._high = acted.low, acted.high
        self._middle = (acted.high + acted.low) / 2
        self._half = (acted.high - acted.low) / 2

    def reset(self, seed: int | None = None) -> Float:
        """Begin an episode."""
        observation, _ = self.env.reset(seed=seed)
        return self._vector(observation)

    def step(self, action: Float) -> Step:
        """Act with an action in [-1, 1]^A."""
        scaled = self._middle + self._half * action
        scaled = np.minimum(np.maximum(scaled, self._low), self._high)  # rounding may leave the box
        observation, reward, terminated, truncated, _ = self.env.step(scaled)
        vector = self._vector(observation)
        try:
            reward = float(reward)
        except (TypeError, ValueError) as error:
            raise RollinError(
                f"{_name(self.env)} gave a reward that is no number: {error}."
            ) from error
        return Step(vector, reward, bool(terminated), bool(truncated))

    def _vector(self, observation: Any) -> Float:
        array: NDArray[Any] = np.asarray(observation)
        if array.size != self.observation_size:
            raise RollinError(
                f"{_name(self.env)} gave an observation of shape {array.shape}, its space has "
                f"{self.observation_size} numbers: the environment breaks its own contract."
            )
        return array.reshape(-1).astype(np.float32)  # a copy: some envs return one array always

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def make_env(name: str) -> BoxEnv:
    """The registered Gymnasium environment of that id; `module:id` imports the module first."""
    try:
        with from_here():
            return BoxEnv(gymnasium.make(name))
    except RollinError:
        raise
    except gymnasium.error.Error as error:
        near = did_you_mean(name, gymnasium.registry)
        text = str(error).rstrip(".")
        raise RollinError(f"Gymnasium cannot make {name}: {text}.{near}") from error
    except Exception as error:  # an environment's own code may raise anything
        text = " ".join(str(error).split()).rstrip(".")
        raise RollinError(f"{name} cannot be made: {type(error).__name__}: {text}.") from error


def _name(env: Env) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
