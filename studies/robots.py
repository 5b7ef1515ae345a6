"""The paper's robots with seeds: run the conditions below, and collect what they have reached.

    python -m studies.robots run --out runs/robots --jobs 2     # goes on where it stopped
    python -m studies.robots collect --out runs/robots          # into results/robots
    python -m studies.robots evaluate --out runs/robots         # hopper's policies on all contexts

A run has the paper's length, but is stopped after UNTIL steps, from where it can go on later.
Seeds come one after the other, all conditions of each, so that a stop at any time leaves equal
seeds. `collect` takes a run as far as it has come, and keeps the committed records of runs that are
not there any more; `run` leaves out what these have already reached, so that another machine goes
on with the next seeds.

--reading printed repeats the first look at these tasks, one seed each with the curricula as the
paper's text has them (see docs/results/robots.md).
"""

import argparse
import math
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rollin.analysis.collect import collect as collect_records
from rollin.analysis.collect import group
from rollin.deep.evaluate import EVALUATION_SEED
from rollin.envs.context_env import ContextEnv
from rollin.envs.registry import make_contextual
from rollin.errors import RollinError
from rollin.paper import antmaze, velocity
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import condition_key, engine, spec_of
from rollin.runs.engines import run as run_spec
from rollin.runs.engines.rollin_run import REPLAY
from rollin.runs.files import make_directory, read_json, write_atomically
from rollin.runs.records import MetricAt, write_records
from rollin.runs.spec import Membership, RunSpec
from rollin.sac.replay import HEADER, RowLayout
from rollin.sweeps.condition import Condition, Published
from rollin.sweeps.study import Study
from rollin.sweeps.sweep import find_runs
from studies.shared import RESULTS as ROOT
from studies.shared import Key, committed, key_of, merge_rows, newer, rows_by_run

RESULTS = ROOT / "robots"
SEEDS = 8  # of the paper
UNTIL = 500_000  # steps; the paper reads at these and at twice as many
EVERY = 50_000  # steps between two readings
EPISODES = 5  # of an evaluation, on each context
CELL = 0.25  # metres, of visits.csv
COLUMNS = {
    "evaluation.csv": ("step", "kappa", "level", "return", "x_velocity", "threshold"),
    "visits.csv": ("x", "y", "steps"),
}
"""What no run records: of policies played, and of the file of all transitions."""

_MAZE = {"sampling": "geometric", "keep_replay": True}
_PRINTED = {"literal": True, "kappa": "index", "head_gain": math.sqrt(2.0), "exp_fill": 256}
"""With what the code had before the published tables were read closely, under today's options."""


def _published(task: str, method: str, sampling: str) -> Mapping[MetricAt, Published]:
    """What the paper prints of a condition."""
    told = {"env": task, "method": method, "beta": "0.1" if method == "rollin" else "0"}
    maze = {"setting": "vanilla", "noise": "0", "sampling": sampling, "delta": "1/24"}
    for known in (*velocity.conditions(), *antmaze.conditions()):
        if known.labels in (told, {**maze, **told}):
            return known.published
    return {}


def _condition(reading: str, task: str, method: str, **options: Any) -> Condition:
    beta = "0.1" if method == "rollin" else "0"
    labels = {"reading": reading, "env": task, "method": method, "beta": beta}
    printed = _PRINTED if reading == "printed" else {}
    given = {"method": method, **options, **printed}
    sampling = str(options.get("sampling", "uniform"))
    return Condition(labels, task, given, _published(task, method, sampling))


CONDITIONS = {
    _condition("tables", "hopper", "baseline"): UNTIL,
    _condition("tables", "hopper", "rollin"): UNTIL,
    _condition("tables", "ant", "baseline"): UNTIL,
    _condition("tables", "ant", "rollin"): UNTIL,
    _condition("tables", "hopper", "scratch"): UNTIL,
}
FIRST_LOOK = {
    _condition("printed", "hopper", "rollin"): UNTIL,
    _condition("printed", "hopper", "baseline"): UNTIL,
    _condition("printed", "hopper", "scratch"): UNTIL,
    _condition("printed", "antmaze-umaze", "rollin", **_MAZE): 300_000,
    _condition("printed", "antmaze-umaze", "baseline", **_MAZE): 300_000,
    _condition("printed", "humanoid", "rollin"): 273_000,
    _condition("printed", "walker", "rollin"): 131_000,
    _condition("printed", "ant", "rollin"): 102_000,
}
READINGS = {"tables": CONDITIONS, "printed": FIRST_LOOK}
"""Conditions with the step at which their runs stop."""


def _study(conditions: tuple[Condition, ...], step: int = UNTIL) -> Study:
    return Study(
        "robots",
        conditions,
        tuple(MetricAt(quantity, step) for quantity in velocity.QUANTITIES),
        SEEDS,
        rows=("reading", "env"),
        columns=("method", "beta"),
        baseline="method=baseline",
        compared="method=rollin",
        title="The paper's robots with seeds",
    )


STUDY = _study((*CONDITIONS, *FIRST_LOOK))


# ------------------------------------------------------------------ running


