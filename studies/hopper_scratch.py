"""Hopper from scratch: why ours falls while the published one earns 2944 at half a million steps.

    python -m studies.hopper_scratch train --agent ours --seed 0      # or --agent sb3
    python -m studies.hopper_scratch train --agent ours --reward gym  # or half: no band
    python -m studies.hopper_scratch collect                          # results/hopper/windows.csv

Stable-Baselines3's SAC gets the very same environment, under the final context, with our networks,
step sizes, random first steps and target entropy (the extra rollin[sb3]). Rewards: `band` is the
paper's healthy reward, 1.5 inside the band and 0.5 outside; `half` is 0.5 everywhere; `gym` is 1
everywhere, as in Gym. Our runs resume where they stopped; those of Stable-Baselines3 start again.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import FlattenObservation

from rollin.deep.evaluate import EVALUATION_SEED
from rollin.envs.registry import make_raw
from rollin.runs.engines import engine_for, run
from rollin.runs.engines.rollin_run import means_at
from rollin.runs.files import make_directory, write_atomically
from rollin.runs.metrics import read_metrics
from rollin.runs.spec import RunSpec, configured
from rollin.runs.systems import processor, versions
from rollin.untrusted import csv_text

RESULTS = Path(__file__).parents[1] / "results" / "hopper"
STEPS = 500_000
WINDOW = 50_000  # steps that the paper averages over
EVALUATE_EVERY, EPISODES = 10_000, 5
REWARDS: Mapping[str, Sequence[str]] = {
    "band": (),
    "half": ("high=0.5", "low=0.5"),
    "gym": ("high=1.0", "low=1.0"),
}
"""Options of the environment."""
COLUMNS = ("step", "return", "length", "x_velocity")
"""Of a training episode; the x-velocity is its mean."""
EVALUATIONS = ("step", "eval_return")
KEPT = ("agent", "reward", "seed", *COLUMNS, "eval_return", "versions", "processor")
"""Means over the window before a step; eval_return: the mean return of deterministic episodes."""


class Measured(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds return, length and mean x-velocity of an episode to the info of its last step."""

    def reset(self, **given: Any) -> Any:
        """Begin an episode."""
        self.rewards: list[float] = []
        self.velocities: list[float] = []
        return self.env.reset(**given)

    def step(self, action: Any) -> Any:
        """Act."""
        seen, paid, terminated, truncated, info = self.env.step(action)
        self.rewards.append(float(paid))
        self.velocities.append(info["x_velocity"])
        if terminated or truncated:
            told = sum(self.rewards), len(self.rewards), float(np.mean(self.velocities))
            info["episode_means"] = told
        return seen, paid, terminated, truncated, info


def make_env(reward: str) -> Any:
    """The hopper under its final context, with the context in the observation, as one vector."""
    return FlattenObservation(Measured(make_raw("hopper", options=REWARDS[reward])))


def train_ours(place: Path, reward: str, seed: int, steps: int) -> None:
    """Train our learner up to a step of the paper's million, or resume it."""
    options = {"method": "scratch", "seed": seed, "env_options": tuple(REWARDS[reward])}
    spec = RunSpec("hopper", configured(engine_for("hopper").preset("hopper"), options))
    run(spec, place, "python -m studies.hopper_scratch train", until=steps)


def train_sb3(place: Path, reward: str, seed: int, steps: int) -> None:
    """Train Stable-Baselines3's SAC; writes episodes.csv and metrics.csv as our runs do."""
    import torch  # an extra
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback

    class Recorder(BaseCallback):
        """Keeps a row for each training episode and for each evaluation."""

        def __init__(self) -> None:
            super().__init__()
            self.env = make_env(reward)
            self.episodes: list[Sequence[Any]] = [COLUMNS]
            self.evaluations: list[Sequence[Any]] = [EVALUATIONS]

        def _on_step(self) -> bool:
            if told := self.locals["infos"][0].get("episode_means"):
                self.episodes.append((self.num_timesteps, *told))
            if self.num_timesteps % EVALUATE_EVERY == 0:
                returns = [self._play(EVALUATION_SEED + i) for i in range(EPISODES)]
                self.evaluations.append((self.num_timesteps, np.mean(returns)))
                for name, rows in (("episodes", self.episodes), ("metrics", self.evaluations)):
                    write_atomically(place / f"{name}.csv", csv_text(rows).encode())
            return True

        def _play(self, seed: int) -> float:
            seen, _ = self.env.reset(seed=seed)
            total, over = 0.0, False
            while not over:
                action, _ = self.model.predict(seen, deterministic=True)
                seen, paid, terminated, truncated, _ = self.env.step(action)
                total += float(paid)
                over = terminated or truncated
            return total

    torch.set_num_threads(1)
    make_directory(place)
    env = make_env(reward)
    model = SAC(
        "MlpPolicy",
        env,
        learning_starts=10_000,
        buffer_size=steps,
        target_entropy=-env.action_space.shape[0] / 2,
        policy_kwargs={"net_arch": [256, 256]},
        seed=seed,
        device="cpu",
    )
    model.learn(steps, callback=Recorder())


AGENTS = {"ours": train_ours, "sb3": train_sb3}


def collect(out: Path, results: Path = RESULTS) -> None:
    """Write the windows of all runs below a directory."""
    rows = [row for place in sorted(out.glob("*/seed=*")) for row in windows(place)]
    make_directory(results)
    write_atomically(results / "windows.csv", csv_text([KEPT, *rows]).encode())
    print(f"{len(rows)} windows into {results}")


def windows(place: Path) -> Iterator[Sequence[Any]]:
    """Means of a run over each window that it has passed."""
    agent, reward = (part.partition("=")[2] for part in place.parent.name.split(","))
    episodes = read_metrics(place / "episodes.csv")
    metrics = read_metrics(place / "metrics.csv")
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    for end in range(WINDOW, int(metrics["step"][-1]) + 1, WINDOW):
        means = means_at(end, episodes, ["x_velocity"], WINDOW)
        inside = [end - WINDOW < step <= end for step in episodes["step"]]
        length = np.mean(np.array(episodes["length"])[inside])
        evaluated = metrics["eval_return"][metrics["step"].index(end)]
        numbers = (means["return"], length, means["x_velocity"], evaluated)
        told = [f"{number:.5g}" for number in numbers]
        yield (agent, reward, place.name.partition("=")[2], end, *told, made, processor())


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Hopper from scratch.")
    parser.add_argument("what", choices=["train", "collect"])
    parser.add_argument("--agent", choices=[*AGENTS], default="ours")
    parser.add_argument("--reward", choices=[*REWARDS], default="band")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=Path("runs/hopper"))
    given = parser.parse_args()
    if given.what == "collect":
        collect(given.out)
        return
    place = given.out / f"agent={given.agent},reward={given.reward}" / f"seed={given.seed}"
    AGENTS[given.agent](place, given.reward, given.seed, given.steps)


if __name__ == "__main__":
    main()
