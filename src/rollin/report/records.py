"""A finished run, whatever its engine: its final figures, a figure at any step, its curves."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rollin.curriculum import Advance, Progress
from rollin.errors import RollinError
from rollin.report.learning import LearningCurve, measures_of, read_episodes
from rollin.report.lines import Trace
from rollin.runs.figures import figures_at
from rollin.runs.spec import RunSpec, TabularConfig
from rollin.runs.store import RunDirectory, read_metrics

CURVE_POINTS = 50  # of the return of a tabular run


@dataclass(frozen=True)
class RunRecord:
    """A finished run: what it was and its final figures; path: None if it came from a CSV."""

    spec: RunSpec[Any]
    figures: Mapping[str, Any]
    path: Path | None = None

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.spec.config.seed

    @property
    def steps(self) -> int:
        """Its length."""
        return self.spec.config.steps

    @property
    def seconds(self) -> float:
        """What it took on its core."""
        return float(self.figures.get("seconds", 0.0))

    def figure(self, name: str, step: int) -> float | None:
        """A figure at a step; None if the run does not tell it."""
        return _number(self.figures.get(name)) if step == self.steps else None

    def trace(self, name: str) -> Trace | None:
        """A quantity against steps; None if the run does not tell it."""
        return None


@dataclass(frozen=True)
class TabularRecord(RunRecord):
    """A run of a tabular task: the switches of context, and its return at evenly spaced steps."""

    switch_steps: Sequence[float] = ()
    success_rho: Sequence[float] = ()
    success_mu: Sequence[float] = ()
    curve_steps: Sequence[float] = ()
    curve_returns: Sequence[float] = ()

    @property
    def config(self) -> TabularConfig:
        """The options it ran with."""
        return self.spec.config

    @property
    def k(self) -> int:
        """Last context reached."""
        return int(self.figures["k"])

    def trace(self, name: str) -> Trace | None:
        """κ as it stepped up, or the return."""
        if name == "kappa":
            count = len(self.switch_steps)
            ks = np.array([*range(count + 1), count], np.float64)
            return Trace(np.array([0.0, *self.switch_steps, self.steps]), ks / self.figures["K"])
        if name == "return":
            return Trace(np.array(self.curve_steps), np.array(self.curve_returns))
        return None


@dataclass(frozen=True)
class RollinRecord(RunRecord):
    """A run of ROLLIN on a contextual environment."""

    curve: LearningCurve | None = None
    progress: Progress | None = None

    def figure(self, name: str, step: int) -> float | None:
        """As result.json has it, or computed from the episodes and advances before the step."""
        known = self.figures["milestones"].get(str(step))
        if known is None and step == self.steps:
            known = self.figures
        elif known is None and 0 < step < self.steps:
            known = self._figures_at(step)
        return _number((known or {}).get(name))

    def trace(self, name: str) -> Trace | None:
        """κ, return or a measure."""
        curve = self.curve
        return curve.trace(name) if curve is not None and name in curve.values else None

    def _figures_at(self, step: int) -> dict[str, Any] | None:
        if self.path is None or self.progress is None:
            return None
        measures = measures_of(self._episodes)
        return figures_at(step, self.progress, self._episodes, measures, self.spec.config.last)

    @cached_property
    def _episodes(self) -> dict[str, list[float]]:
        return read_episodes(RunDirectory(self.path)) if self.path else {}


def _number(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def read_record(run: RunDirectory) -> RunRecord:
    """A finished run as its directory has it; what cannot be read is refused with the reason."""
    try:
        return _read(run)
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise RollinError(f"its files cannot be read: {what}") from error
    except OSError as error:
        raise RollinError(f"{error.filename} could not be read: {error.strerror}") from error


def _read(run: RunDirectory) -> RunRecord:
    result, spec = run.result(), run.spec()
    found: RunRecord
    if spec.config.engine == "tabular":
        found = _read_tabular(run, spec, result)
    elif spec.config.engine == "rollin":
        dict(result["milestones"])
        found = RollinRecord(spec, result, run.path, LearningCurve.read(run), _progress(result))
    else:
        found = RunRecord(spec, result, run.path)
    for name in (*NEEDED[spec.config.engine], "seconds"):
        float(result[name])
    return found


NEEDED = {
    "tabular": ("kappa", "final_return", "final_return_infinite", "k", "K"),
    "rollin": ("kappa", "k", "K", "env_steps"),
    "sac": ("eval_return", "env_steps"),
}


def _progress(result: dict[str, Any]) -> Progress:
    advances = [Advance(int(a["step"]), int(a["k"]), str(a["reason"])) for a in result["advances"]]
    kappas = [float(kappa) for kappa in result["curriculum"]["kappas"]]
    return Progress(int(result["K"]), int(result["k"]), advances, kappas)


def _read_tabular(
    run: RunDirectory, spec: RunSpec[TabularConfig], result: dict[str, Any]
) -> TabularRecord:
    metrics = read_metrics(run.path / "metrics.csv")
    steps, returns = metrics.get("step"), metrics.get("return_horizon")
    if not (steps and returns):
        raise RollinError("metrics.csv has no rows")
    stride = max(1, math.ceil(len(steps) / CURVE_POINTS))
    kept = slice(stride - 1, None, stride)
    switches = result["switches"]
    at, rho, mu = (
        [float(s[name]) for s in switches] for name in ("step", "success_rho", "success_mu")
    )
    return TabularRecord(spec, result, run.path, at, rho, mu, steps[kept], returns[kept])
