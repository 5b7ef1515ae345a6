"""A sweep: the runs of studies of one family in one directory; it goes on where it stopped."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from rollin.checks import LARGEST
from rollin.errors import RollinError
from rollin.runs.directory import CONFIG, RunDirectory
from rollin.runs.engines import engine_of
from rollin.runs.files import is_occupied, make_directory, write_json
from rollin.runs.formats import Count, Labels, Name, Names, read_file
from rollin.runs.spec import RunSpec, digest
from rollin.runs.versions import versions
from rollin.sweeps.build import MOST_CONDITIONS, MOST_RUNS, check_runs
from rollin.sweeps.condition import Condition, differing
from rollin.sweeps.jobs import Job
from rollin.sweeps.plan import StudyKind, StudyPlan

SWEEP_FILE = "sweep.json"
UNSAFE = re.compile(r"[^\w=,.+-]")  # letters that a directory's name does not take everywhere
LONGEST = 120  # letters of such a name


class ConditionEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A condition in a sweep.json; key: of its runs at the sweep's scale."""

    labels: Labels
    task: Name
    options: dict[str, Any]
    key: Name


class StudyEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A study in a sweep.json, without what the paper has published of it."""

    name: Name
    conditions: Annotated[list[ConditionEntry], Meta(max_length=MOST_CONDITIONS)]
    readings: Annotated[list[tuple[Name, Count | None]], Meta(max_length=256)]
    seeds: Annotated[int, Meta(ge=1, le=MOST_RUNS)]
    rows: Names = []
    columns: Names = []
    baseline: Name = ""
    compared: Name = ""
    kind: StudyKind = "table"
    title: Name = ""


class SweepFile(msgspec.Struct, forbid_unknown_fields=True):
    """sweep.json; tables: names of the paper's, in those of older versions."""

    family: Name
    scale: Annotated[float, Meta(gt=0, le=LARGEST)]
    commands: list[str]
    runs: dict[str, str]
    versions: dict[str, str] = {}
    studies: list[StudyEntry] = []
    tables: list[str] = []


