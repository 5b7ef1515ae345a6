"""What the engines of plain SAC and of ROLLIN share: options, a learner's state, its policy."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rollin.checks import MOST_EPISODES, MOST_STEPS, at_least, check_warmup, flag
from rollin.errors import RollinError
from rollin.runs.engines import BASE, Demands
from rollin.runs.spec import check_loggers
from rollin.sac.config import SACConfig

if TYPE_CHECKING:
    from rollin.deep.state import DeepState
    from rollin.envs.box_env import ActionBox
    from rollin.sac.learner import Float, Layout

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
    at_least(0, "--learning-starts", warmup, MOST_STEPS)
    if config.capacity is not None:
        at_least(config.sac.batch, "--buffer-size", config.capacity, MOST_STEPS)


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


def good_state(state: dict[str, Any], step: int) -> dict[str, Any]:
    """A learner's state, if it is one to keep."""
    if not all(np.isfinite(state[name]).all() for name in ("theta", "m", "v", "target")):
        raise RollinError(
            f"The learner's parameters are no longer finite at step {step}: it diverged. "
            "The last good checkpoint is kept; a smaller --learning-rate may help."
        )
    return state


def policy_tensors(
    layout: "Layout", config: SACConfig, theta: "Float", actions: "ActionBox", **more: NDArray[Any]
) -> dict[str, "Float"]:
    """What `rollin.Policy` is made of, with the critics and what else is given."""
    tables = {"actor": layout.actor, "critic1": layout.critics[0], "critic2": layout.critics[1]}
    tensors = {
        f"{network}.{i}": np.ascontiguousarray(layer)
        for network, table in tables.items()
        for i, layer in enumerate(layout.layers(theta, table))
    }
    more |= {
        "action_low": _inward(actions.low, np.inf),
        "action_high": _inward(actions.high, -np.inf),
        "log_std": np.array([config.log_std_min, config.log_std_max]),
    }
    return tensors | {name: np.ascontiguousarray(a, np.float32) for name, a in more.items()}


def trained_policy(state: "DeepState") -> dict[str, "Float"]:
    """π_main as the tensors of a `rollin.Policy`."""
    main, curriculum, space = state.main, state.curriculum, state.env.context_space
    return policy_tensors(
        main.layout,
        main.config,
        good_state(main.get_state(), state.step)["theta"],
        state.env.actions,
        contexts=curriculum.contexts,
        k=np.array([state.progress.k]),
        context_space=np.stack([space.low, space.high]),
    )


def _inward(bound: NDArray[Any], towards: float) -> "Float":
    """A bound of the action's box in float32, never beyond the one it was."""
    rounded = bound.astype(np.float32)
    beyond = rounded < bound if towards > 0 else rounded > bound
    return np.where(beyond, np.nextafter(rounded, np.float32(towards)), rounded)
