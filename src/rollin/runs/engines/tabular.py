"""The tabular engine: policy gradients on a contextual MDP. Its options, metrics and tasks.

The field docstrings are the help texts of the command line. Defaults marked "our choice" are
readings of what the paper leaves open; `--as-printed` takes the printed text instead (see
docs/design-decisions.md).
"""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from rollin.checks import (
    LONGEST_HORIZON,
    MOST_SAMPLES,
    MOST_STATES_VISITED,
    MOST_STEPS,
    at_least,
    check_alpha,
    check_beta,
    did_you_mean,
    flag,
    positive,
)
from rollin.curriculum.contexts import AdvanceRule, SubOptimality, SuccessRate
from rollin.curriculum.mastery import StepGap
from rollin.errors import RollinError, foreign
from rollin.runs.directory import POLICY
from rollin.runs.engines import Engine, StateMaps
from rollin.runs.metrics import Metric
from rollin.runs.records import MetricAt, Record
from rollin.runs.spec import RunConfig, RunSpec, check_loggers
from rollin.tasks import TASKS
from rollin.untrusted import LARGEST_POLICY, from_here, is_factory, read_bounded

if TYPE_CHECKING:
    from rollin.tabular.mdp import ContextualMDP

TABULAR_TASKS = ("four-rooms",)

RuleName = Literal["success", "gap"]
Algorithm = Literal["batch-spg", "pg", "spg", "two-phase-spg", "npg"]


