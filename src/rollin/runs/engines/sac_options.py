"""Options of plain SAC's engine; the field docstrings are the help texts of the command line."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rollin.errors import RollinError
from rollin.runs.engines.deep import check_deep
from rollin.runs.engines.older import sac_as_it_was
from rollin.runs.spec import RunConfig
from rollin.sac.config import SACConfig
from rollin.sac.learner import LearnerName


@dataclass(frozen=True)
class SACRunConfig(RunConfig):
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
    """Replay capacity in transitions; the whole run if not given."""
    sampling: Literal["uniform", "geometric"] = "uniform"
    """How a batch is drawn: uniformly, or recent transitions more often (short form:
    --geometric)."""
    p: float = 1e-5
    """Parameter of geometric sampling: P(age) ∝ (1-p)^age."""
    log_every: int = 5_000
    """Steps between two rows of metrics.csv, each with an evaluation."""
    log: tuple[str, ...] = field(default=(), metadata={"since": "0.2.0"})
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""
    eval_episodes: int = 10
    """Deterministic episodes per evaluation."""
    keep_replay: bool = False
    """Whether to keep the file of all transitions after the run."""
    sac: SACConfig = field(default_factory=SACConfig)

    @classmethod
    def as_it_was(cls, task: str, values: dict[str, Any]) -> dict[str, Any]:
        """Options of a run of an older version as what they were."""
        return sac_as_it_was(values)

    def __post_init__(self) -> None:
        check_deep(self, self.warmup)
        if self.steps <= self.warmup:
            raise RollinError(
                f"--steps must be more than --warmup ({self.warmup}), got {self.steps}: learning "
                "begins after the random steps."
            )
        if self.sampling not in ("uniform", "geometric"):
            raise RollinError(f"--sampling must be uniform or geometric, got {self.sampling!r}.")
        if not 0 < self.p < 1:
            raise RollinError(f"--p must lie in (0, 1), got {self.p}.")
