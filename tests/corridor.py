"""A corridor with discrete actions, and a tabular Q-learner that walks it."""

from typing import Any

import numpy as np
from gymnasium import spaces

import rollin
from rollin.curriculum.contexts import Curriculum, SuccessRate
from rollin.envs.contextual import ContextualEnv, context_of

CELLS = 12
FAR = Curriculum.listed([[2.0], [5.0], [8.0], [11.0]], SuccessRate(0.7), episodes=5)


class Corridor(ContextualEnv):
    """Cells in a row; left, stay or right; reward 1 at the goal, which ends the episode."""

    def __init__(self, length: int = 30) -> None:
        self.context_space = spaces.Box(0, CELLS - 1, (1,), np.float64)
        self.observation_space: Any = spaces.Dict(
            observation=spaces.Discrete(CELLS), context=self.context_space
        )
        self.action_space: Any = spaces.Discrete(3)
        self.context, self.length, self.curriculum = np.array([2.0]), length, FAR

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.context = context_of(options, self.context_space, self.context)
        self.cell, self.left = 0, self.length
        return self.seen(), {"outcome": np.array([float(self.cell)])}

    def step(self, action: Any) -> Any:
        self.cell = int(np.clip(self.cell + int(action) - 1, 0, CELLS - 1))
        self.left -= 1
        outcome = np.array([float(self.cell)])
        reward = float(self.context_reward(outcome, self.context))
        return self.seen(), reward, reward > 0, self.left == 0, {"outcome": outcome}

    def context_reward(self, outcome: Any, context: Any) -> Any:
        return (np.asarray(outcome) == context)[..., 0] * 1.0

    def seen(self) -> dict[str, Any]:
        return {"observation": self.cell, "context": self.context.copy()}


class QLearner:
    """Q-learning with a table for each context."""

    def __init__(self, env: Any = None, seed: int = 0, epsilon: float = 0.3) -> None:
        self.q = np.zeros((CELLS, CELLS, 3))
        self.generator, self.epsilon = np.random.default_rng(seed), epsilon
        self.seen: list[rollin.Transition] = []

    def act(self, observation: Any, context: Any, deterministic: bool = False) -> int:
        if not deterministic and self.generator.random() < self.epsilon:
            return int(self.generator.integers(3))
        row = self.q[int(context[0]), observation]
        return int(2 - np.argmax(row[::-1]))  # right, if all are alike

    def observe(self, transition: rollin.Transition) -> None:
        t, goal = transition, int(transition.context[0])
        after = 0.0 if t.terminated else 0.95 * self.q[goal, t.next_observation].max()
        row = self.q[goal, t.observation]
        row[t.action] += 0.5 * (t.reward + after - row[t.action])
        self.seen.append(t)

    def get_state(self) -> dict[str, Any]:
        return {"q": self.q.copy(), "generator": self.generator.bit_generator.state}

    def set_state(self, state: Any) -> None:
        self.q = np.array(state["q"])
        self.generator.bit_generator.state = state["generator"]


def make_q(env: Any, seed: int) -> QLearner:
    assert env.action_space.n == 3
    return QLearner(seed=seed)
