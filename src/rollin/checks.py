"""Checks of numbers that come from users; each error is one sentence."""

import difflib
import math
import os
from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeVar

from rollin.errors import RollinError
from rollin.texts import one_line

Kind = TypeVar("Kind")

LARGEST = 1e6  # of real numbers: beyond, float32 soon overflows
MOST = 2**63 - 1  # of whole numbers, seeds among them
MOST_STEPS = 2**53  # beyond, a float64 does not count one by one
MOST_SAMPLES = 10**7  # of a batch
MOST_STATES_VISITED = 10**9  # by all trajectories of a batch
MOST_EPISODES = 1000  # of one evaluation
MOST_PARAMETERS = 2**25  # of actor and critics
MOST_ACTIVATIONS = 2**26  # of a network's hidden layers on a batch
MOST_ENTRIES = 2**27  # of a table of rewards: 1 GiB
LONGEST_HORIZON = 10**6
WIDEST = 10**7  # of a layer
MOST_THREADS = 1024


def instance(name: str, value: Any, kind: type[Kind], fix: str) -> Kind:
    """Refuse a value that is not of a public type; fix: how to get one, in words."""
    if not isinstance(value, kind):
        raise RollinError(f"{name} must be a rollin.{kind.__name__}, got {shown(value)}: {fix}.")
    return value


def shown(value: Any) -> str:
    """A plain value as it is written, anything else by its type, to stand in an error."""
    plain = value is None or isinstance(value, str | int | float)
    return one_line(repr(value), 60) if plain else type(value).__name__


def require_number(name: str, value: Any) -> None:
    """Refuse what is not a real number."""
    if not isinstance(value, Real):
        raise RollinError(f"{name} must be a number, got {shown(value)}.")


def check_alpha(alpha: float) -> float:
    """The entropy coefficient, which must be positive."""
    require_number("alpha", alpha)
    if not (math.isfinite(alpha) and alpha > 0):
        raise RollinError(
            f"alpha must be greater than 0, got {alpha}: the soft-optimal policy is "
            "softmax(Q/α), and a small α such as 1e-4 comes close to the hard maximum."
        )
    if alpha > LARGEST:
        raise RollinError(f"alpha must be at most {LARGEST:g}, got {alpha}.")
    return float(alpha)


def check_beta(beta: float) -> float:
    """The mixing ratio β ∈ [0, 1): 0 is the baseline, 1 would never start from ρ."""
    require_number("beta", beta)
    if not 0 <= beta < 1:
        raise RollinError(
            f"beta must lie in [0, 1), got {beta}: 0 is the baseline without roll-in, "
            "and β = 1 would never start from ρ."
        )
    return float(beta)


def check_gamma(gamma: float) -> float:
    """The discount γ ∈ [0, 1) of an agent that rolls in; with 1 a roll-in would never stop."""
    require_number("gamma", gamma)
    if not 0 <= gamma < 1:
        raise RollinError(
            f"gamma must lie in [0, 1), got {gamma}: a roll-in stops with probability 1 - γ after "
            "each step."
        )
    return float(gamma)


def at_least(least: int, name: str, value: int, most: int = MOST) -> int:
    """A whole number that must not be smaller than `least`, nor larger than `most`."""
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
    """One of some words."""
    words = list(known)
    if value not in words:
        raise RollinError(f"{name} must be one of {', '.join(words)}, got {value!r}.")


def positive(name: str, value: float, most: float = LARGEST) -> float:
    """A finite number greater than 0, and not larger than `most`."""
    require_number(name, value)
    if not (math.isfinite(value) and value > 0):
        raise RollinError(f"{name} must be a finite number greater than 0, got {value}.")
    if value > most:
        raise RollinError(f"{name} must be at most {most:g}, got {value}.")
    return float(value)


def check_share(name: str, value: float) -> float:
    """A share, from 0 to 1."""
    require_number(name, value)
    if not 0 <= value <= 1:
        raise RollinError(f"{name} must lie in [0, 1], got {value}.")
    return float(value)


def within(name: str, value: float, most: float = LARGEST) -> float:
    """A finite number whose size is not larger than `most`."""
    require_number(name, value)
    if not math.isfinite(value):
        raise RollinError(f"{name} must be finite, got {value}.")
    if abs(value) > most:
        raise RollinError(f"{name} must lie within {most:g} of 0, got {value}.")
    return float(value)


def check_warmup(warmup: int, batch: int) -> int:
    """The random steps before the first update, which draws a batch from them."""
    if warmup < batch:
        raise RollinError(
            f"warmup must be at least one batch ({batch}), got {warmup}: the first update draws "
            "its batch from the random steps."
        )
    return warmup


def flag(name: str) -> str:
    """An option as it stands on the command line."""
    return "--" + name.replace("_", "-")


def seconds_from(variable: str, default: float) -> float:
    """A number of seconds that the environment may set."""
    text = os.environ.get(variable, str(default))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise RollinError(f"{variable} must be a number of seconds, got {text!r}: correct it.")
    return seconds


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with the nearest known name, to stand behind an error; empty if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""
