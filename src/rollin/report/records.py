"""A finished run, whatever its engine: its final figures, a figure at any step, its curves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rollin.curriculum.progress import Progress
from rollin.report.learning_curve import LearningCurve, measures_of, read_episodes
from rollin.report.lines import Trace
from rollin.runs.directory import RunDirectory
from rollin.runs.spec import RunSpec, TabularConfig
from rollin.runs.windows import figures_at


@dataclass(frozen=True)
class RunRecord:
    """A finished run: what it was and its final figures.

    path: None if it came from a CSV; fingerprint: of the task that was run, empty if unknown.
    """

    spec: RunSpec[Any]
    figures: Mapping[str, Any]
    path: Path | None = None
    fingerprint: str = field(default="", kw_only=True)

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
        episodes = self._episodes
        if episodes["step"][-1] < step:  # a run ends with an episode: the file was cut off
            return None
        last = self.spec.config.last
        return figures_at(step, self.progress, episodes, measures_of(episodes), last)

    @cached_property
    def _episodes(self) -> dict[str, list[float]]:
        return read_episodes(RunDirectory(self.path)) if self.path else {}


def _number(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
