"""The engine of ROLLIN with two SAC agents on a contextual environment."""

from collections.abc import Collection
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from rollin.errors import RollinError
from rollin.runs.engines import Demands, Engine
from rollin.runs.engines.deep import ROWS, deep_demands, without_logging
from rollin.runs.engines.rollin_options import METRICS, WALK, RollinConfig
from rollin.runs.spec import RunSpec, config_from, configured
from rollin.tasks import TASKS
from rollin.untrusted import is_factory

if TYPE_CHECKING:
    from rollin.runs.exported import Trained

MATTERS = ("env_options", "horizon", "rule", "threshold", "threshold_slope", "threshold_at",
           "kappa", "window", "delta", "stride", "teacher", "start", "spacing", "path",
           "contexts", "literal")  # fmt: skip
"""Options that make the environment and the curriculum."""


class RollinEngine(Engine[RollinConfig]):
    """Runs of ROLLIN, of its baseline and of ablations."""

    name = "rollin"
    config_class = RollinConfig
    step_words = "environment steps"
    extends = True
    metrics = METRICS
    points = None
    driver = "rollin.runs.engines.rollin_run:RollinRun"
    tasks = tuple(TASKS)
    about = ", ".join(TASKS)
    kind = "ROLLIN"
    example = "hopper or module:factory"
    key_options = ("steps", "seed", "beta", "method", "teacher", "adaptive", "relabel")
    help = """Train with ROLLIN, its baseline or an ablation on a contextual environment.

    If interrupted, the same command resumes the run. The defaults are the task's.
    """
    task_help = f"{', '.join(TASKS)}, or module:factory that returns your contextual environment."

    def claims(self, task: str) -> bool:
        """Built-in tasks, and factories, which give a contextual environment if no MDP."""
        return task in TASKS or is_factory(task)

    def preset(self, task: str) -> RollinConfig:
        """The options that a built-in task sets."""
        defaults = TASKS[task].defaults if task in TASKS else {}
        return configured(RollinConfig(), defaults)

    def try_task(self, task: str) -> None:
        """Refuse an environment of the user's that is not contextual, or that SAC cannot use."""
        from rollin.envs.registry import make_contextual

        if task not in TASKS:
            make_contextual(task).close()

    def check_given(self, config: RollinConfig, given: Collection[str]) -> None:
        """Raise for a β given with a method that never rolls in."""
        algorithm = config.algorithm
        if "beta" in given and algorithm.beta > 0 and algorithm.rolls_in == 0:
            raise RollinError(
                f"--method {algorithm.method} never rolls in, so that --beta {algorithm.beta:g} "
                "would do nothing: leave out one of the two."
            )

    def playable(self, run: "Trained", render_mode: str | None = None) -> Any:
        """The policy of a run, finished or not, with an environment to show it in."""
        from rollin.runs.curricula import Playable

        spec = RunSpec(run.config.task, config_from(RollinConfig, run.config.config))
        return Playable.open(run, spec, render_mode)

    def fingerprint(self, spec: RunSpec[RollinConfig]) -> str | None:
        """Of the environment's spaces and rewards, and of the curriculum."""
        from rollin.runs.curricula import fingerprint_of

        return fingerprint_of(spec)

    def fingerprint_key(self, config: RollinConfig) -> tuple[Any, ...]:
        """The options that make the environment and the curriculum."""
        return tuple(getattr(config, name) for name in MATTERS)

    def canonical(self, task: str, config: RollinConfig) -> RollinConfig:
        """Without what does not make another condition; β = 0 is the baseline however it is put.

        Who rolls in, who continues and what is recorded means nothing without a roll-in.
        """
        plain = without_logging(super().canonical(task, config))
        options = plain.algorithm
        if options.method in ("rollin", "baseline") and not options.rolls_in:
            options = replace(options, method="baseline")
        if options.method in ("baseline", "scratch"):
            options = replace(options, beta=0.0, explorer="fresh", prefix="replay", guide="current")
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
        """Steps before the first update."""
        return config.sac.first_update(config.algorithm.warmup) - 1

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
            f"{reached}, evaluated return {here}{result['return_final']:.1f} on the last "
            f"(mean of {episodes} deterministic {'episode' if episodes == 1 else 'episodes'}), "
            f"after {result['env_steps']:,} environment steps and "
            f"{result['rollin_episodes']} roll-ins in {result['seconds']:.1f} s"
        )


@cache
def _row_bytes(task: str, options: tuple[str, ...], horizon: int | None) -> int:
    """Bytes of a transition of an environment; if it cannot be made, the run will raise."""
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