@dataclass(frozen=True)
class TabularConfig(RunConfig):
    """Options of one tabular run."""

    engine: ClassVar[str] = "tabular"

    reward: Literal["easy", "hard"] = "easy"
    """Reward of four rooms: easy 0.9^D within 5 steps of the goal, hard 0.5^D within 4."""
    alpha: float = 0.01
    """Entropy coefficient α > 0."""
    beta: float = 0.75
    """Share β ∈ [0, 1) of trajectories that roll in with the previous policy; 0 is the baseline."""
    steps: int = 50_000
    """Gradient steps."""
    seed: int = 0
    """Seed of all random numbers of the run."""
    gamma: float | None = None
    """Discount γ < 1. Default: the task's own (four rooms: 0.95, our choice)."""
    algorithm: Algorithm = "batch-spg"
    """batch-spg: the experiment's gradient with Adam; pg: exact gradient; spg: SamSA and EstEntQ;
    two-phase-spg: the theorem's step sizes; npg: exact natural gradient."""
    learning_rate: float | None = None
    """Step size: 1e-3 for batch-spg (Adam), 1 for pg, 0.1 for spg, 0.1 (1-γ)/α for npg; for the
    first phase of two-phase-spg the largest that Theorem A.2 allows, log T_1/(T_1 L) with
    L = (8 + α(4 + 8 log A))/(1-γ)³."""
    batch: int = 2000
    """Trajectories (samples, for spg) per gradient step."""
    horizon: int = 50
    """Length of a trajectory, and of the window in which success is counted."""
    gradient: Literal["sampled", "exact"] = "sampled"
    """batch-spg only: sampled, or its exact expectation (the limit of an infinite batch)."""
    rollin: Literal["exact", "sampled"] = "exact"
    """First states from the exact μ_k (a linear solve per switch), or by acting with π_{k-1}."""
    mu: Literal["rho", "recursive"] = "rho"
    """Where a roll-in starts. rho: in ρ, with which runs are nearer to the published κ; recursive:
    in μ_{k-1}, as in equation 1, which rollin theory analyses."""
    success: Literal["rewarded", "goal", "reached"] = "rewarded"
    """What makes a trajectory successful in four rooms. rewarded: any rewarded collect, our
    replacement of the printed rules; goal: a collect on the goal itself, as appendix F.2 prints it;
    reached: being on the goal, as Section 4.4 prints it."""
    success_from: Literal["mu", "rho"] = field(default="mu", metadata={"since": "0.3.0"})
    """Where the success rate that advances is measured. mu: over the batch, whose trajectories
    start from μ_k, so with roll-in if β > 0; rho: exactly, from ρ, after every step."""
    threshold: float = 0.5
    """Advance to the next context when the success rate exceeds this."""
    rule: RuleName = field(default="success", metadata={"since": "0.2.0"})
    """When to advance. success: the paper's, when the success rate exceeds --threshold; gap, our
    extension without a threshold: when the success rate has risen from what the policy before the
    switch had most of the way to what earlier contexts gave, or to a plateau of its own."""
    epsilon: float | None = field(default=None, metadata={"since": "0.2.0"})
    """Advance instead when the soft sub-optimality V*(ρ) - V^π(ρ), computed exactly after every
    step, is at most this ε: the rule of the theory."""
    reset_adam: bool = True
    """Whether each context starts with fresh Adam moments (our choice)."""
    phase1_steps: int = 1000
    """two-phase-spg: T_1, steps of the first phase on each context."""
    phase2_batch: int = 8000
    """two-phase-spg: B_2, samples per step of the second phase."""
    t0: float = 100.0
    """two-phase-spg: t_0 of the second phase's step size 1/(t - T_1 + t_0)."""
    estimator: Literal["unbiased", "printed"] = "unbiased"
    """spg: EstEntQ in its unbiased form, or as printed (biased)."""
    literal: bool = False
    """The paper's text as printed: success = goal, mu = recursive, rollin = sampled, estimator =
    printed. It overrides those options."""
    log_every: int = 250
    """Gradient steps between two rows of metrics.csv."""
    log: tuple[str, ...] = field(default=(), metadata={"since": "0.2.0"})
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""

    @property
    def advance(self) -> AdvanceRule:
        """When to advance to the next context."""
        given = self.threshold != type(self).threshold
        if self.epsilon is not None and (given or self.rule == "gap"):
            other = "--rule gap" if self.rule == "gap" else "--threshold"
            raise RollinError(f"{other} and --epsilon are two rules of advance: give one.")
        if self.rule == "gap" and given:
            raise RollinError("--threshold belongs to --rule success; --rule gap needs none.")
        if self.epsilon is not None and self.success_from == "rho":
            raise RollinError(
                "--success-from is about the success rate, and --epsilon advances by the "
                "sub-optimality, which is always measured from ρ: leave one out."
            )
        if self.rule == "gap":
            return StepGap(most=1.0)
        return SuccessRate(self.threshold) if self.epsilon is None else SubOptimality(self.epsilon)

    def __post_init__(self) -> None:
        if self.literal:
            printed = {
                "success": "goal",
                "mu": "recursive",
                "rollin": "sampled",
                "estimator": "printed",
            }
            for name, value in printed.items():
                object.__setattr__(self, name, value)
        check_alpha(self.alpha)
        check_beta(self.beta)
        self.advance  # noqa: B018  (refuses bad values)
        for name, most in (
            ("steps", MOST_STEPS),
            ("log_every", MOST_STEPS),
            ("horizon", LONGEST_HORIZON),
            ("batch", MOST_SAMPLES),
            ("phase2_batch", MOST_SAMPLES),
        ):
            at_least(1, flag(name), getattr(self, name), most)
        if self.batch * self.horizon > MOST_STATES_VISITED:
            raise RollinError(
                f"--batch-size times --horizon must be at most {MOST_STATES_VISITED:,}, got "
                f"{self.batch:,} times {self.horizon:,}: choose less."
            )
        at_least(0, "--seed", self.seed)
        check_loggers(self.log)
        at_least(0, "--phase1-steps", self.phase1_steps, MOST_STEPS)
        positive("--t0", self.t0)
        if self.gamma is not None and not 0 <= self.gamma < 1:
            raise RollinError(f"--gamma must lie in [0, 1), got {self.gamma}.")
        if self.learning_rate is not None:
            positive("--learning-rate", self.learning_rate)
        if self.gradient == "exact" and self.algorithm != "batch-spg":
            raise RollinError("--gradient exact belongs to batch-spg; pg is the exact gradient.")


