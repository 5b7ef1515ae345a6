"""A condition: a task with its options, named by labels that travel with its runs.

Conditions are made of grids of options (`block`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

from rollin.checks import did_you_mean, shown
from rollin.errors import RollinError
from rollin.runs.engines import Engine, condition_key, engine_for
from rollin.runs.records import MetricAt, condition_text
from rollin.runs.spec import (
    Membership,
    RunSpec,
    configured,
    digest,
    flat,
    option_names,
    read_value,
    unknown_option,
)
from rollin.tasks import plain_name

UNSAFE = re.compile(r"[^\w=,.+-]")  # letters that a directory's name does not take everywhere
LONGEST = 120  # letters of such a name


class Published(NamedTuple):
    """A mean ± error of the paper, digits as printed."""

    printed_mean: str
    printed_error: str

    @classmethod
    def parse(cls, text: str) -> "Published":
        """Return the value of a text `mean ± error`."""
        mean, error = text.split("±")
        return cls(mean.strip(), error.strip())

    @property
    def mean(self) -> float:
        """The mean as a number."""
        return float(self.printed_mean)

    @property
    def error(self) -> float:
        """The number after the ±."""
        return float(self.printed_error)

    def __str__(self) -> str:
        return f"{self.printed_mean} ± {self.printed_error}"


@dataclass(frozen=True, eq=False)
class Condition:
    """Runs that differ only in their seed.

    labels: its name; options: what differs from the task's preset; published: the paper's values,
    by reading; known_key: its key, if that is known without importing the task; drawn: whether
    anything is random, without which one seed is enough.
    """

    labels: Mapping[str, str]
    task: str
    options: Mapping[str, Any]
    published: Mapping[MetricAt, Published] = field(default_factory=dict)
    known_key: str = ""
    first_seed: int = 0
    drawn: bool = True

    @property
    def name(self) -> str:
        """Its labels in one word."""
        return condition_text(self.labels)

    @property
    def directory(self) -> str:
        """Its name as that of a directory."""
        name = self.name or self.task
        safe = UNSAFE.sub("-", name).strip(".") or "run"
        return safe if len(safe) <= LONGEST else f"{safe[:LONGEST]}-{digest(name)}"

    @cached_property
    def engine(self) -> Engine[Any]:
        """The engine of its task."""
        return engine_for(self.task)

    @cached_property
    def config(self) -> Any:
        """All its options, with seed 0."""
        try:
            return configured(self.engine.preset(self.task), self.options)
        except RollinError as error:
            raise RollinError(f"{self.name or self.task}: {error}") from error

    @property
    def steps(self) -> int:
        """Steps of a run at full length."""
        given = self.options.get("steps")
        return int(self.config.steps if given is None else given)

    def seeds(self, count: int) -> range:
        """Its seeds in a study with `count` of them."""
        return range(self.first_seed, self.first_seed + (count if self.drawn else 1))

    def spec(self, seed: int, scale: float = 1.0, **changes: Any) -> RunSpec[Any]:
        """The run of one seed, shortened by `scale`; changes: options that its engine may have."""
        config = replace(self.engine.scaled(self.config, scale), seed=seed)
        known = option_names(type(config))
        return RunSpec(
            self.task, configured(config, {n: v for n, v in changes.items() if n in known})
        )

    def key(self, scale: float = 1.0) -> str:
        """A hash of its options without seed and length, which all its runs share."""
        if self.known_key:
            return self.known_key
        if scale not in self._keys:
            self._keys[scale] = condition_key(self.spec(0, scale))
        return self._keys[scale]

    @cached_property
    def _keys(self) -> dict[float, str]:
        return {}

    def membership(self, family: str, scale: float = 1.0) -> Membership:
        """What the config.json of its runs records of it."""
        return Membership(family, self.labels, scale, self.key(scale))


def label_values(conditions: Sequence[Condition]) -> dict[str, list[str]]:
    """The values of each label, both in order of appearance."""
    found: dict[str, dict[str, None]] = {}
    for condition in conditions:
        for name, value in condition.labels.items():
            found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items()}


def differing(conditions: Sequence[Condition]) -> list[str]:
    """Names of the labels in which conditions differ."""
    names = dict.fromkeys(name for condition in conditions for name in condition.labels)
    return [n for n in names if len({condition.labels.get(n) for condition in conditions}) > 1]


# ------------------------------------------------------------------ filters


def select(
    conditions: Sequence[Condition],
    text: str,
    flag: str = "--only",
    *,
    none_is_fine: bool = False,
) -> list[Condition]:
    """Return the conditions that match a filter such as `env=hopper,beta=0,beta=0.1`.

    A label that is given twice may have either value. none_is_fine: return an empty list instead of
    raising an error if none matches.
    """
    known = label_values(conditions)
    wanted: dict[str, list[str]] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise RollinError(
                f"{flag} must be name=value, or several of them separated by commas, got {part!r} "
                f"in {text!r}: the names here are {', '.join(known)}."
            )
        wanted.setdefault(name, []).append(value)
    for name, values in wanted.items():
        matches = [_match(value, known.get(name, [])) for value in values]
        if None in matches:
            if none_is_fine:
                return []
            raise _unknown(name, values[matches.index(None)], known, flag)
        wanted[name] = [match for match in matches if match is not None]
    found = [c for c in conditions if all(c.labels.get(n) in v for n, v in wanted.items())]
    if not found and not none_is_fine:
        raise RollinError(
            f"{flag} {text!r} matches none of the {len(conditions)} conditions: leave one out."
        )
    return found


def filter_names(text: str) -> set[str]:
    """The labels that a filter names."""
    return {part.partition("=")[0].strip() for part in text.split(",")}


def _match(value: str, known: Sequence[str]) -> str | None:
    """The value as a label has it: 0.10 is 0.1."""
    number = _number(value)
    same = (k for k in known if k == value or (number is not None and number == _number(k)))
    return next(same, None)


def _number(text: str) -> float | None:
    above, _, below = text.partition("/")
    try:
        return float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        return None


def _unknown(name: str, value: str, known: Mapping[str, list[str]], flag: str) -> RollinError:
    """The error for a label or value that no condition has."""
    if name not in known:
        return RollinError(
            f"{flag}: there is no label {name!r} here, only {', '.join(known)}."
            f"{did_you_mean(name, list(known))}"
        )
    values = known[name]
    return RollinError(
        f"{flag}: {name} is {', '.join(values)} here, got {value!r}.{did_you_mean(value, values)}"
    )


# ------------------------------------------------------------------ grids


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
    given = dict(options or {})
    named = dict(labels or {})
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
    shared = {name: _value(value) for name, value in given.items()}
    found = []
    for point in product(*(map(_value, values) for values in grid.values())):
        chosen = dict(zip(grid, point, strict=True))
        made = Condition(named, task, {**shared, **chosen})
        typed = flat(made.config)  # raises if an option does not take its value
        labels_here = {name: value_text(typed.get(name, chosen[name])) for name in grid}
        found.append(Condition({**named, **labels_here}, task, made.options))
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
        if name == "seed":
            raise RollinError("seed is the study's own: give the number of seeds instead.")
        if name not in known:
            raise RollinError(unknown_option(name, known, task))


def reading(text: str) -> MetricAt:
    """From `quantity` or `quantity@step`."""
    quantity, at, step = text.partition("@")
    count = step.replace("_", "").replace(",", "")
    if not quantity or (
        at and not (count.isdecimal() and len(count) <= LONGEST_STEP and int(count))
    ):
        raise RollinError(
            f"A reading must be a quantity, or quantity@step such as kappa@500000, got {text!r}."
        )
    return MetricAt(quantity, int(count) if at else None)


def usual_readings(task: str) -> list[MetricAt]:
    """The default readings: κ, and success on the final context if recorded; else the return."""
    found = engine_for(task)
    if not found.walks:
        return [MetricAt("return")]
    success = [MetricAt("success_final")] if "success_final" in found.meanings else []
    return [MetricAt("kappa"), *success]


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


# ------------------------------------------------------------------ grids of the command line


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
