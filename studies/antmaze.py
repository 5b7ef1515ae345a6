"""AntMaze with seeds: do the runs of `rollin.paper.decisive`, and collect what they have reached.

    python -m studies.antmaze run --out runs/antmaze          # resumes where it stopped
    python -m studies.antmaze collect --out runs/antmaze      # into results/antmaze

`run` first brings all runs to the step at which they are read, seed by seed, then to their end; a
stop at any time leaves equal seeds. Runs whose committed record has come as far are left out, so
that another machine continues with the next. A single study, or one that is not in `ORDER`, is run
by `rollin reproduce antmaze-tuning --until 1500000 --out runs/antmaze`.
"""

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rollin.analysis.collect import collect as collect_records
from rollin.analysis.collect import group
from rollin.cli.console import make_console
from rollin.cli.study_runs import run_sweep
from rollin.paper.antmaze import STEP
from rollin.paper.decisive import AT, FAMILY, studies
from rollin.report.maps import visit_maps
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.rollin_run import DRAWN
from rollin.runs.engines.rollin_run import GOALS as GOALS_FILE
from rollin.runs.records import Record, condition_text
from rollin.runs.spec import Job
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.machine import cores
from studies.shared import RESULTS as ROOT
from studies.shared import Key, committed, keep, key_of, merge_rows, newer

RESULTS = ROOT / "antmaze"
ORDER = ("antmaze-decisive", "antmaze-adaptive", "antmaze-scratch")
GOALS = ("step", "goal", "success", "return", "drawn_success", "drawn_return")
"""Columns of goals.csv; goal: from 1, the last is the final one."""
VISITED = ("k", "cells")
"""Columns of visits.csv; cells: `column row steps` of each that steps ended in, of side `CELL`."""
CELL = 0.5  # metres


def run(out: Path, jobs: int, results: Path = RESULTS) -> int:
    """Do what is left to do; return the exit code."""
    done = {key_of(record): record.step for record in committed(results)}
    command = shlex.join(["python", "-m", "studies.antmaze", *sys.argv[1:]])
    for until in (AT, STEP):
        for study in (studies()[name] for name in ORDER):
            sweep = study.sweep(out, study.seeds, until=until)
            left = tuple(job for job in sweep.jobs if done.get(_key(job), 0) < until)
            sweep = replace(sweep, jobs=left)
            end = run_sweep(sweep, lambda: LocalExecutor(jobs, command), command, make_console())
            end.check()
            if not end.complete:
                return end.code
    return 0


def collect(out: Path, results: Path = RESULTS) -> None:
    """Add the records of all runs below a directory, and their goals, to the committed ones."""
    known = list(studies().values())
    found = collect_records([out], known, unfinished=True)
    for note in found.skipped:
        print(f"Passed over {note}")
    of_studies = [
        replace(record, labels=condition.labels, family=FAMILY)
        for condition, by_scale in group(found.records, known).runs.items()
        for record in by_scale.get(1.0, [])
    ]
    records = list(newer(of_studies, results))
    goals = {}
    visits = {}
    for record in records:
        if record.path is not None:
            goals[key_of(record)] = list(goals_of(RunDirectory(record.path)))
            visits[key_of(record)] = list(visits_of(record))
    keep(records, results)
    merge_rows(results / "goals.csv", GOALS, goals)
    merge_rows(results / "visits.csv", VISITED, visits)
    print(f"{len(records)} runs into {results}")


def goals_of(run_: RunDirectory) -> Iterator[Sequence[Any]]:
    """Rows of goals.csv of a run: each goal at each reading."""
    saved = None if run_.finished else run_.saved()
    if not (run_.path / GOALS_FILE).exists():
        return
    if saved is not None and not run_.rows_counted(GOALS_FILE, saved).rows:
        return
    columns = run_.columns(GOALS_FILE, {}, saved)
    for row, step in enumerate(columns["step"]):
        for goal in range(1, len(columns) // 4 + 1):
            names = (f"success_{goal}", f"return_{goal}")
            names += tuple(DRAWN + name for name in names)
            yield [int(step), goal, *(f"{columns[name][row]:.6g}" for name in names)]


def visits_of(record: Record) -> Iterator[Sequence[Any]]:
    """Rows of visits.csv of a run: where its steps ended, under each context."""
    for panel in visit_maps(record, most=sys.maxsize).panels:
        inside = np.floor(panel.places / CELL).astype(int)
        cells, where = np.unique(inside, axis=0, return_inverse=True)
        steps = np.bincount(where.ravel(), panel.steps)
        parts = [f"{i} {j} {n:.0f}" for (i, j), n in zip(cells, steps, strict=True)]
        yield panel.ks[0], ";".join(parts)


def _key(job: Job) -> Key:
    assert job.of is not None
    return condition_text(job.of.labels), str(job.spec.config.seed)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="AntMaze with seeds.")
    parser.add_argument("what", choices=["run", "collect"])
    parser.add_argument("--out", type=Path, default=Path("runs/antmaze"))
    parser.add_argument("--jobs", type=int, default=cores(), help="runs side by side")
    given = parser.parse_args()
    if given.what == "collect":
        collect(given.out)
    else:
        sys.exit(run(given.out, given.jobs))


if __name__ == "__main__":
    main()
