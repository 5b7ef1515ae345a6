"""What a run is: a task and a frozen set of options, with a stable hash.

Options are given by name, over a preset: in Python, in a TOML file, or as text on the command line
(`1/24`, `true`, `[8, 8]`). Those of a part (a field that is a dataclass itself) are named like all
others.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.untrusted import parse_json


class RunConfig:
    """What the options of every engine have; each engine's are a frozen dataclass of this kind."""

    engine: ClassVar[str]
    """Name of the engine, which is in every hash."""
    steps: int
    seed: int
    log_every: int
    log: tuple[str, ...] = ()
    short_forms: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Names that stand for several options at once; what is given beside them takes precedence."""


Config = TypeVar("Config", bound=RunConfig)
EventKind = Literal["started", "progress", "finished", "stopped", "failed", "lost", "busy", "again"]


@dataclass(frozen=True)
class RunSpec(Generic[Config]):
    """A task and its options: the same spec is the same run."""

    task: str
    config: Config

    @property
    def hash(self) -> str:
        """A stable name of the spec: SHA-256 of its canonical JSON, shortened."""
        return digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in config.json."""
        return {"engine": self.config.engine, "task": self.task, "config": plain(self.config)}


def plain(options: Any) -> dict[str, Any]:
    """Options as plain values.

    One that a later version added has `metadata={"since": VERSION}` and is left out at its default,
    so that the hashes of earlier runs stay as they were.
    """
    found: dict[str, Any] = {}
    for option in fields(options):
        value = getattr(options, option.name)
        if "since" in option.metadata and value == option.default:
            continue
        found[option.name] = plain(value) if is_dataclass(value) else value
    return found


LOGGERS = ("wandb", "mlflow")
"""Loggers that a run may have, by the package that each imports and the extra that installs it."""


def check_loggers(names: Sequence[str]) -> None:
    """Refuse names of loggers that there are not, or that stand there twice."""
    for name in names:
        if name not in LOGGERS or list(names).count(name) > 1:
            known = ", ".join(LOGGERS)
            raise RollinError(f"--log must be some of {known}, each once, got {' '.join(names)}.")


@dataclass(frozen=True)
class Membership:
    """The condition of a study that a run is done for; no part of its hash.

    family: of studies that share runs; labels: the condition's name; scale: the share of its
    length; key: the condition's, see `rollin.sweeps.study`.
    """

    family: str
    labels: Mapping[str, str]
    scale: float = 1.0
    key: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in config.json."""
        return {
            "family": self.family,
            "labels": dict(self.labels),
            "scale": self.scale,
            "key": self.key,
        }


@dataclass(frozen=True)
class Job:
    """A spec, the directory it runs in, and the condition of a study that it is run for.

    until: a step at which the run stops for now; None: its last.
    """

    name: str
    spec: RunSpec[Any]
    out: Path
    of: Membership | None = None
    until: int | None = None


@dataclass(frozen=True)
class JobEvent:
    """News of a job.

    failed: the run raised an error; lost: its process or machine is gone; busy: another process has
    it; again: it will be tried again, after any of these.
    """

    kind: EventKind
    job: Job
    status: dict[str, Any]

    @property
    def is_end(self) -> bool:
        """Whether the job is no longer running."""
        return self.kind not in ("started", "progress")


OnJobEvent = Callable[[JobEvent], None]
RETRIES = 2  # of a job that failed, by default


def digest(value: Any) -> str:
    """A short name of plain values, the same wherever they are the same."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ------------------------------------------------------------------ options by name

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
    **dict.fromkeys(("gradient_steps", "utd_ratio", "replay_ratio"), "updates_per_step"),
    **dict.fromkeys(("tensorboard_log", "log_dir", "save_path"), "out"),
    "polyak": "tau",
    "train_freq": "update_every",
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
    """Make a configuration of a file's values; raise for an unknown option or a wrong type.

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
    value = _without_numpy(value)
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


def _without_numpy(value: Any) -> Any:
    """Without NumPy, however deep."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_without_numpy(part) for part in value]
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
