"""Conditions from grids of options: the one way to a condition."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from rollin.checks import shown
from rollin.errors import RollinError
from rollin.names import plain_name
from rollin.runs.engines import engine_for
from rollin.runs.options import flat, option_names, read_value, unknown_option
from rollin.runs.records import Reading
from rollin.sweeps.condition import Condition

NOT_SWEPT = ("seed",)  # which a study has of its own
MOST_CONDITIONS = 5_000  # of a study
MOST_RUNS = 100_000  # of a sweep
LONGEST_STEP = 16  # digits of a reading's


def block(
    task: str,
    grid: Mapping[str, Sequence[Any]],
    options: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[Condition]:
    """A condition for each point of a grid of options, with some options and labels for all."""
    given, named = dict(options or {}), dict(labels or {})
    if not isinstance(task, str):
        raise RollinError(
            f"task must be the name of a task such as point-umaze, or module:factory, got "
            f"{shown(task)}."
        )
    task = plain_name(task)
    _check_options(task, [*grid, *given])
    for name, values in grid.items():
        if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
            raise RollinError(f"The grid's {name} must be a list of values, got {values!r}.")
        if name in given:
            raise RollinError(f"{name} is in both the grid and the options: leave one out.")
        if name in named:
            raise RollinError(f"{name} is in both the grid and the labels: leave one out.")
    check_conditions(points(grid))
    found = []
    for point in product(*([_value(v) for v in values] for values in grid.values())):
        chosen = dict(zip(grid, point, strict=True))
        made = Condition(named, task, {**{n: _value(v) for n, v in given.items()}, **chosen})
        typed = flat(made.config)  # refuses what an option does not take
        told = {name: value_text(typed.get(name, chosen[name])) for name in grid}
        found.append(Condition({**named, **told}, task, made.options))
    return found


def points(grid: Mapping[str, Sequence[Any]]) -> int:
    """The number of conditions that a grid makes."""
    return prod(len(values) for values in grid.values())


def check_conditions(count: int) -> None:
    """Refuse more conditions than a study can have, before they are made."""
    if count > MOST_CONDITIONS:
        raise RollinError(
            f"A study has at most {MOST_CONDITIONS:,} conditions, got {count:,}: give its grid "
            "fewer values, or make several studies of it."
        )


def check_runs(conditions: int, seeds: int) -> None:
    """Refuse more runs than a sweep can have, before they are planned."""
    if conditions * seeds > MOST_RUNS:
        raise RollinError(
            f"A sweep has at most {MOST_RUNS:,} runs, got {conditions:,} conditions with "
            f"{seeds:,} seeds each: take fewer seeds, or fewer conditions."
        )


def _check_options(task: str, names: Sequence[str]) -> None:
    """Refuse options that the task does not have, or that a study does not vary."""
    kind = type(engine_for(task).preset(task))
    known = [*option_names(kind), *kind.short_forms]
    for name in names:
        if name in NOT_SWEPT:
            raise RollinError(f"{name} is the study's own: give the number of seeds instead.")
        if name not in known:
            raise RollinError(unknown_option(name, known, task))


def reading(text: str) -> Reading:
    """From `quantity` or `quantity@step`."""
    quantity, at, step = text.partition("@")
    count = step.replace("_", "").replace(",", "")
    if not quantity or (
        at and not (count.isdecimal() and len(count) <= LONGEST_STEP and int(count))
    ):
        raise RollinError(
            f"A reading must be a quantity, or quantity@step such as kappa@500000, got {text!r}."
        )
    return Reading(quantity, int(count) if at else None)


def usual_readings(task: str) -> list[Reading]:
    """What is read of a task's runs by default: κ, and success on the final context if recorded.

    Runs without a curriculum have the return.
    """
    found = engine_for(task)
    if not found.walks:
        return [Reading("return")]
    success = [Reading("success_final")] if "success_final" in found.meanings else []
    return [Reading("kappa"), *success]


def value_text(value: Any) -> str:
    """An option's value as a label: 0.1, 1/24, 32x32, true."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "x".join(value_text(part) for part in value)
    if isinstance(value, float):
        short = f"{value:g}"
        if float(short) == value:
            return short
        parts = round(1 / value) if value > 1e-9 else 0
        return f"1/{parts}" if parts and 1 / parts == value else repr(value)
    return "none" if value is None else str(value).replace(",", ";").replace("=", ":")


def _value(value: Any) -> Any:
    return read_value(value) if isinstance(value, str) else value


# ------------------------------------------------------------------ the command line, TOML


def grid_from(texts: Sequence[str]) -> dict[str, list[Any]]:
    """From `beta=0,0.1` each; a value with commas of its own stands in brackets."""
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not (name and equals and values.strip()):
            raise RollinError(f"--grid must be name=value,value, such as beta=0,0.1, got {text!r}.")
        if name in grid:
            raise RollinError(f"--grid {name} is given twice: give all values at once.")
        grid[name] = [read_value(part) for part in _split(values)]
    return grid


def _split(text: str) -> list[str]:
    """Parts between commas that are not inside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
