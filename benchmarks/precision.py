"""SAC with bfloat16 products against SAC with float32, in turns on one core.

    python -m benchmarks.precision [--rounds N]

Updates: every contestant makes two a turn, of which the second is timed. Training steps: whole
steps of ROLLIN on antmaze-umaze, with the simulator. Both are timed by the CPU time of the thread,
because other processes may want the core. The ratio is that of a turn; quartiles follow.
"""

import argparse
import os
import time

import numpy as np
from numpy.typing import NDArray

import rollin
from rollin.runs.systems import processor, versions
from rollin.sac import make_learner
from rollin.sac.config import SACConfig
from rollin.sac.cpu import simd
from rollin.sac.cpu.simd import LANES
from rollin.sac.learner import SACLearner
from rollin.streams import Streams

TASKS = {"Ant": (31, 8), "Hopper": (12, 3)}  # observations (with the context) and actions
PRECISIONS = ("float32", "bfloat16")


def random_batch(observed: int, acted: int) -> NDArray[np.float32]:
    """A batch of made-up transitions."""
    rng = np.random.default_rng(0)
    batch = rng.standard_normal((SACConfig().batch, acted + 2 * observed + 2)).astype(np.float32)
    batch[:, :acted] = np.tanh(batch[:, :acted])
    batch[:, -1] = 1
    return batch


def turn(learner: SACLearner, batch: NDArray[np.float32]) -> float:
    """CPU seconds of the second of two updates."""
    learner.update(batch)
    begin = time.thread_time()
    learner.update(batch)
    return time.thread_time() - begin


def measure(observed: int, acted: int, rounds: int) -> NDArray[np.float64]:
    """Milliseconds of an update, (rounds, precisions)."""
    learners = [
        make_learner("cpu", observed, acted, SACConfig(precision=precision), Streams(0))
        for precision in PRECISIONS
    ]
    batch = random_batch(observed, acted)
    times = [[turn(learner, batch) for learner in learners] for _ in range(rounds + 5)]
    return 1e3 * np.array(times[5:])


def training_steps(rounds: int, count: int = 150) -> NDArray[np.float64]:
    """Training steps on antmaze-umaze per CPU second, (rounds, precisions)."""
    warmup = 1_000
    states = [
        rollin.prepare("antmaze-umaze", delta=1 / 12, beta=0.9, warmup=warmup, precision=precision)
        for precision in PRECISIONS
    ]
    runs = [rollin.train_rollin(state) for state in states]
    for run in runs:
        for _ in range(warmup + count):
            next(run)
    found = []
    for _ in range(rounds):
        rates = []
        for run in runs:
            begin = time.thread_time()
            for _ in range(count):
                next(run)
            rates.append(count / (time.thread_time() - begin))
        found.append(rates)
    for state in states:
        state.close()
    return np.array(found)


def main() -> None:
    """Print a line for each task, and one for training steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    unit = "native" if simd.NATIVE else "emulated"
    print(f"{processor()}; rollin {versions()['rollin']}; {LANES} lanes, pairs {unit}")
    for task, sizes in TASKS.items():
        times = measure(*sizes, rounds)
        ratios = np.quantile(times[:, 0] / times[:, 1], (0.25, 0.5, 0.75))
        medians = np.median(times, axis=0)
        print(
            f"{task}: float32 {medians[0]:.2f} ms, bfloat16 {medians[1]:.2f} ms, "
            f"ratio {ratios[1]:.2f} [{ratios[0]:.2f}, {ratios[2]:.2f}]"
        )
    rates = training_steps(max(rounds // 20, 3))
    low, middle, high = np.quantile(rates[:, 1] / rates[:, 0], (0.25, 0.5, 0.75))
    single, half = np.median(rates, axis=0)
    print(
        f"antmaze-umaze, steps per CPU second: float32 {single:.0f}, bfloat16 {half:.0f}, "
        f"ratio {middle:.2f} [{low:.2f}, {high:.2f}]"
    )


if __name__ == "__main__":
    main()
