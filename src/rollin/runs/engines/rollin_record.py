"""What a run of ROLLIN gave, from its files."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from rollin.curriculum.progress import Advance, Progress
from rollin.errors import RollinError
from rollin.runs.checkpoint import Checkpoint
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.formats import Count, ProgressSaved, Seconds, Share, converted
from rollin.runs.records import Array, Costs, Curve, Record, Switch
from rollin.runs.spec import RunSpec
from rollin.runs.windows import means_at

EPISODE_COLUMNS = ("step", "k", "return", "length", "success", "rollin", "rollin_steps")
EVALUATED = {
    "success": "eval_success",
    "return_final": "eval_return_final",
    "success_final": "eval_success_final",
}
"""Quantities of a record that evaluations give, and their columns in metrics.csv."""


class AdvanceFile(msgspec.Struct, forbid_unknown_fields=True):
    """One switch of context."""

    step: Count
    k: Count
    reason: str


class CurriculumFile(msgspec.Struct, forbid_unknown_fields=True):
    """The curriculum that was walked."""

    contexts: list[list[float]]
    kappas: list[Share]
    thresholds: list[float]
    positions: list[float] = []


class RollinResult(msgspec.Struct, forbid_unknown_fields=True):
    """result.json of a run of ROLLIN, but for means over the last steps, `…_mean_last`."""

    kappa: Share
    k: Count
    K: Count
    env_steps: Count
    episodes: Count
    updates_main: Count
    updates_exp: Count
    rollin_episodes: Count
    rollin_steps: Count
    eval_return: float
    eval_success: Share
    eval_return_final: float
    eval_success_final: Share
    seconds: Seconds
    advances: list[AdvanceFile]
    curriculum: CurriculumFile
    milestones: dict[str, dict[str, float | None]]
    spec_hash: str
    versions: dict[str, str]
    completed: AdvanceFile | None = None
    warning: str | None = None
    sha256: dict[str, str] = {}

    def check(self) -> None:
        """Refuse what cannot be, though each value alone could."""
        kappas = self.curriculum.kappas
        sizes = {len(self.curriculum.contexts), len(kappas), len(self.curriculum.thresholds)}
        if sizes != {self.K + 1}:
            raise RollinError(f"its curriculum must have {self.K + 1} contexts, got {sizes}")
        if self.k > self.K or not math.isclose(self.kappa, kappas[self.k], abs_tol=1e-12):
            raise RollinError(f"κ = {self.kappa} is impossible with k = {self.k} of {self.K}")


class LearnerSaved(msgspec.Struct):
    """What a record needs of an agent in a checkpoint."""

    count: Count


class StateSaved(msgspec.Struct):
    """What a record needs of the algorithm's state in a checkpoint."""

    progress: ProgressSaved
    main: LearnerSaved


class CountersSaved(msgspec.Struct):
    """What a record needs of a checkpoint's counters."""

    updates_exp: Count
    rollin_steps: Count


class RollinSaved(msgspec.Struct):
    """What a record needs of a checkpoint's values."""

    rollin: StateSaved
    counters: CountersSaved
    curriculum: CurriculumFile
    seconds: Seconds


