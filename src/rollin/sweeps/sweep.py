"""A sweep: the runs of studies of one family in one directory, which it resumes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from rollin.checks import LARGEST
from rollin.errors import RollinError
from rollin.runs.directory import CONFIG, RunDirectory
from rollin.runs.engines import engine_of
from rollin.runs.files import (
    Count,
    Labels,
    Name,
    Names,
    is_occupied,
    make_directory,
    read_file,
    write_json,
)
from rollin.runs.spec import Job, RunSpec
from rollin.runs.systems import versions
from rollin.sweeps.condition import MOST_CONDITIONS, MOST_RUNS

SWEEP_FILE = "sweep.json"

StudyKind = Literal["table", "curves", "picture", "comparison"]


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
    """The jobs of a sweep: to be done, done, or in a broken directory with the reason."""

    todo: list[Job] = field(default_factory=list)
    done: list[Job] = field(default_factory=list)
    broken: list[tuple[Job, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Sweep:
    """The jobs of one study in one directory.

    Studies of one family share their runs there, if training is equally long (scale).
    """

    study: StudyEntry
    family: str
    scale: float
    out: Path
    jobs: tuple[Job, ...]

    @property
    def title(self) -> str:
        """What is run where."""
        return f"{self.study.name} in {self.out}"

    def plan(self, command: str) -> Backlog:
        """Make or check the directory; return the jobs by what is to be done."""
        path = self.out / SWEEP_FILE
        found = SweepFile(self.family, self.scale, [], {})
        if path.exists():
            found = read_sweep(path)
            self._check(found)
        elif is_occupied(self.out):
            raise RollinError(
                f"{self.out} exists and is not a sweep (no {SWEEP_FILE}): choose another --out."
            )
        else:
            make_directory(self.out)
        backlog = self._sorted()
        for job in (*backlog.done, *backlog.todo):
            found.runs[job.out.relative_to(self.out).as_posix()] = job.spec.hash
        entries = {entry.name: entry for entry in found.studies}
        entries[self.study.name] = _merged(entries.get(self.study.name), self.study)
        found.commands = list(dict.fromkeys([*found.commands, command]))
        found.versions = versions()
        found.studies = list(entries.values())
        found.tables = [name for name in found.tables if name not in entries]
        write_json(path, msgspec.to_builtins(found))
        return backlog

    def _check(self, found: SweepFile) -> None:
        """Refuse the directory of another sweep."""
        if found.family != self.family:
            names = [entry.name for entry in found.studies] or found.tables
            raise RollinError(
                f"{self.out} holds the sweep of another study ({', '.join(names)}), not of "
                f"{self.study.name}: choose another --out."
            )
        if found.scale != self.scale:
            raise RollinError(
                f"{self.out} holds runs at {found.scale:g} of their full length, not "
                f"{self.scale:g}: give the same --scale or --steps to resume, or another --out."
            )

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
    """A study as it was run so far: conditions of earlier commands, then the new ones."""
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


def read_sweep(path: Path) -> SweepFile:
    """A sweep.json, of this version or an older one."""
    return read_file(path, SweepFile)


def find_runs(directory: Path) -> list[RunDirectory]:
    """All run directories at or below a directory, in order of their names."""
    if not directory.is_dir():
        raise RollinError(f"{directory} is not a directory.")
    return [RunDirectory(path.parent) for path in sorted(directory.rglob(CONFIG))]
