"""Options from Python: numbers of NumPy, whole floats, lists; anything else is one sentence."""

import json
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import numpy as np

from rollin.errors import RollinError


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
        return (value,)  # the options themselves say which words there are
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        parts = [_as(inner, part) for part in value] if isinstance(value, list | tuple) else [None]
        return None if None in parts else (tuple(part[0] for part in parts if part),)
    if kind is bool:
        return (value,) if isinstance(value, bool) else None
    if kind in (int, float) and isinstance(value, int | float) and not isinstance(value, bool):
        whole = isinstance(value, int) or value.is_integer()
        try:
            return (kind(value),) if kind is float or whole else None
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
    named = {int: "a whole number", float: "a number", str: "a text", bool: "True or False"}
    return "None" if kind is NoneType else named.get(kind, str(kind))
