"""Options by name: from a preset and what is given, to the configuration of a run.

What is given may come from Python, from a TOML file, or as text from the command line (`1/24`,
`true`, `[8, 8]`). Options of a part (a field that is a dataclass itself) are named like all others.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import cache
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.runs.spec import RunConfig
from rollin.values import parse_json

Options = TypeVar("Options")

SYNONYMS = {
    **dict.fromkeys(("total_timesteps", "timesteps", "total_steps", "n_steps"), "steps"),
    **dict.fromkeys(("batch_size", "minibatch_size"), "batch"),
    **dict.fromkeys(("learning_starts", "start_steps"), "warmup"),
    **dict.fromkeys(("buffer_size", "replay_size"), "capacity"),
    **dict.fromkeys(("net_arch", "policy_kwargs", "hidden_sizes"), "hidden"),
    **dict.fromkeys(("lr", "lr_schedule"), "learning_rate"),
    **dict.fromkeys(("discount", "discount_factor"), "gamma"),
    **dict.fromkeys(("ent_coef", "alpha"), "initial_temperature"),
    **dict.fromkeys(("eval_freq", "log_interval"), "log_every"),
    **dict.fromkeys(("tensorboard_log", "log_dir", "save_path"), "out"),
    "polyak": "tau",
    "random_seed": "seed",
    "max_episode_steps": "horizon",
    "n_eval_episodes": "eval_episodes",
    "callback": "on_event",
    "env_kwargs": "env_options",
    "device": "learner",
}
"""Names of Stable-Baselines3 and other libraries, and the options that they stand for."""


def configured(
    config: Options,
    options: Mapping[str, Any],
    owner: str = "",
    others: Iterable[str] = (),
) -> Options:
    """A configuration with other values for some options, whichever part they belong to.

    owner, others: for the error about an unknown option, whose options these are and which names it
    takes besides.
    """
    kinds = _homes(type(config))
    given: dict[str, dict[str, Any]] = {}
    for name, value in spelled(type(config), options).items():
        if name not in kinds:
            short = type(config).short_forms if isinstance(config, RunConfig) else ()
            raise RollinError(unknown_option(name, (*kinds, *short, *others), owner))
        part, hint = kinds[name]
        given.setdefault(part, {})[name] = typed_option(name, value, hint)
    whole: Any = config
    for part in [part for part in given if part]:
        given.setdefault("", {})[part] = replace(getattr(whole, part), **given.pop(part))
    return replace(whole, **given.get("", {}))


def unknown_option(name: str, known: Collection[str], owner: str) -> str:
    """An error about an option that its owner does not have, with the name that was meant."""
    meant = SYNONYMS.get(name, "")
    missing = f"{owner} has no option {name}" if owner else f"There is no option {name}"
    if meant in known:
        return f"{missing}: it is called {meant} here."
    return f"{missing}.{did_you_mean(name, known)}"


def spelled(kind: type[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with their short forms written out, where these are set."""
    short = getattr(kind, "short_forms", {})
    found = {name: value for name, value in options.items() if name not in short}
    for name in options.keys() & short.keys():
        if typed_option(name, options[name], bool):
            found = {**short[name], **found}
    return found


def option_names(kind: type[Any]) -> list[str]:
    """All options of a kind of configuration, those of its parts included."""
    return list(_homes(kind))


def flat(config: Any) -> dict[str, Any]:
    """All options of a configuration by name."""
    found: dict[str, Any] = {}
    for field in fields(config):
        value = getattr(config, field.name)
        found |= flat(value) if is_dataclass(value) else {field.name: value}
    return found


@cache
def _homes(kind: type[Any]) -> dict[str, tuple[str, Any]]:
    """The part that an option belongs to (empty: the configuration itself), and its type."""
    return {name: (part, hint) for part, name, hint in _walk(kind)}


def _walk(kind: type[Any]) -> Iterator[tuple[str, str, Any]]:
    for name, hint in _field_types(kind).items():
        if is_dataclass(hint):
            yield from ((name, inner, own) for inner, own in _field_types(hint).items())
        else:
            yield "", name, hint


@cache
def _field_types(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def config_from(kind: type[Options], values: Any, where: str = "config.json") -> Options:
    """A configuration from the plain values of a file; an unknown option or a wrong type is told.

    Options that are not there have their default: the file may be older than they are.
    """
    if not isinstance(values, dict):
        raise RollinError(f"{where}: options expected, got {values!r}.")
    types = _field_types(kind)
    if unknown := values.keys() - types.keys():
        raise RollinError(f"{where} holds unknown options: {', '.join(sorted(unknown))}.")
    found: dict[str, Any] = {}
    for name, value in values.items():
        hint = types[name]
        if is_dataclass(hint):
            found[name] = config_from(hint, value, where)  # pyright: ignore[reportArgumentType]
        else:
            found[name] = typed_option(name, value, hint)
    return kind(**found)


# ------------------------------------------------------------------ values


def read_value(text: str) -> Any:
    """The value that a text stands for: JSON, a fraction such as 1/24, or a word."""
    try:
        value = parse_json(text)
    except ValueError:
        value = text
    if isinstance(value, str) and "/" in text:
        try:
            return float(Fraction(text))
        except (ValueError, ZeroDivisionError, OverflowError):
            return text
    return value


def typed_option(name: str, value: Any, hint: Any) -> Any:
    """The value as a plain one of the type that the option has."""
    value = _plain(value)
    kinds = get_args(hint) if get_origin(hint) not in (tuple, Literal) else (hint,)
    kinds = kinds or (hint,)
    if value is None and NoneType in kinds:
        return None
    for kind in kinds:
        found = _as(kind, value)
        if found is not None:
            return found[0]
    wanted = " or ".join(_words(kind) for kind in kinds)
    raise RollinError(f"{name} must be {wanted}, got {value!r}.")


def _plain(value: Any) -> Any:
    """Without NumPy, however deep."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _as(kind: Any, value: Any) -> tuple[Any] | None:
    """The value as this type, in a tuple; None if it is not of it."""
    if get_origin(kind) is Literal:
        # the options themselves say which words there are
        return (value,) if isinstance(value, str) else None
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        parts = [_as(inner, part) for part in value] if isinstance(value, list | tuple) else [None]
        return None if None in parts else (tuple(part[0] for part in parts if part),)
    if kind is bool:
        return (value,) if isinstance(value, bool) else None
    if kind in (int, float) and isinstance(value, int | float) and not isinstance(value, bool):
        whole = isinstance(value, int) or value.is_integer()
        try:
            number = kind(value) if kind is float or whole else None
            return None if number is None or not math.isfinite(number) else (number,)
        except OverflowError:
            return None
    if kind is str and isinstance(value, str):
        return (value,)
    if kind is str and isinstance(value, list | tuple):
        return (json.dumps(value),)  # --path and --contexts are JSON on the command line
    return None


def _words(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"a sequence of {get_args(kind)[0].__name__}"
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    named = {int: "a whole number", float: "a finite number", str: "a text", bool: "True or False"}
    return "None" if kind is NoneType else named.get(kind, str(kind))
