"""One gradient step of four rooms (2000 trajectories × 50 steps): ours, JAX and NumPy, in one run.

    make bench        or        python -m benchmarks.tabular [--rounds N]

All three start from the same parameters and start distribution, taken from a run of ours, and are
checked to estimate the same gradient. They are timed in turn on one core, many short rounds each;
the table shows the median round and the median of the ratios within a round.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CORE = 0
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np  # noqa: E402

from benchmarks.peers.c_rollouts import call_rollouts, compile_rollouts  # noqa: E402
from benchmarks.peers.jax_spg import JaxSPG  # noqa: E402
from benchmarks.peers.numpy_spg import NumpySPG  # noqa: E402
from rollin.curriculum.contexts import SuccessRate  # noqa: E402
from rollin.runs.directory import versions  # noqa: E402
from rollin.runs.systems import processor  # noqa: E402
from rollin.tabular import soft  # noqa: E402
from rollin.tabular.algorithm1 import TabularState, rollin  # noqa: E402
from rollin.tabular.families import four_rooms  # noqa: E402
from rollin.tabular.learners import BatchSPG  # noqa: E402

BATCH, HORIZON, ALPHA, BETA = 2000, 50, 0.001, 0.75
CALLS = {"ours": 60, "jax": 8, "numpy": 3, "c": 60}  # gradient steps per round
POINTS = {"early (step 500)": 500, "middle (step 8,000)": 8_000}


def prepare(steps: int) -> tuple[BatchSPG, JaxSPG, NumpySPG]:
    """Three learners at the same point of the same run."""
    mdp = four_rooms("hard")
    ours = BatchSPG(mdp, ALPHA, 0, batch=BATCH, horizon=HORIZON)
    state = TabularState.initial(mdp)
    for event in rollin(mdp, ours, BETA, SuccessRate(), state):
        if event.step == steps:
            break
    task, mu = ours.task, state.start.mu
    jax = JaxSPG(task, ALPHA, BATCH, HORIZON, 0, mu, ours.theta)
    numpy = NumpySPG(task, ALPHA, BATCH, HORIZON, 0, mu, ours.theta)
    return ours, jax, numpy


def check_same_gradient(ours: BatchSPG, jax: JaxSPG, numpy: NumpySPG) -> None:
    """All three average to the exact gradient: a fast wrong peer would be no peer."""
    exact = soft.batch_gradient(ours.task, ours.log_pi, ALPHA, ours.start.mu, HORIZON)
    for name, estimate in (
        ("ours", lambda: ours.sampled_gradient()[0]),
        ("jax", lambda: jax.gradient()[0]),
        ("numpy", lambda: numpy.gradient()[0]),
    ):
        mean = np.mean([estimate() for _ in range(40)], axis=0)
        error = np.linalg.norm(mean - exact) / np.linalg.norm(exact)
        if error > 0.25:
            sys.exit(f"{name} does not estimate the gradient (relative error {error:.2f})")


def measure(steps: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds per step of every learner in every round, in turn."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()
    for _ in range(rounds):
        for name, step in steps.items():
            began = time.perf_counter()
            for _ in range(CALLS[name]):
                step()
            found[name].append((time.perf_counter() - began) / CALLS[name])
    return found


def compare_with_c(ours: BatchSPG, rounds: int) -> str:
    """Our rollout kernel beside plain C: same algorithm, same tables, same random stream."""
    with tempfile.TemporaryDirectory() as folder:
        library = compile_rollouts(Path(folder))
    if library is None:
        return "no C compiler here: rollouts alone were not compared with C"
    starts = ours.starts.draw(ours.stream, ours.batch)[0].copy()
    words = ours.stream.get_state()
    wanted = ours.sample(starts)
    sums = ours._to_go.copy()
    ours._to_go[:] = 0
    ours.stream.set_state(words)
    if call_rollouts(library, ours, starts) != wanted or not np.allclose(ours._to_go, sums):
        sys.exit("the C version does not sample the same trajectories")
    both = {
        "ours": lambda: float(ours.sample(starts)),
        "c": lambda: float(call_rollouts(library, ours, starts)),
    }
    found = measure(both, rounds)
    ratio = statistics.median(c / o for c, o in zip(found["c"], found["ours"], strict=True))
    us = {name: 1e6 * statistics.median(times) for name, times in found.items()}
    return (
        f"rollouts alone: ours {us['ours']:.0f} µs, plain C (-O3 -march=native) "
        f"{us['c']:.0f} µs, ratio {ratio:.2f}×"
    )


def peak_memory() -> float:
    """Peak resident memory in MB of a whole `rollin train four-rooms` with compiled kernels.

    A child's peak begins with the memory of the process that forks it, so a small one does that.
    """
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'rollin', 'train', 'four-rooms', '--steps', '500',"
        " '--out', sys.argv[1]], check=True, stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", script, str(Path(folder) / "run")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {CORE})
    import jax

    libraries = ", ".join(f"{name} {number}" for name, number in versions().items())
    print(f"{processor()}, one core; {libraries}, jax {jax.__version__}")
    print(f"{rounds} rounds in turn; µs per gradient step of {BATCH} × {HORIZON} transitions\n")
    print(f"{'point of the run':<22}{'ours':>8}{'JAX':>8}{'NumPy':>8}   ratio to JAX, NumPy")
    for name, at in POINTS.items():
        ours, peer_jax, peer_numpy = prepare(at)
        check_same_gradient(ours, peer_jax, peer_numpy)
        steps = {
            "ours": lambda ours=ours: ours.step().success,
            "jax": peer_jax.step,
            "numpy": peer_numpy.step,
        }
        found = measure(steps, rounds)
        middle = {n: 1e6 * statistics.median(times) for n, times in found.items()}
        ratio = {
            n: statistics.median(p / o for p, o in zip(found[n], found["ours"], strict=True))
            for n in ("jax", "numpy")
        }
        print(
            f"{name:<22}{middle['ours']:8.0f}{middle['jax']:8.0f}{middle['numpy']:8.0f}"
            f"   {ratio['jax']:.1f}×, {ratio['numpy']:.1f}×"
        )
    print(f"\n{compare_with_c(prepare(500)[0], rounds)}")
    print(f"peak memory of a run: {peak_memory():.0f} MB")


if __name__ == "__main__":
    main()
