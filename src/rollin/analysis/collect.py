"""Records of the runs in directories and CSV files, and the sweeps that they belong to."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.files import ConfigFile
from rollin.runs.records import MOST_STEPS, RUNS, Record, condition_text, read_records
from rollin.sweeps.study import Study, studies_in
from rollin.sweeps.sweep import SWEEP_FILE, find_runs, read_sweep

ReadRecord = Callable[[RunDirectory, Sequence[int]], Record]
"""Reads the record of a run, with rows of its curve at some steps."""


@dataclass(frozen=True)
class SweepRecord:
    """A sweep: its studies, how many runs it planned, and those missing or not finished."""

    path: Path
    studies: tuple[str, ...]
    planned: int
    missing: tuple[str, ...]


@dataclass
class Collection:
    """Runs, what was skipped and why, and where the runs come from.

    broken: what was skipped because it could not be read; notes: anything else to report; studies:
    those of the sweeps that are not of the paper; sources: tasks' fingerprints and places of runs,
    by the hash of their spec.
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

    def add(self, record: Record, path: Path) -> None:
        """Add a run, unless the same one was found before.

        What was given in Python is not part of a spec's hash, but of the fingerprint; a run without
        a fingerprint equals any of its spec.
        """
        task = record.fingerprint
        known = self.sources.setdefault(record.spec_hash, [])
        same = [place for other, place in known if other == task or not (other and task)]
        if not same:
            known.append((task, path))
            self.records.append(record)
        elif same[0] != path:
            self.skipped.append(f"{path}: the same run as {same[0]}")

    def was_read(self, path: Path) -> bool:
        """Whether runs came from this file."""
        places = (place for known in self.sources.values() for _, place in known)
        return any(place.resolve() == path.resolve() for place in places)

    def pass_over_broken(self, note: str) -> None:
        """Note what could not be read."""
        self.skipped.append(note)
        self.broken.append(note)

    def note_origin(self, commands: Iterable[str], versions: dict[str, str]) -> None:
        """Add commands and versions of a config.json or sweep.json."""
        for command in commands:
            if command and command not in self.commands:
                self.commands.append(command)
        if versions and versions not in self.versions:
            self.versions.append(versions)


def collect(
    directories: Sequence[Path], studies: Sequence[Study] = (), *, unfinished: bool = False
) -> Collection:
    """All runs below some directories; those skipped are noted. Raise if there is none.

    studies: runs are read at the steps of their readings; unfinished: include unfinished runs.
    """
    found = gather(directories, studies, unfinished=unfinished)
    if not found.records:
        names = ", ".join(str(d) for d in directories)
        reasons = f" Skipped {'; '.join(found.skipped[:2])}." if found.skipped else ""
        what = "run" if unfinished else "finished run"
        raise RollinError(
            f"No {what} below {names}: give a directory that rollin train, demo, sweep, "
            f"compare or reproduce has written.{reasons}"
        )
    return found


def gather(
    directories: Sequence[Path],
    studies: Sequence[Study] = (),
    *,
    unfinished: bool = False,
    read: ReadRecord = read_record,
) -> Collection:
    """The same, where there may be no runs yet; read: reads a run."""
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
            with suppress(RollinError):  # an unknown task, whose length is unknown too
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
        text = str(error)
        found.pass_over_broken(text if text.startswith(str(run.path)) else f"{run.path}: {text}")
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
        of = tuple(names) or tuple(described.tables)
        found.sweeps.append(SweepRecord(path.parent, of, len(runs), missing))
        found.note_origin(described.commands, described.versions)


def _take_study(found: Collection, study: Study) -> str:
    """Add the study of a sweep; return its name here.

    Sweeps of one study in several directories are one; another study of its name gets a number, so
    that each has its own place on a page.
    """
    name = study.name
    number = 1
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
    """A study with the conditions of both; None if a name means different conditions in them."""
    keys = {condition.name: condition.key() for condition in one.conditions}
    if any(keys.get(c.name, c.key()) != c.key() for c in other.conditions):
        return None
    more = [c for c in other.conditions if c.name not in keys]
    seeds = max(one.seeds, other.seeds)
    return replace(one, conditions=(*one.conditions, *more), seeds=seeds)
