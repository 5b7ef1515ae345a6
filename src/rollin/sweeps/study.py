"""A study: conditions with seeds and readings, how they are compared, and its runs."""

import multiprocessing
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec

from rollin.checks import at_least, did_you_mean, shown
from rollin.errors import RollinError, short_repr
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.files import MOST, Labels, Name, Names, converted
from rollin.runs.records import MetricAt, Record
from rollin.runs.spec import RETRIES, Job, OnJobEvent, digest
from rollin.sweeps.condition import (
    LONGEST,
    Condition,
    block,
    check_conditions,
    check_runs,
    differing,
    filter_names,
    points,
    reading,
    select,
    usual_readings,
)
from rollin.sweeps.sweep import ConditionEntry, StudyEntry, StudyKind, Sweep, SweepFile
from rollin.untrusted import (
    DEEPEST,
    LARGEST_STATUS,
    ExcessError,
    check_bounds,
    name_code,
    read_bounded,
    too_deep,
    too_long,
)

METHOD = ("method", "beta")  # labels that belong together: what is compared
KAPPA = MetricAt("kappa")
RECORDED = ("name", "seeds", "baseline", "compared", "kind", "title")
"""What a sweep.json has as it is here."""

Length = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
"""Steps of a run."""


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Conditions, each run with several seeds, and the readings that are compared.

    `grid` makes one of a grid of options. rows, columns: labels of its table (default: the last
    label is the column). baseline: a filter such as beta=0, which the others are compared with.
    compared: a filter for these others (default: all). family: studies of one family share runs.
    kind: a table, only curves, a picture without runs, or a comparison of two conditions, whose
    report says whether the first helps. printed: its name in the paper.

    >>> import rollin
    >>> study = rollin.Study.grid("mine", "point-umaze", beta=[0, 0.1], delta=["1/12", "1/24"])
    >>> [condition.name for condition in study.conditions][:2]
    ['beta=0,delta=1/12', 'beta=0,delta=1/24']
    """

    name: str
    conditions: tuple[Condition, ...]
    readings: tuple[MetricAt, ...] = (KAPPA,)
    seeds: int = 10
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    baseline: str = ""
    compared: str = ""
    family: str = ""
    kind: StudyKind = "table"
    title: str = ""
    printed: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise RollinError(f"A study's name must be a text, got {shown(self.name)}.")
        made = isinstance(self.conditions, Sequence)
        if not made or not all(isinstance(condition, Condition) for condition in self.conditions):
            raise RollinError(
                f"The study {self.name} needs a sequence of conditions, got "
                f"{shown(self.conditions)}: rollin.Study.grid(name, task, beta=[0, 0.1]) makes "
                "them from a grid of options."
            )

    def __repr__(self) -> str:
        return short_repr(self, name=self.name, conditions=len(self.conditions), seeds=self.seeds)

    @classmethod
    def grid(
        cls,
        name: str,
        task: str,
        options: Mapping[str, Any] | None = None,
        *,
        seeds: int = 10,
        baseline: str = "",
        readings: Sequence[str] = ("kappa",),
        **grid: Sequence[Any],
    ) -> "Study":
        """Return a study with a condition for each point of a grid of options.

        options: of all conditions; baseline: a filter such as beta=0 for what the others are
        compared with; readings: quantities, or quantity@step.
        """
        made = block(task, grid, options or {})
        read = tuple(map(reading, readings))
        return checked_study(name, made, read, seeds=seeds, baseline=baseline)

    @property
    def shared(self) -> str:
        """Its family; its own name if it has none."""
        return self.family or self.name

    @property
    def heading(self) -> str:
        """Its title; its name if it has none."""
        return self.title or self.name

    @property
    def steps(self) -> int:
        """Steps of its longest run, at full length."""
        return max((condition.steps for condition in self.conditions), default=0)

    # ------------------------------------------------------------------ layout and comparison

    @property
    def across(self) -> tuple[str, ...]:
        """Labels of the columns of its table, and of the lines of a chart."""
        if self.columns:
            return self.columns
        varying = [n for n in differing(self.conditions) if n not in self.rows]
        if varying and varying[-1] in METHOD:
            return tuple(name for name in METHOD if name in varying)
        return tuple(varying[-1:])

    @property
    def down(self) -> tuple[str, ...]:
        """Labels of the rows of its table."""
        return self.rows or tuple(n for n in differing(self.conditions) if n not in self.across)

    def only(self, chosen: Sequence[Condition]) -> Self:
        """The same study with some of its conditions."""
        return replace(self, conditions=tuple(chosen))

    def partner(self, condition: Condition) -> Condition | None:
        """What a condition is compared with: the baseline that shares all labels not compared."""
        return self._partners.get(id(condition))

    def is_baseline(self, condition: Condition) -> bool:
        """Whether others are compared with it."""
        return any(base is condition for base in self._partners.values())

    @cached_property
    def _partners(self) -> dict[int, Condition]:
        if not self.baseline:
            return {}
        apart = filter_names(self.baseline)
        if apart & set(METHOD):
            apart |= set(METHOD)

        def rest(condition: Condition) -> frozenset[tuple[str, str]]:
            return frozenset(label for label in condition.labels.items() if label[0] not in apart)

        bases: dict[frozenset[tuple[str, str]], list[Condition]] = {}
        for base in select(self.conditions, self.baseline, none_is_fine=True):
            bases.setdefault(rest(base), []).append(base)
        chosen: Sequence[Condition] = self.conditions
        if self.compared:
            chosen = select(self.conditions, self.compared, none_is_fine=True)
        found: dict[int, Condition] = {}
        for one in chosen:
            same = bases.get(rest(one), [])
            if len(same) == 1 and same[0] is not one:
                found[id(one)] = same[0]
        return found

    # ------------------------------------------------------------------ runs

    def run(
        self,
        out: str | Path,
        *,
        seeds: int | None = None,
        scale: float = 1.0,
        jobs: int | None = None,
        retries: int = RETRIES,
        on_event: OnJobEvent = lambda event: None,
        **where: Any,
    ) -> list[Record]:
        """Run it in a directory, or resume it there; return the records of its runs.

        seeds: default: the study's own; scale: factor of all lengths; jobs: runs at the same time
        (default: all cores); on_event: receives the news of every run; where: backend="ray" and its
        options.
        """
        from rollin.sweeps.local import executor  # loads what starts processes
        from rollin.sweeps.queue import run_jobs

        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise RollinError(
                "A study is run while a worker process imports this script: put the call behind "
                'if __name__ == "__main__":, as every script that starts processes needs it.'
            )
        out = Path(out)
        sweep = self.sweep(out, at_least(1, "seeds", self.seeds if seeds is None else seeds), scale)
        place = executor(out, "Study.run", jobs, **where)()
        backlog = sweep.plan(f"rollin.Study({self.name!r}, …).run({str(out)!r})")
        failed = run_jobs(backlog.todo, place, retries=retries, on_event=on_event)
        problems = [(job, RunDirectory(job.out).status().get("error")) for job in failed]
        problems += backlog.broken
        if problems:
            first, why = problems[0]
            raise RollinError(
                f"{len(problems)} of {len(sweep.jobs)} runs could not be done, the first being "
                f"{first.name}: {why} The same call tries again."
            )
        at = [round(r.step * scale) for r in self.readings if r.step is not None]
        return [read_record(RunDirectory(job.out), at) for job in sweep.jobs]

    def sweep(
        self, out: Path, seeds: int, scale: float = 1.0, until: int | None = None, **changes: Any
    ) -> Sweep:
        """Its runs in a directory; see `jobs`."""
        jobs = self.jobs(out, seeds, scale, until, **changes)
        return Sweep(self.entry(scale), self.shared, scale, out, tuple(jobs))

    def jobs(
        self, out: Path, seeds: int, scale: float = 1.0, until: int | None = None, **changes: Any
    ) -> list[Job]:
        """All its runs; seeds outermost, so that every condition fills evenly.

        A job is named by the labels in which the conditions differ. until: a step at which all runs
        stop for now; changes: options of all runs that leave the condition as it is, such as
        learner.
        """
        check_runs(len(self.conditions), seeds)
        varying = differing(self.conditions)
        places = directories(self.conditions)
        found = []
        for number in range(seeds):
            for condition, place in zip(self.conditions, places, strict=True):
                if number >= len(condition.seeds(seeds)):
                    continue
                seed = condition.seeds(seeds)[number]
                names = [f"{n}={condition.labels[n]}" for n in varying if n in condition.labels]
                found.append(
                    Job(
                        " ".join([*names, f"seed={seed}"]),
                        condition.spec(seed, scale, **changes),
                        out / place / f"seed={seed}",
                        condition.membership(self.shared, scale),
                        until,
                    )
                )
        return found

    def entry(self, scale: float = 1.0) -> StudyEntry:
        """What a sweep.json records of it."""
        conditions = [
            ConditionEntry(dict(c.labels), c.task, {**c.options, "steps": c.steps}, c.key(scale))
            for c in self.conditions
        ]
        return StudyEntry(
            conditions=conditions,
            readings=list(self.readings),
            rows=list(self.rows),
            columns=list(self.columns),
            **{name: getattr(self, name) for name in RECORDED},
        )


def studies_in(found: SweepFile, path: Path) -> list[Study]:
    """The studies that a sweep.json describes."""
    for entry in found.studies:
        for condition in entry.conditions:
            converted(condition.options.get("steps", 1), Length, path)
    return [
        Study(
            conditions=tuple(
                Condition(c.labels, c.task, c.options, known_key=c.key) for c in entry.conditions
            ),
            readings=tuple(MetricAt(*reading) for reading in entry.readings),
            rows=tuple(entry.rows),
            columns=tuple(entry.columns),
            family=found.family,
            **{name: getattr(entry, name) for name in RECORDED},
        )
        for entry in found.studies
    ]


def directories(conditions: Sequence[Condition]) -> list[str]:
    """Names of the conditions' directories; of two equal ones, the second gets a hash."""
    found: list[str] = []
    taken: set[str] = set()
    for condition in conditions:
        place = condition.directory
        if place.casefold() in taken:  # some file systems take a and A for one
            place = f"{place[:LONGEST]}-{digest(condition.name)}"
        taken.add(place.casefold())
        found.append(place)
    return found


