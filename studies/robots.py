"""The paper's robots with seeds: run the conditions below, and collect what they have reached.

    python -m studies.robots run --out runs/robots --jobs 2     # goes on where it stopped
    python -m studies.robots collect --out runs/robots          # into results/robots/*.csv
    python -m studies.robots evaluate --out runs/robots         # hopper's policies on all contexts

A run has the paper's length, but is stopped after UNTIL steps, from where it can go on later.
Seeds come one after the other, all conditions of each, so that a stop at any time leaves equal
seeds. `collect` takes a run as far as it has come, and keeps the committed rows of runs that are
not there any more; `run` leaves out what these rows have already reached, so that another machine
goes on with the next seeds.

--reading printed repeats the first look at these tasks, one seed each with the curricula as the
paper's text has them (see docs/results/robots.md).
"""

import argparse
import csv
import io
import math
import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rollin.curriculum.progress import Advance, Progress
from rollin.deep.evaluate import EVALUATION_SEED
from rollin.envs.context_env import ContextEnv
from rollin.envs.registry import TASKS, make_contextual
from rollin.errors import RollinError
from rollin.report.learning_curve import LearningCurve
from rollin.runs import execute
from rollin.runs.checkpoint import read_checkpoint
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.rollin import REPLAY
from rollin.runs.files import read_json, write_atomically, write_json
from rollin.runs.rows import read_metrics
from rollin.runs.spec import RollinConfig, RunSpec, rollin_config
from rollin.runs.trained import TrainedRun
from rollin.runs.windows import figures_at
from rollin.sac.replay import HEADER, RowLayout
from rollin.sweeps.rates import processor
from rollin.sweeps.sweep import find_runs

RESULTS = Path(__file__).parents[1] / "results" / "robots"
SEEDS = 8  # of the paper
UNTIL = 500_000  # steps; the paper reads at these and at twice as many
EVERY = 50_000  # steps between two rows of figures.csv
EPISODES = 5  # of an evaluation, on each context
CELL = 0.25  # metres, of visits.csv
MACHINE = "machine.json"  # of a run's directory: where it was begun
KEY = ("reading", "task", "method", "beta", "sampling", "seed")
FIGURES = ("k", "kappa", "kappa_mean_last", "x_velocity_mean_last", "return_mean_last")
COLUMNS = {
    "figures.csv": ("step", *FIGURES, "episodes", "spec_hash", "seconds", "processor", "version"),
    "curves.csv": ("step", "kappa", "x_velocity", "return"),
    "evaluation.csv": ("step", "kappa", "level", "return", "x_velocity", "threshold"),
    "visits.csv": ("x", "y", "steps"),
}

Key = tuple[str, ...]
Row = dict[str, str]


class Condition(NamedTuple):
    """A task, its options, and the steps to be done."""

    task: str
    options: dict[str, Any]
    until: int = UNTIL


CONDITIONS = (
    Condition("hopper", {"method": "baseline"}),
    Condition("hopper", {"method": "rollin"}),
    Condition("ant", {"method": "baseline"}),
    Condition("ant", {"method": "rollin"}),
    Condition("hopper", {"method": "scratch"}),
)

_MAZE = {"sampling": "geometric", "keep_replay": True}
_PRINTED = {"literal": True, "kappa": "index", "head_gain": math.sqrt(2.0), "exp_fill": 256}
FIRST_LOOK = tuple(
    condition._replace(options=condition.options | _PRINTED)
    for condition in (
        Condition("hopper", {"method": "rollin"}),
        Condition("hopper", {"method": "baseline"}),
        Condition("hopper", {"method": "scratch"}),
        Condition("antmaze-umaze", {"method": "rollin"} | _MAZE, 300_000),
        Condition("antmaze-umaze", {"method": "baseline"} | _MAZE, 300_000),
        Condition("humanoid", {"method": "rollin"}, 273_000),
        Condition("walker", {"method": "rollin"}, 131_000),
        Condition("ant", {"method": "rollin"}, 102_000),
    )
)
"""With what the code had before the published tables were read closely, under today's options."""

READINGS = {"tables": CONDITIONS, "printed": FIRST_LOOK}


def printed_as(condition: Condition) -> Condition:
    """The condition under which the paper prints the figures of one in either reading."""
    options = {name: value for name, value in condition.options.items() if name not in _PRINTED}
    return condition._replace(options=options)


def spec_of(condition: Condition, seed: int) -> RunSpec[RollinConfig]:
    """The run of a seed."""
    options = {**TASKS[condition.task].defaults, **condition.options, "seed": seed}
    return RunSpec(condition.task, rollin_config(**options))


