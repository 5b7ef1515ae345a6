"""Options of ROLLIN's engine; the field docstrings are the help texts of the command line.

Defaults marked "our choice" are readings of what the paper leaves open; `--as-printed` takes the
printed text instead (see docs/design-decisions.md).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rollin.checks import MOST_STEPS, at_least, check_literals, flag, one_of, within
from rollin.curriculum.contexts import KappaReading, ThresholdArgument
from rollin.deep.options import RollinOptions
from rollin.errors import RollinError
from rollin.runs.engines.deep import check_deep
from rollin.runs.metrics import Metric
from rollin.runs.spec import RunConfig
from rollin.sac.config import LearnerName, SACConfig

LARGEST_RETURN = 1e30  # of a threshold
MOST_GOALS = 1000  # of the evaluation at the end
RULES_WITHOUT = ("early-gap", "gap", "plateau")  # a threshold
ADAPTING = ("bold", "halving")  # steps
WALK, VISITED = "walk", "visited"
ADAPTIVE: Mapping[str, Any] = {
    "rule": "early-gap",
    "stride": "bold",
    "counted": "main",
    "better": 0.25,
}
"""Our extension, which needs neither a hand-set threshold nor a hand-set step."""


@dataclass(frozen=True)
class RollinConfig(RunConfig):
    """Options of one run of ROLLIN on a contextual environment."""

    engine: ClassVar[str] = "rollin"
    short_forms: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "geometric": {"sampling": "geometric"},
        "adaptive": ADAPTIVE,
    }

    learner: LearnerName = "cpu"
    """cpu: compiled for this processor; jax: for accelerators (needs the extra jax)."""
    steps: int = 1_000_000
    """Environment steps."""
    seed: int = 0
    """Seed of all random numbers of the run."""
    algorithm: RollinOptions = field(default_factory=RollinOptions)
    teacher: str = field(
        default="walk", metadata={"since": "0.2.0", "names": "rollin.teachers:TEACHERS"}
    )
    """What chooses contexts. walk: the contexts of the curriculum in order, as in the paper.
    visited: goals that earlier episodes reached, between a start and a final goal. {names}: other
    curricula on the same path, with roll-in from the nearest mastered context if β > 0."""
    rule: Literal["return", "success", "early-gap", "gap", "plateau"] | None = None
    """When a context is mastered. return, success: the mean return, or the success rate, exceeds
    --threshold. Without a threshold (our extension), gap: the mean return covers most of the gap
    between the previous policy and the best return; early-gap: the same, after five episodes where
    these are clear; plateau: the return has stopped improving. Default: the environment's own rule,
    or early-gap if it has none."""
    threshold: float | None = None
    """Mean return R, or success rate, that the last episodes must exceed. Default: the
    environment's own."""
    threshold_slope: float = 0.0
    """Slope of a return threshold R(x) = threshold + slope · x; --threshold-at says what x is."""
    threshold_at: ThresholdArgument | None = None
    """What a return threshold R(x) is a function of on context k: kappa, k / K, or its position on
    the path (the level of a velocity). Default: the environment's own, or kappa with --path and
    --contexts."""
    kappa: KappaReading | None = None
    """κ of context k: its index divided by the last one, k / K, or its position on the path.
    Default: the environment's own, which is the index (our choice) in rollin's tasks."""
    window: int | None = None
    """Episodes under the current context that the rule looks at. Default: the environment's own,
    or 10."""
    delta: float | None = None
    """Step Δ of the curriculum along its path of length 1, as a number or as 1/24. Default: the
    environment's own, or 0.1 with --path."""
    stride: Literal["fixed", "bold", "halving"] | None = field(
        default=None, metadata={"since": "0.2.0"}
    )
    """Steps along the path: fixed, Δ each. halving (our extension): Δ, or 1/12, is the first and
    the largest, halved where π_main sees no reward for ten episodes, doubled where it succeeds at
    once. bold: the same, but steps double up to the whole path until one was too long, and one
    episode in ten is played under the final context. Default: fixed, or bold where neither the
    options nor the environment have a threshold."""
    start: float | None = None
    """Position on the path at which the curriculum starts, as a number or as 1/24. Default: the
    environment's own (antmaze-umaze: Δ, our choice), or 0 with --path."""
    spacing: Literal["step", "even"] = field(default="step", metadata={"since": "0.3.0"})
    """Contexts on the path. step: one every Δ from --start to the end; even: 1/Δ contexts at equal
    distances from the beginning of the path to its end, another reading of the paper's goals in
    antmaze-umaze: ω_0 is ω(0) as printed, the step is Δ/(1-Δ), and κ has the same values."""
    path: str | None = None
    """Corners of another path, as JSON: '[[0, 0], [8, 0], [8, 8]]'."""
    contexts: str | None = None
    """Another curriculum as a JSON list of contexts: '[[0.5], [1.0], [2.0]]'."""
    literal: bool = False
    """The curriculum of the paper's robots as printed: κ and the threshold's argument are the
    position, and antmaze-umaze starts at 0. Options given explicitly take precedence."""
    env_options: tuple[str, ...] = ()
    """Options of the environment, as name=value."""
    horizon: int | None = None
    """Time limit of an episode in steps, if the environment does not end it earlier."""
    capacity: int | None = None
    """Replay capacity in transitions. Default: the whole run."""
    log_every: int = 5_000
    """Steps between two rows of metrics.csv, each with an evaluation."""
    log: tuple[str, ...] = field(default=(), metadata={"since": "0.2.0"})
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""
    eval_episodes: int = 5
    """Deterministic episodes per evaluation, on the current and on the last context."""
    goals: int = field(default=0, metadata={"since": "0.2.0"})
    """Evaluate so many contexts at equal distances of the path, at the end and at every row of
    metrics.csv that is at half a million steps: a context is solved if at least four of five
    deterministic episodes end in success. goals.csv also has episodes with drawn actions. 0: do
    not."""
    last: int = 50_000
    """Steps over which κ, returns and measures are averaged: at the end and at every half a million
    steps in result.json, and at every point of rollin plot."""
    keep_replay: bool = False
    """Keep the file of all transitions after the run."""
    sac: SACConfig = field(default_factory=SACConfig)

    def __post_init__(self) -> None:
        check_deep(self, self.algorithm.warmup)
        at_least(1, "--average-over", self.last, MOST_STEPS)
        for name in ("window", "horizon"):
            if getattr(self, name) is not None:
                at_least(1, flag(name), getattr(self, name), MOST_STEPS)
        check_literals(self, spell=flag)
        at_least(0, "--goals", self.goals, MOST_GOALS)
        if self.teacher != WALK:
            self._check_teacher()
        if self.rule in RULES_WITHOUT and self.threshold is not None:
            raise RollinError(
                f"--rule {self.rule} needs no threshold: leave --threshold out, or use --rule "
                "return."
            )
        if sum((self.path is not None, self.contexts is not None, self.literal)) > 1:
            raise RollinError(
                "--path, --contexts and --as-printed are three ways to give a curriculum: use one."
            )
        self._check_spacing()
        for name in ("threshold", "threshold_slope", "delta", "start"):
            if getattr(self, name) is not None:
                within(flag(name), getattr(self, name), LARGEST_RETURN)
        if self.threshold_slope and (self.threshold is None or self.rule == "success"):
            raise RollinError(
                "--threshold-slope belongs to a return threshold: it needs --threshold, the R at "
                "0, and no --rule success."
            )

    def _check_spacing(self) -> None:
        """Refuse even spacing where another option places the contexts."""
        others = {
            "--start": self.start is not None, "--contexts": self.contexts is not None,
            "--as-printed": self.literal, f"--stride {self.stride}": self.stride in ADAPTING,
            f"--teacher {self.teacher}": self.teacher != WALK,
        }  # fmt: skip
        given = [name for name, placed in others.items() if placed]
        if self.spacing == "even" and given:
            raise RollinError(
                f"--spacing even and {given[0]} both say where contexts are: leave one out."
            )

    def _check_teacher(self) -> None:
        """Refuse a teacher that there is not, and options that only a walk has."""
        if self.teacher not in (WALK, VISITED):
            from rollin.teachers import TEACHERS  # loads all of them

            one_of("--teacher", self.teacher, (WALK, *TEACHERS, VISITED))
        if self.algorithm.method not in ("rollin", "baseline"):
            raise RollinError(
                f"--teacher {self.teacher} chooses contexts by itself, and --method "
                f"{self.algorithm.method} is a way to walk a curriculum: leave one out."
            )
        options, main = self.algorithm, self.algorithm.counted == "main"
        walks = {
            "rule": self.rule, "threshold": self.threshold, "stride": self.stride,
            "delta": self.delta, "counted": main or None,
        }  # fmt: skip
        if self.teacher != VISITED:  # contexts change from episode to episode
            walks["better"] = options.better or None
        if given := [flag(name) for name, value in walks.items() if value is not None]:
            raise RollinError(
                f"{given[0]} belongs to a walk, and --teacher {self.teacher} has its own way: "
                "leave one out."
            )


