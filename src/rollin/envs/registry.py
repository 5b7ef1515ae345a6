"""From a task to its environment: rollin's tasks by name, user code by module:factory."""

import importlib
import inspect
from collections.abc import Sequence
from typing import Any

import gymnasium

from rollin.checks import did_you_mean, shown
from rollin.envs.box_env import mujoco_for
from rollin.envs.context_env import ContextEnv, vector_env
from rollin.errors import RollinError, foreign
from rollin.tasks import TASKS, plain_name
from rollin.untrusted import CALLS, ExcessError, factory_here, from_here, load_named, parse_json


def make_contextual(
    name: str,
    options: Sequence[str] = (),
    *,
    horizon: int | None = None,
    render_mode: str | None = None,
) -> ContextEnv:
    """Make the environment of a task; options: name=value each, for its factory."""
    make = _factory(name)
    arguments = parse_env_options(options)
    if render_mode is not None and _takes(make, "render_mode"):
        arguments["render_mode"] = render_mode
    return call_factory(make, name, arguments, horizon)


def _takes(make: Any, argument: str) -> bool:
    """Return whether a factory takes an argument; True if its signature is unknown."""
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
    """Return the unguarded env of an env, of a function that makes one, or of a task's name."""
    check_source(source)
    if isinstance(source, gymnasium.Env):
        if options:
            raise RollinError("env_options belong to a function or a task's name, not to an env.")
        return _limited(source, horizon)
    name = source if isinstance(source, str) else getattr(source, "__name__", "env")
    make = _factory(source) if isinstance(source, str) else source
    return _limited(_call(make, name, parse_env_options(options)), horizon)


def check_source(source: Any) -> None:
    """Raise for what is neither an env, nor a function that makes one, nor a text."""
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
    """Return the environment that a factory makes, with a time limit if one is given."""
    return ContextEnv(_limited(_call(make, name, arguments), horizon))


def _limited(env: gymnasium.Env[Any, Any], horizon: int | None) -> gymnasium.Env[Any, Any]:
    return env if horizon is None else gymnasium.wrappers.TimeLimit(env, horizon)


def _call(make: Any, name: str, arguments: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    if wrong := vector_env(make):
        raise RollinError(f"One environment at a time is trained on, {wrong}.")
    if not callable(make):
        raise RollinError(
            f"{name} must be a function that makes a new environment at every call, got "
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
    """Return the object that module:factory names."""
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


def _factory(name: str) -> Any:
    """Return the factory of a task of rollin or of user code."""
    task = TASKS.get(plain_name(name))
    if task is None:
        return load_factory(name)
    module, _, attribute = task.factory.partition(":")
    with mujoco_for(name):
        return getattr(importlib.import_module(module), attribute)


def parse_env_options(options: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a factory from name=value each; values are JSON, or words."""
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
