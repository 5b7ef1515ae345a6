"""Directories and CSVs → records, and what is known of the sweeps that they belong to."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.formats import ConfigFile
from rollin.runs.records import MOST_STEPS, RUNS, Record, condition_text, read_records
from rollin.sweeps.study import Study
from rollin.sweeps.study_file import studies_in
from rollin.sweeps.sweep import SWEEP_FILE, find_runs, read_sweep

ReadRecord = Callable[[RunDirectory, Sequence[int]], Record]
"""A run as its directory has it, with rows of its curve at some steps."""


@dataclass(frozen=True)
class SweepRecord:
    """A sweep's own description: its studies, and which of its runs are not there or not done."""

    path: Path
    studies: tuple[str, ...]
    planned: int
    missing: tuple[str, ...]


@dataclass
class Collection:
    """Runs found, what was passed over with the reason, and where the runs come from.

    broken: those of what was passed over that could not be read; notes: what else is to be known;
    studies: those that the sweeps were made for, as far as they are not of the paper.
    """

    records: list[Record] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    versions: list[dict[str, str]] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    sweeps: list[SweepRecord] = field(default_factory=list)
    studies: list[Study] = field(default_factory=list)
    sources: dict[str, list[tuple[str, Path]]] = field(default_factory=dict)
    """By the hash of a spec: the tasks' fingerprints, and where those runs were found."""

    def add(self, record: Record, path: Path) -> None:
        """Take a run, unless the very same one was found before.

        What was given in Python has no part in a spec's hash, but in the fingerprint; a run of
        which that is not known is the same as any.
        """
        task = record.fingerprint
        known = self.sources.setdefault(record.spec_hash, [])
        same = [where for other, where in known if other == task or not (other and task)]
        if not same:
            known.append((task, path))
            self.records.append(record)
        elif same[0] != path:
            self.skipped.append(f"{path}: the same run as {same[0]}")

    def was_read(self, path: Path) -> bool:
        """Whether runs came from that very file."""
        found = (where for known in self.sources.values() for _, where in known)
        return any(where.resolve() == path.resolve() for where in found)

    def pass_over_broken(self, note: str) -> None:
        """Remember what could not be read."""
        self.skipped.append(note)
        self.broken.append(note)

    def note_origin(self, commands: Iterable[str], versions: dict[str, str]) -> None:
        """Take commands and versions of a config.json or sweep.json."""
        for command in commands:
            if command and command not in self.commands:
                self.commands.append(command)
        if versions and versions not in self.versions:
            self.versions.append(versions)


def collect(
    directories: Sequence[Path], studies: Sequence[Study] = (), *, unfinished: bool = False
) -> Collection:
    """All runs below some directories; broken ones are named, and so are unfinished ones.

    studies: whose readings tell the steps at which runs are read; unfinished: take these, too, as
    far as they have come.
    """
    found = gather(directories, studies, unfinished=unfinished)
    if not found.records:
        names = ", ".join(str(d) for d in directories)
        reasons = f" Skipped {'; '.join(found.skipped[:2])}." if found.skipped else ""
        what = "run" if unfinished else "finished run"
        raise RollinError(
            f"No {what} below {names}: give a directory that rollin train, demo, sweep or "
            f"reproduce has written.{reasons}"
        )
    return found


def gather(
    directories: Sequence[Path],
    studies: Sequence[Study] = (),
    *,
    unfinished: bool = False,
    read: ReadRecord = read_record,
) -> Collection:
    """The same, where there may be no runs yet; read: how a run is read."""
    found = Collection()
    for directory in directories:
        runs = find_runs(directory)
        _read_sweeps(found, directory, {study.name for study in studies})
        if not runs and (directory / RUNS).is_file():
            _take_csv(found, directory, unfinished=unfinished)
        steps = _reading_steps([*studies, *found.studies])
        for run in runs:
            _take(found, run, steps, read, unfinished=unfinished)
    return found