@dataclass
class Backlog:
    """The jobs of a sweep by how they stand: to be done, done, or in a directory that is broken."""

    todo: list[Job] = field(default_factory=list)
    done: list[Job] = field(default_factory=list)
    broken: list[tuple[Job, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Sweep:
    """The jobs of one study in one directory.

    Studies of one family share their runs there, if training is equally long (scale).
    """

    study: StudyPlan
    scale: float
    out: Path
    jobs: tuple[Job, ...]

    @property
    def title(self) -> str:
        """What is run where."""
        return f"{self.study.name} in {self.out}"

    def plan(self, command: str) -> Backlog:
        """Make or check the directory; returns what is to be done in it."""
        path = self.out / SWEEP_FILE
        found = SweepFile(self.study.shared, self.scale, [], {})
        if path.exists():
            found = self._check(read_sweep(path))
        elif is_occupied(self.out):
            raise RollinError(
                f"{self.out} exists and is not a sweep (no {SWEEP_FILE}): choose another --out."
            )
        else:
            make_directory(self.out)
        backlog = self._sorted()
        runs = {
            job.out.relative_to(self.out).as_posix(): job.spec.hash
            for job in (*backlog.done, *backlog.todo)
        }
        entries = {entry.name: entry for entry in found.studies}
        entries[self.study.name] = _merged(entries.get(self.study.name), self._entry())
        tables = [name for name in found.tables if name not in entries]
        write_json(
            path,
            msgspec.to_builtins(
                SweepFile(
                    self.study.shared,
                    self.scale,
                    list(dict.fromkeys([*found.commands, command])),
                    {**found.runs, **runs},
                    versions(),
                    list(entries.values()),
                    tables,
                )
            ),
        )
        return backlog

    def _entry(self) -> StudyEntry:
        study = self.study
        return StudyEntry(
            study.name,
            [
                ConditionEntry(
                    dict(c.labels), c.task, {**c.options, "steps": c.steps}, c.key(self.scale)
                )
                for c in study.conditions
            ],
            [(reading.quantity, reading.step) for reading in study.readings],
            study.seeds,
            list(study.rows),
            list(study.columns),
            study.baseline,
            study.compared,
            study.kind,
            study.title,
        )

    def _check(self, found: SweepFile) -> SweepFile:
        """Refuse the directory of another sweep."""
        if found.family != self.study.shared:
            names = [entry.name for entry in found.studies] or found.tables
            raise RollinError(
                f"{self.out} holds the sweep of another study ({', '.join(names)}), not of "
                f"{self.study.name}: choose another --out."
            )
        if found.scale != self.scale:
            raise RollinError(
                f"{self.out} holds runs at {found.scale:g} of their full length, not "
                f"{self.scale:g}: give the same --scale or --steps to go on, or another --out."
            )
        return found

    def _sorted(self) -> Backlog:
        backlog = Backlog()
        fingerprints = Fingerprints()
        for job in self.jobs:
            run = RunDirectory(job.out)
            try:
                if not run.exists:
                    backlog.todo.append(job)
                    continue
                task = fingerprints.of(job.spec) if run.finished else None
                RunDirectory.claim(job.out, job.spec, task, "")
                if run.finished:
                    run.result()
                done = run.finished if job.until is None else run.has_reached(job.until)
            except RollinError as error:
                backlog.broken.append((job, str(error)))
                continue
            (backlog.done if done else backlog.todo).append(job)
        return backlog


def _merged(old: StudyEntry | None, new: StudyEntry) -> StudyEntry:
    """A study as it was run so far: with the conditions of earlier commands before the new ones."""
    if old is None:
        return new
    labels = {frozenset(entry.labels.items()) for entry in new.conditions}
    kept = [c for c in old.conditions if frozenset(c.labels.items()) not in labels]
    return msgspec.structs.replace(new, conditions=[*kept, *new.conditions])


class Fingerprints:
    """Fingerprints of specs; that of a task which many runs share is made once."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], str | None] = {}

    def of(self, spec: RunSpec[Any]) -> str | None:
        """The fingerprint of a spec's task; None of one that has none."""
        engine = engine_of(spec)
        key = (engine.name, spec.task, engine.fingerprint_key(spec.config))
        if key not in self._found:
            self._found[key] = engine.fingerprint(spec)
        return self._found[key]


def jobs_of(
    study: StudyPlan,
    out: Path,
    seeds: int,
    scale: float,
    until: int | None = None,
    **changes: Any,
) -> list[Job]:
    """All runs of a study; seeds outermost, so that every condition fills evenly.

    A job is called by the labels in which the conditions differ. until: a step at which all runs
    stop for now; changes: options of all runs that do not make another condition, such as learner.
    """
    check_runs(len(study.conditions), seeds)
    varying = differing(study.conditions)
    places = directory_names(study.conditions)
    found = []
    for number in range(seeds):
        for condition in study.conditions:
            if number >= len(condition.seeds(seeds)):
                continue
            seed = condition.seeds(seeds)[number]
            names = [f"{n}={condition.labels[n]}" for n in varying if n in condition.labels]
            found.append(
                Job(
                    " ".join([*names, f"seed={seed}"]),
                    condition.spec(seed, scale, **changes),
                    out / places[condition] / f"seed={seed}",
                    condition.membership(study.shared, scale),
                    until,
                )
            )
    return found


def directory_name(condition: Condition) -> str:
    """A condition's name as one of a directory."""
    name = condition.name or condition.task
    safe = UNSAFE.sub("-", name).strip(".") or "run"
    if len(safe) > LONGEST:
        safe = f"{safe[:LONGEST]}-{digest(name)}"
    return safe


def directory_names(conditions: Sequence[Condition]) -> dict[Condition, str]:
    """Directories of conditions; where two names come to the same, all but the first get a hash."""
    found: dict[Condition, str] = {}
    taken: set[str] = set()
    for condition in conditions:
        place = directory_name(condition)
        if place.casefold() in taken:  # some file systems take a and A for one
            place = f"{place[:LONGEST]}-{digest(condition.name)}"
        taken.add(place.casefold())
        found[condition] = place
    return found


def read_sweep(path: Path) -> SweepFile:
    """A sweep.json, of this version or an older one."""
    return read_file(path, SweepFile)


def find_runs(directory: Path) -> list[RunDirectory]:
    """All run directories at or below a directory, in order of their names."""
    if not directory.is_dir():
        raise RollinError(f"{directory} is not a directory.")
    return [RunDirectory(path.parent) for path in sorted(directory.rglob(CONFIG))]
