"""The tabular engine: policy gradients on a contextual MDP."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from rollin.imports import is_factory
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.base import Engine
from rollin.runs.engines.tabular_options import TabularConfig
from rollin.runs.engines.tabular_record import TabularSaved, read_result
from rollin.runs.formats import converted
from rollin.runs.records import Costs, Curve, Reading, Record, Switch
from rollin.runs.rows import thinned
from rollin.runs.spec import RunSpec

METRICS = {
    "kappa": "kappa",
    "return": "return_horizon",
    "return_infinite": "return_infinite",
    "success": "success",
}
"""Quantities of a record, and the columns of metrics.csv that they come from."""


class TabularEngine(Engine[TabularConfig]):
    """Runs of tabular tasks: four rooms, an MDP in a file, or one that a factory makes."""

    name = "tabular"
    config_class = TabularConfig
    step_words = "gradient steps"
    meanings: ClassVar[Mapping[str, str]] = {
        "return": "exact: on the last context from ρ, discounted, over the horizon, without entropy"
    }
    tasks = ("four-rooms",)
    kind = "policy gradients on a contextual MDP"
    about = "four-rooms, or a FILE.npz with your own MDP"
    help = """One run of a task. If interrupted, the same command resumes it.

    Below are the options of tabular tasks; those of ROLLIN on contextual environments are listed
    by rollin train point-umaze --help, those of plain SAC by rollin train Hopper-v5 --help.
    """
    task_help = (
        "four-rooms, a FILE.npz with your own MDP; point-umaze, dead-end, key-door, point-speed, "
        "antmaze-umaze, walker, hopper, humanoid, ant; the id of a Gymnasium environment; or "
        "module:factory that returns your own MDP or contextual environment."
    )

    def claims(self, task: str) -> bool:
        """Ours by name, a file, or a factory that gives an MDP."""
        if task in self.tasks or task.endswith(".npz"):
            return True
        if not is_factory(task):
            return False
        from rollin.runs.mdps import gives_mdp  # loads all that computes

        return gives_mdp(task)

    def run(
        self, spec: RunSpec[TabularConfig], at: RunDirectory, **given: Any
    ) -> Driver[TabularConfig]:
        """The run of a spec in a directory."""
        from rollin.runs.engines.tabular_run import TabularRun

        return TabularRun(spec, at)

    def record(self, run: RunDirectory, spec: RunSpec[TabularConfig], at: Sequence[int]) -> Record:
        """κ, exact returns and success against gradient steps."""
        saved = None if run.finished else run.saved()
        metrics = run.columns("metrics.csv", METRICS, saved)
        totals: dict[str, float] = {}
        if saved is None:
            result = read_result(run)
            step, k, top, totals = result.gradient_steps, result.k, result.K, result.totals
            costs = Costs(result.seconds, result.env_steps, result.rollin_steps, step)
            entered = [Switch(s.k, s.step, s.numbers) for s in result.switches]
            completed = result.completed.step if result.completed else None
        else:
            values = converted(saved.values, TabularSaved, run.checkpoint)
            step, k, top = saved.step, values.progress.k, values.progress.K
            steps = values.counters.env_steps, values.counters.rollin_steps, step
            costs = Costs(values.seconds, *steps)
            entered = [Switch(at_[1], at_[0], {}) for at_ in values.progress.advances]
            completed = values.progress.completed[0] if values.progress.completed else None
        kept = thinned(metrics["step"], step, at)
        quantities = {ours: metrics[theirs][kept] for ours, theirs in METRICS.items()}
        quantities |= {name: _at_end(value, len(kept)) for name, value in totals.items()}
        return Record(
            task=spec.task,
            engine=self.name,
            seed=spec.config.seed,
            steps=spec.config.steps,
            step=step,
            finished=run.finished,
            costs=costs,
            curve=Curve(metrics["step"][kept], quantities),
            spec_hash=spec.hash,
            key="",
            k=k,
            K=top,
            switches=(Switch(0, 0, {}), *entered),
            completed=completed,
        )

    def solved(self, record: Record, step: int) -> bool | None:
        """By its rule; of runs that do not tell when, by the success rate at that step."""
        if record.completed is not None:
            return record.completed <= step
        kappa, rate = (record.value(Reading(name, step)) for name in ("kappa", "success"))
        options = record.options
        elsewhere = options.get("epsilon") is not None or options.get("success_from") == "rho"
        if kappa is None or kappa < 1 or elsewhere:  # the column `success` is the batch's
            return None if kappa is None else False
        threshold = record.options.get("threshold", TabularConfig.threshold)
        return None if rate is None else rate > threshold

    def fingerprint(self, spec: RunSpec[TabularConfig]) -> str | None:
        """Of the MDP."""
        from rollin.runs.mdps import mdp_of

        return mdp_of(spec).fingerprint()

    def fingerprint_key(self, config: TabularConfig) -> tuple[Any, ...]:
        """The options that make the MDP."""
        return config.reward, config.gamma, config.success

    def summary(self, spec: RunSpec[TabularConfig], result: dict[str, Any]) -> str:
        """How a run ended, in a line."""
        mastered = ", all mastered" if result.get("completed") else ""
        return (
            f"κ = {result['kappa']:.3f} (k = {result['k']} of {result['K']}{mastered}), "
            f"final return {result['final_return']:.4g} after {result['gradient_steps']:,} "
            f"gradient steps in {result['seconds']:.1f} s"
        )


def _at_end(value: float, rows: int) -> Any:
    """A quantity that is known at the end alone."""
    return np.array([*[math.nan] * (rows - 1), value])


ENGINE = TabularEngine()
