"""Four-room runs in one small CSV, which can be committed and made a page of.

One row is one run: what it was, what it reached, the steps at which it advanced, and its return at
evenly spaced steps.
"""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollin.errors import RollinError, reason
from rollin.report.checks import check_figures, check_order, check_places, number
from rollin.report.records import TabularRecord
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


def runs_csv(records: Sequence[TabularRecord]) -> bytes:
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
    return out.getvalue().encode()


def fits_csv(record: TabularRecord) -> bool:
    """Whether a run is told from others by what the CSV holds: four rooms with its own options."""
    return record.spec.hash == RunSpec("four-rooms", _config(record.config)).hash


def read_runs_csv(path: Path) -> list[TabularRecord]:
    """Read what `runs_csv` made."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise RollinError(f"{path} cannot be read: {error}.") from error
    except OSError as error:
        raise RollinError(f"{path} could not be read: {reason(error)}.") from error
    records = []
    for line, row in enumerate(rows, 2):
        try:
            records.append(_record_from_row(row))
        except KeyError as error:
            raise RollinError(f"{path}, line {line} cannot be read: lacks {error}.") from error
        except (AttributeError, RollinError, TypeError, ValueError) as error:
            raise RollinError(f"{path}, line {line} cannot be read: {error}.") from error
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
    figures = {name: float(row[name]) for name in FIGURES}
    lists = {name: [float(v) for v in row[name].split()] for name in LISTS}
    _check_row(figures, lists)
    return TabularRecord(spec, figures, None, *(lists[name] for name in LISTS))


def _check_row(figures: dict[str, float], lists: dict[str, list[float]]) -> None:
    for name in figures:
        number(figures, name)
    check_figures(figures)
    check_places(figures)
    for name in ("switch_steps", "curve_steps"):
        check_order(lists[name], name)
    groups = (("switch_steps", "success_rho", "success_mu"), ("curve_steps", "curve_returns"))
    for group in groups:
        if len({len(lists[name]) for name in group}) > 1:
            raise ValueError(f"{', '.join(group)} are not equally long")
    if not all(math.isfinite(value) for values in lists.values() for value in values):
        raise ValueError("a list has a value that is not finite")
    if not lists["curve_steps"]:
        raise ValueError("its curve is empty")
    if len(lists["switch_steps"]) > figures["K"]:
        raise ValueError("it has more switches than contexts")
