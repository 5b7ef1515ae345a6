"""A sweep: many runs below one directory, which goes on where it stopped."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.files import is_occupied, make_directory, read_json, write_json
from rollin.runs.versions import versions
from rollin.sweeps.jobs import Job

SWEEP_FILE = "sweep.json"


@dataclass
class Backlog:
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

    def plan(self, command: str) -> Backlog:
        """Make or check the directory; returns what is to be done in it."""
        path = self.out / SWEEP_FILE
        found: dict[str, Any] = {"tables": [], "commands": [], "runs": {}}
        if path.exists():
            found = self._check(read_json(path))
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
        write_json(
            path,
            {
                "family": self.family,
                "scale": self.scale,
                "tables": list(dict.fromkeys([*found["tables"], self.table])),
                "commands": list(dict.fromkeys([*found["commands"], command])),
                "versions": versions(),
                "runs": {**found["runs"], **runs},
            },
        )
        return backlog

    def _check(self, found: dict[str, Any]) -> dict[str, Any]:
        """Refuse the directory of another sweep, or one that cannot be told."""
        kinds = {"family": str, "scale": (int, float), "tables": list, "commands": list,
                 "runs": dict}  # fmt: skip
        bad = [name for name, kind in kinds.items() if not isinstance(found.get(name), kind)]
        if bad:
            raise RollinError(
                f"{self.out / SWEEP_FILE} has no right {', '.join(bad)}: it is damaged, or of an "
                "older version. Choose another --out."
            )
        if found["family"] != self.family:
            raise RollinError(
                f"{self.out} holds the sweep of another table "
                f"({', '.join(map(str, found['tables']))}), not of {self.table}: choose another "
                "--out."
            )
        if found["scale"] != self.scale:
            raise RollinError(
                f"{self.out} holds runs at {found['scale']:g} of the paper's length, asked for is "
                f"{self.scale:g}: give the same --scale or --steps to go on, or another --out."
            )
        return found

    def _sorted(self) -> Backlog:
        from rollin.runs.fingerprint import Fingerprints  # which needs all that computes

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
            except RollinError as error:
                backlog.broken.append((job, str(error)))
                continue
            (backlog.done if run.finished else backlog.todo).append(job)
        return backlog


def find_runs(directory: Path) -> list[RunDirectory]:
    """All run directories at or below a directory, in order of their names."""
    if not directory.is_dir():
        raise RollinError(f"{directory} is not a directory.")
    return [RunDirectory(path.parent) for path in sorted(directory.rglob("config.json"))]
