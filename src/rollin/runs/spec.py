"""What a run is: a task and a frozen set of options, checked, with a stable hash.

The field docstrings are the help texts of the command line. Defaults marked "ours" are readings of
what the paper leaves open; `--literal` takes the printed text instead (see docs/choices.md).
"""

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_type_hints

from rollin.checks import (
    at_least,
    check_alpha,
    check_beta,
    check_warmup,
    did_you_mean,
    one_of,
    positive,
)
from rollin.curriculum.contexts import KappaReading, ThresholdArgument
from rollin.curriculum.rules import SuccessRate
from rollin.deep.options import RollinOptions
from rollin.errors import RollinError
from rollin.runs.older import as_it_was
from rollin.runs.options import typed_option
from rollin.sac.config import SACConfig
from rollin.sac.learner import LearnerName

Algorithm = Literal["batch-spg", "pg", "spg", "two-phase-spg", "npg"]


@dataclass(frozen=True)
class TabularConfig:
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
    """Seed of all random streams of the run."""
    gamma: float | None = None
    """Discount γ < 1; the task's own if not given (four rooms: 0.95, ours)."""
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
    """Roll in from ρ (ours), or from μ_{k-1} as equation 1 is printed."""
    success: Literal["rewarded", "goal"] = "rewarded"
    """What makes a trajectory successful in four rooms: any rewarded collect (ours), or a collect
    on the goal itself, as printed."""
    threshold: float = 0.5
    """Go on to the next context when the success rate is above this."""
    reset_adam: bool = True
    """Whether each context starts with fresh Adam moments (ours)."""
    phase1_steps: int = 1000
    """two-phase-spg: T_1, steps of the first phase on each context."""
    phase2_batch: int = 8000
    """two-phase-spg: B_2, samples per step of the second phase."""
    t0: float = 100.0
    """two-phase-spg: t_0 of the second phase's step size 1/(t - T_1 + t_0)."""
    estimator: Literal["unbiased", "printed"] = "unbiased"
    """spg: EstEntQ in its unbiased form, or as printed (biased)."""
    literal: bool = False
    """The paper's printed reading: success = goal, mu = recursive, rollin = sampled,
    estimator = printed, whatever those options say."""
    log_every: int = 250
    """Gradient steps between two rows of metrics.csv."""

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
        SuccessRate(self.threshold)
        for name in ("steps", "batch", "horizon", "log_every", "phase2_batch"):
            at_least(1, _flag(name), getattr(self, name))
        for name in ("seed", "phase1_steps"):
            at_least(0, _flag(name), getattr(self, name))
        positive("--t0", self.t0)
        if self.gamma is not None and not 0 <= self.gamma < 1:
            raise RollinError(f"--gamma must lie in [0, 1), got {self.gamma}.")
        if self.learning_rate is not None:
            positive("--learning-rate", self.learning_rate)
        if self.gradient == "exact" and self.algorithm != "batch-spg":
            raise RollinError("--gradient exact belongs to batch-spg; pg is the exact gradient.")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


@dataclass(frozen=True)
class SACRunConfig:
    """Options of one run of plain SAC on a Gymnasium environment."""

    engine: ClassVar[str] = "sac"

    learner: LearnerName = "cpu"
    """cpu: compiled for this processor; jax: for accelerators (needs the extra rollin[jax])."""
    steps: int = 1_000_000
    """Environment steps."""
    seed: int = 0
    """Seed of all random streams of the run."""
    warmup: int = 10_000
    """Uniformly random steps before the first update."""
    capacity: int | None = None
    """Newest transitions that the replay holds; all of the run if not given."""
    sampling: Literal["uniform", "geometric"] = "uniform"
    """How a batch is drawn: every transition alike, or recent ones more often (--geometric is
    short for that)."""
    p: float = 1e-5
    """Parameter of geometric sampling: P(age) ∝ (1-p)^age."""
    log_every: int = 5_000
    """Steps between two rows of metrics.csv, each with an evaluation."""
    eval_episodes: int = 10
    """Deterministic episodes per evaluation."""
    keep_replay: bool = False
    """Whether the file of all transitions stays when the run has finished."""
    sac: SACConfig = field(default_factory=SACConfig)

    def __post_init__(self) -> None:
        _check_deep(self, self.warmup)
        if self.steps <= self.warmup:
            raise RollinError(
                f"--steps must be more than --warmup ({self.warmup}), got {self.steps}: learning "
                "begins after the random steps."
            )
        if self.sampling not in ("uniform", "geometric"):
            raise RollinError(f"--sampling must be uniform or geometric, got {self.sampling!r}.")
        if not 0 < self.p < 1:
            raise RollinError(f"--p must lie in (0, 1), got {self.p}.")


