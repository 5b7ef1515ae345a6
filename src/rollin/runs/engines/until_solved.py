"""The engine of runs that last until the last context is solved, or are cut off.

They tell how cost grows with the size of an MDP, which the paper bounds (Theorems 4.1 and 4.3).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.base import Engine
from rollin.runs.engines.until_solved_options import UntilSolvedConfig
from rollin.runs.engines.until_solved_record import UntilSolvedSaved, read_result
from rollin.runs.formats import converted
from rollin.runs.records import Costs, Curve, Record, Switch
from rollin.runs.spec import RunSpec


class UntilSolvedEngine(Engine[UntilSolvedConfig]):
    """Families of MDPs of growing size."""

    name = "until-solved"
    config_class = UntilSolvedConfig
    step_words = "gradient steps"
    tasks = ("combination-lock", "corridor", "square-grid", "random-mdp")
    kind = "policy gradients until the last context is solved"
    about = "combination-lock, corridor, square-grid, random-mdp"
    help = "One run until the last context is solved. If interrupted, it resumes where it stopped."
    task_help = "A family of MDPs: combination-lock, corridor, square-grid or random-mdp."

    def run(
        self, spec: RunSpec[UntilSolvedConfig], at: RunDirectory, **given: Any
    ) -> Driver[UntilSolvedConfig]:
        """The run of a spec in a directory."""
        from rollin.runs.engines.until_solved_run import UntilSolvedRun

        return UntilSolvedRun(spec, at)

    def record(
        self, run: RunDirectory, spec: RunSpec[UntilSolvedConfig], at: Sequence[int]
    ) -> Record:
        """What it took; of an unfinished run only how far it has come."""
        if run.finished:
            run.check_files()
            result = read_result(run)
            step, k, top, completed = result.gradient_steps, result.k, result.K, result.completed
            costs = Costs(result.seconds, result.env_steps, result.rollin_steps, step)
            entered, quantities = result.entered, result.quantities
        else:
            saved = run.saved()
            values = converted(saved.values, UntilSolvedSaved, run.checkpoint)
            step, k, top, completed = saved.step, values.progress.k, values.progress.K, None
            costs = Costs(values.seconds, values.env_steps, values.rollin_steps, step)
            entered, quantities = [a[0] for a in values.progress.advances], {"solved": 0.0}
        first = k - len(entered)
        return Record(
            task=spec.task,
            engine=self.name,
            seed=spec.config.seed,
            steps=spec.config.steps,
            step=step,
            finished=run.finished,
            costs=costs,
            curve=Curve(
                np.array([float(step)]), {name: np.array([v]) for name, v in quantities.items()}
            ),
            spec_hash=spec.hash,
            key="",
            k=k,
            K=top,
            switches=tuple(Switch(first + i, at_, {}) for i, at_ in enumerate([0, *entered])),
            completed=completed,
        )

    def fingerprint(self, spec: RunSpec[UntilSolvedConfig]) -> str | None:
        """Of the MDP, the random one's with seed 0: the seeds of a condition share it."""
        from rollin.runs.engines.until_solved_run import family_fingerprint

        return family_fingerprint(spec)

    def fingerprint_key(self, config: UntilSolvedConfig) -> tuple[Any, ...]:
        """The options that make the MDP."""
        return config.n, config.gamma, config.uniform_rho

    def summary(self, spec: RunSpec[UntilSolvedConfig], result: dict[str, Any]) -> str:
        """How a run ended, in a line."""
        solved = result["completed"] is not None
        how = "solved" if solved else f"cut off at context {result['k']} of {result['K']}"
        samples = f" and {result['env_steps']:,} environment steps" if result["env_steps"] else ""
        return (
            f"{how} after {result['gradient_steps']:,} gradient steps{samples} "
            f"in {result['seconds']:.1f} s"
        )


ENGINE = UntilSolvedEngine()
