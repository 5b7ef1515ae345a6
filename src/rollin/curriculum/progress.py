"""Progress along a curriculum, the last episodes under its current context, and state in general.

Both engines keep a `Progress`; only the deep one keeps a `Window`. What has state declares it:
`State[int]` in place of `int` in the annotation of an attribute is all that it takes. The name in
the state is the attribute's own without an underscore in front.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.random import Generator

from rollin.errors import RollinError, short_repr
from rollin.streams import pack_generator, unpack_generator

RATES = (0.5, 0.9)  # success rates that the sequential test decides between
ODDS = 18.0  # which the higher one must reach: five successes in a row do, or eight of nine

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


@dataclass(frozen=True)
class Advance:
    """An advance to ω_k after `step` learning steps, and its reason."""

    step: int
    k: int
    reason: str


@dataclass(repr=False)
class Progress(Stateful):
    """The current context k of 0 … K, and the advances so far.

    kappas: κ of each context, k / K by default; completed: when the final context was mastered.
    """

    K: State[int]
    k: State[int] = 0
    advances: State[list[Advance]] = field(default_factory=list)
    kappas: Sequence[float] = ()
    completed: State[Advance | None] = None

    def __post_init__(self) -> None:
        if self.K < 1:
            raise RollinError(
                f"A curriculum needs at least two contexts, got {self.K + 1}: add an easier one."
            )

    def __repr__(self) -> str:
        return short_repr(self, kappa=self.kappa, k=self.k, K=self.K, advances=len(self.advances))

    @property
    def kappa(self) -> float:
        """κ ∈ [0, 1] of the current context."""
        return self.kappa_of(self.k)

    def kappa_of(self, k: int) -> float:
        """Return κ ∈ [0, 1] of a context."""
        return self.kappas[k] if self.kappas else k / self.K

    @property
    def first(self) -> int:
        """The context at the beginning."""
        return 0 if self.advances else self.k  # a run that has switched began at ω_0

    def k_at(self, step: int) -> int:
        """Return the context after a step."""
        reached = [advance.k for advance in self.advances if advance.step <= step]
        return reached[-1] if reached else self.first

    def kappa_at(self, step: int) -> float:
        """Return κ after a step."""
        return self.kappa_of(self.k_at(step))

    def mean_kappa(self, begin: int, end: int) -> float:
        """Return the mean of κ over the steps begin + 1 … end."""
        k = self.first
        since = begin
        total = 0.0
        for advance in self.advances:
            at = min(max(advance.step, begin), end)
            total += self.kappa_of(k) * (at - since)
            k = advance.k
            since = at
        return (total + self.kappa_of(k) * (end - since)) / (end - begin)

    @property
    def finished(self) -> bool:
        """Whether the current context is the final one."""
        return self.k == self.K

    def advance(self, step: int, reason: str) -> None:
        """Move to the next context."""
        if self.finished:
            raise RollinError(f"The curriculum is at its final context, {self.K}, already.")
        self.move(step, self.k + 1, reason)

    def move(self, step: int, k: int, reason: str) -> None:
        """Move to any context, harder or easier."""
        if not 0 <= k <= self.K:
            raise RollinError(f"The contexts are 0 to {self.K}, got {k}.")
        self.k = k
        self.advances.append(Advance(step, k, reason))

    def complete(self, step: int, reason: str) -> None:
        """Record when the final context is first mastered."""
        self.completed = self.completed or Advance(step, self.k, reason)


class Window(Stateful):
    """The last episodes under the current context, as numbers that the rule averages.

    seen, largest: the number of all episodes under the context, and the best of them; streak:
    successes in a row up to the last episode; odds: how much likelier the last episodes are if nine
    tenths of them end in success than if half do (Wald's test, which begins again at 1).
    """

    values: State[list[float]]
    seen: State[int] = 0
    largest: State[float] = -math.inf
    streak: State[int] = 0
    odds: State[float] = 1.0

    def __init__(self, size: int) -> None:
        self.size = size
        self.values = []

    def add(self, value: float, *, success: bool = False, ended: bool = False) -> None:
        """Add an episode, and drop the oldest when there are too many.

        ended: whether it was the success that ended it.
        """
        self.values = [*self.values, value][-self.size :]
        self.largest = max(self.largest, value)
        self.seen += 1
        self.streak = self.streak + 1 if success else 0
        low, high = RATES
        ratio = high / low if ended else (1 - high) / (1 - low)
        self.odds = min(max(self.odds * ratio, 1.0), ODDS)

    def restart(self) -> None:
        """Forget all episodes: a new context begins."""
        self.values = []
        self.seen = 0
        self.largest = -math.inf
        self.streak = 0
        self.odds = 1.0

    @property
    def certain(self) -> bool:
        """Whether the last episodes show that nearly all end in success."""
        return self.odds >= ODDS

    @property
    def full(self) -> bool:
        """Whether there are enough episodes to decide."""
        return len(self.values) == self.size

    @property
    def mean(self) -> float:
        """Mean of the episodes in the window; NaN if there is none."""
        return math.fsum(self.values) / len(self.values) if self.values else math.nan
