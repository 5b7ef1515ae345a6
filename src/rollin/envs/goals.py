"""Goal envs as contextual envs, and contextual envs as goal envs.

Nothing in Gymnasium defines how a goal env receives its goal. `GoalContext` tries the usual
methods in a fixed order; one works if the env's `desired_goal` is the goal afterwards.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rollin.curriculum.contexts import Curriculum
from rollin.envs.box_env import Env, attribute, name_of, require_env
from rollin.envs.contextual import (
    Array,
    ContextWrapper,
    Reward,
    SetContext,
    context_of,
    layer_with,
    set_value,
    truth,
)
from rollin.errors import RollinError, foreign

SUCCESS_KEYS = ("is_success", "success")  # of info: Gymnasium-Robotics has both
SUCCESS_METHODS = ("is_success", "_is_success")  # of (achieved, desired); Fetch has the second
NEARBY = 1e-6  # of a goal's size: a step this small must not change the reward at the goal
OPTIONS = ("goal", "desired_goal", "target")
METHODS = ("set_goal", "set_desired_goal", "set_target")
ATTRIBUTES = ("goal", "desired_goal", "target", "target_goal", "goal_position", "target_position")
CLOSE = 1e-5  # relative and absolute, between a goal and the desired_goal, which may be float32
MAZE_MARK = "update_target_site_pos"  # of Gymnasium-Robotics' mazes: moves the mark that is drawn


class GoalContext(ContextWrapper):
    """A contextual env of a goal env: outcome = achieved goal, context = desired goal.

    Every reset sets the env's own goal to the context. Without `set_goal` the following are tried
    in turn, and the first one after which the env's `desired_goal` is the context is used: the
    options goal, desired_goal, target of `reset`; a method set_goal, set_desired_goal, set_target;
    an attribute goal, desired_goal, target, target_goal, goal_position, target_position, each also
    with a leading underscore. set_goal: the name of another option, method or attribute, or a
    function of (env, goal), which may return options for the env's reset. Another `desired_goal`
    after a reset or a step is an error.

    A success is defined by `is_success`, a function of (achieved, desired); else by the step's own
    `info["is_success"]` or `info["success"]`; else by a method of that name of the env; else by a
    positive reward, or, if the reward at the goal is 0 or less, by a reward as high as there.
    Rewards of -1 and 0 work; rewards that only grow towards the goal need `is_success`. Without a
    `compute_reward` the env keeps its own reward and cannot be relabelled. measures: numbers of
    `info` to average. reset_options: options for every reset of the env, such as where to start.
    success_ends: whether a success ends the episode, as relabelled ones then do.
    `unwrapped` is this wrapper, because other libraries must not treat it as a goal env;
    `env.env.unwrapped` is the goal env.

    >>> import gymnasium
    >>> import numpy as np
    >>> import rollin
    >>> box = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    >>> class Jump(gymnasium.Env):  # a goal env: an action is the place to go to
    ...     action_space = box
    ...     observation_space = gymnasium.spaces.Dict(
    ...         observation=box, achieved_goal=box, desired_goal=box
    ...     )
    ...     goal = np.zeros(2, np.float32)
    ...
    ...     def at(self, place):
    ...         return {"observation": place, "achieved_goal": place, "desired_goal": self.goal}
    ...
    ...     def reset(self, *, seed=None, options=None):
    ...         return self.at(np.zeros(2, np.float32)), {}
    ...
    ...     def step(self, action):
    ...         reward = float(self.compute_reward(action, self.goal, {}))
    ...         return self.at(action), reward, True, False, {}
    ...
    ...     def compute_reward(self, achieved, desired, info):
    ...         return (np.linalg.norm(achieved - desired, axis=-1) < 0.1) - 1.0
    >>> env = rollin.GoalContext(Jump())
    >>> observed, info = env.reset(options={"context": [0.5, 0.5]})
    >>> observed["context"].tolist(), info["outcome"].tolist()
    ([0.5, 0.5], [0.0, 0.0])
    >>> _, reward, _, _, info = env.step(np.array([0.5, 0.5], np.float32))
    >>> reward, info["is_success"]
    (0.0, True)
    """

    def __init__(
        self,
        env: Env,
        *,
        is_success: Reward | None = None,
        set_goal: str | SetContext | None = None,
        measures: Sequence[str] = (),
        curriculum: Curriculum | None = None,
        reset_options: dict[str, Any] | None = None,
        success_ends: bool = False,
    ) -> None:
        require_env(env, "GoalContext")
        parts = env.observation_space
        needed = {"observation", "achieved_goal", "desired_goal"}
        if not isinstance(parts, spaces.Dict) or not needed <= parts.spaces.keys():
            raise RollinError(
                f"{name_of(env)} is not a goal env: its observations must be a Dict with "
                f"observation, achieved_goal and desired_goal, got {parts}."
            )
        goals = parts["desired_goal"]
        if not isinstance(goals, spaces.Box):
            raise RollinError(f"Goals must lie in a Box of real numbers, got {goals}.")
        own = {"set_goal": set_goal, "reset_options": reset_options, "success_ends": success_ends}
        self.success_ends = success_ends
        super().__init__(env, parts["observation"], goals, curriculum, is_success, measures, own)
        self._compute_reward = _method(env, "compute_reward")
        self.can_relabel = self._compute_reward is not None
        self._own_success = _success_method(env)
        self._reset_options = reset_options or {}
        self._setter = None if set_goal is None else _named_setter(env, set_goal)
        self._is_named = set_goal is not None  # a named setter is not replaced by another one

    # Libraries recognise a goal env by the innermost env, and then ask for its three entries: for
    # them this one is the innermost. What it wraps is `env.env`.

    @property
    def unwrapped(self) -> Env:
        """Return the wrapper itself, which is no goal env."""
        return self

    @property
    def _np_random(self) -> Any:
        return self.env.unwrapped._np_random

    @property
    def spec(self) -> Any:
        """Return the spec of the env inside, with this wrapper in it."""
        return super().spec

    @spec.setter
    def spec(self, value: Any) -> None:  # gymnasium.make sets that of the innermost env
        self.env.unwrapped.spec = value

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode, under another goal if `options` has one."""
        self.context = context_of(options, self.context_space, self.context)
        options = {**self._reset_options, **(options or {})}
        options.pop("context", None)
        if self._setter is None:
            self._setter = _find_setter(self.env, self.context, seed, options)
        observation, info = self._setter.reset(self.env, self.context, seed, options)
        if not self._setter.later and not _has_goal(observation, self.context):
            if self._is_named:
                raise self._lost(observation, "reset")
            # before, the context was the env's own goal by chance
            self._setter = _find_setter(self.env, self.context, seed, options)
            observation, info = self._setter.reset(self.env, self.context, seed, options)
        return self._take(observation, info)

    def step(self, action: Any) -> Any:
        """Act; the reward is that of the context."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not _has_goal(observation, self.context):
            raise self._lost(observation, "step")
        if self._setter is not None:
            self._setter.keep(self.env, self.context)  # some goal envs choose another on success
        observed, info = self._take(observation, info)
        outcome = info["outcome"]
        if self.can_relabel:
            reward = float(self.context_reward(outcome, self.context))
        success = next((info[key] for key in SUCCESS_KEYS if key in info), None)
        if self._is_success is not None or success is None:
            success = self.is_success(outcome, self.context)
        return observed, reward, terminated, truncated, {**info, "is_success": truth(success)}

    def _take(
        self, observation: Any, info: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        outcome = np.asarray(observation["achieved_goal"])
        return self._observed(observation["observation"]), {**info, "outcome": outcome}

    def _lost(self, observation: Any, when: str) -> RollinError:
        setter = "" if self._setter is None else f", given by {self._setter.name},"
        return RollinError(
            f"{name_of(self.env)} was given the goal {self.context.tolist()} and has the "
            f"desired_goal {np.asarray(observation['desired_goal']).tolist()} after {when}: the "
            f"goal{setter} must stay until another is given. GoalContext(env, set_goal=...) takes "
            "a name, or a function of (env, goal), that sets it."
        )

    def context_reward(self, outcome: Array, context: Array) -> Array:
        """Return rewards (…) of achieved goals (…, C) under desired goals (…, C)."""
        if self._compute_reward is None:
            raise RollinError(
                f"{name_of(self.env)} has no compute_reward(achieved_goal, desired_goal, info), as "
                "goal envs do: its rewards under other goals are not known."
            )
        return np.asarray(self._compute_reward(outcome, context, {}))

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Return whether achieved goals fulfil desired ones."""
        if self._is_success is not None:
            return np.asarray(self._is_success(outcome, context), bool)
        if self._own_success is not None:
            return np.asarray(self._own_success(outcome, context), bool)
        if self._compute_reward is None:
            raise self._undefined_success("it has no compute_reward to decide by")
        goals = np.broadcast_to(context, np.shape(outcome))
        rewards = self.context_reward(outcome, context)
        at_goal = self.context_reward(goals, context)
        positive = at_goal > 0
        if not np.all(positive):  # a reward that is best only at the goal has no success
            aside = goals + NEARBY * np.maximum(np.abs(goals), 1.0)
            if not np.array_equal(self.context_reward(aside, context), at_goal):
                raise self._undefined_success("its reward falls with every distance from the goal")
        return np.where(positive, rewards > 0, rewards >= at_goal)

    def _undefined_success(self, why: str) -> RollinError:
        return RollinError(
            f"Nothing defines when {name_of(self.env)} reaches its goal: its steps have no "
            f"info['is_success'], it has no method is_success, and {why}. Give "
            "GoalContext(env, is_success=lambda achieved, desired: ...)."
        )

    def to_context(self, outcome: Array) -> Array:
        """Return the outcomes: an achieved goal fulfils itself."""
        return outcome


