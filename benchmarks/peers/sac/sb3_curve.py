"""A learning curve of Stable-Baselines3's SAC, for `benchmarks.curves`.

Runs in the peers' environment (see `make bench-sac`). Settings that differ between the libraries
are set to ours: 10,000 random steps first and target entropy -dim(A)/2.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback

EVAL_SEED = 10_000  # as in rollin.deep.plain_sac


class Evaluate(BaseCallback):
    """Every `every` steps: the mean return of deterministic episodes, one row of the CSV."""

    def __init__(self, env_id: str, every: int, episodes: int, out: Path) -> None:
        super().__init__()
        self.env = gym.make(env_id)
        self.every, self.episodes, self.out = every, episodes, out
        self.began = time.perf_counter()
        self.evaluating = 0.0

    def _on_step(self) -> bool:
        if self.num_timesteps % self.every:
            return True
        start = time.perf_counter()
        returns = [self._episode(EVAL_SEED + i) for i in range(self.episodes)]
        now = time.perf_counter()
        self.evaluating += now - start
        mean = sum(returns) / len(returns)
        spread = (sum((r - mean) ** 2 for r in returns) / len(returns)) ** 0.5
        with self.out.open("a", newline="") as file:
            seconds = now - self.began - self.evaluating
            csv.writer(file).writerow(
                [self.num_timesteps, f"{mean:.3f}", f"{spread:.3f}", f"{seconds:.1f}"]
            )
        return True

    def _episode(self, seed: int) -> float:
        observation, _ = self.env.reset(seed=seed)
        total, done = 0.0, False
        while not done:
            action, _ = self.model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = self.env.step(action)
            total += float(reward)
            done = terminated or truncated
        return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="Hopper-v5")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=5_000)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    env = gym.make(options.env)
    actions: Any = env.action_space
    with options.out.open("w", newline="") as file:
        csv.writer(file).writerow(["step", "return_mean", "return_std", "seconds"])
    model = SAC(
        "MlpPolicy",
        env,
        learning_starts=10_000,
        target_entropy=-actions.shape[0] / 2,
        seed=options.seed,
        device="cpu",
    )
    callback = Evaluate(options.env, options.every, options.episodes, options.out)
    model.learn(options.steps, callback=callback)


if __name__ == "__main__":
    main()
