"""What a run of ROLLIN writes down as it goes: columns of metrics.csv, and sums between rows."""

from dataclasses import dataclass

LOSSES = ("critic_loss", "q_mean", "actor_loss", "entropy", "temperature")
COLUMNS = (
    "step",
    "k",
    "kappa",
    "threshold",
    "window_mean",
    "train_return",
    "train_length",
    "train_success",
    "rollin_fraction",
    "rollin_length",
    "eval_return",
    "eval_success",
    "eval_return_final",
    "eval_success_final",
    "episodes",
    "rollin_episodes",
    "updates_main",
    "updates_exp",
    *LOSSES,
    *(f"exp_{name}" for name in LOSSES),
)
DRAWN = "drawn_"  # before the columns of goals.csv that are of drawn actions


def goal_columns(count: int) -> tuple[str, ...]:
    """Columns of goals.csv: of each goal the share of episodes that end there, and the return."""
    of_each = [f"{name}_{i + 1}" for i in range(count) for name in ("success", "return")]
    return ("step", *of_each, *(DRAWN + name for name in of_each))


@dataclass
class Counters:
    """Sums over the run so far, and over the episodes since the last row of metrics."""

    rollin_episodes: int = 0
    rollin_steps: int = 0
    updates_exp: int = 0
    since: int = 0
    returns: float = 0.0
    lengths: int = 0
    successes: int = 0
    rollins: int = 0
    rollin_lengths: int = 0
    measured: tuple[float, ...] = ()