def _method(env: Env, name: str) -> Callable[..., Any] | None:
    """Return a method of the env or of what it wraps."""
    method = attribute(env, name)
    return method if callable(method) else None


def _success_method(env: Env) -> Callable[..., Any] | None:
    """Return the env's own function of (achieved, desired), if it has one."""
    for name in SUCCESS_METHODS:
        method = _method(env, name)
        if method is None:
            continue
        try:
            inspect.signature(method).bind(None, None)
        except (TypeError, ValueError):  # it has other arguments, or none
            continue
        return method
    return None


@dataclass
class GoalSetter:
    """Sets a goal: `apply` sets it before and after a reset, or returns options for the reset.

    later: whether the reset's own observation may still have another goal, drawn by the env before
    this one could be set.
    """

    name: str
    apply: SetContext
    later: bool = False

    def reset(
        self, env: Env, goal: Array, seed: int | None, options: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Reset under a goal."""
        more = self.apply(env, goal.copy()) or {}
        result = env.reset(seed=seed, options={**options, **more} or None)
        self.keep(env, goal)
        return result

    def keep(self, env: Env, goal: Array) -> None:
        """Set the goal again: an env may draw another, at reset or on success."""
        self.apply(env, goal.copy())


def _has_goal(observation: Any, goal: Array) -> bool:
    desired = np.asarray(observation["desired_goal"])
    return desired.shape == goal.shape and np.allclose(desired, goal, rtol=CLOSE, atol=CLOSE)


def _named_setter(env: Env, how: str | SetContext) -> GoalSetter:
    """Return the setter that a user named: an option, a method, an attribute or a function."""
    if callable(how):
        return GoalSetter("set_goal", how, later=True)
    if layer_with(env, how) is not None:
        return _member(env, how)
    return _option(how)


def _find_setter(env: Env, goal: Array, seed: int | None, options: dict[str, Any]) -> GoalSetter:
    """Return the first setter after which the env has the goal, at reset or from the first step."""
    env.reset(seed=seed, options=options or None)  # an env may have no goal before
    tried: list[str] = []
    failures: list[Exception] = []
    for setter in _setters(env):
        tried.append(setter.name)
        try:
            observation, _ = setter.reset(env, goal, seed, options)
            setter.later = not _has_goal(observation, goal)
            observation, *_ = env.step(_some_action(env.action_space))
        except Exception as error:  # an env may refuse an option by any error
            failures.append(error)
            continue
        if _has_goal(observation, goal):
            return setter
    given = f"{name_of(env)} was given the goal {goal.tolist()} by {', '.join(tried)}, and"
    advice = ": GoalContext(env, set_goal=...) takes a name, or a function of (env, goal)."
    if len(failures) == len(tried):
        last = failures[-1]
        raise foreign(f"{given} it failed each time, at last with", last, advice) from last
    raise RollinError(f"{given} its desired_goal was another one each time{advice}")


def _setters(env: Env) -> Iterator[GoalSetter]:
    """Yield all usual setters in their order."""
    yield from map(_option, OPTIONS)
    names = [*METHODS, *(mark + name for name in ATTRIBUTES for mark in ("", "_"))]
    for name in names:
        layer = layer_with(env, name)
        if layer is not None and (name in METHODS) == callable(getattr(layer, name)):
            yield _member(env, name)


def _option(name: str) -> GoalSetter:
    return GoalSetter(f"reset(options={{{name!r}: …}})", lambda env, goal: {name: goal})


def _member(env: Env, name: str) -> GoalSetter:
    """Return the setter by a method or an attribute of the env."""
    layer = layer_with(env, name)
    kind = "method" if callable(getattr(layer, name)) else "attribute"

    def apply(env: Any, goal: Array) -> None:
        set_value(layer, name, goal)
        if hasattr(env.unwrapped, MAZE_MARK) and getattr(env.unwrapped, name, None) is not None:
            getattr(env.unwrapped, MAZE_MARK)()

    return GoalSetter(f"{kind} {name}", apply, later=True)


def _some_action(space: spaces.Space[Any]) -> Any:
    """Return an action without advancing the space's own stream."""
    if isinstance(space, spaces.Box):
        zeros = np.zeros(space.shape, space.dtype)
        return np.clip(zeros, space.low, space.high).astype(space.dtype)
    if isinstance(space, spaces.Discrete):
        return space.start
    return space.sample()


class GoalView(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A contextual env as a goal env, for hindsight replay of other libraries.

    The achieved goal is the context that an outcome fulfils. So the reward must be a function of
    the outcome, as it is where the context is a place to reach.

    >>> import rollin
    >>> from rollin.envs.point_umaze import PointUmaze
    >>> env = rollin.GoalView(PointUmaze())
    >>> observed, info = env.reset(seed=0, options={"context": [2.0, 0.0]})
    >>> sorted(observed), observed["desired_goal"].tolist()
    (['achieved_goal', 'desired_goal', 'observation'], [2.0, 0.0])
    """

    def __init__(self, env: Env) -> None:
        require_env(env, "GoalView")
        super().__init__(env)
        parts = env.observation_space
        try:
            self._to_context = env.get_wrapper_attr("to_context")
            self._compute = env.get_wrapper_attr("context_reward")
            goals: Any = env.get_wrapper_attr("context_space")
        except AttributeError as error:
            raise RollinError(
                f"{name_of(env)} is not a contextual env: rollin.Contextual(env, context_space, "
                "reward) makes one of any env; a goal env needs no GoalView."
            ) from error
        if not isinstance(parts, spaces.Dict):
            raise RollinError(f"{name_of(env)} must have observations in a Dict, got {parts}.")
        self.observation_space = spaces.Dict(
            observation=parts["observation"], achieved_goal=goals, desired_goal=goals
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        observed, info = self.env.reset(seed=seed, options=options)
        return self._goal_observation(observed, info), info

    def step(self, action: Any) -> Any:
        """Act."""
        observed, *rest, info = self.env.step(action)
        return self._goal_observation(observed, info), *rest, info

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return rewards (…) of achieved goals (…, C) under desired goals (…, C)."""
        return np.asarray(self._compute(achieved_goal, desired_goal))

    def _goal_observation(self, observed: Any, info: dict[str, Any]) -> dict[str, Any]:
        desired = np.asarray(observed["context"])
        achieved = np.asarray(self._to_context(np.asarray(info["outcome"])), desired.dtype)
        return {
            "observation": observed["observation"],
            "achieved_goal": achieved,
            "desired_goal": desired,
        }
