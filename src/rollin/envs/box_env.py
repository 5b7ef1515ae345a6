"""Guards around Gymnasium envs; `BoxEnv`, the env that plain SAC acts in.

Observations become float32 vectors; actions come from the policy in [-1, 1]. Every error of an
environment's own code, and every result of a wrong form, becomes one sentence.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeGuard

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.checks import did_you_mean, shown
from rollin.errors import (
    ForeignError,
    MissingExtraError,
    RollinError,
    foreign,
    format_exception,
    install_hint,
    one_line,
    place_of,
)
from rollin.untrusted import CALLS, check_code, from_here

Env = gymnasium.Env[Any, Any]
Float = NDArray[np.float32]
_FLOAT32 = np.dtype(np.float32)
ROBOTICS = ("Fetch", "HandReach", "HandManipulate", "PointMaze", "AntMaze")  # its goal envs
LONGEST = 100_000  # steps of an episode after which it counts as endless


@dataclass(slots=True)  # made at every step
class EnvStep:
    """The results of a step."""

    observation: Float
    reward: float
    terminated: bool
    truncated: bool


class ActionBox:
    """A bounded box of actions, and its map from the policy's [-1, 1]^A."""

    def __init__(self, space: spaces.Space[Any], env: str) -> None:
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise RollinError(
                f"{env} must have actions in a one-dimensional Box, got {space}: our soft "
                "actor-critic acts with real vectors. For other actions put rollin.RollIn around "
                "the env of your own agent, such as one of Stable-Baselines3, or give the agent to "
                "rollin.train(env, agent=...) (docs/own-agent.md)."
            )
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise RollinError(
                f"{env} must bound its actions on both sides, got low {space.low} and "
                f"high {space.high}: use gymnasium.wrappers.RescaleAction or ClipAction."
            )
        if space.dtype.kind != "f":
            raise RollinError(f"{env} must have actions of real numbers, got {space}.")
        self.size = int(space.shape[0])
        self.low = space.low
        self.high = space.high
        self._middle = (space.high + space.low) / 2
        self._half = (space.high - space.low) / 2
        self._is_unit_box = bool((self._half == 1).all() and (self._middle == 0).all())

    def scale(self, action: Float) -> NDArray[Any]:
        """Map an action in [-1, 1]^A to the box."""
        if self._is_unit_box:
            return action + self._middle  # a copy, which the env may change; and no -0
        scaled = self._half * action
        scaled += self._middle
        np.maximum(scaled, self.low, out=scaled)  # rounding may leave the box
        return np.minimum(scaled, self.high, out=scaled)


