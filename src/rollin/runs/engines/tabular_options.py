"""Options of the tabular engine; the field docstrings are the help texts of the command line.

Defaults marked "ours" are readings of what the paper leaves open; `--literal` takes the printed
text instead (see docs/choices.md).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from rollin.checks import (
    LONGEST_HORIZON,
    MOST_SAMPLES,
    MOST_STEPS,
    at_least,
    check_alpha,
    check_beta,
    flag,
    positive,
)
from rollin.curriculum.rules import SuccessRate
from rollin.errors import RollinError
from rollin.runs.spec import RunConfig

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
    """Roll in from ρ (ours), or from μ_{k-1} as equation 1 is printed."""
    success: Literal["rewarded", "goal"] = "rewarded"
    """What makes a trajectory successful in four rooms: any rewarded collect (ours), or a collect
    on the goal itself, as printed."""
    threshold: float = 0.5
    """Advance to the next context when the success rate exceeds this."""
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
        for name, most in (
            ("steps", MOST_STEPS),
            ("log_every", MOST_STEPS),
            ("horizon", LONGEST_HORIZON),
            ("batch", MOST_SAMPLES),
            ("phase2_batch", MOST_SAMPLES),
        ):
            at_least(1, flag(name), getattr(self, name), most)
        at_least(0, "--seed", self.seed)
        at_least(0, "--phase1-steps", self.phase1_steps, MOST_STEPS)
        positive("--t0", self.t0)
        if self.gamma is not None and not 0 <= self.gamma < 1:
            raise RollinError(f"--gamma must lie in [0, 1), got {self.gamma}.")
        if self.learning_rate is not None:
            positive("--learning-rate", self.learning_rate)
        if self.gradient == "exact" and self.algorithm != "batch-spg":
            raise RollinError("--gradient exact belongs to batch-spg; pg is the exact gradient.")
