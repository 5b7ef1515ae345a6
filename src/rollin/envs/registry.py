"""From the name of a deep task to its environment: ours by name, a user's by module:factory."""

import importlib
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from rollin.calls import CALLS
from rollin.checks import did_you_mean, shown
from rollin.envs.context_env import ContextEnv
from rollin.envs.context_handle import vector_env
from rollin.envs.mujoco_extra import mujoco_for
from rollin.errors import RollinError, foreign
from rollin.imports import factory_here, from_here, load_named
from rollin.names import plain_name
from rollin.values import ExcessError, parse_json


@dataclass(frozen=True)
class TaskPreset:
    """An environment, and the options of a run that differ from the paper's table for it."""

    factory: str
    """module:factory, imported when it is needed."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    delta: float | None = None
    """The step Δ of its own curriculum, which a run need not name."""


ROBOT = {"log_every": 10_000}  # an evaluation of ten long episodes costs thousands of steps

SMALL = {
    "steps": 300_000,
    "warmup": 2000,
    "hidden": (32, 32),
    "batch": 64,
    "gamma": 0.97,
    "initial_temperature": 0.1,
    "head_gain": math.sqrt(2.0),  # this and the fill as point-umaze's study was run with
    "exp_fill": 64,
}

TASKS = {
    "point-umaze": TaskPreset("rollin.envs.point_umaze:PointUmaze", SMALL, 1 / 12),
    "dead-end": TaskPreset("rollin.envs.dead_end:DeadEnd", SMALL, 1 / 12),
    "key-door": TaskPreset("rollin.envs.key_door:KeyDoor", SMALL, 1 / 12),
    "point-speed": TaskPreset("rollin.envs.point_speed:PointSpeed", SMALL, 1 / 12),
    # Δ and R are the environments' own, all else is the paper's table, the default of a run
    "antmaze-umaze": TaskPreset(
        "rollin.envs.ant_umaze:AntUmaze", {"steps": 3_000_000} | ROBOT, 1 / 24
    ),
    **{
        name: TaskPreset(f"rollin.envs.velocity:{name}", ROBOT, 0.1)
        for name in ("walker", "hopper", "humanoid", "ant")
    },
}


def make_contextual(
    name: str,
    options: Sequence[str] = (),
    *,
    horizon: int | None = None,
    render_mode: str | None = None,
) -> ContextEnv:
    """The environment of a task; options: name=value each, passed to its factory."""
    task = TASKS.get(plain_name(name))
    make = load_factory(name) if task is None else _own_factory(task.factory, name)
    arguments = parse_env_options(options)
    if render_mode is not None and _takes(make, "render_mode"):
        arguments["render_mode"] = render_mode
    return call_factory(make, name, arguments, horizon)


def _takes(make: Any, argument: str) -> bool:
    """Whether a factory takes an argument; one that does not tell is taken to."""
    try:
        inspect.signature(make).bind_partial(**{argument: None})
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def make_raw(
    source: Any, horizon: int | None = None, options: Sequence[str] = ()
) -> gymnasium.Env[Any, Any]:
    """An env as it is, of an env, of a function that makes one, or of a task's name."""
    check_source(source)
    if isinstance(source, gymnasium.Env):
        if options:
            raise RollinError("env_options belong to a function or a task's name, not to an env.")
        return _limited(source, horizon)
    name = source if isinstance(source, str) else getattr(source, "__name__", "env")
    make = source
    if isinstance(source, str):
        task = TASKS.get(plain_name(source))
        make = load_factory(source) if task is None else _own_factory(task.factory, source)
    return _limited(_called(make, name, parse_env_options(options)), horizon)


def check_source(source: Any) -> None:
    """Refuse what is neither an env, nor a function that makes one, nor a text."""
    if wrong := vector_env(source):
        raise RollinError(f"One environment at a time is trained on, {wrong}.")
    if not isinstance(source, gymnasium.Env | str) and not callable(source):
        raise RollinError(
            "env must be a contextual env, a function that makes one, or the name of a task such "
            f"as point-umaze, got {shown(source)}."
        )


def call_factory(
    make: Any, name: str, arguments: dict[str, Any], horizon: int | None
) -> ContextEnv:
    """The environment that a factory makes, with a time limit if one is given."""
    return ContextEnv(_limited(_called(make, name, arguments), horizon))


def _limited(env: gymnasium.Env[Any, Any], horizon: int | None) -> gymnasium.Env[Any, Any]:
    return env if horizon is None else gymnasium.wrappers.TimeLimit(env, horizon)


def _called(make: Any, name: str, arguments: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    if wrong := vector_env(make):
        raise RollinError(f"One environment at a time is trained on, {wrong}.")
    if not callable(make):
        raise RollinError(
            f"{name} must be a function that makes the environment anew at every call, got "
            f"{type(make).__name__}: training and evaluation need one each."
        )
    try:
        with CALLS, from_here(), mujoco_for(name):
            env = make(**arguments)
    except (RollinError, KeyboardInterrupt):
        raise
    except BaseException as error:  # an environment's own code may raise anything
        raise foreign(f"{name} cannot be made:", error) from error
    if not isinstance(env, gymnasium.Env):
        wrong = vector_env(env) or f"got {type(env).__name__}"
        raise RollinError(f"{name} must return a contextual Gymnasium env, {wrong}.")
    return env


def load_factory(name: str) -> Any:
    """What module:factory names."""
    if ":" not in name:
        raise RollinError(
            f"Unknown task {name!r}: expected {', '.join(TASKS)} or module:factory."
            f"{factory_here(name) or did_you_mean(name, TASKS)} A run started by rollin.train in "
            "Python is resumed by the same call."
        )
    return load_named(
        name,
        "Give module:factory, where the module can be imported from here and the factory returns "
        "a contextual env or a ContextualMDP.",
    )


def _own_factory(factory: str, task: str) -> Any:
    """What makes one of our environments."""
    module, _, attribute = factory.partition(":")
    with mujoco_for(task):
        return getattr(importlib.import_module(module), attribute)


def parse_env_options(options: Sequence[str]) -> dict[str, Any]:
    """Arguments of a factory from name=value each; values are JSON, or words."""
    arguments = dict(_parse(option) for option in options)
    if len(arguments) < len(options):
        raise RollinError(f"An option of the environment is given twice: {' '.join(options)}.")
    return arguments


def _parse(option: str) -> tuple[str, Any]:
    name, equals, value = option.partition("=")
    if not equals or not name.isidentifier():
        raise RollinError(f"An option of the environment must be name=value, got {option!r}.")
    try:
        return name, parse_json(value)
    except ExcessError as error:
        raise RollinError(
            f"The environment's option {name} cannot be read: {error}. Give a smaller value."
        ) from error
    except ValueError:
        return name, value
