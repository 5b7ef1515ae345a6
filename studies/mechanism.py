"""Why roll-in helps, if it does: how often the next goal is touched, and from where.

    python -m studies.mechanism --csv results/point-umaze/mechanism.csv

Trains ROLLIN on point-umaze; at every switch to a context ω_k, before anything is learned on it,
episodes are played to count how many touch the new goal (come within its reward radius):

- main: π_main(·|ω_k) from the start, what the baseline explores with;
- fresh: a new π_exp from the start, what the ablation explores with;
- rollin: π_main(·|ω_{k-1}) for a geometric number of steps, then a new π_exp, as ROLLIN does.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

import rollin
from rollin.deep.state import DeepState
from rollin.envs.context_env import ContextEnv
from rollin.envs.point_umaze import PointUmaze
from rollin.sac.make import make_learner
from rollin.streams import Streams

BETA, STEPS, EPISODES = 0.1, 300_000, 200
WAYS = ("main", "fresh", "rollin")


class Probe:
    """Plays episodes with copies of the agents, on its own env and random numbers."""

    def __init__(self, state: DeepState, seed: int) -> None:
        self.state, self.env = state, ContextEnv(PointUmaze())
        self.streams = Streams(1000 + seed)
        layout, config = state.main.layout, state.main.config
        sizes = layout.observation_size, layout.action_size
        self.main = make_learner("cpu", *sizes, config, self.streams.under("main"))
        self.exp = make_learner("cpu", *sizes, config, self.streams.under("exp"))
        self.stop = 1 - config.gamma

    def touches(self, way: str, k: int, episodes: int) -> int:
        """How many episodes of a way touch the goal of context k."""
        self.main.set_state(self.state.main.get_state())
        return sum(self._touches(way, k) for _ in range(episodes))

    def _touches(self, way: str, k: int) -> bool:
        contexts = self.state.curriculum.contexts.astype(np.float32)
        self.exp.reset()  # another fresh agent each time
        s, _ = self.env.reset(contexts[k], int(self.streams["env"].integers(2**31)))
        rolling, over = way == "rollin", False
        while not over:
            agent = self.exp if way != "main" and not rolling else self.main
            told = contexts[k - 1] if rolling else contexts[k]
            seen = self.env.step(agent.act(np.concatenate((s, told))))
            if self.env.is_success(seen.outcome, contexts[k]):
                return True
            s, over = seen.observation, seen.truncated
            rolling = rolling and self.streams["stop"].random() >= self.stop
        return False


def measure(seed: int, episodes: int) -> list[list[Any]]:
    """At every switch of one run: touches of the next goal, by way."""
    state = rollin.prepare("point-umaze", beta=BETA, seed=seed, steps=STEPS)
    probe, rows = Probe(state, seed), []
    for event in rollin.train_rollin(state):
        if event.mastered and event.k < state.curriculum.K:
            counts = [probe.touches(way, event.k + 1, episodes) for way in WAYS]
            rows.append([seed, event.k + 1, event.step, episodes, *counts])
            print(rows[-1], flush=True)
        if event.step == STEPS or state.progress.finished:
            return rows
    raise AssertionError("the algorithm goes on for ever")


def main() -> None:
    parser = argparse.ArgumentParser(description="How often the next goal is touched.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--csv", type=Path, required=True)
    options = parser.parse_args()
    rows = [row for seed in range(options.seeds) for row in measure(seed, options.episodes)]
    with options.csv.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([["seed", "k", "step", "episodes", *WAYS], *rows])


if __name__ == "__main__":
    main()
