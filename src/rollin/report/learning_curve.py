"""The learning curve of one deep run, read from its files, and what that run is called."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollin.deep.options import RollinOptions
from rollin.envs.registry import TASKS
from rollin.errors import RollinError
from rollin.paper.robots import VARIED, parts_of
from rollin.report.checks import check_order
from rollin.report.lines import Array, Trace
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.rollin import EPISODE_COLUMNS
from rollin.runs.rows import read_metrics
from rollin.runs.spec import RollinConfig, RunSpec, rollin_config
from rollin.runs.windows import means_at
from rollin.sweeps.study import FREE


@dataclass(frozen=True)
class LearningCurve:
    """One run, finished or not: steps, and at each of them κ, the return and measures.

    Return and measures are of training, averaged over the steps before, as in the paper's tables.
    """

    spec: RunSpec[RollinConfig]
    steps: Array
    values: dict[str, Array]

    @classmethod
    def read(cls, run: RunDirectory) -> "LearningCurve":
        """From a run's metrics.csv and episodes.csv."""
        spec = run.spec()
        if spec.config.engine != "rollin":
            raise RollinError(f"a run of the engine {spec.config.engine}")
        metrics, episodes = _columns(run.path / "metrics.csv"), read_episodes(run)
        if not (metrics.get("step") and episodes.get("step")):
            raise RollinError("no metrics yet")
        if not all(0 <= kappa <= 1 for kappa in metrics["kappa"]):
            raise RollinError("metrics.csv has a κ that is not between 0 and 1")
        check_order(metrics["step"], "metrics.csv")
        measures = measures_of(episodes)
        arrays: Any = {name: np.array(column) for name, column in episodes.items()}
        means = [means_at(int(s), arrays, measures, spec.config.last) for s in metrics["step"]]
        values = {"kappa": np.array(metrics["kappa"])}
        for name in (*measures, "return"):
            values[name] = np.array([mean[name] for mean in means], np.float64)  # None is NaN
        return cls(spec, np.array(metrics["step"]), values)

    def trace(self, name: str) -> Trace:
        """One of its quantities."""
        return Trace(self.steps, self.values[name])

    @property
    def label(self) -> str:
        """What tells the run from others of its task but for the seed."""
        return ", ".join(filter(None, (method_of(self.options), setting_of(self.spec))))

    @property
    def options(self) -> RollinOptions:
        """Of the algorithm."""
        return self.spec.config.algorithm


def read_episodes(run: RunDirectory) -> dict[str, list[float]]:
    """Columns of a run's episodes.csv, none if there is no such file yet."""
    episodes = _columns(run.path / "episodes.csv")
    if any(not length > 0 for length in episodes.get("length", ())):
        raise RollinError("episodes.csv has an episode without length")
    check_order(episodes.get("step", ()), "episodes.csv")
    return episodes


def measures_of(episodes: Iterable[str]) -> list[str]:
    """What the environment itself measures, among the columns of an episodes.csv."""
    return [name for name in episodes if name not in EPISODE_COLUMNS]


def _columns(path: Path) -> dict[str, list[float]]:
    return read_metrics(path) if path.exists() else {}


# ------------------------------------------------------------------ what a run is called


def method_of(options: RollinOptions) -> str:
    """The method in words."""
    if options.method == "scratch":
        return "scratch"
    if options.rolls_in == 0:
        return "baseline"
    return f"{'ROLLIN' if options.method == 'rollin' else 'fresh explorer'} β = {options.beta:g}"


def setting_of(spec: RunSpec[RollinConfig]) -> str:
    """Whatever else differs from the task's own options, in words."""
    options = spec.config.algorithm
    words = ["geometric"] * (options.sampling == "geometric")
    words += ["relabelling"] * options.relabel
    words += [f"noise {options.go_explore:g}"] * (options.go_explore > 0)
    parts = parts_of(spec)
    if parts is not None:
        words.append(f"Δ = 1/{parts}" if parts else f"Δ = {spec.config.delta:.4g}")
    defaults = TASKS[spec.task].defaults if spec.task in TASKS else {}
    return ", ".join(words + _differences(spec.config, rollin_config(**defaults)))


def _differences(one: Any, other: Any) -> list[str]:
    """Options that differ, as `name value`, but for those that have words or say nothing."""
    found: list[str] = []
    for field in fields(one):
        mine, own = getattr(one, field.name), getattr(other, field.name)
        if is_dataclass(mine):
            found += _differences(mine, own)
        elif mine != own and field.name not in (*FREE, *VARIED, "delta"):
            shown = f"{mine:.4g}" if isinstance(mine, float) else mine
            shown = " ".join(map(str, mine)) if isinstance(mine, tuple) else shown
            found.append(f"{field.name} {shown}")
    return found


def one_per_seed(curves: Sequence[LearningCurve]) -> list[LearningCurve]:
    """The longest curve of every task, condition and seed."""
    longest: dict[tuple[str, str, int], LearningCurve] = {}
    for curve in curves:
        key = (curve.spec.task, curve.label, curve.spec.config.seed)
        if key not in longest or curve.steps[-1] > longest[key].steps[-1]:
            longest[key] = curve
    return list(longest.values())
