"""How a goal env is given its goal: by an option of `reset`, by a method or by an attribute.

Nothing in Gymnasium says how. The usual ways are tried in a fixed order, and what counts is that
the env shows the goal as its `desired_goal` afterwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from rollin.envs.box_env import Env, name_of
from rollin.envs.contextual import Array
from rollin.envs.wrappers import layer_with, put
from rollin.errors import RollinError, foreign

OPTIONS = ("goal", "desired_goal", "target")
METHODS = ("set_goal", "set_desired_goal", "set_target")
ATTRIBUTES = ("goal", "desired_goal", "target", "target_goal", "goal_position", "target_position")
CLOSE = 1e-5  # relative and absolute, between a goal and what the env shows of it, in float32 maybe
MAZE_MARK = "update_target_site_pos"  # of Gymnasium-Robotics' mazes: moves the mark that is drawn

SetGoal = Callable[[Any, Array], dict[str, Any] | None]
"""Gives an env its goal; may return options for its reset."""


@dataclass
class Way:
    """One way: before and after a reset, `apply` sets the goal or returns options for the reset.

    later: whether the reset's own observation may still show another goal, which the env drew
    before it could be set.
    """

    name: str
    apply: SetGoal
    later: bool = False

    def reset(
        self, env: Env, goal: Array, seed: int | None, options: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Reset under a goal."""
        more = self.apply(env, goal.copy()) or {}
        found = env.reset(seed=seed, options={**options, **more} or None)
        self.keep(env, goal)
        return found

    def keep(self, env: Env, goal: Array) -> None:
        """Set the goal again: an env may draw another, at reset or on success."""
        self.apply(env, goal.copy())


def arrived(observation: Any, goal: Array) -> bool:
    """Whether an observation shows the goal."""
    shown = np.asarray(observation["desired_goal"])
    return shown.shape == goal.shape and np.allclose(shown, goal, rtol=CLOSE, atol=CLOSE)


def way_of(env: Env, how: str | SetGoal) -> Way:
    """The way that a user named: an option, a method or an attribute, or a function."""
    if callable(how):
        return Way("set_goal", how, later=True)
    if layer_with(env, how) is not None:
        return _inside(env, how)
    return _option(how)


def find_way(env: Env, goal: Array, seed: int | None, options: dict[str, Any]) -> Way:
    """The first usual way after which the env shows the goal, at reset or from the first step."""
    env.reset(seed=seed, options=options or None)  # an env may have no goal before
    tried: list[str] = []
    failures: list[Exception] = []
    for way in _ways(env):
        tried.append(way.name)
        try:
            shown, _ = way.reset(env, goal, seed, options)
            way.later = not arrived(shown, goal)
            after, *_ = env.step(_some_action(env.action_space))
        except Exception as error:  # an env may refuse an option as it likes: another way, then
            failures.append(error)
            continue
        if arrived(after, goal):
            return way
    given = f"{name_of(env)} was given the goal {goal.tolist()} by {', '.join(tried)}, and"
    advice = "say how it takes a goal, as GoalContext(env, set_goal=...), a name or a function of"
    if len(failures) == len(tried):
        last = failures[-1]
        raise foreign(
            f"{given} it failed each time, at last with", last, f": {advice} (env, goal)."
        ) from last
    raise RollinError(f"{given} its desired_goal was another one each time: {advice} (env, goal).")


def _ways(env: Env) -> Iterator[Way]:
    """All that may be, in their order."""
    yield from map(_option, OPTIONS)
    names = [*METHODS, *(mark + name for name in ATTRIBUTES for mark in ("", "_"))]
    for name in names:
        layer = layer_with(env, name)
        if layer is not None and (name in METHODS) == callable(getattr(layer, name)):
            yield _inside(env, name)


def _option(name: str) -> Way:
    return Way(f"reset(options={{{name!r}: …}})", lambda env, goal: {name: goal})


def _inside(env: Env, name: str) -> Way:
    layer = layer_with(env, name)
    method = callable(getattr(layer, name))

    def apply(env: Any, goal: Array) -> None:
        put(layer, name, goal)
        if hasattr(env.unwrapped, MAZE_MARK) and getattr(env.unwrapped, name, None) is not None:
            getattr(env.unwrapped, MAZE_MARK)()

    return Way(f"{'method' if method else 'attribute'} {name}", apply, later=True)


def _some_action(space: spaces.Space[Any]) -> Any:
    """An action for a try, without moving the space's own stream."""
    if isinstance(space, spaces.Box):
        return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high).astype(
            space.dtype
        )
    if isinstance(space, spaces.Discrete):
        return space.start
    return space.sample()
