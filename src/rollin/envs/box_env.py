"""A Gymnasium env with real-vector observations and a bounded action box, as the algorithms see it.

Observations come out as float32 vectors; actions go in as the policy gives them, in [-1, 1].
Whatever an environment's own code raises or gives in a wrong form becomes one sentence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollin.arrays import Float
from rollin.calls import CALLS
from rollin.checks import did_you_mean, shown
from rollin.envs.mujoco_extra import mujoco_for
from rollin.errors import ForeignError, RollinError, foreign, place_of, told
from rollin.imports import check_code, from_here
from rollin.texts import one_line

Env = gymnasium.Env[Any, Any]
_FLOAT32, _REALS = np.dtype(np.float32), (float, np.float64)
ROBOTICS = ("Fetch", "HandReach", "HandManipulate", "PointMaze", "AntMaze")  # its goal envs
LONGEST = 100_000  # steps of an episode after which it is taken to have no end


@dataclass(slots=True)  # made at every step
class EnvStep:
    """What a step of the environment gave."""

    observation: Float
    reward: float
    terminated: bool
    truncated: bool


class ActionBox:
    """A bounded box of actions, and the way to it from the policy's [-1, 1]^A."""

    def __init__(self, space: spaces.Space[Any], env: str) -> None:
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise RollinError(
                f"{env} must have actions in a one-dimensional Box, got {space}: our soft "
                "actor-critic acts with real vectors. For other actions put rollin.RollIn around "
                "the env of your own agent, such as one of Stable-Baselines3, or give the agent to "
                "rollin.train(env, agent=...) (docs/agents.md)."
            )
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise RollinError(
                f"{env} must bound its actions on both sides, got low {space.low} and "
                f"high {space.high}: use gymnasium.wrappers.RescaleAction or ClipAction."
            )
        if space.dtype.kind != "f":
            raise RollinError(f"{env} must have actions of real numbers, got {space}.")
        self.size = int(space.shape[0])
        self.low, self.high = space.low, space.high
        self._middle = (space.high + space.low) / 2
        self._half = (space.high - space.low) / 2
        self._same = bool((self._half == 1).all() and (self._middle == 0).all())

    def scale(self, action: Float) -> NDArray[Any]:
        """From [-1, 1]^A to the box."""
        if self._same:
            return action + self._middle  # a copy: it may be changed; and no -0
        scaled = self._half * action
        scaled += self._middle
        np.maximum(scaled, self.low, out=scaled)  # rounding may leave the box
        return np.minimum(scaled, self.high, out=scaled)


