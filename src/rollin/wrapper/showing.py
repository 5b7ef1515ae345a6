"""How ω_{k-1}, the context that the guide is good at, gets into the observation it is shown."""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollin.envs.offer import Place
from rollin.errors import RollinError, told

Env = gymnasium.Env[Any, Any]
Show = Callable[[Any, Any], Any]
"""From an observation and a context to the observation that shows it."""
ENTRIES = ("context", "desired_goal")  # of a Dict of observations


def showing(env: Env, show: Show | bool) -> Show:
    """How the guide's context gets into an observation of an env."""
    if callable(show):
        return show
    if show is False:
        return lambda observation, context: observation
    key = _entry(env.observation_space)
    if key is not None:
        return lambda observation, context: _replaced(observation, key, context)
    flattened = _flattened(env)
    if flattened is not None:
        parts, inner = flattened
        return lambda observation, context: spaces.flatten(
            parts, _replaced(spaces.unflatten(parts, observation), inner, context)
        )
    return _no_place(env)


def place_of(env: Env, show: Show | bool) -> Place:
    """Where a guide sees its context: the shape of that entry, or whether a function shows it."""
    if show is not True:
        return True
    key, parts = _entry(env.observation_space), env.observation_space
    if key is None and (flattened := _flattened(env)) is not None:
        parts, key = flattened
    if key is None or not isinstance(parts, spaces.Dict):
        return False
    return parts[key].shape or ()


def _no_place(env: Env) -> Show:
    def show(observation: Any, context: Any) -> Any:
        raise RollinError(
            f"The guide must be shown the context before, and observations in "
            f"{env.observation_space} have no place for it: use a Dict with the entry context, "
            "say show=function(observation, context), or show=False if the policy sees no context."
        )

    return show


def _replaced(observation: Mapping[str, Any], key: str, context: Any) -> dict[str, Any]:
    before = np.asarray(observation[key])
    try:
        return {**observation, key: np.asarray(context, before.dtype).reshape(before.shape)}
    except (TypeError, ValueError) as error:
        raise RollinError(
            f"The guide's context {context!r} does not fit the entry {key} of shape "
            f"{before.shape}: {told(error)}."
        ) from error


def _entry(space: spaces.Space[Any]) -> str | None:
    entries = space.spaces if isinstance(space, spaces.Dict) else {}
    return next((key for key in ENTRIES if key in entries), None)


def _flattened(env: Env) -> tuple[spaces.Dict, str] | None:
    """The Dict that a FlattenObservation outermost inside RollIn flattens, and its context."""
    if isinstance(env, gymnasium.wrappers.FlattenObservation):
        parts = env.env.observation_space
        key = _entry(parts)
        if isinstance(parts, spaces.Dict) and key is not None:
            return parts, key
    return None