def checked_study(
    name: str,
    conditions: Sequence[Condition],
    readings: Sequence[MetricAt] = (KAPPA,),
    *,
    seeds: int = 10,
    baseline: str = "",
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    title: str = "",
) -> Study:
    """Return a study of some conditions; raise RollinError if it cannot be run or read."""
    if not name or Path(name).name != name or name.startswith("."):
        raise RollinError(f"A study's name must be a plain word, got {name!r}.")
    if not conditions:
        raise RollinError(f"The study {name} has no conditions: give it a grid, or a block.")
    check_conditions(len(conditions))
    check_runs(len(conditions), at_least(1, "seeds", seeds))
    _check_distinct(name, conditions)
    if baseline:
        select(conditions, baseline, "baseline")
    known = {label for condition in conditions for label in condition.labels}
    for label in (*rows, *columns):
        if label not in known:
            raise RollinError(
                f"The study {name} has no label {label!r}.{did_you_mean(label, sorted(known))}"
            )
    layout = {"rows": tuple(rows), "columns": tuple(columns), "baseline": baseline, "title": title}
    return Study(name, tuple(conditions), tuple(readings), seeds, **layout)


def _check_distinct(name: str, conditions: Sequence[Condition]) -> None:
    """Reject duplicate names and identical conditions."""
    keys: dict[str, Condition] = {}
    names: set[str] = set()
    for condition in conditions:
        for label in (*condition.labels, *condition.labels.values()):
            if not label or set(label) & set(",="):  # which stand between labels
                raise RollinError(
                    f"Labels of {name} must be words without commas or =, got {label!r}."
                )
        if condition.name in names:
            raise RollinError(
                f"Two conditions of {name} are called {condition.name or 'nothing'}: give them "
                "other labels."
            )
        names.add(condition.name)
        # runs that differ only in their length are conditions of their own here
        key = f"{condition.key()}, {condition.steps} steps"
        if key in keys:
            raise RollinError(
                f"{condition.name} and {keys[key].name} of {name} are the same runs: leave one out."
            )
        keys[key] = condition


