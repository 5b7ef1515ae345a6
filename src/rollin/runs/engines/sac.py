"""The engine of plain SAC: one task, no curriculum, the yardstick."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.base import Demands, Engine
from rollin.runs.engines.deep import deep_demands, without_logging
from rollin.runs.engines.sac_options import SACRunConfig
from rollin.runs.engines.sac_record import SACResult, SACSaved
from rollin.runs.formats import converted
from rollin.runs.records import Costs, Curve, Record
from rollin.runs.rows import thinned
from rollin.runs.spec import RunSpec

GYMNASIUM_ID = re.compile(r"([\w.-]+:)?([\w-]+/)*[\w.-]+-v\d+")  # [module:][namespace/]name-vN
METRICS = {"return": "eval_return", "train_return": "train_return"}
"""Quantities of a record, and the columns of metrics.csv that they come from."""


class SACEngine(Engine[SACRunConfig]):
    """Runs of plain SAC on a Gymnasium environment."""

    name = "sac"
    config_class = SACRunConfig
    step_words = "environment steps"
    walks = False
    meanings: ClassVar[Mapping[str, str]] = {
        "return": "of deterministic episodes, played beside training",
    }
    help = """One run of plain SAC, without a curriculum, on a Gymnasium environment.

    If interrupted, the same command resumes it.
    """
    task_help = "Id of a Gymnasium environment with real observations and bounded real actions."
    kind = "plain SAC without a curriculum"
    about = "the id of a Gymnasium environment such as Hopper-v5"

    def claims(self, task: str) -> bool:
        """What looks like the id of a Gymnasium environment."""
        return GYMNASIUM_ID.fullmatch(task) is not None

    def try_task(self, task: str) -> None:
        """Refuse an environment whose spaces SAC cannot use."""
        from rollin.envs.box_env import make_env

        make_env(task).close()

    def run(
        self, spec: RunSpec[SACRunConfig], at: RunDirectory, **given: Any
    ) -> Driver[SACRunConfig]:
        """The run of a spec in a directory."""
        from rollin.runs.engines.sac_run import SACRun

        return SACRun(spec, at)

    def record(self, run: RunDirectory, spec: RunSpec[SACRunConfig], at: Sequence[int]) -> Record:
        """Returns of evaluations and of training against environment steps."""
        saved = None if run.finished else run.saved()
        metrics = run.columns("metrics.csv", METRICS, saved)
        if saved is None:
            result = run.read_result(SACResult)
            step, seconds, updates = result.env_steps, result.seconds, result.updates
        else:
            values = converted(saved.values, SACSaved, run.checkpoint)
            step, seconds, updates = saved.step, values.seconds, values.learner.count
        kept = thinned(metrics["step"], step, at, most=len(metrics["step"]))
        spent = Costs(seconds, step, 0, updates)
        step = int(metrics["step"][kept[-1]])  # behind which an unfinished one tells nothing
        return Record(
            task=spec.task,
            engine=self.name,
            seed=spec.config.seed,
            steps=spec.config.steps,
            step=step,
            finished=run.finished,
            costs=spent,
            curve=Curve(
                metrics["step"][kept], {o: metrics[theirs][kept] for o, theirs in METRICS.items()}
            ),
            spec_hash=spec.hash,
            key="",
        )

    def canonical(self, task: str, config: SACRunConfig) -> SACRunConfig:
        """Without what does not make another condition."""
        plain = replace(config, seed=0, steps=config.warmup + 1, log_every=1, log=())
        return without_logging(plain)

    def demands(self, spec: RunSpec[SACRunConfig], gpus: float = 0.0) -> Demands:
        """Cores, a share of a GPU, and memory, of which the replay takes most."""
        return deep_demands(spec.config, 0, gpus)

    def summary(self, spec: RunSpec[SACRunConfig], result: dict[str, Any]) -> str:
        """How a run ended, in a line."""
        return (
            f"evaluated return {result['eval_return']:.1f} (mean of {spec.config.eval_episodes} "
            f"deterministic episodes) after {result['env_steps']:,} environment steps in "
            f"{result['seconds']:.1f} s"
        )


ENGINE = SACEngine()
