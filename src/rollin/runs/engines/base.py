"""What an engine is: its options, how it makes a run of them, and what it tells of one.

A new engine is one file beside this one: a frozen dataclass of options, a `Driver`, a class of this
kind and `ENGINE`, an object of it; and a line in the register (`rollin.runs.engines`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.exported import Trained
from rollin.runs.options import option_names
from rollin.runs.records import Costs, Curve, Record
from rollin.runs.rows import thinned
from rollin.runs.spec import Config, RunSpec

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


class Engine(ABC, Generic[Config]):
    """Turns a task and options into a run. What most engines share has a default here.

    name: in every hash, so that it never changes; config_class: its options; step_words: what its
    steps are; tasks: those it knows by name; about: the tasks it takes, for a sentence; kind:
    what its runs are, for another; help, task_help: of the command line.
    """

    name: ClassVar[str]
    config_class: type[Config]
    step_words: ClassVar[str] = "steps"
    tasks: ClassVar[tuple[str, ...]] = ()
    about: ClassVar[str]
    kind: ClassVar[str] = ""
    help: ClassVar[str] = "One run of a task. If interrupted, it resumes where it stopped."
    task_help: ClassVar[str] = "The task."
    meanings: ClassVar[Mapping[str, str]] = {}
    """What the quantities of its records are, where a name such as return does not tell."""
    walks: ClassVar[bool] = True
    """Whether its runs walk a curriculum, and have a κ."""
    extends: ClassVar[bool] = False
    """Whether a run that differs from another in its length alone is a part of the longer one."""

    def claims(self, task: str) -> bool:
        """Whether a task of this name is one of its own."""
        return task in self.tasks

    def try_task(self, task: str) -> None:
        """Refuse a task that no options make one for this engine, such as one of other actions."""

    @abstractmethod
    def run(self, spec: RunSpec[Config], at: RunDirectory, **given: Any) -> Driver[Config]:
        """The run of a spec in a directory; given: parts of it that were made in Python."""

    def summary(self, spec: RunSpec[Config], result: dict[str, Any]) -> str:
        """How a finished run ended, in a line."""
        numbers = {name: v for name, v in result.items() if isinstance(v, int | float)}
        return ", ".join(f"{name} = {value:.4g}" for name, value in numbers.items())

    def record(self, run: RunDirectory, spec: RunSpec[Config], at: Sequence[int]) -> Record:
        """What a run gave, as far as it has come; at: steps at which its curve is to have a row.

        Its quantities are the columns of metrics.csv, if the engine does not say otherwise. What
        belongs to every run (labels, hashes, options, path) is filled in by `read_record`.
        """
        saved = None if run.finished else run.saved()
        metrics = run.columns("metrics.csv", {}, saved)
        kept = thinned(metrics["step"], spec.config.steps if saved is None else saved.step, at)
        steps = metrics.pop("step")[kept]
        told = run.result() if saved is None else saved.values
        return Record(
            task=spec.task,
            engine=self.name,
            seed=spec.config.seed,
            steps=spec.config.steps,
            step=int(steps[-1]),
            finished=run.finished,
            costs=Costs(told.get("seconds")),
            curve=Curve(steps, {name: column[kept] for name, column in metrics.items()}),
            spec_hash=spec.hash,
            key="",
        )

    def solved(self, record: Record, step: int) -> bool | None:
        """Whether a run had mastered the last context by a step; None if it walks no curriculum.

        κ = 1 says that the last context was entered, not that it is solved.
        """
        if record.K is None:
            return None
        return record.completed is not None and record.completed <= step

    def preset(self, task: str) -> Config:
        """The options of a task, before any are given."""
        return self.config_class()

    def playable(self, run: Trained, render_mode: str | None = None) -> Any:
        """The policy of a run with an environment to show it in."""
        raise RollinError(
            f"{run.path} is a run of the engine {self.name}: runs of ROLLIN on contextual "
            "environments can be evaluated."
        )

    def fingerprint(self, spec: RunSpec[Config]) -> str | None:
        """Tells the task from another of the same name; None if that is not looked at."""
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