def described() -> Iterator[RunSpec[RollinConfig]]:
    """All runs of either reading."""
    for conditions in READINGS.values():
        for condition in conditions:
            yield from (spec_of(condition, seed) for seed in range(SEEDS))


def key_of(spec: RunSpec[RollinConfig]) -> Key:
    """What tells a run from the others, as in the CSVs."""
    config, algorithm = spec.config, spec.config.algorithm
    reading = "printed" if config.literal else "tables"
    told = (reading, spec.task, algorithm.method, f"{algorithm.rolls_in:g}", algorithm.sampling)
    return (*told, str(config.seed))


def run(
    out: Path, workers: int, seeds: int, reading: str, until: int | None, results: Path
) -> None:
    """Do what is left to do, seed by seed."""
    known = {key: int(rows[-1]["step"]) for key, rows in read("figures.csv", results).items()}
    jobs = []
    for seed in range(seeds):
        for condition in READINGS[reading]:
            spec, steps = spec_of(condition, seed), until or condition.until
            if known.get(key_of(spec), 0) < steps:
                jobs.append((spec, out / "-".join(key_of(spec)), steps))
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        for name, step in pool.imap_unordered(run_one, jobs, chunksize=1):
            print(f"{name}: step {step:,}", flush=True)


def run_one(job: tuple[RunSpec[RollinConfig], Path, int]) -> tuple[str, int]:
    """Train until so many steps are done; returns how many there are."""
    spec, path, until = job
    if (done := reached(path, spec)) >= until:
        return path.name, done
    step = 0

    def note(status: dict[str, Any]) -> None:
        nonlocal step
        step = int(status["step"])
        if not (path / MACHINE).exists():
            write_json(path / MACHINE, {"processor": processor()})

    command = "python -m studies.robots run"
    execute.run(spec, path, command, on_status=note, should_stop=lambda: step >= until)
    return path.name, reached(path, spec)


def reached(path: Path, spec: RunSpec[RollinConfig]) -> int:
    """The step from which a run would go on."""
    directory = RunDirectory(path)
    if directory.finished:
        return spec.config.steps
    saved = read_checkpoint(directory.checkpoint, directory.recorded_hash() or spec.hash)
    return saved.step if saved is not None else 0


# ------------------------------------------------------------------ collecting


def collect(out: Path, results: Path = RESULTS) -> None:
    """figures.csv, curves.csv and visits.csv with all runs below a directory."""
    found: dict[str, dict[Key, list[Sequence[Any]]]] = {name: {} for name in COLUMNS}
    known = {key: int(rows[-1]["step"]) for key, rows in read("figures.csv", results).items()}
    wanted = {key_of(spec): spec for spec in described()}
    for run_ in find_runs(out):
        try:
            spec, curve = run_.spec(), LearningCurve.read(run_)
            step, progress, seconds = progress_of(run_)
        except RollinError as error:
            print(f"Passed over {run_.path}: {error}")
            continue
        key = key_of(spec)
        if wanted.get(key) != spec:
            print(
                f"Passed over {run_.path}: its options are not those of a condition of this study"
            )
            continue
        if known.get(key, 0) > step:
            print(f"Passed over {run_.path}: the records have a longer run of its seed")
            continue
        machine = read_json(run_.path / MACHINE).get("processor", "")
        version = read_json(run_.path / "config.json")["versions"]["rollin"]
        rows: list[Sequence[Any]] = [
            [*row, run_.recorded_hash(), "", "", ""] for row in figures_of(run_, step, progress)
        ]
        rows[-1] = [*rows[-1][:-3], f"{seconds:.0f}", machine, version]
        found["figures.csv"][key] = rows
        found["curves.csv"][key] = list(curve_rows(curve, step))
        if spec.config.keep_replay:
            found["visits.csv"][key] = list(visits_of(run_))
    for name in ("figures.csv", "curves.csv", "visits.csv"):
        merge(name, found[name], results)
    print(f"{len(found['figures.csv'])} runs into {results}")


def curve_rows(curve: LearningCurve, step: int) -> Iterator[list[Any]]:
    """Rows of curves.csv, up to the step of the last checkpoint."""
    for i, at in enumerate(curve.steps):
        if at <= step:
            shown = (curve.values.get(name) for name in ("kappa", "x_velocity", "return"))
            yield [int(at), *("" if column is None else f"{column[i]:.6g}" for column in shown)]


