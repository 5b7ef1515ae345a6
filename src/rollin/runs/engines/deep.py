"""What the options of plain SAC and of ROLLIN have in common."""

from dataclasses import replace
from typing import Any, TypeVar

from rollin.checks import MOST_EPISODES, MOST_STEPS, at_least, check_warmup, flag
from rollin.errors import RollinError
from rollin.runs.engines.base import BASE, Demands
from rollin.runs.loggers import check_loggers

ROWS = 10  # of metrics.csv that even a short run has
ROW_EXTRA = 16  # bytes a transition besides its row: where its episode ends, who collected it

Deep = TypeVar("Deep")


def check_deep(config: Any, warmup: int) -> None:
    """Refuse options that cannot be meant."""
    for name in ("steps", "log_every"):
        at_least(1, flag(name), getattr(config, name), MOST_STEPS)
    at_least(1, "--eval-episodes", config.eval_episodes, MOST_EPISODES)
    at_least(0, "--seed", config.seed)
    check_loggers(config.log)
    if config.learner not in ("cpu", "jax"):
        raise RollinError(f"--learner must be cpu or jax, got {config.learner!r}.")
    if config.learner == "jax" and config.sac.precision != "float32":
        raise RollinError(
            f"--precision {config.sac.precision} needs --learner cpu: the learner jax computes in "
            "float32. Choose --precision float32, or leave out --learner jax."
        )
    check_warmup(warmup, config.sac.batch)
    at_least(0, "--warmup", warmup, MOST_STEPS)
    if config.capacity is not None:
        at_least(config.sac.batch, "--capacity", config.capacity, MOST_STEPS)


def replay_rows(config: Any) -> int:
    """Transitions that a run's replay has room for."""
    return min(config.capacity or config.steps, config.steps)


def without_logging(config: Deep) -> Deep:
    """A configuration with one value for whatever changes no result: learner, threads, logging."""
    options: Any = config
    return replace(
        options,
        learner="cpu",
        eval_episodes=1,
        keep_replay=False,
        sac=replace(options.sac, threads=1),
    )


def deep_demands(config: Any, row: int, gpus: float) -> Demands:
    """What a run takes; row: bytes of a transition, gpus: share of a GPU for the JAX learner."""
    accelerated = config.learner == "jax"
    replay = replay_rows(config) * (row + ROW_EXTRA) if row else 0
    memory = BASE * (2 if accelerated else 1) + replay
    return Demands(config.sac.threads, gpus if accelerated else 0.0, memory)
