"""Engines: what turns a task and its options into a run, and the register of them.

A new engine is one file in this package: a frozen dataclass of options, a `Driver`, a subclass of
`Engine` and `ENGINE`, an object of it; and a line in `MODULES`. Nothing else knows an engine by
name. An engine is loaded when it is asked for.
"""

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.runs.directory import POLICY, RunDirectory
from rollin.runs.metrics import CURVE_POINTS, Metric, thinned
from rollin.runs.spec import Config, Membership, RunSpec, config_from, digest, flat, option_names
from rollin.tasks import TASKS, plain_name
from rollin.untrusted import factory_here

if TYPE_CHECKING:
    from rollin.runs.driver import Driver, OnStatus, ShouldStop
    from rollin.runs.exported import Trained
    from rollin.runs.records import Record

Array = NDArray[np.float64]
BASE = 300 << 20  # bytes of a process with the compiled kernels and a simulator; 180 – 250 MB seen


@dataclass(frozen=True)
class Demands:
    """What a run takes of a machine: cores, GPUs, and bytes of memory."""

    cpus: int
    gpus: float
    memory: int

    def __str__(self) -> str:
        gpus = f", {self.gpus:g} GPU" if self.gpus else ""
        return f"{self.cpus} CPU{gpus} and {self.memory / 2**30:.1f} GB"


class StateMaps(NamedTuple):
    """What a run on a grid learned: log π and the rewards of its last context, (S, A) each.

    starts, visits: by context, where trajectories begin and where the policy that mastered it goes;
    both empty if no context was mastered.
    """

    log_pi: Array
    rewards: Array
    starts: Sequence[Array] = ()
    visits: Sequence[Array] = ()


