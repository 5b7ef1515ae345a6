"""What a step of the robots costs beside the bare simulator.

    python -m benchmarks.envs [--csv results/robots/steps.csv]

`bare` is `mj_step` alone, of the same model with the same actions and resets; `step` is a step as
training takes it: simulator, observation, reward, checks, float32. Both go through the same states
again and again, in turns. Of every state the median time is taken, which whatever else runs on the
machine hardly moves, and of all states the mean.
"""

import argparse
import csv
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.envs.context_env import ContextEnv
from rollin.envs.registry import make_contextual
from rollin.runs.systems import processor

mujoco: Any = import_module("mujoco")
ROBOTS = ("antmaze-umaze", "walker", "hopper", "humanoid", "ant")
ALLOWED, SHARE = 60.0, 0.1  # µs on top of the bare step, and share of it


def step(env: ContextEnv, actions: NDArray[np.float32], context: NDArray[Any]) -> list[float]:
    """µs of every step as training takes it."""
    env.reset(context, 0)
    spent = []
    for action in actions:
        begin = time.perf_counter()
        seen = env.step(action)
        spent.append(1e6 * (time.perf_counter() - begin))
        if seen.terminated or seen.truncated:
            env.reset(context, 0)
    return spent


def bare(env: ContextEnv, actions: NDArray[np.float32], context: NDArray[Any]) -> list[float]:
    """µs of every step of the simulator alone, over the same states."""
    task: Any = env.env.unwrapped
    inner = task.robot
    model, data, frames = inner.model, inner.data, inner.frame_skip
    scaled = [env.actions.scale(action) for action in actions]
    env.reset(context, 0)
    spent, steps = [], 0
    for action in scaled:
        begin = time.perf_counter()
        data.ctrl[:] = action
        mujoco.mj_step(model, data, nstep=frames)
        spent.append(1e6 * (time.perf_counter() - begin))
        steps += 1
        fallen = not getattr(inner, "is_healthy", True)
        if fallen or steps == task.horizon:
            env.reset(context, 0)
            steps = 0
    return spent


def write(path: Path, rows: list[tuple[str, float, float, float, float]]) -> None:
    """Put the figures of this processor in the place of its earlier ones, before all others."""
    here, kept = processor(), []
    if path.exists():
        with path.open(newline="") as file:
            kept = list(csv.reader(file))[1:]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "bare", "step", "more", "allowed", "processor"])
        writer.writerows([task, *(f"{v:.1f}" for v in values), here] for task, *values in rows)
        writer.writerows(row for row in kept if row[-1] != here)


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of the robots' steps.")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    print(processor())
    print(f"{'task':<14} {'bare µs':>8} {'step µs':>8} {'more µs':>8} {'allowed':>8}")
    rows = []
    for name in ROBOTS:
        env = make_contextual(name)
        assert env.curriculum is not None
        context = env.curriculum.contexts[0]
        generator = np.random.default_rng(0)
        actions = generator.uniform(-1, 1, (options.steps, env.action_size)).astype(np.float32)
        pairs = [
            (bare(env, actions, context), step(env, actions, context))
            for _ in range(options.repeats)
        ]
        alone, whole = np.median(pairs, axis=0).mean(axis=1)
        more = whole - alone
        allowed = SHARE * alone + ALLOWED
        mark = "" if more <= allowed else "  too much"
        print(f"{name:<14} {alone:8.1f} {whole:8.1f} {more:8.1f} {allowed:8.1f}{mark}")
        rows.append((name, alone, whole, more, allowed))
        env.close()
    if options.csv is not None:
        write(options.csv, rows)
    sys.exit(0 if all(more <= allowed for *_, more, allowed in rows) else 1)


if __name__ == "__main__":
    main()
