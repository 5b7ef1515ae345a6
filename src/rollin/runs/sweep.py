"""A sweep: many runs below one directory, which goes on where it stopped."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.runs.files import is_occupied, make_directory, read_json, write_json
from rollin.runs.jobs import Job
from rollin.runs.store import RunDirectory
from rollin.runs.versions import versions

SWEEP_FILE = "sweep.json"


@dataclass
class Plan:
    """The jobs of a sweep by how they stand: to be done, done, or in a directory that is broken."""

    todo: list[Job] = field(default_factory=list)
    done: list[Job] = field(default_factory=list)
    broken: list[tuple[Job, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Sweep:
    """The jobs of one table in one directory.

    Tables of one family share their runs there, if training is equally long (scale).
    """

    table: str
    family: str
    scale: float
    out: Path
    jobs: tuple[Job, ...]

    def prepare(self, command: str) -> Plan:
        """Make or check the directory; returns what is to be done in it."""
        path = self.out / SWEEP_FILE
        found: dict[str, Any] = {}
        if path.exists():
            found = read_json(path)
            self._check(found)
        elif is_occupied(self.out):
            raise RollinError(
                f"{self.out} exists and is not a sweep (no {SWEEP_FILE}): choose another --out."
            )
        else:
            make_directory(self.out)
        runs = {str(job.out.relative_to(self.out)): job.spec.hash for job in self.jobs}
        write_json(
            path,
            {
                "family": self.family,
                "scale": self.scale,
                "tables": list(dict.fromkeys([*found.get("tables", []), self.table])),
                "commands": list(dict.fromkeys([*found.get("commands", []), command])),
                "versions": versions(),
                "runs": {**found.get("runs", {}), **runs},
            },
        )
        return self._plan()

    def _check(self, found: dict[str, Any]) -> None:
        """Refuse the directory of another sweep."""
        family, scale = found.get("family"), found.get("scale")
        if family != self.family:
            tables = ", ".join(found.get("tables", ["another kind"]))
            raise RollinError(
                f"{self.out} holds the sweep of another table ({tables}), not of {self.table}: "
                "choose another --out."
            )
        if scale != self.scale:
            raise RollinError(
                f"{self.out} holds runs at {scale:g} of the paper's length, asked for is "
                f"{self.scale:g}: give the same --scale or --steps to go on, or another --out."
            )

    def _plan(self) -> Plan:
        from rollin.runs.fingerprint import Fingerprints  # which needs all that computes

        plan = Plan()
        fingerprints = Fingerprints()
        for job in self.jobs:
            run = RunDirectory(job.out)
            try:
                if not run.exists:
                    plan.todo.append(job)
                    continue
                task = fingerprints.of(job.spec) if run.finished else None
                RunDirectory.prepare(job.out, job.spec, task, "")
                if run.finished:
                    run.result()
            except RollinError as error:
                plan.broken.append((job, str(error)))
                continue
            (plan.done if run.finished else plan.todo).append(job)
        return plan


def find_runs(directory: Path) -> list[RunDirectory]:
    """All run directories at or below a directory, in order of their names."""
    if not directory.is_dir():
        raise RollinError(f"{directory} is not a directory.")
    return [RunDirectory(path.parent) for path in sorted(directory.rglob("config.json"))]