def rollin_record(run: RunDirectory, spec: RunSpec[RollinConfig], at: Sequence[int]) -> Record:
    """A run, finished or not; at: steps at which its curve is to have a row."""
    config, scratch = spec.config, spec.config.algorithm.method == "scratch"
    saved = None if run.finished else run.saved()
    step, progress, costs = _ended(run) if saved is None else _saved(run, saved)
    metrics = run.columns("metrics.csv", EVALUATED, saved)
    episodes = read_episodes(run, saved)
    logged = [int(s) for s in metrics["step"] if s <= step]
    steps = sorted({*logged, *(s for s in at if 0 < s <= step), step})
    if not logged or not len(episodes["step"]):
        raise RollinError("it has no metrics yet")
    measures = measures_of(episodes)
    quantities: dict[str, Array] = {}
    if not scratch:  # from scratch it stands at the last context by definition
        quantities["kappa"] = np.array([progress.kappa_at(s) for s in steps])
        quantities["kappa_mean"] = np.array(
            [progress.mean_kappa(max(s - config.last, 0), s) for s in steps]
        )
    means = [_means(s, step, episodes, measures, config.last) for s in steps]
    for name in ("return", *measures):
        quantities[name] = np.array([_float(mean.get(name)) for mean in means])
    rows = {int(s): i for i, s in enumerate(metrics["step"])}
    for name, column in EVALUATED.items():
        told = [metrics[column][rows[s]] if s in rows else math.nan for s in steps]
        quantities[name] = np.array(told)
    first = Switch(progress.first, 0, {"kappa": progress.kappa_of(progress.first)})
    entered = (Switch(a.k, a.step, {"kappa": progress.kappa_of(a.k)}) for a in progress.advances)
    return Record(
        task=spec.task,
        engine=config.engine,
        seed=config.seed,
        steps=config.steps,
        step=step,
        finished=run.finished,
        costs=costs,
        curve=Curve(np.array(steps, float), quantities),
        spec_hash=spec.hash,
        key="",
        k=progress.k,
        K=progress.K,
        switches=(first, *entered),
        completed=progress.completed.step if progress.completed else None,
    )


def read_episodes(run: RunDirectory, saved: Checkpoint | None) -> dict[str, Array]:
    """Columns of a run's episodes.csv."""
    episodes = run.columns("episodes.csv", {name: name for name in EPISODE_COLUMNS}, saved)
    if not (episodes["length"] > 0).all():
        raise RollinError("episodes.csv has an episode without length")
    for name, column in episodes.items():
        if not np.isfinite(column).all():
            raise RollinError(f"{name} in episodes.csv must be finite numbers")
    return episodes


def measures_of(episodes: Iterable[str]) -> list[str]:
    """What the environment itself measures, among the columns of an episodes.csv."""
    return [name for name in episodes if name not in EPISODE_COLUMNS]


def read_result(run: RunDirectory) -> RollinResult:
    """result.json, checked, its means among it."""
    raw = run.result()
    means = {name: raw.pop(name) for name in [*raw] if name.endswith("_mean_last")}
    run.convert(means, dict[str, float | None])
    result: RollinResult = run.convert(raw, RollinResult)
    result.check()
    return result


def _ended(run: RunDirectory) -> tuple[int, Progress, Costs]:
    result = read_result(run)
    advances = [Advance(a.step, a.k, a.reason) for a in result.advances]
    done = result.completed and Advance(
        result.completed.step, result.completed.k, result.completed.reason
    )
    progress = Progress(result.K, result.k, advances, result.curriculum.kappas, done)
    updates = result.updates_main + result.updates_exp
    costs = Costs(result.seconds, result.env_steps, result.rollin_steps, updates)
    return result.env_steps, checked(progress), costs


def _saved(run: RunDirectory, saved: Checkpoint) -> tuple[int, Progress, Costs]:
    values: RollinSaved = converted(saved.values, RollinSaved, run.checkpoint)
    place, counters = values.rollin.progress, values.counters
    done = Advance(*place.completed) if place.completed else None
    advances = [Advance(*advance) for advance in place.advances]
    progress = Progress(place.K, place.k, advances, values.curriculum.kappas, done)
    updates = values.rollin.main.count + counters.updates_exp
    costs = Costs(values.seconds, saved.step, counters.rollin_steps, updates)
    return saved.step, checked(progress), costs


def checked(progress: Progress) -> Progress:
    """A place on a curriculum that there can be."""
    ks = [advance.k for advance in progress.advances]
    leads = ks == list(range(progress.k - len(ks) + 1, progress.k + 1)) and progress.first >= 0
    if progress.k > progress.K or len(progress.kappas) != progress.K + 1 or not leads:
        raise RollinError(
            f"its switches must lead to k = {progress.k} of {progress.K} one by one, got {ks}"
        )
    return progress


def _means(
    at: int, end: int, episodes: Mapping[str, Any], measures: Sequence[str], last: int
) -> dict[str, float | None]:
    if at < end and episodes["step"][-1] < at:  # the file was cut off before
        return {}
    return means_at(at, episodes, measures, last)


def _float(value: float | None) -> float:
    return math.nan if value is None else value
