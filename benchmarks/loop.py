"""Where a step of ROLLIN on point-umaze spends its time: environment, learner, and the loop itself.

    python -m benchmarks.loop --csv results/point-umaze/profile.csv

Small networks are the task's own; large ones are the paper's (256, 256) with batches of 256. The
parts are timed inside one run of the loop; "loop" is what is left: replay, draws, events, checks.
"""

import argparse
import csv
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import rollin
from rollin.deep.state import DeepState
from rollin.envs.point_umaze import PointUmaze
from rollin.runs.systems import processor

SIZES = {"small": ((32, 32), 64, 40_000), "large": ((256, 256), 256, 4_000)}
WARMUP = 1000


class Stopwatch:
    """Sums the time spent in some functions."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)

    def wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed as a part."""

        def timed(*arguments: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.spent[part] += time.perf_counter() - begin

        return timed


def profile(size: str, beta: float = 0.1) -> dict[str, float]:
    """Microseconds of each part per step."""
    hidden, batch, steps = SIZES[size]
    state: Any = rollin.prepare(
        "point-umaze", beta=beta, hidden=hidden, batch=batch, warmup=WARMUP, steps=steps + WARMUP
    )
    watch = Stopwatch()
    inner = state.env.env
    inner.step = watch.wrap("environment", inner.step)
    inner.reset = watch.wrap("environment", inner.reset)
    for agent in (state.main, state.exp):
        agent.act = watch.wrap("act", agent.act)
        agent.update = watch.wrap("update", agent.update)
    began = _run_warmup(state, watch)
    total = time.perf_counter() - began
    parts = {part: 1e6 * spent / steps for part, spent in watch.spent.items()}
    whole = 1e6 * total / steps
    return {**parts, "loop": whole - sum(parts.values()), "step": whole}


def _run_warmup(state: DeepState, watch: Stopwatch) -> float:
    """Run to the end; returns when the random steps were over, from where the parts count."""
    last = state.D.capacity
    began = 0.0
    for event in rollin.train_rollin(state):
        if event.step == WARMUP + 1:  # after the first update, which may compile
            watch.spent.clear()
            began = time.perf_counter()
        if event.step == last:
            break
    return began


def environment_step(repeats: int = 20_000) -> float:
    """Microseconds of one step of the environment alone."""
    env = PointUmaze()
    env.reset(seed=0)
    action = np.array([0.3, -0.2], np.float32)
    env.step(action)
    begin = time.perf_counter()
    for _ in range(repeats):
        env.step(action)
    return 1e6 * (time.perf_counter() - begin) / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description="Where a step of ROLLIN spends its time.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    rows: list[list[Any]] = []
    alone = median(environment_step() for _ in range(options.repeats))
    print(f"{processor()}\npoint-umaze alone: {alone:.2f} µs a step")
    rows.append(["environment alone", "step", f"{alone:.2f}"])
    for size in SIZES:
        runs = [profile(size) for _ in range(options.repeats)]
        parts = {part: median(run[part] for run in runs) for part in runs[0]}
        share = median(run["loop"] / run["step"] for run in runs)
        print(size, {part: round(value, 1) for part, value in parts.items()}, f"loop {share:.1%}")
        rows += [[size, part, f"{value:.2f}"] for part, value in parts.items()]
        rows.append([size, "loop share", f"{share:.4f}"])
    if options.csv is not None:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([["networks", "part", "microseconds"], *rows])


if __name__ == "__main__":
    main()
