"""One tabular gradient step, ours and JAX's, as the MDP and the batch grow: rows as JSON.

    python -m benchmarks.scaling_tabular [ROUNDS]

Random MDPs, the uniform policy, every state as likely at first: no state is passed over. Both take
turns in one process on one core; CPU seconds, medians over rounds.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator

from benchmarks.tabular import ALPHA, CORE  # first: it sets the number of threads

import jax  # isort: skip
import numpy as np

from benchmarks.peers.jax_spg import JaxSPG
from benchmarks.records import Row
from rollin import __version__
from rollin.tabular.families import random_mdp
from rollin.tabular.learners import BatchSPG
from rollin.tabular.start import Start

BASE = {"states": 144, "actions": 105, "batch": 2000, "horizon": 50}  # the paper's four rooms
SWEEPS = {
    "states": (36, 72, 144, 288, 576),
    "actions": (13, 26, 52, 105, 210),
    "batch": (250, 500, 1000, 2000, 4000, 8000),
    "horizon": (12, 25, 50, 100, 200),
}
TURN_SECONDS = 0.03


def learners(states: int, actions: int, batch: int, horizon: int) -> dict[str, Callable[[], float]]:
    """A step of each, at the same task, start distribution and parameters."""
    mdp = random_mdp(states, 0, actions=actions - 1, gamma=0.95)
    task, mu = mdp.task(mdp.K), np.full(states, 1 / states)
    ours = BatchSPG(mdp, ALPHA, 0, batch=batch, horizon=horizon)
    ours.begin(task, Start(mu))
    theirs = JaxSPG(task, ALPHA, batch, horizon, 0, mu, ours.theta)
    return {"rollin": lambda: ours.step().success, "JAX": theirs.step}


def measure(steps: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """CPU seconds of a step of each, medians over rounds in turn."""
    counts, found = dict[str, int](), {name: list[float]() for name in steps}
    for name, step in steps.items():
        step()  # compiles
        counts[name] = max(1, round(TURN_SECONDS / min(seconds(step, 1) for _ in range(3))))
    for _ in range(rounds):
        for name, step in steps.items():
            found[name].append(seconds(step, counts[name]))
    return {name: statistics.median(times) for name, times in found.items()}


def seconds(step: Callable[[], float], count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - began) / count


def rows(rounds: int) -> Iterator[Row]:
    """All points of all sweeps."""
    version = f"rollin {__version__}, jax {jax.__version__}, numpy {np.__version__}"
    for axis, values in SWEEPS.items():
        for value in values:
            for name, used in measure(learners(**{**BASE, axis: value}), rounds).items():
                row = {"version": version, "part": "tabular", "axis": axis, "value": value}
                row |= {"threads": 1, "contestant": name, "rounds": rounds}
                yield {**row, "cpu_microseconds": round(1e6 * used, 1)}


def main() -> None:
    os.sched_setaffinity(0, {CORE})
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 7):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
