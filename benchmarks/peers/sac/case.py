"""What is measured, and the environment that costs almost nothing."""

import time
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

WARMUP = 1_000  # random transitions before anything is timed


@dataclass(frozen=True)
class Case:
    """A task with sizes; `loop`: whole training steps, else updates alone (with their sampling)."""

    env: str
    hidden: tuple[int, ...]
    batch: int
    loop: bool
    threads: int


class Contestant(Protocol):
    """A library that is timed: its constructor takes a case and does everything once."""

    def run(self, count: int) -> None:
        """So many updates, or training steps."""
        ...


class Spin(gymnasium.Env[Any, Any]):
    """Hopper's sizes; a step takes 5 µs and gives random numbers."""

    def __init__(self) -> None:
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
    """The environment of a case; Ant without contact forces, 27 observations."""
    if name == "spin":
        return Spin()
    if name == "Ant-v5":
        return gymnasium.make(name, include_cfrc_ext_in_observation=False)
    return gymnasium.make(name)