class Engine(Generic[Config]):
    """Turns a task and options into a run. What most engines share has a default here.

    name: in every hash, so that it never changes; config_class: its options; step_words: what its
    steps are; tasks: those it knows by name; about: the tasks it takes, for a sentence; kind:
    what its runs are, for another; example: such a task; help, task_help, key_options: of the
    command line, where key_options introduce it as one of the families of tasks.
    """

    name: ClassVar[str]
    config_class: type[Config]
    step_words: ClassVar[str] = "steps"
    tasks: ClassVar[tuple[str, ...]] = ()
    about: ClassVar[str]
    kind: ClassVar[str] = ""
    help: ClassVar[str] = "Train on a task. If interrupted, the same command resumes the run."
    task_help: ClassVar[str] = "The task."
    example: ClassVar[str] = ""
    key_options: ClassVar[tuple[str, ...]] = ()
    driver: ClassVar[str] = ""
    """module:class of its runs, which is loaded when one begins."""
    metrics: Sequence[Metric] = ()
    """What its runs measure."""
    points: ClassVar[int | None] = CURVE_POINTS
    """Rows of metrics.csv that a record has at most; None for all of them."""
    walks: ClassVar[bool] = True
    """Whether its runs walk a curriculum, and have a κ."""
    extends: ClassVar[bool] = False
    """Whether a run that differs from another in its length alone is a part of the longer one."""

    @property
    def meanings(self) -> Mapping[str, str]:
        """What metrics are whose names are not enough."""
        return {metric.name: metric.meaning for metric in self.metrics if metric.meaning}

    def claims(self, task: str) -> bool:
        """Whether a task of this name is one of its own."""
        return task in self.tasks

    def try_task(self, task: str) -> None:
        """Refuse a task that no options make one for this engine, such as one of other actions."""

    def check_given(self, config: Config, given: Collection[str]) -> None:
        """Raise if an option that was given by name would have no effect."""

    def run(self, spec: RunSpec[Config], at: RunDirectory, **given: Any) -> "Driver[Config]":
        """Return the run of a spec in a directory; given: parts of it that were made in Python."""
        module, _, name = self.driver.partition(":")
        return getattr(import_module(module), name)(spec, at, **given)

    def summary(self, spec: RunSpec[Config], result: dict[str, Any]) -> str:
        """How a finished run ended, in a line."""
        numbers = {name: v for name, v in result.items() if isinstance(v, int | float)}
        return ", ".join(f"{name} = {value:.4g}" for name, value in numbers.items())

    def record(self, run: RunDirectory, spec: RunSpec[Config], at: Sequence[int]) -> "Record":
        """What a run gave, as far as it has come; at: steps at which its curve is to have a row.

        Of an unfinished run only κ is known behind the last row of metrics.csv. What belongs to
        every run (labels, hashes, options, path) is filled in by `read_record`.
        """
        from rollin.runs.records import Costs, Curve, Record, switches_of  # for readers of runs

        outcome = run.outcome()
        names = run.config.results or {}
        metrics = run.metrics(names)
        rows = thinned(metrics["step"], outcome.step, at, self.points)
        steps = metrics["step"][rows]
        quantities = {name: metrics[name][rows] for name in names}
        progress = outcome.progress()
        if not len(steps) or steps[-1] < outcome.step:
            steps = np.append(steps, outcome.step)
            behind = {"kappa": progress.kappa} if progress else {}
            for name, column in quantities.items():
                quantities[name] = np.append(column, behind.get(name, math.nan))
        return Record(
            task=spec.task,
            engine=self.name,
            seed=spec.config.seed,
            steps=spec.config.steps,
            step=outcome.step,
            finished=run.finished,
            costs=Costs(outcome.seconds, outcome.env_steps, outcome.rollin_steps, outcome.updates),
            curve=Curve(steps, quantities),
            spec_hash=spec.hash,
            key="",
            k=outcome.k,
            K=outcome.K,
            switches=switches_of(outcome, progress) if progress else (),
            completed=outcome.completed.step if outcome.completed else None,
        )

    def solved(self, record: "Record", step: int) -> bool | None:
        """Whether a run had mastered the last context by a step; None if it walks no curriculum.

        κ = 1 says that the last context was entered, not that it is solved.
        """
        if record.K is None:
            return None
        return record.completed is not None and record.completed <= step

    def preset(self, task: str) -> Config:
        """The options of a task, before any are given."""
        return self.config_class()

    def playable(self, run: "Trained", render_mode: str | None = None) -> Any:
        """The policy of a run with an environment to show it in."""
        raise RollinError(
            f"{run.path} is a run of the engine {self.name}: runs of ROLLIN on contextual "
            "environments can be evaluated."
        )

    def has_state_maps(self, record: "Record") -> bool:
        """Whether `state_maps` can be drawn of a run: its states are cells, its policy is there."""
        return False

    def state_maps(self, record: "Record") -> StateMaps:
        """What a run learned, over the states of its task."""
        raise NotImplementedError

    def fingerprint(self, spec: RunSpec[Config]) -> str | None:
        """Distinguishes the task from another of the same name; None if that is not looked at."""
        return None

    def fingerprint_key(self, config: Config) -> tuple[Any, ...]:
        """The options on which the fingerprint of a task depends."""
        return ()

    def demands(self, spec: RunSpec[Config], gpus: float = 0.0) -> Demands:
        """What a run takes; gpus: share of a GPU that one which can use it gets."""
        return Demands(1, 0.0, BASE)

    def canonical(self, task: str, config: Config) -> Config:
        """The options of a condition: without seed, length, and whatever changes no result."""
        options: Any = config
        silent = {"log": ()} if "log" in option_names(type(config)) else {}
        return replace(options, seed=0, steps=self.preset(task).steps, log_every=1, **silent)

    def scaled(self, config: Config, scale: float) -> Config:
        """Options whose training is shortened proportionally."""
        if not (math.isfinite(scale) and scale > 0):
            raise RollinError(f"--scale must be a number greater than 0, got {scale:g}.")
        options: Any = config
        return config if scale == 1 else replace(options, steps=max(1, round(scale * config.steps)))

    def warmup(self, config: Config) -> int:
        """Steps before the first that is like all later ones."""
        return 0