def evaluate(out: Path, results: Path = RESULTS) -> None:
    """evaluation.csv: deterministic episodes of hopper's policies on all contexts."""
    found: dict[Key, list[Sequence[Any]]] = {}
    for run_ in find_runs(out):
        key = key_of(run_.spec())
        if key[KEY.index("task")] != "hopper":
            continue
        try:
            trained = TrainedRun.open(run_)
        except RollinError as error:
            print(f"Passed over {run_.path}: {error}")
            continue
        found[key] = []
        for k, kappa in enumerate(trained.kappas):
            played = trained.evaluate(k, EPISODES, EVALUATION_SEED, lambda *_: None)
            means = played.mean, played.measured["x_velocity"], trained.thresholds[k]
            told = [kappa, float(trained.contexts[k, 0]), *means]
            found[key].append([trained.step, *(f"{number:.6g}" for number in told)])
        trained.env.close()
    merge("evaluation.csv", found, results)


def figures_of(run_: RunDirectory, step: int, progress: Progress) -> Iterator[list[Any]]:
    """Figures at every EVERY steps, and at the last step reached."""
    spec = run_.spec()
    episodes = read_metrics(run_.path / "episodes.csv")
    measures = ("x_velocity",) if "x_velocity" in episodes else ()
    for at in sorted({*range(EVERY, step + 1, EVERY), step}):
        shown = figures_at(at, progress, episodes, measures, spec.config.last)
        shown["k"] = progress.k_at(at)
        ended = sum(end <= at for end in episodes["step"])
        cells = [shown.get(name) for name in FIGURES]
        yield [at, *("" if cell is None else f"{cell:.6g}" for cell in cells), ended]


def progress_of(run_: RunDirectory) -> tuple[int, Progress, float]:
    """The step that a run has reached, its way through the curriculum, and the time it took."""
    if run_.finished:
        result = run_.result()
        advances = [Advance(**advance) for advance in result["advances"]]
        kappas = result["curriculum"]["kappas"]
        progress = Progress(result["K"], result["k"], advances, kappas)
        return int(result["env_steps"]), progress, float(result["seconds"])
    saved = read_checkpoint(run_.checkpoint, run_.recorded_hash() or run_.spec().hash)
    if saved is None:
        raise RollinError("no checkpoint yet")
    progress = Progress(1, kappas=saved.values["curriculum"]["kappas"])
    progress.set_state(saved.values["rollin"]["progress"])
    return saved.step, progress, float(saved.values["seconds"])


def visits_of(run_: RunDirectory) -> Iterator[list[Any]]:
    """How many steps ended in each cell of the maze, from the file of all transitions."""
    env: ContextEnv = make_contextual(run_.spec().task)
    layout = RowLayout(env.observation_size, env.action_size, env.context_size, env.outcome_size)
    env.close()
    data = np.memmap(run_.path / REPLAY, np.float32, "r", offset=HEADER)
    rows = data[: len(data) // layout.width * layout.width].reshape(-1, layout.width)
    cells = np.floor(rows[:, -layout.outcome :] / CELL).astype(int)
    for (i, j), count in zip(*np.unique(cells, axis=0, return_counts=True), strict=True):
        yield [f"{i * CELL:g}", f"{j * CELL:g}", int(count)]


# ------------------------------------------------------------------ records


def read(name: str, results: Path = RESULTS) -> dict[Key, list[Row]]:
    """Rows of a CSV by run; nothing if it is not there yet."""
    found: dict[Key, list[Row]] = {}
    if (results / name).exists():
        with (results / name).open(newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault(tuple(row[part] for part in KEY), []).append(row)
    return found


def merge(name: str, new: Mapping[Key, Sequence[Sequence[Any]]], results: Path) -> None:
    """Put runs in the place of their older rows, and leave those of all others as they are."""
    columns = COLUMNS[name]
    rows: dict[Key, Sequence[Sequence[Any]]] = {
        key: [[row[column] for column in columns] for row in old]
        for key, old in read(name, results).items()
    }
    rows |= new
    ordered = sorted(rows, key=lambda key: (*key[:-1], int(key[-1])))
    lines: Iterable[Sequence[Any]] = ([*key, *row] for key in ordered for row in rows[key])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[*KEY, *columns], *lines])
    results.mkdir(parents=True, exist_ok=True)
    write_atomically(results / name, text.getvalue().encode())


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="The paper's robots with seeds.")
    parser.add_argument("what", choices=["run", "collect", "evaluate"])
    parser.add_argument("--out", type=Path, default=Path("runs/robots"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--reading", choices=[*READINGS], default="tables")
    parser.add_argument("--until", type=int, help="steps of every run; else its condition's")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the records are")
    options = parser.parse_args()
    if options.what == "run":
        run(
            options.out,
            options.jobs,
            options.seeds,
            options.reading,
            options.until,
            options.results,
        )
    else:
        {"collect": collect, "evaluate": evaluate}[options.what](options.out, options.results)


if __name__ == "__main__":
    main()
