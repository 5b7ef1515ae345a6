"""Small environments for tests; `tests.envs:Name-v0` makes them by Gymnasium's registry."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Target(gymnasium.Env[Any, Any]):
    """One-step episodes: reward -(a - s)² for a state s in [-1, 1]; actions lie in [0, 4]."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = spaces.Box(0, 4, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.8, 0.8, 1).astype(np.float32)
        self.actions: list[float] = []
        return self.state.copy(), {}

    def step(self, action: Any) -> Any:
        self.actions.append(float(action[0]))
        scaled = action[0] / 2 - 1
        return self.state.copy(), -float((scaled - self.state[0]) ** 2), True, False, {}


class Constant(gymnasium.Env[Any, Any]):
    """Reward 1 at each of 5 steps, then the end: `terminated` or `truncated`."""

    def __init__(self, terminates: bool) -> None:
        self.observation_space = spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = spaces.Box(-1, 1, (1,), np.float32)
        self.terminates = terminates

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        end = self.steps == 5
        observed = np.zeros(1, np.float32)
        return observed, 1.0, end and self.terminates, end and not self.terminates, {}


class Walk(gymnasium.Env[Any, Any]):
    """A noisy walk on a line; episodes of 5 to 30 steps, so that ends fall anywhere."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.length = int(self.np_random.integers(5, 31))
        self.place = self.np_random.standard_normal(3)
        self.steps = 0
        return self.place.copy(), {}

    def step(self, action: Any) -> Any:
        self.place[:2] += 0.1 * action + 0.05 * self.np_random.standard_normal(2)
        self.steps += 1
        reward = -float(np.abs(self.place[:2]).sum())
        return self.place.copy(), reward, False, self.steps >= self.length, {}


class Breaks(Walk):
    """A walk whose rewards or observations go bad after some resets."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.episodes = what, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.episodes += 1
        observed, info = super().reset(seed=seed, options=options)
        if self.what == "reset" and self.episodes > 20:
            observed[1] = np.nan
        return observed, info

    def step(self, action: Any) -> Any:
        observed, reward, terminated, truncated, info = super().step(action)
        if self.episodes > 20:
            if self.what == "observation":
                observed[1] = np.nan
            elif self.what == "reward":
                reward = np.inf
            elif self.what == "evaluation":
                reward = np.nan  # training has fewer episodes than this before it is evaluated
            elif self.what == "shape":
                observed = observed[:2]
            elif self.what == "scale":
                reward = 1e30  # squares to infinity in float32
        return observed, reward, terminated, truncated, info


class Unbounded(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)


class Raises(Walk):
    def __init__(self) -> None:
        raise AttributeError("no such thing")


gymnasium.register("Raises-v0", "tests.envs:Raises")
gymnasium.register("Target-v0", "tests.envs:Target")
gymnasium.register("Walk-v0", "tests.envs:Walk")
gymnasium.register("Unbounded-v0", "tests.envs:Unbounded")
for name in ("observation", "reward", "shape", "scale", "reset", "evaluation"):
    gymnasium.register(f"Breaks-{name}-v0", "tests.envs:Breaks", kwargs={"what": name})
