"""What a run of ROLLIN gave, from its files."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from rollin.curriculum.progress import Advance, Progress
from rollin.errors import RollinError
from rollin.runs.checkpoint import Checkpoint
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.rollin_metrics import DRAWN
from rollin.runs.engines.rollin_options import WALK, RollinConfig
from rollin.runs.formats import Count, ProgressSaved, Seconds, Share, converted
from rollin.runs.records import Array, Costs, Curve, Record, Switch
from rollin.runs.spec import RunConfig, RunSpec
from rollin.runs.windows import means_at

GOALS = "goals.csv"
EPISODE_COLUMNS = ("step", "k", "return", "length", "success", "rollin", "rollin_steps")
EVALUATED = {
    "success": "eval_success",
    "return_final": "eval_return_final",
    "success_final": "eval_success_final",
}
"""Quantities of a record that evaluations give, and their columns in metrics.csv."""
SOLVED = 0.8  # of the episodes on a goal must end there


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
    goals: list[Share] = []
    warning: str | None = None
    sha256: dict[str, str] = {}

    def check(self) -> None:
        """Refuse what cannot be, though each value alone could."""
        kappas = self.curriculum.kappas
        thresholds = self.curriculum.thresholds or kappas  # none where no rule has one
        sizes = {len(self.curriculum.contexts), len(kappas), len(thresholds)}
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
    step, progress, costs = _ended(run, config) if saved is None else _saved(run, saved, config)
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
    for name, solved in goals_solved(run, saved).items():
        quantities[name] = np.array([solved.get(s, math.nan) for s in steps])
    moves = [(0, progress.first), *((a.step, a.k) for a in progress.advances)]
    # a teacher without a path may go from place to place before more is mastered
    changes = [moves[0], *(new for old, new in pairwise(moves) if new[1] != old[1])]
    switches = tuple(Switch(k, at, {"kappa": progress.kappa_of(k)}) for at, k in changes)
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
        switches=switches,
        completed=progress.completed.step if progress.completed else None,
    )


def goals_solved(run: RunDirectory, saved: Checkpoint | None) -> dict[str, dict[int, float]]:
    """The share of goals solved, by step: `goals` of the policy's mode, `goals_drawn` of draws."""
    told = read_goals(run, saved)
    if not told:  # none yet, or of a version that evaluated them at the end only
        result = read_result(run) if saved is None else None
        if result is None or not result.goals:
            return {}
        return {"goals": {result.env_steps: _share_solved(np.array(result.goals))}}
    steps = [int(step) for step in told["step"]]
    found = {}
    for quantity, prefix in (("goals", "success_"), ("goals_drawn", f"{DRAWN}success_")):
        columns = [values for name, values in told.items() if name.startswith(prefix)]
        shares = np.transpose(columns)
        found[quantity] = {s: _share_solved(row) for s, row in zip(steps, shares, strict=True)}
    return found


def _share_solved(shares: Array) -> float:
    return float(np.mean(shares >= SOLVED))


def read_goals(run: RunDirectory, saved: Checkpoint | None) -> dict[str, Array]:
    """Columns of a run's goals.csv; empty if it has no evaluation of its goals."""
    if not os.path.lexists(run.path / GOALS):
        return {}
    if saved is not None and not run.rows_counted(GOALS, saved).rows:
        return {}
    return run.columns(GOALS, {}, saved)


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


def _ended(run: RunDirectory, config: RunConfig) -> tuple[int, Progress, Costs]:
    result = read_result(run)
    advances = [Advance(a.step, a.k, a.reason) for a in result.advances]
    done = result.completed and Advance(
        result.completed.step, result.completed.k, result.completed.reason
    )
    progress = Progress(result.K, result.k, advances, result.curriculum.kappas, done)
    checked(progress, jumps=_jumps(config, result.curriculum))
    updates = result.updates_main + result.updates_exp
    costs = Costs(result.seconds, result.env_steps, result.rollin_steps, updates)
    return result.env_steps, progress, costs


def _saved(run: RunDirectory, saved: Checkpoint, config: RunConfig) -> tuple[int, Progress, Costs]:
    values: RollinSaved = converted(saved.values, RollinSaved, run.checkpoint)
    place, counters = values.rollin.progress, values.counters
    done = Advance(*place.completed) if place.completed else None
    advances = [Advance(*advance) for advance in place.advances]
    progress = Progress(place.K, place.k, advances, values.curriculum.kappas, done)
    checked(progress, jumps=_jumps(config, values.curriculum))
    updates = values.rollin.main.count + counters.updates_exp
    costs = Costs(values.seconds, saved.step, counters.rollin_steps, updates)
    return saved.step, progress, costs


def _jumps(config: RunConfig, curriculum: CurriculumFile) -> bool:
    """Whether a switch may leave contexts out: steps are chosen, or a rule skips easy ones."""
    if not curriculum.thresholds:
        return True
    own = isinstance(config, RollinConfig)
    return own and (config.teacher != WALK or config.stride == "halving")


def checked(progress: Progress, *, jumps: bool) -> Progress:
    """A place on a curriculum that there can be; jumps: whether a switch may leave contexts out."""
    ks = [advance.k for advance in progress.advances]
    inside = all(0 <= k <= progress.K for k in ks)
    leads = inside and (ks[-1:] or [progress.k]) == [progress.k]
    if not jumps:
        leads = ks == list(range(progress.k - len(ks) + 1, progress.k + 1))
    if progress.k > progress.K or len(progress.kappas) != progress.K + 1 or not leads:
        how = "" if jumps else " one by one"
        raise RollinError(
            f"its switches must lead to k = {progress.k} of {progress.K}{how}, got {ks}"
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
