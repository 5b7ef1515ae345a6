"""The paper's robots at real scale: run the conditions below, and collect what they have reached.

    python -m benchmarks.robots run --out runs/robots --jobs 2     # goes on where it stopped
    python -m benchmarks.robots collect --out runs/robots          # results/robots/*.csv
    python -m benchmarks.robots evaluate --out runs/robots         # the same policy on all contexts

A run has the paper's length, but is stopped after the steps that are given with its condition, or
with --until; it goes on from there another time. `collect` and `evaluate` take it as far as it has
come.
"""

import argparse
import csv
import multiprocessing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rollin.curriculum import Advance, Progress
from rollin.deep.evaluate import EVALUATION_SEED
from rollin.envs.handle import ContextEnv
from rollin.envs.registry import TASKS, make_contextual
from rollin.errors import RollinError
from rollin.report.learning_curve import LearningCurve
from rollin.runs import driver
from rollin.runs.checkpoint import read_checkpoint
from rollin.runs.figures import figures_at
from rollin.runs.rollin import REPLAY
from rollin.runs.spec import RollinConfig, RunSpec, rollin_config
from rollin.runs.store import RunDirectory, read_metrics
from rollin.runs.sweep import find_runs
from rollin.runs.trained import TrainedRun
from rollin.sac.replay import HEADER, RowLayout

RESULTS = Path(__file__).parents[1] / "results" / "robots"
EVERY = 50_000  # steps between two rows of figures.csv
EPISODES = 5  # of an evaluation, on each context
CELL = 0.25  # metres, of visits.csv
KEY = ("task", "method", "beta", "sampling", "seed")
FIGURES = ("kappa", "kappa_mean_last", "x_velocity_mean_last", "return_mean_last")


def conditions() -> Iterator[tuple[str, dict[str, Any], int]]:
    """Task, options, and the steps to be done."""
    for method in ("rollin", "baseline", "scratch"):
        yield "hopper", {"method": method}, 500_000
    for method in ("rollin", "baseline"):
        maze = {"method": method, "sampling": "geometric", "keep_replay": True}
        yield "antmaze-umaze", maze, 300_000
    for task, steps in (("humanoid", 273_000), ("walker", 131_000), ("ant", 102_000)):
        yield task, {"method": "rollin"}, steps


def spec_of(task: str, **options: Any) -> RunSpec[RollinConfig]:
    return RunSpec(task, rollin_config(**{**TASKS[task].defaults, **options}))


def key_of(spec: RunSpec[RollinConfig]) -> list[Any]:
    """What tells a run from the others, as in the CSVs."""
    algorithm = spec.config.algorithm
    beta = f"{algorithm.rolls_in:g}"
    return [spec.task, algorithm.method, beta, algorithm.sampling, spec.config.seed]


def run(out: Path, workers: int, seeds: int, until: int | None) -> None:
    jobs = []
    for seed in range(seeds):
        for task, options, steps in conditions():
            spec = spec_of(task, **options, seed=seed)
            jobs.append((spec, out / "-".join(map(str, key_of(spec))), until or steps))
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        for name, step in pool.imap_unordered(run_one, jobs, chunksize=1):
            print(f"{name}: step {step:,}", flush=True)


def run_one(job: tuple[RunSpec[RollinConfig], Path, int]) -> tuple[str, int]:
    """Train until so many steps are done; returns how many there are."""
    spec, path, until = job
    if RunDirectory(path).exists and not RunDirectory(path).finished:
        saved = read_checkpoint(RunDirectory(path).checkpoint, spec.hash)
        if saved is not None and saved.step >= until:
            return path.name, saved.step
    step = 0

    def note(status: dict[str, Any]) -> None:
        nonlocal step
        step = int(status["step"])

    command = "python -m benchmarks.robots run"
    driver.run(spec, path, command, on_status=note, should_stop=lambda: step >= until)
    return path.name, step


# ------------------------------------------------------------------ collecting


