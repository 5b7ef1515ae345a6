"""Small environments for tests; `tests.toys:Name-v0` makes them by Gymnasium's registry."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollin.curriculum.contexts import Curriculum, SuccessRate
from rollin.curriculum.sequential import SequentialTeacher
from rollin.curriculum.teacher import Plan
from rollin.envs.contextual import ContextualEnv, context_of


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


class PlansEach(SequentialTeacher):
    """A plan for each episode once there is a guide, standing plans before."""

    def sample(self, env: int = 0) -> Plan:
        plan = super().sample(env)
        return replace(plan, standing=plan.guide == 0)


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


gymnasium.register("Raises-v0", "tests.toys:Raises")
gymnasium.register("Target-v0", "tests.toys:Target")
gymnasium.register("Walk-v0", "tests.toys:Walk")
gymnasium.register("Unbounded-v0", "tests.toys:Unbounded")
for name in ("observation", "reward", "shape", "scale", "reset", "evaluation"):
    gymnasium.register(f"Breaks-{name}-v0", "tests.toys:Breaks", kwargs={"what": name})


# ------------------------------------------------------------------ contextual environments


class Line(ContextualEnv):
    """A point on a line, pushed by at most 0.2 a step; reward 1 - |x - goal| within 0.5 of it.

    Episodes of `length` steps, or of 5 to 15 if that is None. What `breaks` names goes wrong.
    """

    measures = ("place", "push")

    def __init__(
        self, length: int | None = None, R: float = 1.0, breaks: str = "", after: int = 20
    ) -> None:
        self.context_space = spaces.Box(-4, 4, (1,), np.float64)
        observed = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.observation_space = spaces.Dict(observation=observed, context=self.context_space)
        self.action_space = spaces.Box(-2, 2, (1,), np.float32)
        self.curriculum = Curriculum.listed([[0.0], [0.4], [0.8], [1.2]], R, episodes=3)
        self.context = np.zeros(1)
        self.fixed, self.breaks, self.after, self.episodes = length, breaks, after, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if self.breaks == "forgets":
            self.context = np.zeros(1)
        self.context = context_of(options, self.context_space, self.context)
        self.length = self.fixed or int(self.np_random.integers(5, 16))
        self.x = self.np_random.uniform(-0.1, 0.1)
        if self.breaks == "seedless":
            self.x = np.random.default_rng().uniform()
        self.steps = 0
        self.episodes += 1
        return self._observed(), {"outcome": np.array([self.x])}

    def step(self, action: Any) -> Any:
        bad = self.breaks if self.episodes > self.after else ""
        if bad == "raises":
            raise ZeroDivisionError("no way on")
        self.x += 0.1 * float(action[0]) + 0.01 * self.np_random.standard_normal()
        self.steps += 1
        reward = self.compute_reward(np.array([self.x]), self.context).item()
        observed = self._observed()
        if self.breaks == "disagrees":
            reward += 0.5
        if bad == "nan":
            observed["observation"][1] = np.nan
        if bad == "reward":
            reward = np.nan
        info = {} if self.breaks == "no outcome" else {"outcome": np.array([self.x])}
        if self.breaks != "unmeasured":
            info |= {"place": self.x, "push": float(action[0])}
        if "nothing" in self.measures:
            info["nothing"] = np.array(np.nan)
        return observed, reward, False, self.steps >= self.length, info

    def compute_reward(self, outcome: Any, context: Any) -> Any:
        distance = np.abs(np.asarray(outcome) - np.asarray(context))
        if self.breaks != "unbatched":
            distance = distance[..., 0]
        return np.where(distance <= 0.5, 1 - distance, 0.0)

    def _observed(self) -> dict[str, Any]:
        observed = np.array([self.x, self.steps / 10])
        return {"observation": observed, "context": self.context.copy()}


class Gated(Line):
    """A line whose steps, after the first `after`, wait until there is a file `gate`.

    Each waits no longer than `pause` seconds. So a run is under way for as long as a test needs it
    to be, on a machine of any speed, and takes no core meanwhile.
    """

    def __init__(self, gate: str, after: int = 0, pause: float = 600.0) -> None:
        super().__init__()
        self.gate, self.free, self.pause = Path(gate), after, pause

    def step(self, action: Any) -> Any:
        self.free -= 1
        end = time.monotonic() + self.pause
        while self.free < 0 and time.monotonic() < end and not self.gate.exists():
            time.sleep(0.01)
        return super().step(action)


class PointGoal(gymnasium.Env[Any, Any]):
    """A goal env in the manner of Gymnasium-Robotics: a point on a line, rewards of 0 and 1."""

    def __init__(self) -> None:
        box = spaces.Box(-5, 5, (1,), np.float64)
        self.observation_space = spaces.Dict(observation=box, achieved_goal=box, desired_goal=box)
        self.action_space = spaces.Box(-1, 1, (1,), np.float32)
        self.goal = np.zeros(1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.goal = self.np_random.uniform(-5, 5, 1)
        self.x, self.steps = np.zeros(1), 0
        return self._observed(), {}

    def step(self, action: Any) -> Any:
        self.x = np.clip(self.x + 0.5 * np.asarray(action, np.float64), -5, 5)
        self.steps += 1
        reward = float(self.compute_reward(self.x, self.goal, {}))
        return self._observed(), reward, False, self.steps >= 10, {}

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return (np.linalg.norm(achieved - desired, axis=-1) < 0.5).astype(np.float64)

    def _observed(self) -> dict[str, Any]:
        return {"observation": self.x, "achieved_goal": self.x, "desired_goal": self.goal}


def no_curriculum() -> Line:
    env = Line()
    env.curriculum = None
    return env


ONE_LINE = Line()


def same_line() -> Line:
    return ONE_LINE


def listed_line() -> Line:
    env: Any = Line()
    env.curriculum = [[0.0], [1.0]]
    return env


def rated_line(length: int = 6) -> Line:
    env = Line(length)
    contexts = [[0.0], [0.1], [0.2]]
    env.curriculum = Curriculum.listed(contexts, SuccessRate(0.9), episodes=3)
    return env


def measuring(names: Any) -> Line:
    """A line with other measures."""
    env = Line()
    env.measures = names
    return env
