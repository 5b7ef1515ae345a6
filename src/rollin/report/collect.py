"""Finds finished runs below directories, and what is known of the sweeps that they belong to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.report.records import RunRecord, read_record
from rollin.report.runs_csv import RUNS_FILE, read_runs_csv
from rollin.runs.files import read_json
from rollin.runs.store import RunDirectory
from rollin.runs.sweep import find_runs


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

    broken: those of what was passed over that could not be read.
    """

    records: list[RunRecord] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    versions: list[dict[str, str]] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    sweeps: list[SweepRecord] = field(default_factory=list)
    _where: dict[str, Path] = field(default_factory=dict)

    def add(self, record: RunRecord, path: Path, task: str = "") -> None:
        """Take a run, unless the very same one was found before.

        task: fingerprint of what was run; what was given in Python has no part in a spec's hash.
        """
        key = record.spec.hash + task
        first = self._where.get(key)
        if first is None:
            self._where[key] = path
            self.records.append(record)
        elif first != path:
            self.skipped.append(f"{path}: the same run as {first}")

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
            for record in read_runs_csv(directory / RUNS_FILE):
                found.add(record, directory / RUNS_FILE)
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


def _take(found: Collection, run: RunDirectory) -> None:
    try:
        if not run.finished:
            found.skipped.append(f"{run.path}: not finished")
            return
        config = read_json(run.path / "config.json")
        found.add(read_record(run), run.path, str(config.get("fingerprint", "")))
        found.note_origin(config)
        host = run.status().get("host")
        if isinstance(host, str) and host not in found.hosts:
            found.hosts.append(host)
    except RollinError as error:
        found.pass_over_broken(f"{run.path}: {error}")


def _read_sweeps(found: Collection, directory: Path) -> None:
    for path in sorted(directory.rglob("sweep.json")):
        try:
            described = read_json(path)
        except RollinError as error:
            found.pass_over_broken(str(error))
            continue
        planned = described.get("runs")
        names = [str(name) for name in planned] if isinstance(planned, dict) else []
        missing = tuple(n for n in names if not RunDirectory(path.parent / n).finished)
        tables = _words(described, "table")
        found.sweeps.append(SweepRecord(path.parent, tables, len(names), missing))
        found.note_origin(described)


def _words(described: dict[str, Any], name: str) -> tuple[str, ...]:
    """What a description has under a name, or as a list under its plural."""
    values = described.get(f"{name}s", described.get(name))
    values = values if isinstance(values, list) else [values]
    return tuple(value for value in values if isinstance(value, str) and value)