# ------------------------------------------------------------------ metrics

SOLVED = 0.8  # of the episodes on a goal must end in success
LOSSES = ("critic_loss", "q_mean", "actor_loss", "entropy", "temperature")


def _mean(total: Callable[[Any], float], count: str) -> Callable[[Any], float]:
    """Return a sum since the last row over one of the counters; NaN if that is 0."""
    return lambda run: total(run.counters) / (getattr(run.counters, count) or math.nan)


METRICS = (
    Metric("k", lambda run: run.progress.k),
    Metric("kappa", lambda run: run.progress.kappa, label="κ", result=True),
    Metric(
        "kappa_mean",
        lambda run: run.progress.mean_kappa(max(run.step - run.config.last, 0), run.step),
        label="mean κ",
        result=True,
        headline=False,
    ),
    Metric(
        "return",
        lambda run: run.recent("return"),
        meaning="mean of training episodes over the last steps (--average-over), roll-in included",
        result=True,
    ),
    Metric(
        "x_velocity",
        lambda run: run.recent("x_velocity"),
        label="x-velocity (m/s)",
        result=True,
        when=lambda run: "x_velocity" in run.env.measures,
    ),
    Metric("success", lambda run: run.evaluated.success, result=True, headline=False),
    Metric(
        "return_final",
        lambda run: run.evaluated_final.mean,
        label="return on the last context",
        meaning="of deterministic episodes on the last context, played beside training",
        result=True,
    ),
    Metric(
        "success_final",
        lambda run: run.evaluated_final.success,
        label="success on the last context",
        meaning="share of deterministic episodes on the last context that succeed",
        result=True,
        headline=False,
    ),
    Metric(
        "goals",
        lambda run: run.goals_solved[0],
        label="share of goals solved",
        result=True,
        when=lambda run: run.goals,
    ),
    Metric(
        "goals_drawn",
        lambda run: run.goals_solved[1],
        label="share of goals solved with drawn actions",
        result=True,
        when=lambda run: run.goals,
    ),
    Metric("threshold", lambda run: run.state.teacher.threshold),
    Metric("window_mean", lambda run: run.state.window.mean),
    Metric("train_return", _mean(lambda since: since.returns, "since")),
    Metric("train_length", _mean(lambda since: since.lengths, "since")),
    Metric("train_success", _mean(lambda since: since.successes, "since")),
    Metric("rollin_fraction", _mean(lambda since: since.rollins, "since")),
    Metric("rollin_length", _mean(lambda since: since.rollin_lengths, "rollins")),
    Metric("eval_return", lambda run: run.evaluated.mean),
    Metric("episodes", lambda run: run.state.episode),
    Metric("rollin_episodes", lambda run: run.counters.rollin_episodes),
    Metric("updates_main", lambda run: run.updates),
    Metric("updates_exp", lambda run: run.counters.updates_exp),
    *(
        Metric(
            prefix + name,
            lambda run, agent=agent, name=name: getattr(run.last_updates[agent], name),
            when=lambda run: run.last_updates,
        )
        for agent, prefix in (("main", ""), ("exp", "exp_"))
        for name in LOSSES
    ),
)
"""Of runs of ROLLIN, with our agents or your own."""


def metrics_of(measures: Sequence[str]) -> list[Metric]:
    """Return the metrics of runs on an environment with such measures."""
    found = list(METRICS)
    taken = {metric.name for metric in METRICS} - {"x_velocity"}
    for i, name in enumerate(measures):
        total = lambda since, i=i: since.measured[i]  # noqa: E731
        found.append(Metric(f"train_{name}", _mean(total, "lengths")))
        if name != "x_velocity":
            column = f"mean_{name}" if name in taken else name
            value = lambda run, name=name: run.recent(name)  # noqa: E731
            found.append(Metric(column, value, result=True))
    return found