# ------------------------------------------------------------------ the register

MODULES = {
    "tabular": "rollin.runs.engines.tabular",
    "until-solved": "rollin.runs.engines.until_solved",
    "sac": "rollin.runs.engines.sac",
    "rollin": "rollin.runs.engines.rollin",
    "agent": "rollin.runs.engines.agent",
}
"""Where an engine lives, by its name. The first that claims a task has it."""


def engine(name: str) -> Engine[Any]:
    """The engine of a name."""
    if name not in MODULES:
        raise RollinError(f"There is no engine {name!r}: this version has {', '.join(MODULES)}.")
    return import_module(MODULES[name]).ENGINE


def engines() -> Iterator[Engine[Any]]:
    """All of them."""
    return map(engine, MODULES)


def engine_for(task: str) -> Engine[Any]:
    """The engine that a task belongs to."""
    task = plain_name(task)
    if task in TASKS:  # which spares loading the other engines
        return engine("rollin")
    for found in engines():
        if found.claims(task):
            return found
    known = [name for found in engines() for name in found.tasks]
    kinds = "; ".join(found.about for found in engines() if found.about)
    meant = factory_here(task) or did_you_mean(task, known)
    raise RollinError(
        f"Unknown task {task!r}.{meant} Expected {kinds}; or "
        "module:factory that returns your own MDP or contextual environment."
    )


def metric(name: str, of: str | None = None) -> Metric:
    """Return a metric by its name; of: the engine whose it is, if that is known.

    What no engine declares, such as a measure of an environment, is a result.
    """
    for found in [engine(of)] if of in MODULES else engines():
        for one in found.metrics:
            if one.name == name:
                return one
    return Metric(name, result=True)


def engine_of(spec: RunSpec[Any]) -> Engine[Any]:
    """The engine of a spec."""
    return engine(spec.config.engine)


def run(
    spec: RunSpec[Any],
    out: Path,
    command: str = "",
    on_status: "OnStatus" = lambda status: None,
    should_stop: "ShouldStop" = lambda: False,
    of: Membership | None = None,
    until: int | None = None,
) -> bool:
    """Run a spec in a directory, or resume it; a finished one is left as it is.

    until: stop at the first end of an episode at this step or later, with a checkpoint.
    """
    from rollin.runs.driver import execute  # which those who read runs do not load

    # a bad task is refused before anything is written
    made = engine_of(spec).run(spec, RunDirectory(out))
    return execute(made, command, on_status, should_stop, of, until)


def spec_of(run: RunDirectory) -> RunSpec[Any]:
    """What a run is, by its config.json."""
    described = run.config
    return spec_from(described.engine, described.task, described.config)


def spec_from(name: str, task: str, config: dict[str, Any]) -> RunSpec[Any]:
    """Return a spec of plain values."""
    return RunSpec(task, config_from(engine(name).config_class, config))


def condition_key(spec: RunSpec[Any]) -> str:
    """What runs of one condition have in common: a hash of the options without seed and length."""
    plain = engine_of(spec).canonical(spec.task, spec.config)
    return digest(RunSpec(spec.task, plain).to_json())


def read_record(run: RunDirectory, at: Sequence[int] = ()) -> "Record":
    """A run as its directory has it; at: steps at which its curve is to have a row."""
    try:
        described = run.config
        spec = spec_of(run)
        if run.finished and os.path.lexists(run.path / POLICY):  # which need not be kept
            run.check_files()
        found = engine_of(spec).record(run, spec, at)
        return replace(
            found,
            labels=described.labels,
            family=described.family,
            scale=described.scale,
            spec_hash=described.spec_hash or spec.hash,
            key=condition_key(spec),
            fingerprint=described.fingerprint or "",
            options=flat(spec.config),
            version=described.versions.get("rollin", ""),
            processor=described.processor,
            path=run.path,
        )
    except RollinError:
        raise
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise RollinError(f"its files cannot be read: {error}") from error
