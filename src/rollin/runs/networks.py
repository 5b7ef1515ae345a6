"""What a run keeps of a learner: a state that is worth keeping, and the policy as a file."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.arrays import Float
from rollin.envs.box_env import ActionBox
from rollin.errors import RollinError
from rollin.sac.config import SACConfig
from rollin.sac.network import Layout


def good_state(state: dict[str, Any], step: int) -> dict[str, Any]:
    """A learner's state, if it is one to keep."""
    if not all(np.isfinite(state[name]).all() for name in ("theta", "m", "v", "target")):
        raise RollinError(
            f"The learner's parameters are no longer finite at step {step}: it diverged. "
            "The last good checkpoint is kept; a smaller --learning-rate may help."
        )
    return state


def policy_tensors(
    layout: Layout, config: SACConfig, theta: Float, actions: ActionBox, **more: NDArray[Any]
) -> dict[str, Float]:
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


def _inward(bound: NDArray[Any], towards: float) -> Float:
    """A bound of the action's box in float32, never beyond the one it was."""
    rounded = bound.astype(np.float32)
    beyond = rounded < bound if towards > 0 else rounded > bound
    return np.where(beyond, np.nextafter(rounded, np.float32(towards)), rounded)
