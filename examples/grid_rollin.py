"""Discrete actions: ROLLIN around Stable-Baselines3's DQN in a corridor with a door.

`python examples/grid_rollin.py` moves the goal from the start to the far end of a grid world. Your
own env needs no more than `Corridor` here: a context that `reset(options=...)` sets and the
observation shows.
"""

import argparse
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import DQN

import rollin
import rollin.sb3

WIDTH = 9
HEIGHT = 3
DOOR = 4  # the column of a wall that is open only in the top row
MOVES = ((1, 0), (-1, 0), (0, 1), (0, -1))


class Corridor(gymnasium.Env):
    """Two rooms; reward 1 at the goal, where the episode ends. The context is the goal's place."""

    def __init__(self, horizon: int = 40) -> None:
        places = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.context_space = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict(observation=places, context=self.context_space)
        self.action_space = spaces.Discrete(len(MOVES))
        self.goal = np.ones(2, np.float32)
        self.horizon = horizon

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.goal = np.array((options or {}).get("context", self.goal), np.float32)
        self.x = 0
        self.y = int(self.np_random.integers(HEIGHT))
        self.steps = 0
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        dx, dy = MOVES[int(action)]
        x = self.x + dx
        y = self.y + dy
        inside = 0 <= x < WIDTH and 0 <= y < HEIGHT
        if inside and (x != DOOR or y == HEIGHT - 1):
            self.x, self.y = x, y
        self.steps += 1
        reached = bool(np.array_equal(self.place(), self.goal))
        over = self.steps >= self.horizon
        return self.observe(), float(reached), reached, over, {"is_success": reached}

    def place(self) -> np.ndarray:
        return np.array([self.x / (WIDTH - 1), self.y / (HEIGHT - 1)], np.float32)

    def observe(self) -> dict[str, np.ndarray]:
        return {"observation": self.place(), "context": self.goal.copy()}


def main(steps: int, beta: float, seed: int) -> rollin.SequentialTeacher:
    """Learn, and return the teacher."""
    torch.set_num_threads(1)
    goals = [[x / (WIDTH - 1), 1.0] for x in range(1, WIDTH)]  # along the top row
    curriculum = rollin.Curriculum.listed(goals, rollin.SuccessRate(0.7), episodes=10)
    teacher = rollin.SequentialTeacher(curriculum, beta=beta)
    env = rollin.RollIn(Corridor(), teacher)
    model = DQN(
        "MultiInputPolicy", env, gamma=0.9, learning_rate=1e-3, learning_starts=500, train_freq=1,
        batch_size=64, target_update_interval=500, exploration_fraction=0.2,
        exploration_final_eps=0.1, policy_kwargs={"net_arch": [64, 64]}, seed=seed,
    )  # fmt: skip
    callback = rollin.sb3.RollInCallback(teacher, seed=seed, verbose=1, env_steps=steps)
    model.learn(steps, callback=callback)  # fewer of the agent's own, if it rolls in
    print(f"κ = {teacher.progress.kappa:.2f} after {callback.env_steps:,} steps")
    return teacher


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--beta", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
