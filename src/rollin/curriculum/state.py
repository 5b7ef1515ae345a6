"""State that a class declares: which of its attributes a checkpoint holds, and of which types.

`State[int]` in place of `int` in the annotation of an attribute is all that it takes. The name in
the state is the attribute's own without an underscore in front.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.random import Generator

from rollin.errors import RollinError
from rollin.streams import pack_generator, unpack_generator

Value = TypeVar("Value")
STATE = "state"
State = Annotated[Value, STATE]
"""The type of an attribute that is part of the state.

Plain values, lists, tuples, dicts, arrays, dataclasses of these, PCG64 generators, and parts that
have a `get_state` and a `set_state` of their own. A float that is not finite is saved as None and
restored as the class's default of the attribute.
"""


class HasState(Protocol):
    """What a checkpoint can save and restore."""

    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume, as JSON-able values."""
        ...

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        ...


class Stateful:
    """Saves and restores the attributes that a class declares as its state.

    >>> class Counter(Stateful):
    ...     count: State[int] = 0
    ...     best: State[float] = -math.inf
    >>> counter = Counter()
    >>> counter.count = 3
    >>> counter.get_state()
    {'count': 3, 'best': None}
    >>> counter.set_state({"count": 5, "best": 0.5})
    >>> counter.count, counter.best
    (5, 0.5)
    """

    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume, as JSON-able values."""
        return {_key(name): _saved(getattr(self, name)) for name in _declared(type(self))}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned.

        An attribute that an earlier version did not have keeps its default.
        """
        kind = type(self)
        for name, hint in _declared(kind).items():
            key = _key(name)
            current = getattr(self, name, None)
            absent = key not in state or (hint is float and state[key] is None)
            try:
                if absent and hasattr(kind, name) and not hasattr(current, "set_state"):
                    value = getattr(kind, name)
                else:
                    value = _restored(hint, state[key], current)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise RollinError(
                    f"{key!r} in the saved state of a {kind.__name__} does not fit this one: make "
                    "it as it was when it was saved."
                ) from error
            setattr(self, name, value)


def _key(name: str) -> str:
    return name.removeprefix("_")


@cache
def _declared(kind: type) -> dict[str, Any]:
    """Return the types of a class's state by attribute, those of its bases first."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: get_args(hint)[0]
        for name, hint in hints.items()
        if get_origin(hint) is Annotated and STATE in hint.__metadata__
    }


def _saved(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Generator):
        return [f"{word:x}" for word in pack_generator(value)]  # too large for JSON's numbers
    if isinstance(value, dict):
        return [[_saved(key), _saved(part)] for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [_saved(part) for part in value]
    if hasattr(value, "get_state"):
        return value.get_state()
    return [_saved(getattr(value, field.name)) for field in fields(value)]


def _restored(hint: Any, value: Any, current: Any = None) -> Any:
    """Return the value of a type from JSON; raise ValueError or TypeError if it is none.

    current: the attribute before, which a generator and a part with a state are restored in.
    """
    if hasattr(current, "set_state"):
        if value is None:
            raise TypeError("the saved one had no such part")
        current.set_state(value)
        return current
    if isinstance(current, Generator):
        words = [int(word, 16) for word in value]
        unpack_generator(current, np.array(words, np.uint64))
        return current
    kinds = get_args(hint)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in kinds:
            return None
        (hint,) = [kind for kind in kinds if kind is not NoneType]
        return _restored(hint, value)
    if origin is list:
        return [_restored(kinds[0], part) for part in value]
    if origin is dict:
        return {_restored(kinds[0], key): _restored(kinds[1], part) for key, part in value}
    if origin is tuple:
        parts = [kinds[0]] * len(value) if kinds[-1] is ... else kinds
        return tuple(_restored(kind, part) for kind, part in zip(parts, value, strict=True))
    if origin is np.ndarray:
        return np.array(value, get_args(kinds[1])[0])
    if is_dataclass(hint):
        types = get_type_hints(hint).values()
        return hint(*(_restored(kind, part) for kind, part in zip(types, value, strict=True)))  # pyright: ignore[reportCallIssue]
    return _plain(hint, value)


def _plain(kind: type, value: Any) -> Any:
    """Return a number, a text or a truth value; raise TypeError for another type."""
    allowed = {float: (int, float), int: int, bool: bool, str: str}[kind]
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{kind.__name__} expected")
    return kind(value)
