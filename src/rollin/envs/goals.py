"""A contextual env of a goal env as in Gymnasium-Robotics: outcome achieved, context desired."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rollin.curriculum.contexts import Curriculum
from rollin.envs.box_env import Env, name_of, require_env
from rollin.envs.contextual import Array, Reward, context_of
from rollin.envs.goal_ways import SetGoal, Way, arrived, find_way, way_of
from rollin.envs.wrappers import ContextWrapper, truth
from rollin.errors import RollinError

SUCCESS_KEYS = ("is_success", "success")  # of info: Gymnasium-Robotics has both
SUCCESS_METHODS = ("is_success", "_is_success")  # of (achieved, desired); Fetch has the second
NEARBY = 1e-6  # of a goal's size: a step this small must not change what being there pays


class GoalContext(ContextWrapper):
    """A contextual env of a goal env: outcome = achieved goal, context = desired goal.

    The env's own goal is set to the context at every reset. Without `set_goal` these ways are tried
    in turn, and the first after which the env's `desired_goal` is the context stays: `reset`'s
    options goal, desired_goal, target; a method set_goal, set_desired_goal, set_target; an
    attribute goal, desired_goal, target, target_goal, goal_position, target_position, each also
    with an underscore before it. set_goal: the name of another option, method or attribute, or a
    function of (env, goal), which may return options for the env's reset. If `desired_goal` is not
    the context after a reset or a step, that is an error.

    What counts as a success: `is_success`, a function of (achieved, desired); else the step's own
    `info["is_success"]` or `info["success"]`; else a method of that name of the env; else the
    reward, where it tells: positive, or, if even being at the goal pays 0 or less, as much as being
    there pays. Rewards of -1 and 0 work, rewards that only grow towards the goal need
    `is_success`. Without a `compute_reward` the env's own reward is kept, and it cannot be
    relabelled. measures: numbers of `info` to keep the mean of. reset_options: options that the
    env's own reset always gets, such as where to start. `unwrapped` is this wrapper, for other
    libraries must not take it for a goal env; `env.env.unwrapped` is the goal env.

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
        set_goal: str | SetGoal | None = None,
        measures: Sequence[str] = (),
        curriculum: Curriculum | None = None,
        reset_options: dict[str, Any] | None = None,
    ) -> None:
        require_env(env, "GoalContext")
        parts = env.observation_space
        wanted = {"observation", "achieved_goal", "desired_goal"}
        if not isinstance(parts, spaces.Dict) or not wanted <= parts.spaces.keys():
            raise RollinError(
                f"{name_of(env)} is not a goal env: its observations must be a Dict with "
                f"observation, achieved_goal and desired_goal, got {parts}."
            )
        goals = _box(parts["desired_goal"])
        own = {"set_goal": set_goal, "reset_options": reset_options}
        super().__init__(env, parts["observation"], goals, curriculum, is_success, measures, own)
        self._compute_reward = _wrapped(env, "compute_reward")
        self.can_relabel = self._compute_reward is not None
        self._own_success = _success_method(env)
        self._reset_options = reset_options or {}
        self._way: Way | None = None if set_goal is None else way_of(env, set_goal)
        self._found = set_goal is not None  # a way that was named is not exchanged for another

    # -------------------------------------------------------------- seen from outside

    # Libraries tell a goal env by the innermost env, and then ask for its three entries: to them
    # this one is the innermost. What it wraps is `env.env`.

    @property
    def unwrapped(self) -> Env:
        """Itself: what it shows is no goal env any more."""
        return self

    @property
    def _np_random(self) -> Any:
        return self.env.unwrapped._np_random

    @property
    def spec(self) -> Any:
        """The spec of the env inside, with this wrapper in it."""
        return super().spec

    @spec.setter
    def spec(self, value: Any) -> None:  # gymnasium.make sets that of the innermost env
        self.env.unwrapped.spec = value

    # -------------------------------------------------------------- the goal

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode, under another goal if `options` has one."""
        self.context = context_of(options, self.context_space, self.context)
        asked = {**self._reset_options, **(options or {})}
        asked.pop("context", None)
        if self._way is None:
            self._way = find_way(self.env, self.context, seed, asked)
        observation, info = self._way.reset(self.env, self.context, seed, asked)
        if not self._way.later and not arrived(observation, self.context):
            if self._found:
                raise self._lost(observation, "reset")
            # it had been the env's own goal by chance
            self._way = find_way(self.env, self.context, seed, asked)
            observation, info = self._way.reset(self.env, self.context, seed, asked)
        return self._take(observation, info)

    def step(self, action: Any) -> Any:
        """One step; the reward is that of the context."""
        observation, own, terminated, truncated, info = self.env.step(action)
        if not arrived(observation, self.context):
            raise self._lost(observation, "step")
        if self._way is not None:
            self._way.keep(self.env, self.context)  # some goal envs choose another one on success
        observed, info = self._take(observation, info)
        outcome = info["outcome"]
        if self.can_relabel:
            own = float(self.context_reward(outcome, self.context))
        told = next((info[key] for key in SUCCESS_KEYS if key in info), None)
        if self._is_success is not None or told is None:
            told = self.is_success(outcome, self.context)
        return observed, own, terminated, truncated, {**info, "is_success": truth(told)}

    def _take(
        self, observation: Any, info: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        outcome = np.asarray(observation["achieved_goal"])
        return self._observed(observation["observation"]), {**info, "outcome": outcome}

    def _lost(self, observation: Any, when: str) -> RollinError:
        way = "" if self._way is None else f", given by {self._way.name},"
        return RollinError(
            f"{name_of(self.env)} was given the goal {self.context.tolist()} and has the "
            f"desired_goal {np.asarray(observation['desired_goal']).tolist()} after {when}: the "
            f"goal{way} must stay until another is given. GoalContext(env, set_goal=...) takes a "
            "name, or a function of (env, goal), that sets it."
        )

    # -------------------------------------------------------------- reward and success

    def context_reward(self, outcome: Array, context: Array) -> Array:
        """Rewards (…) of achieved goals (…, C) under desired goals (…, C)."""
        if self._compute_reward is None:
            raise RollinError(
                f"{name_of(self.env)} has no compute_reward(achieved_goal, desired_goal, info), as "
                "goal envs do: its rewards under other goals are not known."
            )
        return np.asarray(self._compute_reward(outcome, context, {}))

    def is_success(self, outcome: Array, context: Array) -> Array:
        """Whether achieved goals fulfil desired ones."""
        if self._is_success is not None:
            return np.asarray(self._is_success(outcome, context), bool)
        if self._own_success is not None:
            return np.asarray(self._own_success(outcome, context), bool)
        if self._compute_reward is None:
            raise self._untold("it has no compute_reward to tell by")
        at_goal = np.broadcast_to(context, np.shape(outcome))
        paid, there = self.context_reward(outcome, context), self.context_reward(at_goal, context)
        positive = there > 0
        if not np.all(positive):
            self._check_plateau(at_goal, context, there)
        return np.where(positive, paid > 0, paid >= there)

    def _check_plateau(self, goals: Array, contexts: Array, there: Array) -> None:
        """Refuse a reward that is best at the goal alone: no outcome would ever be a success."""
        aside = goals + NEARBY * np.maximum(np.abs(goals), 1.0)
        if not np.array_equal(self.context_reward(aside, contexts), there):
            raise self._untold("its reward falls with every distance from the goal")

    def _untold(self, why: str) -> RollinError:
        return RollinError(
            f"Nothing says when {name_of(self.env)} reaches its goal: its steps have no "
            f"info['is_success'], it has no method is_success, and {why}. Give "
            "GoalContext(env, is_success=lambda achieved, desired: ...)."
        )

    def to_context(self, outcome: Array) -> Array:
        """An achieved goal fulfils itself."""
        return outcome


def _box(space: spaces.Space[Any]) -> spaces.Box:
    if not isinstance(space, spaces.Box):
        raise RollinError(f"Goals must lie in a Box of real numbers, got {space}.")
    return space


def _wrapped(env: Env, name: str) -> Callable[..., Any] | None:
    """A method of the env or of what it wraps."""
    try:
        found = env.get_wrapper_attr(name)
    except AttributeError:
        return None
    return found if callable(found) else None


def _success_method(env: Env) -> Callable[..., Any] | None:
    """The env's own function of (achieved, desired), if it has one."""
    for name in SUCCESS_METHODS:
        method = _wrapped(env, name)
        if method is None:
            continue
        try:
            inspect.signature(method).bind(None, None)
        except (TypeError, ValueError):  # of other arguments, or none
            continue
        return method
    return None
