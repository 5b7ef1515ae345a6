"""A Gymnasium env with real-vector observations and a bounded action box, as the algorithms see it.

Observations come out as float32 vectors; actions go in as the policy gives them, in [-1, 1].
"""

from dataclasses import dataclass
from typing import Any, TypeGuard

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.arrays import Float
from rollin.checks import did_you_mean
from rollin.errors import RollinError, told
from rollin.imports import from_here

Env = gymnasium.Env[Any, Any]


@dataclass(slots=True)  # made at every step
class EnvStep:
    """What a step of the environment gave."""

    observation: Float
    reward: float
    terminated: bool
    truncated: bool


class ActionBox:
    """A bounded box of actions, and the way to it from the policy's [-1, 1]^A."""

    def __init__(self, space: spaces.Space[Any], env: str) -> None:
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise RollinError(
                f"{env} must have actions in a one-dimensional Box, got {space}: "
                "soft actor-critic acts with real vectors."
            )
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise RollinError(
                f"{env} must bound its actions on both sides, got low {space.low} and "
                f"high {space.high}: use gymnasium.wrappers.RescaleAction or ClipAction."
            )
        if space.dtype.kind != "f":
            raise RollinError(f"{env} must have actions of real numbers, got {space}.")
        self.size = int(space.shape[0])
        self.low, self.high = space.low, space.high
        self._middle = (space.high + space.low) / 2
        self._half = (space.high - space.low) / 2

    def scale(self, action: Float) -> NDArray[Any]:
        """From [-1, 1]^A to the box."""
        scaled = self._half * action
        scaled += self._middle
        np.maximum(scaled, self.low, out=scaled)  # rounding may leave the box
        return np.minimum(scaled, self.high, out=scaled)


class BoxEnv:
    """Checks the spaces of an env once and scales actions to its box."""

    def __init__(self, env: Env) -> None:
        self.env = env
        observed = env.observation_space
        if not isinstance(observed, spaces.Box):
            raise RollinError(
                f"{name_of(env)} must have observations in a Box of real numbers, "
                f"got {observed}: wrap it (gymnasium.wrappers.FlattenObservation may help)."
            )
        self.observation_size = int(np.prod(observed.shape))
        self.actions = ActionBox(env.action_space, name_of(env))
        self.action_size = self.actions.size

    def reset(self, seed: int | None = None) -> Float:
        """Begin an episode."""
        observation, _ = self.env.reset(seed=seed)
        return self._vector(observation)

    def step(self, action: Float) -> EnvStep:
        """Act with an action in [-1, 1]^A."""
        scaled = self.actions.scale(action)
        observation, reward, terminated, truncated, _ = self.env.step(scaled)
        vector = self._vector(observation)
        return EnvStep(vector, as_reward(reward, self.env), bool(terminated), bool(truncated))

    def _vector(self, observation: Any) -> Float:
        return as_vector("an observation", observation, self.observation_size, self.env)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def as_vector(what: str, value: Any, size: int, env: Env) -> Float:
    """A float32 copy of what an env gave, of the size that it promised."""
    if is_vector(value, size):  # as nearly always
        return value.astype(np.float32)
    try:
        array: NDArray[Any] = np.asarray(value)
    except ValueError as error:  # ragged
        raise RollinError(f"{name_of(env)} gave {what} of no shape: {error}.") from error
    if array.size != size:
        raise RollinError(
            f"{name_of(env)} gave {what} of shape {array.shape}, its space has "
            f"{size} numbers: the environment breaks its own contract."
        )
    if array.dtype.kind not in "fiub":
        raise RollinError(f"{name_of(env)} gave {what} of {array.dtype}, not of real numbers.")
    return array.reshape(-1).astype(np.float32)  # a copy: some envs return one array always


def is_vector(value: Any, size: int) -> TypeGuard[NDArray[Any]]:
    """Whether this is a vector of real numbers already, of that size."""
    return type(value) is np.ndarray and value.shape == (size,) and value.dtype.kind == "f"


def as_reward(value: Any, env: Env) -> float:
    """A reward as a number."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise RollinError(f"{name_of(env)} gave a reward that is no number: {error}.") from error


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
        raise RollinError(f"{name} cannot be made: {told(error)}.") from error


def name_of(env: Env) -> str:
    """What to call an env in errors."""
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
