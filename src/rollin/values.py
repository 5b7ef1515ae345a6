"""Plain values from text that others may have written: JSON of bounded depth and numbers."""

import json
import math
from collections.abc import Callable
from typing import Any

DEEPEST = 64  # lists and objects inside each other
MOST_DIGITS = 40  # of a whole number: 128 bits have 39


class ExcessError(ValueError):
    """Values that are well-formed and beyond all bounds; the text is the end of a sentence."""


def parse_json(text: str, parse_float: Callable[[str], float] = float) -> Any:
    """The value of a JSON text; raises ValueError, ExcessError if it is beyond bounds."""
    try:
        value = json.loads(
            text, parse_float=parse_float, parse_constant=parse_float, parse_int=_whole
        )
    except RecursionError as error:
        raise too_deep() from error
    check_bounds(value)
    return value


def check_bounds(value: Any) -> None:
    """Raise ExcessError for values nested too deeply, and for numbers of too many digits."""
    layer, depth = [value], 0
    while layer:
        if depth > DEEPEST:
            raise too_deep()
        inner: list[Any] = []
        for part in layer:
            if isinstance(part, dict):
                inner.extend(part.values())
            elif isinstance(part, list | tuple):
                inner.extend(part)
            elif isinstance(part, int) and abs(part) >= 10**MOST_DIGITS:
                raise too_long()
        layer, depth = inner, depth + 1


def finite(text: str) -> float:
    """A number of a file; Python would also take NaN, Infinity and 1e999."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:MOST_DIGITS]} is not a finite number")
    return number


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS + 1:  # and a sign
        raise too_long()
    return int(text)


def too_deep() -> ExcessError:
    """What to raise where Python itself could not follow."""
    return ExcessError(f"it is nested more than {DEEPEST} levels deep")


def too_long() -> ExcessError:
    """What to raise for a number that Python itself does not read."""
    return ExcessError(f"it holds a whole number of more than {MOST_DIGITS} digits")