# ------------------------------------------------------------------ TOML files


_NO_KEY = re.compile(r"[=,\[\]{}\n]")  # no dotted key goes beyond one of these
Seed = Annotated[int, msgspec.Meta(ge=0, le=MOST)]


class BlockFile(msgspec.Struct, forbid_unknown_fields=True):
    """A block of a study file."""

    task: Name | None = None
    labels: Labels = {}
    options: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}


class StudyFile(msgspec.Struct, forbid_unknown_fields=True):
    """A study as a TOML file.

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
    """Return the study of a TOML file; trust: whether code that it names as a task may be run."""
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
    """Return the values of a TOML text; raise ExcessError if they are beyond bounds."""
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
    """The conditions of a block, with the options and grid of the whole file."""
    task = part.task or whole.task
    if task is None:
        raise RollinError('a block needs a task: task = "point-umaze".')
    options = {**whole.options, **part.options}
    grid = {**whole.grid, **part.grid}
    made = block(task, grid, options, part.labels)
    return [replace(condition, first_seed=whole.first_seed) for condition in made]


def _check_names(raw: Any, kind: type[msgspec.Struct], path: Path) -> None:
    """Refuse an unknown key, with the nearest known one."""
    known = kind.__struct_fields__
    for name in raw if isinstance(raw, dict) else ():
        if name not in known:
            raise RollinError(
                f"{path} has an unknown entry {name!r}: expected {', '.join(known)}."
                f"{did_you_mean(name, known)}"
            )