@dataclass(frozen=True)
class RollinConfig:
    """Options of one run of ROLLIN on a contextual environment."""

    engine: ClassVar[str] = "rollin"

    learner: LearnerName = "cpu"
    """cpu: compiled for this processor; jax: for accelerators (needs the extra rollin[jax])."""
    steps: int = 1_000_000
    """Environment steps."""
    seed: int = 0
    """Seed of all random streams of the run."""
    algorithm: RollinOptions = field(default_factory=RollinOptions)
    rule: Literal["return", "success"] | None = None
    """What masters a context: the mean return, or the share of successful episodes; as the
    environment's own curriculum has it if not given."""
    threshold: float | None = None
    """R, or the success rate, that the last episodes must exceed; the environment's own if not
    given."""
    threshold_slope: float = 0.0
    """Slope of a return threshold R(x) = threshold + slope · x; --threshold-at says what x is."""
    threshold_at: ThresholdArgument | None = None
    """What a return threshold R(x) is a function of on context k: kappa, k / K, or its position on
    the path (the level of a velocity). The environment's own, or kappa with --path and --contexts,
    if not given."""
    kappa: KappaReading | None = None
    """κ of context k: its index over the last one, k / K (ours), or its position on the path."""
    window: int | None = None
    """Episodes under the current context that the rule looks at; the environment's own, or 10, if
    not given."""
    delta: float | None = None
    """Step Δ of the curriculum along its path of length 1, as a number or as 1/24; the
    environment's own, or 0.1 with --path, if not given."""
    start: float | None = None
    """Position on the path at which the curriculum starts, as a number or as 1/24; the
    environment's own (antmaze-umaze: Δ, ours), or 0 with --path, if not given."""
    path: str | None = None
    """Corners of another path, as JSON: '[[0, 0], [8, 0], [8, 8]]'."""
    contexts: str | None = None
    """Another curriculum as a JSON list of contexts: '[[0.5], [1.0], [2.0]]'."""
    literal: bool = False
    """The curriculum of the paper's robots as printed: κ and the threshold's argument are the
    position, and antmaze-umaze starts at 0. Options that are given still count."""
    env_options: tuple[str, ...] = ()
    """Options of the environment, as name=value."""
    horizon: int | None = None
    """Steps after which an episode is cut off, if the environment has not ended it before."""
    capacity: int | None = None
    """Newest transitions that the replay holds; all of the run if not given."""
    log_every: int = 5_000
    """Steps between two rows of metrics.csv, each with an evaluation."""
    eval_episodes: int = 5
    """Deterministic episodes per evaluation, on the current and on the last context."""
    last: int = 50_000
    """Steps over which κ, returns and measures are averaged: at the end and at every half a million
    steps in result.json, and at every point of rollin plot."""
    keep_replay: bool = False
    """Whether the file of all transitions stays when the run has finished."""
    sac: SACConfig = field(default_factory=SACConfig)

    def __post_init__(self) -> None:
        _check_deep(self, self.algorithm.warmup)
        at_least(1, "--last", self.last)
        for name in ("window", "horizon"):
            if getattr(self, name) is not None:
                at_least(1, _flag(name), getattr(self, name))
        for name, known in (
            ("rule", ("return", "success")),
            ("kappa", get_args(KappaReading)),
            ("threshold_at", get_args(ThresholdArgument)),
        ):
            if getattr(self, name) is not None:
                one_of(_flag(name), getattr(self, name), known)
        if sum((self.path is not None, self.contexts is not None, self.literal)) > 1:
            raise RollinError(
                "--path, --contexts and --literal are three ways to give a curriculum: use one."
            )
        if not math.isfinite(self.threshold_slope):
            raise RollinError(f"--threshold-slope must be finite, got {self.threshold_slope}.")
        if self.threshold_slope and (self.threshold is None or self.rule == "success"):
            raise RollinError(
                "--threshold-slope belongs to a return threshold: it needs --threshold, the R at "
                "0, and no --rule success."
            )


