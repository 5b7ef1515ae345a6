"""Choosing conditions by their labels: `env=hopper,beta=0,beta=0.1`."""

from collections.abc import Sequence

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.sweeps.condition import Condition


def select(
    conditions: Sequence[Condition],
    text: str,
    flag: str = "--cells",
    *,
    none_is_fine: bool = False,
) -> list[Condition]:
    """Those whose labels are as the filter has them; a label that is given twice may be either.

    none_is_fine: give none, instead of an error, if there are none.
    """
    wanted: dict[str, list[str]] = {}
    try:
        for name, value in _parts(conditions, text, flag):
            wanted.setdefault(name, []).append(_known(conditions, name, value, flag))
    except _UnknownLabelError:
        if none_is_fine:
            return []
        raise
    found = [c for c in conditions if all(c.labels.get(n) in v for n, v in wanted.items())]
    if not found and not none_is_fine:
        raise RollinError(
            f"{flag} {text!r} matches none of the {len(conditions)} conditions: leave one out."
        )
    return found


def filter_names(text: str) -> list[str]:
    """The labels that a filter names."""
    return [part.partition("=")[0].strip() for part in text.split(",")]


class _UnknownLabelError(RollinError):
    """A label or value that no condition has."""


def _parts(conditions: Sequence[Condition], text: str, flag: str) -> list[tuple[str, str]]:
    found = []
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise RollinError(
                f"{flag} must be name=value, or several of them separated by commas, got {part!r} "
                f"in {text!r}: the names here are {', '.join(_names(conditions))}."
            )
        found.append((name, value))
    return found


def _names(conditions: Sequence[Condition]) -> list[str]:
    return list(dict.fromkeys(name for condition in conditions for name in condition.labels))


def _known(conditions: Sequence[Condition], name: str, value: str, flag: str) -> str:
    """The value as a label has it: 0.10 is 0.1."""
    names = _names(conditions)
    if name not in names:
        raise _UnknownLabelError(
            f"{flag}: there is no label {name!r} here, only {', '.join(names)}."
            f"{did_you_mean(name, names)}"
        )
    values = list(dict.fromkeys(c.labels[name] for c in conditions if name in c.labels))
    for known in values:
        if value == known or (_number(value) is not None and _number(value) == _number(known)):
            return known
    raise _UnknownLabelError(
        f"{flag}: {name} is {', '.join(values)} here, got {value!r}.{did_you_mean(value, values)}"
    )


def _number(text: str) -> float | None:
    above, _, below = text.partition("/")
    try:
        return float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        return None
