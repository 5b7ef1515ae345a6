"""What is measured, and the environment that costs almost nothing."""

import time
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import RescaleAction

WARMUP = 1_024  # random transitions before anything is timed, as many as the largest batch


@dataclass(frozen=True)
class Case:
    """A task with sizes."""

    env: str
    hidden: tuple[int, ...]
    batch: int
    threads: int


class Contestant(Protocol):
    """A library that is timed: its constructor takes a case and fills a replay.

    One that cannot do both raises `NotImplementedError`.
    """

    libraries: tuple[str, ...]
    """Distributions whose versions matter."""

    def steps(self, count: int) -> None:
        """So many training steps: act, step the environment, store, draw, learn."""
        ...

    def updates(self, count: int) -> None:
        """So many updates, each with a batch of its own."""
        ...


class Spin(gymnasium.Env[Any, Any]):
    """Hopper's sizes; a step takes 5 µs and gives random numbers."""

    def __init__(self) -> None:
        self.spec = EnvSpec("Spin-v0", max_episode_steps=1000)  # RLtools asks for it
        self.observation_space = spaces.Box(-np.inf, np.inf, (11,), np.float32)
        self.action_space = spaces.Box(-1, 1, (3,), np.float32)
        self.rows = np.random.default_rng(0).standard_normal((1000, 11)).astype(np.float32)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin an episode of 1000 steps."""
        self.steps = 0
        return self.rows[0], {}

    def step(self, action: Any) -> Any:
        """Wait until 5 µs are over."""
        end = time.perf_counter() + 5e-6
        self.steps += 1
        result = self.rows[self.steps % 1000], float(action[0]), False, self.steps >= 1000, {}
        while time.perf_counter() < end:
            pass
        return result


def make(name: str) -> gymnasium.Env[Any, Any]:
    """A case's environment, actions in [-1, 1]; Ant without contact forces, 27 observations."""
    if name == "spin":
        return Spin()
    if name == "Ant-v5":
        return gymnasium.make(name, include_cfrc_ext_in_observation=False)
    env = gymnasium.make(name)
    bounds: Any = env.action_space
    return env if bounds.high.max() == 1 else RescaleAction(env, np.float32(-1), np.float32(1))
