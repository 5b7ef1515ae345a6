"""Finds finished runs below directories, and what is known of the sweeps that they belong to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.report.reading import read_record
from rollin.report.records import RunRecord
from rollin.report.runs_csv import RUNS_FILE, read_runs_csv
from rollin.runs.directory import RunDirectory
from rollin.runs.files import read_json
from rollin.sweeps.sweep import find_runs


@dataclass(frozen=True)
class SweepRecord:
    """A sweep's own description: its tables, and which of its runs are not there or not done."""

    path: Path
    tables: tuple[str, ...]
    planned: int
    missing: tuple[str, ...]


@dataclass
class Collection:
    """Runs found, what was passed over with the reason, and where the runs come from.

    broken: those of what was passed over that could not be read; notes: what else is to be known.
    """

    records: list[RunRecord] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    versions: list[dict[str, str]] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    sweeps: list[SweepRecord] = field(default_factory=list)
    sources: dict[str, list[tuple[str, Path]]] = field(default_factory=dict)
    """By the hash of a spec: the tasks' fingerprints, and where those runs were found."""

    def add(self, record: RunRecord, path: Path) -> None:
        """Take a run, unless the very same one was found before.

        What was given in Python has no part in a spec's hash, but in the fingerprint; a run of
        which that is not known, from a CSV, is the same as any.
        """
        task = record.fingerprint
        known = self.sources.setdefault(record.spec.hash, [])
        same = [where for other, where in known if other == task or not (other and task)]
        if not same:
            known.append((task, path))
            self.records.append(record)
        elif same[0] != path:
            self.skipped.append(f"{path}: the same run as {same[0]}")

    def drop(self, record: RunRecord, why: str) -> None:
        """Take a run back."""
        self.records = [other for other in self.records if other is not record]
        self.skipped.append(f"{record.path or record.spec.task}: {why}")

    def was_read(self, path: Path) -> bool:
        """Whether runs came from that very file."""
        found = (where for known in self.sources.values() for _, where in known)
        return any(where.resolve() == path.resolve() for where in found)

    def pass_over_broken(self, note: str) -> None:
        """Remember what could not be read."""
        self.skipped.append(note)
        self.broken.append(note)

    def note_origin(self, described: dict[str, Any]) -> None:
        """Take command and versions of a config.json or sweep.json."""
        versions = described.get("versions")
        for command in _words(described, "command"):
            if command not in self.commands:
                self.commands.append(command)
        if isinstance(versions, dict) and versions and versions not in self.versions:
            self.versions.append({str(name): str(number) for name, number in versions.items()})


def collect(directories: list[Path]) -> Collection:
    """All finished runs below some directories; unfinished or broken ones are named, not read."""
    found = Collection()
    for directory in directories:
        runs = find_runs(directory)
        _read_sweeps(found, directory)
        if not runs and (directory / RUNS_FILE).is_file():
            _take_csv(found, directory / RUNS_FILE)
        for run in runs:
            _take(found, run)
    if not found.records:
        names = ", ".join(str(d) for d in directories)
        reasons = f" Passed over {'; '.join(found.skipped[:2])}." if found.skipped else ""
        raise RollinError(
            f"No finished run below {names}: give a directory that rollin train, demo or reproduce "
            f"has written.{reasons}"
        )
    return found


def _take_csv(found: Collection, path: Path) -> None:
    try:
        for record in read_runs_csv(path):
            found.add(record, path)
    except RollinError as error:
        found.pass_over_broken(str(error).rstrip("."))


def _take(found: Collection, run: RunDirectory) -> None:
    try:
        if not run.finished:
            found.skipped.append(f"{run.path}: not finished")
            return
        found.add(read_record(run), run.path)
        found.note_origin(read_json(run.path / "config.json"))
    except RollinError as error:
        found.pass_over_broken(f"{run.path}: {error}")
        return
    host = _host(run)
    if host and host not in found.hosts:
        found.hosts.append(host)


def _host(run: RunDirectory) -> str:
    """Where a run was done; empty if its status, which nothing else hangs on, does not tell."""
    try:
        host = run.status().get("host")
    except RollinError:
        return ""
    return host if isinstance(host, str) else ""


def _read_sweeps(found: Collection, directory: Path) -> None:
    for path in sorted(directory.rglob("sweep.json")):
        try:
            described = read_json(path)
        except RollinError as error:
            found.pass_over_broken(str(error))
            continue
        planned = described.get("runs")
        names = [str(name) for name in planned] if isinstance(planned, dict) else []
        runs = {name: RunDirectory(path.parent / name) for name in names}
        missing = tuple(n for n, run in runs.items() if not (run.exists and run.finished))
        for run in runs.values():
            if run.path.is_dir() and not run.exists:
                found.pass_over_broken(f"{run.path}: planned by the sweep, but has no config.json")
        tables = _words(described, "table")
        found.sweeps.append(SweepRecord(path.parent, tables, len(names), missing))
        found.note_origin(described)


def _words(described: dict[str, Any], name: str) -> tuple[str, ...]:
    """What a description has under a name, or as a list under its plural."""
    values = described.get(f"{name}s", described.get(name))
    values = values if isinstance(values, list) else [values]
    return tuple(value for value in values if isinstance(value, str) and value)