def replay_rows(config: SACRunConfig | RollinConfig) -> int:
    """Transitions that a run's replay has room for."""
    return min(config.capacity or config.steps, config.steps)


def _check_deep(config: Any, warmup: int) -> None:
    """What holds for runs of plain SAC and of ROLLIN alike."""
    for name in ("steps", "log_every", "eval_episodes"):
        at_least(1, _flag(name), getattr(config, name))
    at_least(0, "--seed", config.seed)
    if config.learner not in ("cpu", "jax"):
        raise RollinError(f"--learner must be cpu or jax, got {config.learner!r}.")
    check_warmup(warmup, config.sac.batch)
    if config.capacity is not None:
        at_least(config.sac.batch, "--capacity", config.capacity)


def rollin_config(**options: Any) -> RollinConfig:
    """A configuration from options by their names, whichever part they belong to."""
    parts: dict[type[Any], dict[str, Any]] = {RollinConfig: {}, RollinOptions: {}, SACConfig: {}}
    names = {kind: {f.name for f in fields(kind)} - _PARTS.keys() for kind in parts}
    for name, value in options.items():
        kind = next((kind for kind in parts if name in names[kind]), None)
        if kind is None:
            known = sorted(set().union(*names.values()))
            raise RollinError(f"There is no option {name}.{did_you_mean(name, known)}")
        parts[kind][name] = typed_option(name, value, _hints(kind)[name])
    algorithm, sac = RollinOptions(**parts[RollinOptions]), SACConfig(**parts[SACConfig])
    return RollinConfig(**parts[RollinConfig], algorithm=algorithm, sac=sac)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


_PARTS: dict[str, type[Any]] = {"algorithm": RollinOptions, "sac": SACConfig}
"""Options that are a dataclass of their own."""

ENGINES: dict[str, type[Any]] = {c.engine: c for c in (TabularConfig, SACRunConfig, RollinConfig)}

Config = TypeVar("Config", TabularConfig, SACRunConfig, RollinConfig)


@dataclass(frozen=True)
class RunSpec(Generic[Config]):
    """A task and its options: the same spec is the same run."""

    task: str
    config: Config

    @property
    def hash(self) -> str:
        """A stable name of the spec: SHA-256 of its canonical JSON, shortened."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in config.json."""
        return {"engine": self.config.engine, "task": self.task, "config": asdict(self.config)}


def spec_from_json(value: dict[str, Any]) -> RunSpec[Any]:
    """Read what `RunSpec.to_json` gave."""
    try:
        engine = ENGINES.get(value["engine"])
        if engine is None:
            raise RollinError(f"config.json names an unknown engine: {value['engine']}.")
        task = str(value["task"])
        return RunSpec(task, _config(engine, as_it_was(engine.engine, task, value["config"])))
    except (KeyError, TypeError) as error:
        raise RollinError(f"config.json is not a run's configuration: {error}.") from error


def _config(kind: type[Any], values: dict[str, Any]) -> Any:
    if not isinstance(values, dict):
        raise TypeError(f"options expected, got {values!r}")
    known = {f.name for f in fields(kind)}
    if unknown := values.keys() - known:
        raise RollinError(f"config.json holds unknown options: {', '.join(sorted(unknown))}.")
    values = dict(values)
    for name, value in values.items():
        if name in _PARTS and not isinstance(value, str):  # the tabular `algorithm` is a word
            values[name] = _config(_PARTS[name], value)
        elif isinstance(value, list):
            values[name] = tuple(value)
    return kind(**values)
