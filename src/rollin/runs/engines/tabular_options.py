"""Options of the tabular engine; the field docstrings are the help texts of the command line.

Defaults marked "ours" are readings of what the paper leaves open; `--literal` takes the printed
text instead (see docs/choices.md).
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from rollin.checks import (
    LONGEST_HORIZON,
    MOST_SAMPLES,
    MOST_STATES_VISITED,
    MOST_STEPS,
    at_least,
    check_alpha,
    check_beta,
    flag,
    positive,
)
from rollin.curriculum.rules import AdvanceRule, SubOptimality, SuccessRate
from rollin.curriculum.step_gap import StepGap
from rollin.errors import RollinError
from rollin.runs.loggers import check_loggers
from rollin.runs.spec import RunConfig

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
    """When to advance. success: the paper's, when the success rate exceeds --threshold; gap: ours,
    without a threshold, when the success rate has risen from what the policy before the switch had
    most of the way to what earlier contexts gave, or to a plateau of its own."""
    epsilon: float | None = field(default=None, metadata={"since": "0.2.0"})
    """Advance instead when the soft sub-optimality V*(ρ) - V^π(ρ), computed exactly after every
    step, is at most this ε: the rule of the theory."""
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
    """The paper's text as printed: success = goal, mu = recursive, rollin = sampled, estimator =
    printed. It overrides those options."""
    log_every: int = 250
    """Gradient steps between two rows of metrics.csv."""
    log: tuple[str, ...] = field(default=(), metadata={"since": "0.2.0"})
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""

    @property
    def advance(self) -> AdvanceRule:
        """When to go on to the next context."""
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
                f"--batch times --horizon must be at most {MOST_STATES_VISITED:,}, got "
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
