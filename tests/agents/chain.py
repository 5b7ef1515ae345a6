"""Small environments for the wrapper, and a guide each."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollin import Plan, RollIn
from rollin.envs.contextual import ContextualEnv, context_of

P = np.array(
    [[[0.8, 0.2, 0, 0, 0], [0.1, 0.6, 0.3, 0, 0], [0, 0.3, 0.4, 0.3, 0], [0, 0, 0.2, 0.5, 0.3],
      [0.2, 0, 0, 0.1, 0.7]],
     [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0]]]
)  # fmt: skip
RHO = np.array([0.7, 0.3, 0.0, 0.0, 0.0])


class Chain(gymnasium.Env[Any, Any]):
    """A Markov chain of five states and two actions; episodes end with `limit` steps, or never."""

    def __init__(self, limit: int = 0) -> None:
        self.observation_space = spaces.Discrete(5)
        self.action_space = spaces.Discrete(2)
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state, self.steps = int(self.np_random.choice(5, p=RHO)), 0
        return self.state, {}

    def step(self, action: Any) -> Any:
        self.state = int(self.np_random.choice(5, p=P[int(action), self.state]))
        self.steps += 1
        return self.state, 1.0, self.steps == self.limit, False, {}


class Lengths(ContextualEnv):
    """Episodes of random length, whose outcome is a number of their own; the context is shown.

    The reward of each step is the context, so that an end booked on another context is seen.
    """

    def __init__(self, longest: int = 6) -> None:
        self.context_space = spaces.Box(0, 100, (1,), np.float64)
        observed = spaces.Box(0, 1e9, (1,), np.float64)
        self.observation_space = spaces.Dict(observation=observed, context=self.context_space)
        self.action_space = spaces.Box(-1, 1, (1,), np.float32)
        self.context, self.longest = np.zeros(1), longest

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.context = context_of(options, self.context_space, self.context)
        self.left = int(self.np_random.integers(1, self.longest + 1))
        self.terminates = bool(self.np_random.integers(2))
        return self._seen(), {"outcome": np.zeros(1)}

    def step(self, action: Any) -> Any:
        self.left -= 1
        over = self.left == 0
        ends = over and self.terminates, over and not self.terminates
        return self._seen(), float(self.context[0]), *ends, {"outcome": np.zeros(1)}

    def context_reward(self, outcome: Any, context: Any) -> Any:
        return np.asarray(context)[..., 0]

    def _seen(self) -> dict[str, Any]:
        return {"observation": np.array([float(self.left)]), "context": self.context.copy()}


def still(observation: Any, context: Any) -> Any:
    return np.zeros(1, np.float32)


def act(actor: Any, observation: Any) -> Any:
    return np.full(1, 0.1 * actor, np.float32)


def assigned(inner: Any, *plans: Plan, **options: Any) -> RollIn:
    """A wrapper whose plans are assigned."""
    env = RollIn(inner, **options)
    env.attach_env(0, 0)
    env.assign(*plans)
    return env


class Stateless:
    """What is left of a teacher that has no state and takes no ends."""

    wants = frozenset[str]()
    plans = 0

    def update(self, end: Any) -> None:
        pass

    def get_state(self) -> dict[str, Any]:
        return {}

    def set_state(self, state: Any) -> None:
        pass