METRICS = (
    Metric("k", lambda run: run.progress.k),
    Metric("kappa", lambda run: run.progress.kappa, label="κ", result=True),
    Metric(
        "return",
        lambda run: run.exact["return"],
        meaning="exact: on the final context from ρ, discounted, over the horizon, without entropy",
        result=True,
    ),
    *(
        Metric(name, lambda run, name=name: run.exact[name], result=True, headline=False)
        for name in ("return_infinite", "return_undiscounted", "collects", "collects_discounted")
    ),
    Metric(
        "success",
        lambda run: run.counters.successes / run.counters.since,
        result=True,
        headline=False,
    ),
    Metric("return_current", lambda run: run.exact["return_current"]),
    Metric("entropy", lambda run: run.exact["entropy"]),
    Metric("env_steps", lambda run: run.counters.env_steps),
    Metric("rollin_steps", lambda run: run.counters.rollin_steps),
    Metric("rollin_steps_expected", lambda run: round(run.counters.rollin_steps_expected)),
    Metric("learning_rate", lambda run: run.learner.learning_rate),
)


class TabularEngine(Engine[TabularConfig]):
    """Runs of tabular tasks: four rooms, an MDP in a file, or one that a factory makes."""

    name = "tabular"
    config_class = TabularConfig
    step_words = "gradient steps"
    metrics = METRICS
    driver = "rollin.runs.engines.tabular_run:TabularRun"
    tasks = TABULAR_TASKS
    kind = "tabular policy gradients"
    example = "four-rooms or a FILE.npz"
    key_options = ("reward", "algorithm", "alpha", "beta", "mu", "steps", "seed")
    about = "four-rooms, or a FILE.npz with your own MDP"
    help = """Train a softmax policy along a curriculum on a finite MDP.

    If interrupted, the same command resumes the run.
    """
    task_help = "four-rooms, a FILE.npz with your own MDP, or module:factory that returns one."

    def claims(self, task: str) -> bool:
        """Built-in tasks, files, and factories that give an MDP."""
        if task in self.tasks or task.endswith(".npz"):
            return True
        return is_factory(task) and gives_mdp(task)

    def solved(self, record: Record, step: int) -> bool | None:
        """By its rule; of runs that do not record when, by the success rate at that step."""
        if record.completed is not None:
            return record.completed <= step
        kappa, rate = (record.value(MetricAt(name, step)) for name in ("kappa", "success"))
        options = record.options
        elsewhere = options.get("epsilon") is not None or options.get("success_from") == "rho"
        if kappa is None or kappa < 1 or elsewhere:  # the column `success` is the batch's
            return None if kappa is None else False
        threshold = record.options.get("threshold", TabularConfig.threshold)
        return None if rate is None else rate > threshold

    def fingerprint(self, spec: RunSpec[TabularConfig]) -> str | None:
        """Of the MDP."""
        return mdp_of(spec).fingerprint()

    def fingerprint_key(self, config: TabularConfig) -> tuple[Any, ...]:
        """The options that make the MDP."""
        return config.reward, config.gamma, config.success

    def has_state_maps(self, record: Record) -> bool:
        """Whether it is a run of four rooms whose policy was kept and can be read."""
        return record.task in self.tasks and bool(record.options) and bool(_tensors(record))

    def state_maps(self, record: Record) -> StateMaps:
        """The policy at a run's end, and its distributions over states context by context."""
        from rollin.tabular import soft
        from rollin.tabular.start import start_laws

        tensors, options = _tensors(record), record.options
        mdp = load_mdp(record.task, reward=options["reward"], gamma=options["gamma"])
        log_pi = soft.log_softmax(tensors["theta"])
        maps = StateMaps(log_pi, mdp.task(record.k or 0).r)
        policies = [p.astype(np.float64) for p in tensors.get("log_policies", ())]
        if not policies:
            return maps
        recursive = options["mu"] == "recursive"
        starts = start_laws(mdp, policies, options["beta"], recursive=recursive)
        visits = [soft.visitation(mdp, p, s.mu) for p, s in zip(policies, starts, strict=False)]
        return maps._replace(starts=[s.mu for s in starts], visits=visits)

    def summary(self, spec: RunSpec[TabularConfig], result: dict[str, Any]) -> str:
        """How a run ended, in a line."""
        mastered = ", all mastered" if result.get("completed") else ""
        return (
            f"κ = {result['kappa']:.3f} (k = {result['k']} of {result['K']}{mastered}), "
            f"final return {result['return']:.4g} after {result['step']:,} "
            f"gradient steps in {result['seconds']:.1f} s"
        )


