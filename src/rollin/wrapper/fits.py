"""What must fit together: wrappers and their order, a guide and the env it acts in, its actions."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.errors import RollinError

Env = gymnasium.Env[Any, Any]
Guide = Callable[[Any, Any], Any]
"""From an observation that shows the guide's context, and that context, to an action.

One that draws may have a method `begin(seed)`, called before every roll-in with a whole number from
the wrapper's own stream.
"""

OUTSIDE = {  # wrappers that must not see the roll-in, and why
    "Monitor": "it would count hidden steps, and refuse a reset after them",
    "NormalizeObservation": "the guide's input would change with its statistics",
    "NormalizeReward": "the teacher must see the env's own rewards",
}


def check_order(env: Env, outer: type[Any]) -> None:
    """Refuse wrappers inside `outer`, which is RollIn, that belong outside."""
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        name = type(inner).__name__
        if name in OUTSIDE or isinstance(inner, outer):
            why = OUTSIDE.get(name, "an episode rolls in once")
            fix = f"{name}(RollIn(env))" if name in OUTSIDE else "one RollIn"
            raise RollinError(f"{name} lies inside RollIn, where {why}: use {fix}.")
        inner = inner.env


def check_guide(guide: Any, env: Env) -> Any:
    """Refuse what cannot act here, as far as one can see before it does."""
    if not callable(guide):
        raise RollinError(
            f"A guide must be a function of (observation, context) that gives an action, got "
            f"{type(guide).__name__}: for a rollin.Policy give its method act."
        )
    for name in ("observation_space", "action_space"):
        theirs, ours = getattr(guide, name, None), getattr(env, name)
        if theirs is not None and theirs != ours:
            raise RollinError(
                f"The guide's {name} is {theirs}, the env's is {ours}: take a guide that was "
                "trained on the same env, inside the same wrappers."
            )
    return guide


def fitted(action: Any, space: spaces.Space[Any]) -> Any:
    """An action as the space has it: clipped, or as a whole number."""
    if space.contains(action):
        return action
    try:
        array = np.asarray(action)
        if isinstance(space, spaces.Box) and array.shape == space.shape:
            return _clipped(array, space)
        if isinstance(space, spaces.Discrete) and space.contains(int(array)) and _whole(array):
            return np.int64(array)
    except (OverflowError, TypeError, ValueError):
        pass
    shape = getattr(action, "shape", "")
    raise RollinError(
        f"The guide gave an action that is none of {space}: {type(action).__name__} "
        f"{shape or repr(action)}; guide and env must have the same spaces."
    )


def _clipped(action: NDArray[Any], space: spaces.Box) -> NDArray[Any]:
    """Refuses what has no place in the box, nor one beside it."""
    if not np.isfinite(action).all():
        raise RollinError(
            f"The guide gave an action that is not finite, {action.tolist()}: freeze it from an "
            "actor whose parameters are finite."
        )
    if np.issubdtype(space.dtype, np.integer) and not _whole(action):
        raise RollinError(
            f"The guide gave the action {action.tolist()}, and those of {space} are whole "
            "numbers: round it in the guide."
        )
    return np.clip(action, space.low, space.high).astype(space.dtype)


def _whole(action: NDArray[Any]) -> bool:
    return bool((np.floor(action) == action).all())
