"""A sweep: many runs below one directory, which goes on where it stopped."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.runs.backend import Job
from rollin.runs.files import make_directory, read_json, write_json
from rollin.runs.store import RunDirectory, versions


@dataclass(frozen=True)
class Sweep:
    """The jobs of one table in one directory."""

    table: str
    out: Path
    jobs: tuple[Job, ...]

    def prepare(self, command: str) -> list[Job]:
        """Make or check the directory; returns the jobs that are not finished yet."""
        path = self.out / "sweep.json"
        if path.exists():
            found = read_json(path)
            if found.get("table") != self.table:
                raise RollinError(
                    f"{self.out} holds the sweep of another table ({found.get('table')}): "
                    "choose another --out."
                )
        elif self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir())):
            raise RollinError(
                f"{self.out} exists and is not a sweep (no sweep.json): choose another --out."
            )
        else:
            make_directory(self.out)
            description: dict[str, Any] = {"table": self.table, "command": command}
            write_json(path, {**description, "versions": versions()})
        return [job for job in self.jobs if not _finished(job)]


def _finished(job: Job) -> bool:
    """Whether a job's very spec is done; another spec in its place is refused, not overwritten."""
    if not RunDirectory(job.out).exists:
        return False
    return RunDirectory.prepare(job.out, job.spec, "").finished


def find_runs(directory: Path) -> list[RunDirectory]:
    """All run directories at or below a directory, in order of their names."""
    if not directory.is_dir():
        raise RollinError(f"{directory} is not a directory.")
    return [RunDirectory(path.parent) for path in sorted(directory.rglob("config.json"))]
