"""The engine of ROLLIN with two SAC agents on a contextual environment."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from rollin.envs.registry import TASKS
from rollin.errors import RollinError
from rollin.imports import is_factory
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.base import Demands, Engine
from rollin.runs.engines.deep import ROWS, deep_demands, without_logging
from rollin.runs.engines.rollin_options import WALK, RollinConfig
from rollin.runs.exported import Trained
from rollin.runs.options import config_from, configured
from rollin.runs.records import Record
from rollin.runs.spec import RunSpec

MATTERS = ("env_options", "horizon", "rule", "threshold", "threshold_slope", "threshold_at",
           "kappa", "window", "delta", "stride", "teacher", "start", "spacing", "path",
           "contexts", "literal")  # fmt: skip
"""Options that make the environment and the curriculum."""


MEANINGS = {
    "return": "of training episodes, the roll-in included: their mean over the last steps (--last)",
    "return_final": "of deterministic episodes on the last context, played beside training",
    "success_final": "share of deterministic episodes on the last context that succeed",
}


class RollinEngine(Engine[RollinConfig]):
    """Runs of ROLLIN, of its baseline and of ablations."""

    name = "rollin"
    config_class = RollinConfig
    step_words = "environment steps"
    extends = True
    meanings = MEANINGS
    tasks = tuple(TASKS)
    about = ", ".join(TASKS)
    kind = "ROLLIN with two SAC agents on a contextual environment"
    help = """One run of ROLLIN, of its baseline or of an ablation, on a contextual environment.

    If interrupted, the same command resumes it. The defaults are the task's.
    """
    task_help = (
        f"{', '.join(TASKS)}, or module:factory that returns a contextual environment of yours."
    )

    def claims(self, task: str) -> bool:
        """Ours by name, or a factory, which gives a contextual environment if no MDP."""
        return task in TASKS or is_factory(task)

    def preset(self, task: str) -> RollinConfig:
        """The options that a task of ours has of its own."""
        defaults = TASKS[task].defaults if task in TASKS else {}
        return configured(RollinConfig(), defaults)

    def try_task(self, task: str) -> None:
        """Refuse an environment of the user's that is not contextual, or that SAC cannot use."""
        from rollin.envs.registry import make_contextual

        if task not in TASKS:
            make_contextual(task).close()

    def run(
        self, spec: RunSpec[RollinConfig], at: RunDirectory, **given: Any
    ) -> Driver[RollinConfig]:
        """The run of a spec in a directory; given: `make` and `curriculum`, see RollinRun."""
        from rollin.runs.engines.rollin_run import RollinRun

        return RollinRun(spec, at, **given)

    def record(self, run: RunDirectory, spec: RunSpec[RollinConfig], at: Sequence[int]) -> Record:
        """κ, returns, success and the environment's measures against environment steps."""
        from rollin.runs.engines.rollin_record import rollin_record

        return rollin_record(run, spec, at)

    def playable(self, run: Trained, render_mode: str | None = None) -> Any:
        """The policy of a run, finished or not, with an environment to show it in."""
        from rollin.runs.engines.playable import Playable

        described = run.config
        kept = RollinConfig.as_it_was(described.task, described.config)
        spec = RunSpec(described.task, config_from(RollinConfig, kept))
        return Playable.open(run, spec, render_mode)

    def fingerprint(self, spec: RunSpec[RollinConfig]) -> str | None:
        """Of the environment's spaces and rewards, and of the curriculum."""
        from rollin.runs.fingerprint import fingerprint_of

        return fingerprint_of(spec)

    def fingerprint_key(self, config: RollinConfig) -> tuple[Any, ...]:
        """The options that make the environment and the curriculum."""
        return tuple(getattr(config, name) for name in MATTERS)

    def canonical(self, task: str, config: RollinConfig) -> RollinConfig:
        """Without what does not make another condition; β = 0 is the baseline however it is put.

        Who rolls in, who goes on and what is recorded means nothing without a roll-in.
        """
        plain = without_logging(super().canonical(task, config))
        options = plain.algorithm
        if options.method in ("rollin", "baseline") and not options.rolls_in:
            options = replace(options, method="baseline")
        if options.method in ("baseline", "scratch"):
            options = replace(
                options, beta=0.0, explorer="fresh", prefix="replay", guide="current",
                need=False, redraw=0, stop=None,
            )  # fmt: skip
        own = TASKS[task].delta if task in TASKS and plain.teacher == WALK else None
        delta = own if plain.delta is None else plain.delta
        if delta is not None:
            delta = round(delta, 12)
        return replace(plain, algorithm=options, delta=delta)

    def scaled(self, config: RollinConfig, scale: float) -> RollinConfig:
        """Shortened: steps, random first steps, and the steps that a mean is taken over.

        Networks, batches, thresholds and the age parameter of geometric sampling stay as they are.
        """
        shorter = super().scaled(config, scale)
        if shorter is config:
            return config
        batch, steps = config.sac.batch, shorter.steps
        if steps <= batch:
            raise RollinError(
                f"{steps:,} steps are too few to train on: learning begins after a batch of "
                f"{batch} of them. Give a --scale of at least {1.1 * batch / config.steps:.2g}."
            )
        warmup = max(batch, round(scale * config.algorithm.warmup))
        return replace(
            shorter,
            algorithm=replace(config.algorithm, warmup=warmup),
            log_every=min(config.log_every, steps // ROWS),
            last=max(1, round(scale * config.last)),
        )

    def warmup(self, config: RollinConfig) -> int:
        """Random steps before the first update."""
        return config.algorithm.warmup

    def demands(self, spec: RunSpec[RollinConfig], gpus: float = 0.0) -> Demands:
        """Cores, a share of a GPU, and memory, of which the replay takes most."""
        config = spec.config
        row = _row_bytes(spec.task, config.env_options, config.horizon)
        return deep_demands(config, row, gpus)

    def summary(self, spec: RunSpec[RollinConfig], result: dict[str, Any]) -> str:
        """How a run ended, in a line."""
        mastered = ", all mastered" if result["completed"] else ""
        reached = f"κ = {result['kappa']:.3f} (k = {result['k']} of {result['K']}{mastered})"
        if spec.config.algorithm.method == "scratch":
            reached = f"from scratch ({'mastered' if result['completed'] else 'not mastered'})"
        here = f"{result['eval_return']:.1f} on this context, " if result["k"] < result["K"] else ""
        episodes = spec.config.eval_episodes
        return (
            f"{reached}, evaluated return {here}{result['eval_return_final']:.1f} on the last "
            f"(mean of {episodes} deterministic {'episode' if episodes == 1 else 'episodes'}), "
            f"after {result['env_steps']:,} environment steps and "
            f"{result['rollin_episodes']} roll-ins in {result['seconds']:.1f} s"
        )


@cache
def _row_bytes(task: str, options: tuple[str, ...], horizon: int | None) -> int:
    """Bytes of a transition of an environment; of one that cannot be made, the run will tell."""
    from rollin.envs.registry import make_contextual
    from rollin.sac.replay import RowLayout

    try:
        env = make_contextual(task, options, horizon=horizon)
    except RollinError:
        return 0
    try:
        sizes = (env.observation_size, env.action_size, env.context_size, env.outcome_size)
        return 4 * RowLayout(*sizes).width
    finally:
        env.close()


ENGINE = RollinEngine()
