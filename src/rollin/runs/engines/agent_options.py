"""Options of a run with an agent of one's own."""

from dataclasses import dataclass, field
from typing import ClassVar

from rollin.checks import MOST_EPISODES, MOST_STEPS, at_least
from rollin.deep.own_agent import AgentOptions
from rollin.runs.loggers import check_loggers
from rollin.runs.spec import RunConfig


@dataclass(frozen=True)
class AgentConfig(RunConfig):
    """Options of one run; the curriculum is given in Python, or the environment's own."""

    engine: ClassVar[str] = "agent"

    agent: str = ""
    """Who learns: module:factory, or the agent's class if it was given as an object."""
    steps: int = 100_000
    """Environment steps, those of roll-ins included."""
    seed: int = 0
    """Seed of all random streams of the run but the agent's own."""
    algorithm: AgentOptions = field(default_factory=AgentOptions)
    env_options: tuple[str, ...] = ()
    """Options of the environment, as name=value."""
    horizon: int | None = None
    """Steps after which an episode is cut off, if the environment has not ended it before."""
    log_every: int = 5_000
    """Steps between two rows of metrics.csv, each with an evaluation."""
    log: tuple[str, ...] = field(default=(), metadata={"since": "0.2.0"})
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""
    eval_episodes: int = 5
    """Deterministic episodes per evaluation, on the current and on the last context."""
    last: int = 50_000
    """Steps over which κ, returns and measures are averaged in result.json."""

    def __post_init__(self) -> None:
        for name in ("steps", "log_every", "last"):
            at_least(1, name, getattr(self, name), MOST_STEPS)
        at_least(1, "eval_episodes", self.eval_episodes, MOST_EPISODES)
        at_least(0, "seed", self.seed)
        check_loggers(self.log)
        if self.horizon is not None:
            at_least(1, "horizon", self.horizon)
