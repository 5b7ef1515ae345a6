"""Options of ROLLIN's engine; the field docstrings are the help texts of the command line.

Defaults marked "ours" are readings of what the paper leaves open; `--literal` takes the printed
text instead (see docs/choices.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from rollin.checks import MOST_STEPS, at_least, flag, one_of, within
from rollin.curriculum.contexts import KappaReading, ThresholdArgument
from rollin.curriculum.teachers import TEACHERS
from rollin.deep.options import RollinOptions
from rollin.errors import RollinError
from rollin.runs.engines.deep import check_deep
from rollin.runs.engines.older import rollin_as_it_was
from rollin.runs.spec import RunConfig
from rollin.sac.config import SACConfig
from rollin.sac.learner import LearnerName

LARGEST_RETURN = 1e30  # of a threshold
MOST_GOALS = 1000  # of the evaluation at the end
RULES_WITHOUT = ("gap", "plateau")  # a threshold
WALK, VISITED = "walk", "visited"
ADAPTIVE: Mapping[str, Any] = {
    "rule": "gap",
    "stride": "halving",
    "counted": "main",
    "better": 0.25,
}
"""Our scheme, which needs neither a threshold nor a step that somebody must know."""


@dataclass(frozen=True)
class RollinConfig(RunConfig):
    """Options of one run of ROLLIN on a contextual environment."""

    engine: ClassVar[str] = "rollin"
    short_forms: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "geometric": {"sampling": "geometric"},
        "adaptive": ADAPTIVE,
    }

    learner: LearnerName = "cpu"
    """cpu: compiled for this processor; jax: for accelerators (needs the extra rollin[jax])."""
    steps: int = 1_000_000
    """Environment steps."""
    seed: int = 0
    """Seed of all random streams of the run."""
    algorithm: RollinOptions = field(default_factory=RollinOptions)
    teacher: str = field(default="walk", metadata={"since": "0.2.0"})
    """Who chooses contexts: walk, the curriculum in its order; or another curriculum on the same
    path, with roll-in from the nearest mastered context if β > 0: uniform, fixed, alp-gmm, plr,
    spdl, currot, frontier, jsrl, archive, reverse; or visited, for which a start and a goal are
    enough: places that episodes came by."""
    rule: Literal["return", "success", "gap", "plateau"] | None = None
    """What masters a context: the mean return, or the share of successful episodes, above a
    threshold; without one (ours): gap, a share of the way from what the behaviour before earns to
    the best seen; plateau, nothing better for long. The environment's own rule if not given, and
    gap if it has none."""
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
    stride: Literal["fixed", "halving"] | None = field(default=None, metadata={"since": "0.2.0"})
    """Steps along the path: fixed, Δ each; halving (ours): Δ, or 1/12, is the first and the
    largest, halved where π_main sees no reward for ten episodes, doubled where it succeeds at once.
    If not given: fixed, and halving where neither the options nor the environment have a
    threshold."""
    start: float | None = None
    """Position on the path at which the curriculum starts, as a number or as 1/24; the
    environment's own (antmaze-umaze: Δ, ours), or 0 with --path, if not given."""
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
    """Replay capacity in transitions; the whole run if not given."""
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
    """Whether to keep the file of all transitions after the run."""
    sac: SACConfig = field(default_factory=SACConfig)

    @classmethod
    def as_it_was(cls, task: str, values: dict[str, Any]) -> dict[str, Any]:
        """Options of a run of an older version as what they were."""
        return rollin_as_it_was(task, values)

    def __post_init__(self) -> None:
        check_deep(self, self.algorithm.warmup)
        at_least(1, "--last", self.last, MOST_STEPS)
        for name in ("window", "horizon"):
            if getattr(self, name) is not None:
                at_least(1, flag(name), getattr(self, name), MOST_STEPS)
        for name, known in (
            ("rule", ("return", "success", "gap", "plateau")),
            ("stride", ("fixed", "halving")),
            ("kappa", get_args(KappaReading)),
            ("threshold_at", get_args(ThresholdArgument)),
        ):
            if getattr(self, name) is not None:
                one_of(flag(name), getattr(self, name), known)
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
                "--path, --contexts and --literal are three ways to give a curriculum: use one."
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
        one_of("--spacing", self.spacing, ("step", "even"))
        others = {
            "--start": self.start is not None, "--contexts": self.contexts is not None,
            "--literal": self.literal, "--stride halving": self.stride == "halving",
            f"--teacher {self.teacher}": self.teacher != WALK,
        }  # fmt: skip
        given = [name for name, placed in others.items() if placed]
        if self.spacing == "even" and given:
            raise RollinError(
                f"--spacing even and {given[0]} both say where contexts are: leave one out."
            )

    def _check_teacher(self) -> None:
        """Refuse a teacher that there is not, and options that only a walk has."""
        one_of("--teacher", self.teacher, (WALK, *TEACHERS, VISITED))
        if self.algorithm.method not in ("rollin", "baseline"):
            raise RollinError(
                f"--teacher {self.teacher} chooses contexts by itself, and --method "
                f"{self.algorithm.method} is a way to walk a curriculum: leave one out."
            )
        options, main = self.algorithm, self.algorithm.counted == "main"
        walks = {
            "rule": self.rule, "threshold": self.threshold, "stride": self.stride,
            "delta": self.delta, "need": options.need or None, "counted": main or None,
        }  # fmt: skip
        if self.teacher != VISITED:  # contexts change from episode to episode
            walks["better"] = options.better or None
        if given := [flag(name) for name, value in walks.items() if value is not None]:
            raise RollinError(
                f"{given[0]} belongs to a walk, and --teacher {self.teacher} has its own way: "
                "leave one out."
            )
