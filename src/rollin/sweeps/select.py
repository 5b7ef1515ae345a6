"""Choosing cells of a table by their labels: `env=hopper,beta=0,beta=0.1`."""

from collections.abc import Sequence

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.sweeps.study import Condition


def choose(cells: Sequence[Condition], text: str) -> list[Condition]:
    """Cells whose labels are as the filter has them; a label that is given twice may be either."""
    wanted: dict[str, list[str]] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise RollinError(
                f"--cells must be name=value, or several of them with commas between, got {part!r} "
                f"in {text!r}: the names here are {', '.join(_names(cells))}."
            )
        wanted.setdefault(name, []).append(_known(cells, name, value))
    found = [cell for cell in cells if all(cell.labels.get(n) in v for n, v in wanted.items())]
    if not found:
        raise RollinError(f"--cells {text!r} leaves none of the {len(cells)} cells: leave one out.")
    return found


def _names(cells: Sequence[Condition]) -> list[str]:
    return list(dict.fromkeys(name for cell in cells for name in cell.labels))


def _known(cells: Sequence[Condition], name: str, value: str) -> str:
    """The value as a label has it: 0.10 is 0.1."""
    names = _names(cells)
    if name not in names:
        raise RollinError(
            f"--cells: there is no label {name!r} in this table, only {', '.join(names)}."
            f"{did_you_mean(name, names)}"
        )
    values = list(dict.fromkeys(cell.labels[name] for cell in cells if name in cell.labels))
    for known in values:
        if value == known or (_number(value) is not None and _number(value) == _number(known)):
            return known
    raise RollinError(
        f"--cells: {name} is {', '.join(values)} in this table, got {value!r}."
        f"{did_you_mean(value, values)}"
    )


def _number(text: str) -> float | None:
    above, _, below = text.partition("/")
    try:
        return float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        return None
