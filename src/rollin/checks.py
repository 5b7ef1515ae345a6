"""Checks of values that users give; each error is one sentence."""

import difflib
import math
import os
from collections.abc import Callable, Iterable
from functools import cache
from numbers import Real
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from rollin.errors import CONVENTIONAL, RollinError, one_line

Kind = TypeVar("Kind")

LARGEST = 1e6  # of real numbers: beyond, float32 soon overflows
MOST = 2**63 - 1  # of whole numbers, seeds among them
MOST_STEPS = 2**53  # beyond, a float64 does not count one by one
MOST_SAMPLES = 10**7  # of a batch
MOST_UPDATES = 10**6  # at one step
MOST_STATES_VISITED = 10**9  # by all trajectories of a batch
MOST_EPISODES = 1000  # of one evaluation
MOST_PARAMETERS = 2**25  # of actor and critics
MOST_ACTIVATIONS = 2**26  # of a network's hidden layers on a batch
MOST_ENTRIES = 2**27  # of a table of rewards: 1 GiB
LONGEST_HORIZON = 10**6
WIDEST = 10**7  # of a layer
MOST_THREADS = 1024


def instance(name: str, value: Any, kind: type[Kind], fix: str) -> Kind:
    """Return a value of a public type; raise for another type; fix: how to get one."""
    if not isinstance(value, kind):
        raise RollinError(f"{name} must be a rollin.{kind.__name__}, got {shown(value)}: {fix}.")
    return value


def shown(value: Any) -> str:
    """Return a plain value as it is written, or the type of any other, for an error."""
    plain = value is None or isinstance(value, str | int | float)
    return one_line(repr(value), 60) if plain else type(value).__name__


def require_number(name: str, value: Any) -> None:
    """Raise if a value is not a real number."""
    if not isinstance(value, Real):
        raise RollinError(f"{name} must be a number, got {shown(value)}.")


def check_alpha(alpha: float) -> float:
    """Return the entropy coefficient; raise if it is not positive."""
    require_number("alpha", alpha)
    if not (math.isfinite(alpha) and alpha > 0):
        raise RollinError(
            f"alpha must be greater than 0, got {alpha}: the soft-optimal policy is "
            "softmax(Q/α), and a small α such as 1e-4 comes close to the hard maximum."
        )
    if alpha > LARGEST:
        raise RollinError(f"alpha must be at most {LARGEST:g}, got {alpha}.")
    return float(alpha)


def below_one(name: str, value: float, why: str = "") -> float:
    """Return a number in [0, 1); why: what follows the sentence's colon if it is not in there."""
    require_number(name, value)
    if not 0 <= value < 1:
        reason = f": {why}" if why else ""
        raise RollinError(f"{name} must lie in [0, 1), got {value}{reason}.")
    return float(value)


def check_beta(beta: float) -> float:
    """Return the mixing ratio β ∈ [0, 1)."""
    why = "0 is the baseline without roll-in, and β = 1 would never start from ρ"
    return below_one("beta", beta, why)


def check_gamma(gamma: float) -> float:
    """Return the discount γ ∈ [0, 1) of an agent that rolls in."""
    why = "a roll-in stops with probability 1 - γ after each step"
    return below_one("gamma", gamma, why)


def at_least(least: int, name: str, value: int, most: int = MOST) -> int:
    """Return a whole number from `least` to `most`."""
    whole = isinstance(value, int) or (
        isinstance(value, Real) and math.isfinite(value) and value == int(value)
    )
    if not whole:
        raise RollinError(f"{name} must be a whole number, got {shown(value)}.")
    if value < least:
        raise RollinError(f"{name} must be at least {least}, got {value}.")
    if value > most:
        raise RollinError(f"{name} must be at most {most:,}, got {value}.")
    return int(value)


def one_of(name: str, value: object, known: Iterable[str]) -> None:
    """Raise if a value is none of the known words."""
    words = list(known)
    if value not in words:
        raise RollinError(f"{name} must be one of {', '.join(words)}, got {value!r}.")


def check_literals(options: object, spell: Callable[[str], str] = str) -> None:
    """Raise if a field of a dataclass holds none of the words of its `Literal` annotation.

    spell: how errors write a field's name, such as `flag`.
    """
    for name, hint in _type_hints(type(options)).items():
        check_literal(spell(name), getattr(options, name), hint)


def check_literal(name: str, value: object, hint: Any) -> None:
    """Raise if a value is none of the words of a `Literal`; other types take any value here."""
    kinds = (hint,) if get_origin(hint) is Literal else get_args(hint)
    literals = [kind for kind in kinds if kind is not NoneType]
    if not literals or any(get_origin(kind) is not Literal for kind in literals):
        return
    if value is not None or NoneType not in kinds:
        one_of(name, value, [word for kind in literals for word in get_args(kind)])


@cache
def _type_hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in kind.__dataclass_fields__}


def positive(name: str, value: float, most: float = LARGEST) -> float:
    """Return a finite number greater than 0 and at most `most`."""
    require_number(name, value)
    if not (math.isfinite(value) and value > 0):
        raise RollinError(f"{name} must be a finite number greater than 0, got {value}.")
    if value > most:
        raise RollinError(f"{name} must be at most {most:g}, got {value}.")
    return float(value)


def check_share(name: str, value: float) -> float:
    """Return a number in [0, 1]."""
    require_number(name, value)
    if not 0 <= value <= 1:
        raise RollinError(f"{name} must lie in [0, 1], got {value}.")
    return float(value)


def within(name: str, value: float, most: float = LARGEST) -> float:
    """Return a finite number of at most this absolute value."""
    require_number(name, value)
    if not math.isfinite(value):
        raise RollinError(f"{name} must be finite, got {value}.")
    if abs(value) > most:
        raise RollinError(f"{name} must lie within {most:g} of 0, got {value}.")
    return float(value)


def check_warmup(warmup: int, batch: int) -> int:
    """Return the number of random steps before the first update; raise if less than a batch."""
    if warmup < batch:
        raise RollinError(
            f"warmup must be at least one batch ({batch}), got {warmup}: the first update draws "
            "its batch from the random steps."
        )
    return warmup


def flag(name: str) -> str:
    """Return an option as it is written on the command line."""
    return "--" + CONVENTIONAL.get(name, name).replace("_", "-")


def seconds_from(variable: str, default: float) -> float:
    """Return the number of seconds in a variable of the environment, or the default."""
    text = os.environ.get(variable, str(default))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise RollinError(f"{variable} must be a number of seconds, got {text!r}: correct it.")
    return seconds


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the nearest known name, to follow an error; empty if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""
