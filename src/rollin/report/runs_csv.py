"""Four-room runs in one small CSV, which can be committed and made a page of.

One row is one run: what it was, what it reached, the steps at which it advanced, and its return at
evenly spaced steps.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.report.records import TabularRecord
from rollin.runs.files import write_atomically
from rollin.runs.spec import RunSpec, TabularConfig

RUNS_FILE = "runs.csv"
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


def write_runs_csv(path: Path, records: Sequence[TabularRecord]) -> None:
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


def fits_csv(record: TabularRecord) -> bool:
    """Whether a run is told from others by what the CSV holds: four rooms with its own options."""
    return record.spec.hash == RunSpec("four-rooms", _config(record.config)).hash


def read_runs_csv(path: Path) -> list[TabularRecord]:
    """Read what `write_runs_csv` wrote."""
    records = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            try:
                records.append(_record_from_row(row))
            except (AttributeError, KeyError, RollinError, TypeError, ValueError) as error:
                raise RollinError(f"{path}, line {number} cannot be read: {error}.") from error
    return records


def _config(like: TabularConfig) -> TabularConfig:
    return TabularConfig(like.reward, like.alpha, like.beta, like.steps, like.seed)


def _record_from_row(row: dict[str, str]) -> TabularRecord:
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
    return TabularRecord(spec, {n: float(row[n]) for n in FIGURES}, None, **lists)
