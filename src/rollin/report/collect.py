"""Reads finished runs, from run directories or from the CSV that `write_runs_csv` makes of them.

One row of the CSV is one run: what it was, what it reached, and its two curves (the steps at which
it advanced, and its return at evenly spaced steps), so that a page can be made from it alone.
"""

import csv
import io
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.runs.files import read_json, write_atomically
from rollin.runs.spec import RunSpec, TabularConfig
from rollin.runs.store import RunDirectory, read_metrics
from rollin.runs.sweep import find_runs

RUNS_FILE = "runs.csv"
CURVE_POINTS = 50  # of the return curve kept in the CSV
IDENTITY = ("reward", "alpha", "beta", "seed", "steps")
FIGURES = (
    "k",
    "K",
    "kappa",
    "final_return",
    "final_return_infinite",
    "success",
    "env_steps",
    "rollin_steps",
    "rollin_steps_expected",
    "seconds",
)
LISTS = ("switch_steps", "success_rho", "success_mu", "curve_steps", "curve_returns")


@dataclass(frozen=True)
class RunRecord:
    """A finished run, as far as tables and curves need it."""

    spec: RunSpec[TabularConfig]
    figures: dict[str, float]
    switch_steps: list[float]
    success_rho: list[float]
    success_mu: list[float]
    curve_steps: list[float]
    curve_returns: list[float]
    path: Path | None = None

    @property
    def config(self) -> TabularConfig:
        """The options it ran with."""
        return self.spec.config

    @property
    def k(self) -> int:
        """Last context reached."""
        return int(self.figures["k"])


@dataclass
class Collection:
    """Runs found, and what was passed over with the reason."""

    records: list[RunRecord] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    _where: dict[str, Path] = field(default_factory=dict)

    def add(self, record: RunRecord, path: Path) -> None:
        """Take a run, unless the very same one was found before."""
        first = self._where.get(record.spec.hash)
        if first is None:
            self._where[record.spec.hash] = path
            self.records.append(record)
        elif first != path:
            self.skipped.append(f"{path}: the same run as {first}")


def collect(directories: list[Path]) -> Collection:
    """All finished runs below some directories; unfinished or broken ones are named, not read."""
    found = Collection()
    for directory in directories:
        runs = find_runs(directory)
        if not runs and (directory / RUNS_FILE).is_file():
            for record in read_runs_csv(directory / RUNS_FILE):
                found.add(record, directory / RUNS_FILE)
            continue
        for run in runs:
            try:
                if not run.finished:
                    found.skipped.append(f"{run.path}: not finished")
                    continue
                found.add(_read_run(run), run.path)
                _note_origin(found, run)
            except (RollinError, KeyError, TypeError, ValueError, OSError) as error:
                found.skipped.append(f"{run.path}: {error}")
    if not found.records:
        names = ", ".join(str(d) for d in directories)
        reasons = f" Passed over {'; '.join(found.skipped[:2])}." if found.skipped else ""
        raise RollinError(
            f"No finished run of a tabular task below {names}: give a directory that rollin train "
            f"four-rooms, demo or reproduce has written.{reasons}"
        )
    return found


def _note_origin(found: Collection, run: RunDirectory) -> None:
    config = read_json(run.path / "config.json")
    if (command := config.get("command")) and command not in found.commands:
        found.commands.append(command)
    found.versions = config.get("versions", found.versions)


def _read_run(run: RunDirectory) -> RunRecord:
    result, spec = run.result(), run.spec()
    if spec.config.engine != "tabular":
        raise RollinError(f"a run of {spec.task}: reports are made of tabular runs")
    metrics = read_metrics(run.path / "metrics.csv")
    steps, returns = metrics["step"], metrics["return_horizon"]
    if not steps:
        raise RollinError("metrics.csv has no rows")
    stride = max(1, math.ceil(len(steps) / CURVE_POINTS))
    kept = slice(stride - 1, None, stride)
    return RunRecord(
        spec,
        {name: float(result[name]) for name in FIGURES},
        [float(s["step"]) for s in result["switches"]],
        [float(s["success_rho"]) for s in result["switches"]],
        [float(s["success_mu"]) for s in result["switches"]],
        steps[kept],
        returns[kept],
        run.path,
    )


def write_runs_csv(path: Path, records: list[RunRecord]) -> None:
    """One row per run, small enough to commit."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*IDENTITY, *FIGURES, *LISTS, "spec_hash"])
    for record in records:
        config = record.config
        row: list[Any] = [getattr(config, name) for name in IDENTITY]
        row += [f"{record.figures[name]:.10g}" for name in FIGURES]
        row += [" ".join(f"{v:.4g}" if "step" not in n else f"{v:.0f}" for v in getattr(record, n))
                for n in LISTS]  # fmt: skip
        writer.writerow([*row, record.spec.hash])
    write_atomically(path, out.getvalue().encode())


def read_runs_csv(path: Path) -> list[RunRecord]:
    """Read what `write_runs_csv` wrote (four-room runs with the default options)."""
    records = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            try:
                records.append(_record_from_row(row))
            except (AttributeError, KeyError, RollinError, TypeError, ValueError) as error:
                raise RollinError(f"{path}, line {number} cannot be read: {error}.") from error
    return records


def _record_from_row(row: dict[str, str]) -> RunRecord:
    reward = row["reward"]
    if reward != "easy" and reward != "hard":
        raise ValueError(f"unknown reward {reward!r}")
    config = TabularConfig(
        reward=reward,
        alpha=float(row["alpha"]),
        beta=float(row["beta"]),
        seed=int(row["seed"]),
        steps=int(row["steps"]),
    )
    spec = RunSpec("four-rooms", config)
    if row["spec_hash"] != spec.hash:
        raise ValueError("its spec_hash does not belong to its options")
    lists = {name: [float(v) for v in row[name].split()] for name in LISTS}
    return RunRecord(spec, {n: float(row[n]) for n in FIGURES}, **lists, path=None)