def _reading_steps(studies: Sequence[Study]) -> dict[str, set[tuple[int, int]]]:
    """By task: steps at which a study reads, and the length of its runs."""
    found: dict[str, set[tuple[int, int]]] = {}
    for study in studies:
        for condition in study.conditions:
            read = {*study.readings, *condition.published}
            with suppress(RollinError):  # a task that is not known here, whose length is not told
                wanted = {(r.step, condition.steps) for r in read if r.step is not None}
                found.setdefault(condition.task, set()).update(wanted)
    return found


def _take_csv(found: Collection, directory: Path, *, unfinished: bool) -> None:
    try:
        for record in read_records(directory):
            if record.finished or unfinished:
                found.add(record, directory / RUNS)
            else:
                name = condition_text(record.labels) or record.task
                found.skipped.append(
                    f"{directory / RUNS}: {name}, seed {record.seed} is not finished"
                )
    except RollinError as error:
        found.pass_over_broken(str(error).rstrip("."))


def _take(
    found: Collection,
    run: RunDirectory,
    steps: dict[str, set[tuple[int, int]]],
    read: ReadRecord,
    *,
    unfinished: bool,
) -> None:
    try:
        if not run.finished and not unfinished:
            found.skipped.append(f"{run.path}: not finished")
            return
        described = run.config
        found.add(read(run, _steps_of(described, steps)), run.path)
        found.note_origin([described.command], described.versions)
    except RollinError as error:
        told = str(error)
        found.pass_over_broken(told if told.startswith(str(run.path)) else f"{run.path}: {told}")
        return
    host = run.host()
    if host and host not in found.hosts:
        found.hosts.append(host)


def _steps_of(described: ConfigFile, steps: dict[str, set[tuple[int, int]]]) -> list[int]:
    """Steps at which a run is read: those of its task's studies, at its own scale."""
    own = described.config.get("steps")
    length = own if isinstance(own, int) and 0 < own <= MOST_STEPS else 1
    found: set[int] = set()
    for step, whole in steps.get(described.task, ()):
        found |= {round(step * scale) for scale in (1.0, described.scale, length / whole)}
    return sorted(found)


def _read_sweeps(found: Collection, directory: Path, known: set[str]) -> None:
    for path in sorted(directory.rglob(SWEEP_FILE)):
        try:
            described = read_sweep(path)
            studies = studies_in(described, path)
        except RollinError as error:
            found.pass_over_broken(str(error))
            continue
        names = [s.name if s.name in known else _take_study(found, s) for s in studies]
        runs = {name: RunDirectory(path.parent / name) for name in described.runs}
        missing = tuple(n for n, run in runs.items() if not (run.exists and run.finished))
        for run in runs.values():
            if os.path.isdir(run.path) and not run.exists:
                found.pass_over_broken(f"{run.path}: planned by the sweep, but has no config.json")
        told = tuple(names) or tuple(described.tables)
        found.sweeps.append(SweepRecord(path.parent, told, len(runs), missing))
        found.note_origin(described.commands, described.versions)


def _take_study(found: Collection, study: Study) -> str:
    """Take the study of a sweep; returns the name that it goes by here.

    Sweeps of one study in several directories are one; others of its name get a number, so that
    each has its own place on a page.
    """
    name, number = study.name, 1
    while same := [other for other in found.studies if other.name == name]:
        together = _united(same[0], study)
        if together is not None:
            found.studies[found.studies.index(same[0])] = together
            return name
        number += 1
        name = f"{study.name}-{number}"
    found.studies.append(replace(study, name=name))
    return name


def _united(one: Study, other: Study) -> Study | None:
    """A study with the conditions of both; None if they call different ones by the same name."""
    keys = {condition.name: condition.key() for condition in one.conditions}
    if any(keys.get(c.name, c.key()) != c.key() for c in other.conditions):
        return None
    more = [c for c in other.conditions if c.name not in keys]
    seeds = max(one.seeds, other.seeds)
    return replace(one, conditions=(*one.conditions, *more), seeds=seeds)
