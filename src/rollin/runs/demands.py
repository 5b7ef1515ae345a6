"""What a run takes of a machine: cores, GPUs and memory."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from rollin.envs.registry import make_contextual
from rollin.errors import RollinError
from rollin.runs.spec import RollinConfig, RunSpec, replay_rows
from rollin.sac.replay import RowLayout

BASE = 300 << 20  # bytes of a process with the compiled kernels and a simulator; 180 – 250 MB seen
ROW_EXTRA = 16  # bytes a transition besides its row: where its episode ends, who collected it


@dataclass(frozen=True)
class Demands:
    """What a run takes of a machine: cores, GPUs, and bytes of memory."""

    cpus: int
    gpus: float
    memory: int

    def __str__(self) -> str:
        gpus = f", {self.gpus:g} GPU" if self.gpus else ""
        return f"{self.cpus} CPU{gpus} and {self.memory / 2**30:.1f} GB"


def demands_of(spec: RunSpec[Any], gpus: float = 0.0) -> Demands:
    """What a run takes; gpus: share of a GPU that a run with the accelerator's learner gets."""
    config = spec.config
    if not isinstance(config, RollinConfig):
        return Demands(1, 0.0, BASE)
    row = _row_bytes(spec.task, config.env_options, config.horizon)
    accelerated = config.learner == "jax"
    memory = BASE * (2 if accelerated else 1) + replay_rows(config) * row
    return Demands(config.sac.threads, gpus if accelerated else 0.0, memory)


@cache
def _row_bytes(task: str, options: tuple[str, ...], horizon: int | None) -> int:
    """Bytes of a transition of an environment; of one that cannot be made, the run will tell."""
    try:
        env = make_contextual(task, options, horizon=horizon)
    except RollinError:
        return 0
    try:
        sizes = (env.observation_size, env.action_size, env.context_size, env.outcome_size)
        return 4 * RowLayout(*sizes).width + ROW_EXTRA
    finally:
        env.close()
