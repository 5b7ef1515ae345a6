"""Options of runs that last until the last context is solved."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from rollin.checks import (
    MOST_SAMPLES,
    MOST_STEPS,
    at_least,
    check_alpha,
    check_beta,
    flag,
    positive,
)
from rollin.errors import RollinError
from rollin.runs.loggers import check_loggers
from rollin.runs.spec import RunConfig

Gradient = Literal["exact", "natural", "sampled"]


@dataclass(frozen=True)
class UntilSolvedConfig(RunConfig):
    """Options of one run."""

    engine: ClassVar[str] = "until-solved"

    n: int = 8
    """Size: cells of the lock or the corridor, side of the grid, states of the random MDP."""
    gradient: Gradient = "exact"
    """exact: exact gradient; natural: exact natural gradient; sampled: SPG with a fixed batch."""
    scratch: bool = False
    """Learn the last context alone."""
    beta: float = 0.0
    """Share β ∈ [0, 1) of trajectories that roll in with the previous policy; 0 is the baseline."""
    mu: Literal["rho", "recursive"] = "rho"
    """Roll in from ρ, or from μ_{k-1} as equation 1 is printed."""
    rule: Literal["success", "gap"] = field(default="success", metadata={"since": "0.2.0"})
    """When a context before the last is mastered. success: when its success probability exceeds
    0.5; gap: without a threshold, as that of rollin train four-rooms. The last is solved at 0.5."""
    alpha: float = 1e-4
    """Entropy coefficient α > 0."""
    gamma: float | None = None
    """Discount γ < 1; 1 - 1/(K+1) if not given."""
    uniform_rho: bool = False
    """Start from all cells of the lock alike, not from the first."""
    learning_rate: float = 8.0
    """Step size η, in units of 1-γ unless --no-relative is given."""
    relative: bool = True
    """Whether the learning rate is in units of 1-γ."""
    batch: int = 20
    """Samples per gradient step of a sampled gradient."""
    steps: int = 1_000_000
    """Maximum number of gradient steps; a run that reaches it is cut off."""
    seed: int = 0
    """Seed of the samples, and of the random MDP."""
    log_every: int = 10_000
    """Gradient steps between two rows of metrics.csv."""
    log: tuple[str, ...] = field(default=(), metadata={"since": "0.2.0"})
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_beta(self.beta)
        positive("--learning-rate", self.learning_rate)
        for name in ("n", "steps", "log_every"):
            at_least(1, flag(name), getattr(self, name), MOST_STEPS)
        at_least(1, "--batch", self.batch, MOST_SAMPLES)
        at_least(0, "--seed", self.seed)
        check_loggers(self.log)
        if self.gamma is not None and not 0 <= self.gamma < 1:
            raise RollinError(f"--gamma must lie in [0, 1), got {self.gamma}.")
