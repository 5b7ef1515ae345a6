"""Checks of what a run's files say: finite numbers, and places on the curriculum."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from rollin.errors import RollinError

SHARES = ("kappa", "kappa_mean_last")
OPTIONAL = ("eval_return", "eval_return_final")
"""Figures beside the means that are a number or, where no episode told it, null."""


def is_number(value: Any) -> bool:
    """Whether a value is finite, and no word or truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number(values: Mapping[str, Any], name: str) -> float:
    """A number that must be there."""
    value = values[name]
    if not is_number(value):
        raise RollinError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def whole(values: Mapping[str, Any], name: str) -> int:
    """A whole number that is not negative."""
    value = number(values, name)
    if value < 0 or value != int(value):
        raise RollinError(f"{name} must be a whole number of at least 0, got {values[name]!r}")
    return int(value)


def check_places(values: Mapping[str, Any]) -> None:
    """Refuse a context k outside 0 … K, and time that runs backwards."""
    k, top = whole(values, "k"), whole(values, "K")
    if top < 1:
        raise RollinError(f"K must be at least 1, got {top}")
    if k > top:
        raise RollinError(f"k must lie between 0 and K = {top}, got {k}")
    if number(values, "seconds") < 0:
        raise RollinError(f"seconds must not be negative, got {values['seconds']!r}")


def check_figures(values: Mapping[str, Any]) -> None:
    """Refuse means that are no numbers, and κ outside 0 … 1."""
    for name, value in values.items():
        if (name in OPTIONAL or name.endswith("_mean_last")) and value is not None:
            number(values, name)
        if name in SHARES and not 0 <= number(values, name) <= 1:
            raise RollinError(f"{name} must lie between 0 and 1, got {value!r}")


def check_order(steps: Sequence[float], what: str) -> None:
    """Refuse steps that are negative, not finite, or go back."""
    if not all(map(math.isfinite, steps)) or any(b < a for a, b in pairwise([0, *steps])):
        raise RollinError(f"the steps of {what} must rise from 0")


def objects(values: Any, what: str) -> list[dict[str, Any]]:
    """A list of objects."""
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise RollinError(f"{what} must hold objects, got {values!r}")
    return values