def collect(out: Path) -> None:
    """figures.csv, curves.csv and visits.csv of all runs below a directory."""
    figures: list[list[Any]] = []
    curves: list[list[Any]] = []
    visits: list[list[Any]] = []
    for found in find_runs(out):
        spec = found.spec()
        key = key_of(spec)
        try:
            curve = LearningCurve.read(found)
            step, progress, seconds = progress_of(found)
        except RollinError as error:
            print(f"Passed over {found.path}: {error}")
            continue
        figures += ([*key, *row, spec.hash] for row in figures_of(found, step, progress))
        figures[-1].append(f"{seconds:.0f}")
        for i, step in enumerate(curve.steps):
            shown = (curve.values.get(name) for name in ("kappa", "x_velocity", "return"))
            values = ["" if column is None else f"{column[i]:.6g}" for column in shown]
            curves.append([*key, int(step), *values])
        if spec.config.keep_replay:
            visits += ([*key, *row] for row in visits_of(found))
    RESULTS.mkdir(parents=True, exist_ok=True)
    _write("figures.csv", [*KEY, "step", *FIGURES, "episodes", "spec_hash", "seconds"], figures)
    _write("curves.csv", [*KEY, "step", "kappa", "x_velocity", "return"], curves)
    _write("visits.csv", [*KEY, "x", "y", "steps"], visits)
    print(f"{len({tuple(row[:5]) for row in figures})} runs in {RESULTS}")


def evaluate(out: Path) -> None:
    """evaluation.csv: deterministic episodes of hopper's policies on all contexts."""
    rows: list[list[Any]] = []
    for found in find_runs(out):
        key = key_of(found.spec())
        if key[0] != "hopper":
            continue
        try:
            trained = TrainedRun.open(found)
        except RollinError as error:
            print(f"Passed over {found.path}: {error}")
            continue
        for k, kappa in enumerate(trained.kappas):
            played = trained.evaluate(k, EPISODES, EVALUATION_SEED, lambda *_: None)
            means = [f"{played.mean:.6g}", f"{played.measured['x_velocity']:.6g}"]
            at = [trained.step, f"{kappa:.6g}"]
            rows.append([*key, *at, *means, f"{trained.thresholds[k]:.6g}"])
        trained.env.close()
    header = [*KEY, "step", "kappa", "return", "x_velocity", "threshold"]
    _write("evaluation.csv", header, rows)


def figures_of(found: RunDirectory, step: int, progress: Progress) -> Iterator[list[Any]]:
    """Figures at every EVERY steps, and at the last step reached."""
    spec = found.spec()
    episodes = read_metrics(found.path / "episodes.csv")
    measures = ("x_velocity",) if "x_velocity" in episodes else ()
    for at in sorted({*range(EVERY, step + 1, EVERY), step}):
        shown = figures_at(at, progress, episodes, measures, spec.config.last)
        ended = sum(end <= at for end in episodes["step"])
        cells = [shown.get(name) for name in FIGURES]
        yield [at, *("" if cell is None else f"{cell:.6g}" for cell in cells), ended]


def progress_of(found: RunDirectory) -> tuple[int, Progress, float]:
    """The step that a run has reached, its way through the curriculum, and the time it took."""
    if found.finished:
        result = found.result()
        advances = [Advance(**advance) for advance in result["advances"]]
        kappas = result["curriculum"]["kappas"]
        progress = Progress(result["K"], result["k"], advances, kappas)
        return int(result["env_steps"]), progress, float(result["seconds"])
    saved = read_checkpoint(found.checkpoint, found.spec().hash)
    if saved is None:
        raise RollinError("no checkpoint yet")
    progress = Progress(1, kappas=saved.values["curriculum"]["kappas"])
    progress.set_state(saved.values["rollin"]["progress"])
    return saved.step, progress, float(saved.values["seconds"])


def visits_of(found: RunDirectory) -> Iterator[list[Any]]:
    """How many steps ended in each cell of the maze, from the file of all transitions."""
    env: ContextEnv = make_contextual(found.spec().task)
    layout = RowLayout(env.observation_size, env.action_size, env.context_size, env.outcome_size)
    env.close()
    data = np.memmap(found.path / REPLAY, np.float32, "r", offset=HEADER)
    rows = data[: len(data) // layout.width * layout.width].reshape(-1, layout.width)
    cells = np.floor(rows[:, -layout.outcome :] / CELL).astype(int)
    for (i, j), count in zip(*np.unique(cells, axis=0, return_counts=True), strict=True):
        yield [f"{i * CELL:g}", f"{j * CELL:g}", int(count)]


def _write(name: str, header: list[str], rows: Iterable[list[Any]]) -> None:
    with (RESULTS / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description="The paper's robots at real scale.")
    parser.add_argument("what", choices=["run", "collect", "evaluate"])
    parser.add_argument("--out", type=Path, default=Path("runs/robots"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--until", type=int, help="steps of every run; else its condition's")
    options = parser.parse_args()
    if options.what == "run":
        run(options.out, options.jobs, options.seeds, options.until)
    else:
        {"collect": collect, "evaluate": evaluate}[options.what](options.out)


if __name__ == "__main__":
    main()