def _tensors(record: Record) -> dict[str, Any]:
    """A run's learned parameters; empty if they were not kept or cannot be read."""
    return {} if record.path is None else _load(record.path / POLICY)


@lru_cache(maxsize=8)  # a page may be of thousands of runs
def _load(path: Path) -> dict[str, Any]:
    try:
        return load(read_bounded(path, LARGEST_POLICY))
    except (RollinError, SafetensorError, KeyError, ValueError):  # the page does without its maps
        return {}


# ------------------------------------------------------------------ MDPs by the names of tasks


def mdp_of(spec: RunSpec[Any]) -> "ContextualMDP":
    """The MDP of a run."""
    config = spec.config
    return load_mdp(spec.task, reward=config.reward, gamma=config.gamma, success=config.success)


def load_mdp(
    task: str, *, reward: str = "easy", gamma: float | None = None, success: str = "rewarded"
) -> "ContextualMDP":
    """The contextual MDP that a task's name stands for; `gamma` replaces its discount if given."""
    from rollin.tabular.families import GAMMA, four_rooms
    from rollin.tabular.mdp import ContextualMDP

    if task == "four-rooms":
        return four_rooms(reward, GAMMA if gamma is None else gamma, success)
    if reward != "easy" or success != "rewarded":
        raise RollinError(
            f"--reward, --success and --as-printed belong to four-rooms, not to {task}: give an "
            "MDP of your own its rewards and its `success` flags as arrays."
        )
    if task.endswith(".npz"):
        mdp = ContextualMDP.load(Path(task))
    elif ":" in task:
        mdp = _from_factory(task)
    elif task in TASKS:
        raise RollinError(
            f"{task} is not a tabular task: expected {', '.join(TABULAR_TASKS)}, a FILE.npz or "
            "module:factory, because the theory is about finite MDPs."
        )
    else:
        raise RollinError(
            f"Unknown task {task!r}: expected {', '.join((*TABULAR_TASKS, *TASKS))}, a FILE.npz, "
            "module:factory or the id of a Gymnasium environment such as Hopper-v5."
            f"{did_you_mean(task, (*TABULAR_TASKS, *TASKS))}"
        )
    return mdp if gamma is None else mdp.replace(gamma=gamma)


def gives_mdp(task: str) -> bool:
    """Whether module:factory stands for a tabular task; what fails does not."""
    import gymnasium

    from rollin.envs.registry import load_factory
    from rollin.tabular.mdp import ContextualMDP

    factory = load_factory(task)
    try:
        with from_here():
            made = factory() if callable(factory) else factory
    except KeyboardInterrupt:
        raise
    except BaseException:  # it may want options, and says so when it is made
        return False
    if isinstance(made, gymnasium.Env):
        made.close()
    return isinstance(made, ContextualMDP)


def _from_factory(task: str) -> "ContextualMDP":
    from rollin.envs.registry import load_factory
    from rollin.tabular.mdp import ContextualMDP

    factory = load_factory(task)
    try:
        with from_here():
            mdp = factory() if callable(factory) else factory
    except (RollinError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise foreign(f"{task} failed:", error) from error
    if not isinstance(mdp, ContextualMDP):
        raise RollinError(f"{task} must return a ContextualMDP, got {type(mdp).__name__}.")
    return mdp


ENGINE = TabularEngine()
