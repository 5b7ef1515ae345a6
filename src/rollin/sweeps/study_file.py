"""Studies from files: a TOML file of the user's, and the sweep.json that a sweep left.

```toml
name = "mine"
task = "point-umaze"          # of all blocks that name no other
seeds = 10
first_seed = 0                # of every condition
baseline = "beta=0"
readings = ["kappa", "return_final"]

[options]                     # of all blocks
steps = 20_000

[[block]]
labels = { size = "fine" }    # the grid's come on top
options = { delta = "1/24" }
grid = { beta = [0, 0.1] }
```
"""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.imports import name_code
from rollin.regular import LARGEST_STATUS, read_bounded
from rollin.runs.formats import MOST, Labels, Name, Names, converted
from rollin.runs.records import Reading
from rollin.sweeps.build import block, check_conditions, points, reading, usual_readings
from rollin.sweeps.condition import Condition
from rollin.sweeps.study import Study, checked_study
from rollin.sweeps.sweep import SweepFile
from rollin.values import DEEPEST, ExcessError, check_bounds, too_deep, too_long

_NO_KEY = re.compile(r"[=,\[\]{}\n]")  # no dotted key goes beyond one of these
Length = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
"""Steps of a run."""
Seed = Annotated[int, msgspec.Meta(ge=0, le=MOST)]


class BlockFile(msgspec.Struct, forbid_unknown_fields=True):
    """A block of a study file."""

    task: Name | None = None
    labels: Labels = {}
    options: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}


class StudyFile(msgspec.Struct, forbid_unknown_fields=True):
    """A study as a TOML file."""

    name: Name | None = None
    title: Name = ""
    task: Name | None = None
    seeds: int = 10
    first_seed: Seed = 0
    baseline: Name = ""
    readings: Names = []
    rows: Names = []
    columns: Names = []
    options: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    block: list[BlockFile] = []


def study_from(path: Path, *, trust: bool = False) -> Study:
    """The study of a TOML file; trust: whether code that it names as a task may be run."""
    try:
        raw = _parsed(read_bounded(path, LARGEST_STATUS, follow=True).decode())
    except ExcessError as error:
        raise RollinError(f"{path} cannot be read: {error}. Shorten it.") from error
    except ValueError as error:
        raise RollinError(f"{path} is not valid TOML: {error}.") from error
    _check_names(raw, StudyFile, path)
    blocks = raw.get("block")
    for part in blocks if isinstance(blocks, list) else ():
        _check_names(part, BlockFile, path)
    found: StudyFile = converted(raw, StudyFile, path)
    for part in (found, *found.block) if trust else ():
        name_code(part.task or "")
    try:
        blocks = found.block or [BlockFile()]
        check_conditions(sum(points({**found.grid, **part.grid}) for part in blocks))
        conditions = [condition for part in blocks for condition in _made(found, part)]
        return checked_study(
            found.name or path.stem,
            conditions,
            [reading(text) for text in found.readings] or usual_readings(conditions[0].task),
            seeds=found.seeds,
            baseline=found.baseline,
            rows=found.rows,
            columns=found.columns,
            title=found.title,
        )
    except RollinError as error:
        raise RollinError(f"{path}: {error}") from error


def _parsed(text: str) -> dict[str, Any]:
    """The values of a TOML text; ExcessError if they are beyond bounds."""
    # for a dotted key the parser takes the square of its length
    if any(part.count(".") > DEEPEST for part in _NO_KEY.split(text)):
        raise too_deep()
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise too_deep() from error
    except ValueError as error:  # Python reads no number of thousands of digits
        raise too_long() from error
    check_bounds(raw)
    return raw


def _made(whole: StudyFile, part: BlockFile) -> list[Condition]:
    """The conditions of a block, with what the file has for all."""
    task = part.task or whole.task
    if task is None:
        raise RollinError('a block needs a task: task = "point-umaze".')
    options, grid = {**whole.options, **part.options}, {**whole.grid, **part.grid}
    made = block(task, grid, options, part.labels)
    return [replace(condition, first_seed=whole.first_seed) for condition in made]


def _check_names(raw: Any, kind: type[msgspec.Struct], path: Path) -> None:
    """Refuse a key that is not known, with the nearest that is."""
    known = kind.__struct_fields__
    for name in raw if isinstance(raw, dict) else ():
        if name not in known:
            raise RollinError(
                f"{path} has an unknown entry {name!r}: expected {', '.join(known)}."
                f"{did_you_mean(name, known)}"
            )


# ------------------------------------------------------------------ sweep.json


def studies_in(found: SweepFile, path: Path) -> list[Study]:
    """The studies that a sweep.json describes."""
    for entry in found.studies:
        for condition in entry.conditions:
            converted(condition.options.get("steps", 1), Length, path)
    return [
        Study(
            entry.name,
            tuple(
                Condition(c.labels, c.task, c.options, known_key=c.key) for c in entry.conditions
            ),
            tuple(Reading(*reading) for reading in entry.readings),
            entry.seeds,
            tuple(entry.rows),
            tuple(entry.columns),
            entry.baseline,
            entry.compared,
            found.family,
            entry.kind,
            entry.title,
        )
        for entry in found.studies
    ]