def run(
    out: Path, workers: int, seeds: int, reading: str, until: int | None, results: Path
) -> None:
    """Do what is left to do, seed by seed."""
    known = {key_of(record): record.step for record in committed(results)}
    begun = {run_.recorded_hash(): run_.path for run_ in find_runs(out)} if out.is_dir() else {}
    jobs = []
    for seed in range(seeds):
        for condition, default in READINGS[reading].items():
            steps = until or default
            if known.get((condition.name, str(seed)), 0) < steps:
                spec, member = condition.spec(seed), condition.membership(STUDY.shared)
                place = out / condition.directory / f"seed={seed}"
                jobs.append((spec, begun.get(spec.hash, place), steps, member))
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        for name, step in pool.imap_unordered(run_one, jobs, chunksize=1):
            print(f"{name}: step {step:,}", flush=True)


def run_one(job: tuple[RunSpec[Any], Path, int, Membership]) -> tuple[str, int]:
    """Train until so many steps are done; returns how many there are."""
    spec, path, until, member = job
    name = f"{path.parent.name}/{path.name}"
    if (done := reached(path, spec)) >= until:
        return name, done
    run_spec(spec, path, "python -m studies.robots run", of=member, until=until)
    return name, reached(path, spec)


def reached(path: Path, spec: RunSpec[Any]) -> int:
    """The step from which a run would go on."""
    directory = RunDirectory(path)
    if directory.finished:
        return spec.config.steps
    try:
        return directory.saved().step
    except RollinError:  # nothing yet
        return 0


# ------------------------------------------------------------------ collecting


def collect(out: Path, results: Path = RESULTS) -> None:
    """Records of all runs below a directory, put to those that are kept, and visits.csv."""
    every = _study(STUDY.conditions)
    steps = range(EVERY, UNTIL + 1, EVERY)
    wide = replace(every, readings=tuple(MetricAt("kappa", step) for step in steps))
    found = collect_records([out], [wide], unfinished=True)
    for note in found.skipped:
        print(f"Passed over {note}")
    grouping = group(found.records, [every])
    for record in grouping.others:
        print(f"Passed over {record.path}: its options are not those of a condition of this study")
    of_study = [
        replace(
            record,
            labels=condition.labels,
            family=STUDY.shared,
            scale=1.0,
            processor=record.processor or earlier_machine(record.path),
        )
        for condition, by_scale in grouping.runs.items()
        for runs in by_scale.values()
        for record in runs
    ]
    records = list(newer(of_study, results))
    visits = {
        key_of(record): list(visits_of(RunDirectory(record.path)))
        for record in records
        if record.path is not None and record.options.get("keep_replay")
    }
    all_of_them = {key_of(record): record for record in (*committed(results), *records)}
    ordered = sorted(all_of_them.values(), key=lambda r: (key_of(r)[0], r.seed))
    make_directory(results)
    for name, text in write_records(ordered).items():
        write_atomically(results / name, text)
    merge_rows(results / "visits.csv", COLUMNS["visits.csv"], visits)
    print(f"{len(records)} runs into {results}")


def earlier_machine(path: Path | None) -> str:
    """Where a run of 0.1.0 was begun, which had a file of its own for that."""
    file = None if path is None else path / "machine.json"
    return str(read_json(file).get("processor", "")) if file and file.exists() else ""


def evaluate(out: Path, results: Path = RESULTS) -> None:
    """evaluation.csv: deterministic episodes of hopper's policies on all contexts."""
    found: dict[Key, list[Sequence[Any]]] = {}
    names = {condition.key(): condition.name for condition in STUDY.conditions}
    for run_ in find_runs(out):
        if run_.config.task != "hopper":
            continue
        try:
            spec = spec_of(run_)
            trained = engine(run_.config.engine).playable(run_)
        except RollinError as error:
            print(f"Passed over {run_.path}: {error}")
            continue
        key = names[condition_key(spec)], str(spec.config.seed)
        found[key] = []
        for k, kappa in enumerate(trained.kappas):
            played = trained.evaluate(k, EPISODES, EVALUATION_SEED, lambda *_: None)
            means = played.mean, played.measured["x_velocity"], trained.thresholds[k]
            told = [kappa, float(trained.contexts[k, 0]), *means]
            found[key].append([trained.step, *(f"{number:.6g}" for number in told)])
        trained.env.close()
    merge_rows(results / "evaluation.csv", COLUMNS["evaluation.csv"], found)


def visits_of(run_: RunDirectory) -> Iterator[list[Any]]:
    """How many steps ended in each cell of the maze, from the file of all transitions."""
    env: ContextEnv = make_contextual(run_.config.task)
    layout = RowLayout(env.observation_size, env.action_size, env.context_size, env.outcome_size)
    env.close()
    data = np.memmap(run_.path / REPLAY, np.float32, "r", offset=HEADER)
    rows = data[: len(data) // layout.width * layout.width].reshape(-1, layout.width)
    cells = np.floor(rows[:, -layout.outcome :] / CELL).astype(int)
    for (i, j), count in zip(*np.unique(cells, axis=0, return_counts=True), strict=True):
        yield [f"{i * CELL:g}", f"{j * CELL:g}", int(count)]


def read(name: str, results: Path = RESULTS) -> dict[Key, list[dict[str, str]]]:
    """Rows of evaluation.csv or visits.csv by run; empty if it is not there yet."""
    return rows_by_run(results / name)


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
    given = parser.parse_args()
    if given.what == "run":
        run(given.out, given.jobs, given.seeds, given.reading, given.until, given.results)
    else:
        {"collect": collect, "evaluate": evaluate}[given.what](given.out, given.results)


if __name__ == "__main__":
    main()