class GuardedEnv:
    """An env whose own code may raise or return anything, which becomes one sentence."""

    limit_hint = ""
    """Where to set a time limit, as the end of a sentence."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.name = name_of(env)
        self._steps = 0

    def raw_reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Return what the env's reset returns, checked for Gymnasium's form."""
        result = self.call("reset", self.env.reset, **options)
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
            raise RollinError(
                f"{self.name}: reset must give observation and info, as in Gymnasium, got "
                f"{form_of(result)}."
            )
        self._steps = 0
        return result

    def raw_step(self, action: NDArray[Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Return what the env's step returns, checked for Gymnasium's form."""
        CALLS.count += 1
        try:  # as in `call`, without its overhead
            result = self.env.step(action)
        except (RollinError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise _raised("step", error) from error
        finally:
            CALLS.count += 1
        return checked_step(result, self.env)

    def count_step(self, over: bool) -> None:
        """Count a step; raise if the episode is endless."""
        self._steps += 1
        if self._steps >= LONGEST and not over:
            raise RollinError(
                f"{self.name}: an episode has not ended in {LONGEST:,} steps. Checkpoints, "
                f"evaluations and advances wait for its end: give the environment a time "
                f"limit{self.limit_hint}."
            )

    def call(self, what: str, function: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Call the environment's own code; what: its name in an error."""
        try:
            with CALLS:
                return function(*given, **options)
        except (RollinError, KeyboardInterrupt):
            raise
        except BaseException as error:  # an environment's own code may raise anything
            raise _raised(what, error) from error

    def close(self) -> None:
        """Close the environment."""
        self.call("close", self.env.close)


def checked_step(result: Any, env: Env) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Return the result of a step in Gymnasium's form; raise RollinError for another form."""
    if not (isinstance(result, tuple) and len(result) == 5 and isinstance(result[4], dict)):
        raise RollinError(
            f"{name_of(env)}: step must give observation, reward, terminated, truncated and info, "
            f"as in Gymnasium, got {form_of(result)}."
        )
    observation, reward, terminated, truncated, info = result
    if type(terminated) is not bool:  # of NumPy's, mostly
        terminated = _as_bool("terminated", terminated, env)
    if type(truncated) is not bool:
        truncated = _as_bool("truncated", truncated, env)
    return observation, _as_reward(reward, env), terminated, truncated, info


def _as_bool(what: str, value: Any, env: Env) -> bool:
    """Return True or False of a bool of Python, NumPy or JAX, or of 1 or 0."""
    kind = getattr(getattr(value, "dtype", None), "kind", "i" if type(value) is int else "")
    if kind in tuple("biu") and np.shape(value) == () and int(value) in (0, 1):
        return bool(value)
    raise RollinError(
        f"{name_of(env)}: step must give {what} as True or False, got {_value_and_type(value)}: "
        "return a bool."
    )


def _value_and_type(value: Any) -> str:
    """Return a wrong value with its type, for an error; its repr may raise."""
    try:
        text = repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the value's own code raises
        raise _raised("step", error) from error
    return f"{one_line(text, 80)} ({type(value).__name__})"


class BoxEnv(GuardedEnv):
    """Checks the spaces of an env once and scales actions to its box."""

    limit_hint = " (gymnasium.register's max_episode_steps)"

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, spaces.Box):
            raise RollinError(
                f"{self.name} must have observations in a Box of real numbers, "
                f"got {space}: wrap it (gymnasium.wrappers.FlattenObservation may help)."
            )
        self.observation_size = int(np.prod(space.shape))
        self.actions = ActionBox(env.action_space, self.name)
        self.action_size = self.actions.size

    def reset(self, seed: int | None = None) -> Float:
        """Begin an episode."""
        return self._vector(self.raw_reset(seed=seed)[0])

    def step(self, action: Float) -> EnvStep:
        """Act with an action in [-1, 1]^A."""
        scaled = self.actions.scale(action)
        observation, reward, terminated, truncated, _ = self.raw_step(scaled)
        self.count_step(terminated or truncated)
        return EnvStep(self._vector(observation), reward, terminated, truncated)

    def _vector(self, observation: Any) -> Float:
        return as_vector("an observation", observation, self.observation_size, self.env)


def as_vector(what: str, value: Any, size: int, env: Env) -> Float:
    """Return a float32 copy of a value of the env; raise if its size is not that of its space."""
    if is_vector(value, size):  # as nearly always
        return value.astype(_FLOAT32)
    try:
        array: NDArray[Any] = np.asarray(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # ragged, or the value's own code raises
        raise foreign(f"{name_of(env)} gave {what} of no shape:", error) from error
    if array.size != size:
        raise RollinError(
            f"{name_of(env)} gave {what} of shape {array.shape}, its space has "
            f"{size} numbers: the environment breaks its own contract."
        )
    if array.dtype.kind not in "fiub":
        raise RollinError(f"{name_of(env)} gave {what} of {array.dtype}, not of real numbers.")
    return array.reshape(-1).astype(np.float32)  # a copy: some envs return one array always


def is_vector(value: Any, size: int) -> TypeGuard[NDArray[Any]]:
    """Return whether a value is a vector of real numbers of that size."""
    return type(value) is np.ndarray and value.shape == (size,) and value.dtype.kind == "f"


def _as_reward(value: Any, env: Env) -> float:
    """Return a reward as a number; a text is none, though Python would read it as one."""
    if type(value) is float or type(value) is np.float64:  # as mostly
        return float(value)
    if isinstance(value, str | bytes):
        raise RollinError(f"{name_of(env)} gave a reward that is not a number: {value!r}.")
    try:
        return float(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the value's own code may raise anything
        raise foreign(f"{name_of(env)} gave a reward that is not a number:", error) from error


def make_env(name: str) -> BoxEnv:
    """Make the registered Gymnasium environment of an id; `module:id` imports the module first."""
    if ":" in name:
        check_code(name)
    try:
        with CALLS, from_here(), mujoco_for(name):
            return BoxEnv(gymnasium.make(name))
    except (RollinError, KeyboardInterrupt):
        raise
    except gymnasium.error.Error as error:
        raise _unmade(name, error) from error
    except BaseException as error:  # an environment's own code may raise anything
        raise foreign(f"{name} cannot be made:", error) from error


def _unmade(name: str, error: Exception) -> RollinError:
    """Return the error for an id that cannot be made; its place, unless it is Gymnasium's own."""
    if not place_of(error).startswith("gymnasium/"):
        return foreign(f"{name} cannot be made:", error)
    text = format_exception(error).removeprefix(f"{type(error).__name__}: ")
    text = text.partition(" Did you mean")[0].rstrip(".")
    if name.startswith(ROBOTICS):
        advice = (
            " It looks like one of Gymnasium-Robotics, whose goals are contexts: install the extra "
            "robotics and put rollin.GoalContext around it, as examples/point_maze.py does."
        )
    else:
        known = gymnasium.registry
        advice = "" if name in known else did_you_mean(name, known)
    return RollinError(f"Gymnasium cannot make {name}: {text}.{advice}")


@contextmanager
def mujoco_for(task: str) -> Iterator[None]:
    """While inside, name the extra to install if MuJoCo is missing; other errors pass."""
    try:
        yield
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        if "mujoco" not in format_exception(error).lower() or find_spec("mujoco") is not None:
            raise
        raise MissingExtraError(
            f"{task} needs MuJoCo, which is not installed: {install_hint('mujoco')}."
        ) from error


def require_env(env: Any, user: str) -> None:
    """Raise if the argument of a wrapper is not an env; user: the wrapper's name."""
    if not isinstance(env, gymnasium.Env):
        raise RollinError(
            f"rollin.{user} needs a Gymnasium env, got {shown(env)}: make it first, such as "
            'gymnasium.make("Pendulum-v1").'
        )


def name_of(env: Env) -> str:
    """Return the name of an env in errors."""
    return env.spec.id if env.spec is not None else type(innermost(env)).__name__


def innermost(env: Env) -> Env:
    """Return the env inside all wrappers, also inside one that calls itself unwrapped."""
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
    return env.unwrapped


def attribute(env: Env, name: str) -> Any:
    """Return an attribute of the env or of what it wraps; None if there is none."""
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None


def form_of(value: Any) -> str:
    """Return the type of a value for errors, with those of a tuple's parts."""
    if isinstance(value, tuple):
        return f"a tuple of {', '.join(type(part).__name__ for part in value)}"
    return type(value).__name__


def _raised(what: str, error: BaseException) -> ForeignError:
    return foreign(f"The environment's {what} raised", error)