class GuardedEnv:
    """An env whose own code may raise or give anything, which becomes one sentence."""

    def __init__(self, env: Env) -> None:
        self.env, self.name = env, name_of(env)
        self._steps = 0

    def raw_reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """What the env's reset gives, in the form that Gymnasium asks for."""
        found = self.call("reset", self.env.reset, **options)
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict)):
            raise RollinError(
                f"{self.name}: reset must give observation and info, as in Gymnasium, got "
                f"{form_of(found)}."
            )
        self._steps = 0
        return found

    def raw_step(self, action: NDArray[Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """What the env's step gives, in the form that Gymnasium asks for."""
        CALLS.count += 1
        try:  # as in call, without its call: every step comes here
            found = self.env.step(action)
        except (RollinError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise _raised("step", error) from error
        finally:
            CALLS.count += 1
        return checked_step(found, self.env)

    def _count(self, over: bool, longest: int, hint: str) -> None:
        """Count a step of an episode, and refuse one that has no end."""
        self._steps += 1
        if self._steps >= longest and not over:
            raise RollinError(
                f"{self.name}: an episode has gone on for {longest:,} steps. Checkpoints, "
                f"evaluations and switches wait for its end: give the environment a time "
                f"limit{hint}."
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


def checked_step(found: Any, env: Env) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Return what a step gave in Gymnasium's form; raise RollinError if it has another."""
    if not (isinstance(found, tuple) and len(found) == 5 and isinstance(found[4], dict)):
        raise RollinError(
            f"{name_of(env)}: step must give observation, reward, terminated, truncated and info, "
            f"as in Gymnasium, got {form_of(found)}."
        )
    observed, reward, terminated, truncated, info = found
    if type(terminated) is not bool:  # of NumPy's, mostly
        terminated = _flag("terminated", terminated, env)
    if type(truncated) is not bool:
        truncated = _flag("truncated", truncated, env)
    return observed, as_reward(reward, env), terminated, truncated, info


def _flag(what: str, value: Any, env: Env) -> bool:
    """True or False, also as NumPy or JAX has it, or as 1 or 0; a text or None is neither."""
    kind = getattr(getattr(value, "dtype", None), "kind", "i" if type(value) is int else "")
    if kind in tuple("biu") and np.shape(value) == () and int(value) in (0, 1):
        return bool(value)
    raise RollinError(
        f"{name_of(env)}: step must give {what} as True or False, got {_shown(value)}: return a "
        "bool."
    )


def _shown(value: Any) -> str:
    """A wrong value with its type, as far as its own code can show it."""
    try:
        text = repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the value's own code raises
        raise _raised("step", error) from error
    return f"{one_line(text, 80)} ({type(value).__name__})"


class BoxEnv(GuardedEnv):
    """Checks the spaces of an env once and scales actions to its box."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        observed = env.observation_space
        if not isinstance(observed, spaces.Box):
            raise RollinError(
                f"{self.name} must have observations in a Box of real numbers, "
                f"got {observed}: wrap it (gymnasium.wrappers.FlattenObservation may help)."
            )
        self.observation_size = int(np.prod(observed.shape))
        self.actions = ActionBox(env.action_space, self.name)
        self.action_size = self.actions.size

    def reset(self, seed: int | None = None) -> Float:
        """Begin an episode."""
        return self._vector(self.raw_reset(seed=seed)[0])

    def step(self, action: Float) -> EnvStep:
        """Act with an action in [-1, 1]^A."""
        scaled = self.actions.scale(action)
        observation, reward, terminated, truncated, _ = self.raw_step(scaled)
        self._count(terminated or truncated, LONGEST, " (gymnasium.register's max_episode_steps)")
        return EnvStep(self._vector(observation), reward, terminated, truncated)

    def _vector(self, observation: Any) -> Float:
        return as_vector("an observation", observation, self.observation_size, self.env)


def as_vector(what: str, value: Any, size: int, env: Env) -> Float:
    """A float32 copy of what an env gave, of the size that it promised."""
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
    """Whether this is a vector of real numbers already, of that size."""
    return type(value) is np.ndarray and value.shape == (size,) and value.dtype.kind == "f"


def as_reward(value: Any, env: Env) -> float:
    """A reward as a number; a text is none, though Python would read it as one."""
    if type(value) in _REALS:  # as mostly
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
    """The registered Gymnasium environment of that id; `module:id` imports the module first."""
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
    """What to say of an error of Gymnasium's: with its place, unless `gymnasium.make` raised it."""
    if not place_of(error).startswith(("gymnasium/", "gymnasium\\")):
        return foreign(f"{name} cannot be made:", error)
    text = told(error).removeprefix(f"{type(error).__name__}: ").partition(" Did you mean")[0]
    return RollinError(f"Gymnasium cannot make {name}: {text.rstrip('.')}.{_advice(name)}")


def _advice(name: str) -> str:
    """What to do about an id that cannot be made, to stand behind an error."""
    if name.startswith(ROBOTICS):
        return (
            " It looks like one of Gymnasium-Robotics, whose goals are contexts: install the extra "
            "robotics and put rollin.GoalContext around it, as examples/point_maze.py does."
        )
    known = gymnasium.registry
    return "" if name in known else did_you_mean(name, known)


def require_env(env: Any, user: str) -> None:
    """Refuse what is not an env in the place of one that a wrapper goes around."""
    if not isinstance(env, gymnasium.Env):
        raise RollinError(
            f"rollin.{user} needs a Gymnasium env, got {shown(env)}: make it first, such as "
            'gymnasium.make("Pendulum-v1").'
        )


def name_of(env: Env) -> str:
    """What to call an env in errors."""
    return env.spec.id if env.spec is not None else type(innermost(env)).__name__


def innermost(env: Env) -> Env:
    """The env in all wrappers, also in one that calls itself unwrapped."""
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
    return env.unwrapped


def form_of(found: Any) -> str:
    """What a thing is, for errors: its type, and those of a tuple's parts."""
    if isinstance(found, tuple):
        return f"a tuple of {', '.join(type(part).__name__ for part in found)}"
    return type(found).__name__


def _raised(what: str, error: BaseException) -> ForeignError:
    return foreign(f"The environment's {what} raised", error)
