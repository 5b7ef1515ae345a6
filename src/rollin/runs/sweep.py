"""A sweep: many runs below one directory, which goes on where it stopped."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.runs.backend import Job
from rollin.runs.files import is_occupied, make_directory, read_json, write_json
from rollin.runs.store import RunDirectory
from rollin.runs.tasks import mdp_of
from rollin.runs.versions import versions


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
        elif is_occupied(self.out):
            raise RollinError(
                f"{self.out} exists and is not a sweep (no sweep.json): choose another --out."
            )
        else:
            make_directory(self.out)
            description: dict[str, Any] = {"table": self.table, "command": command}
            write_json(path, {**description, "versions": versions()})
        fingerprints: dict[tuple[Any, ...], str] = {}  # many jobs share an MDP
        return [job for job in self.jobs if not _finished(job, fingerprints)]


def _finished(job: Job, fingerprints: dict[tuple[Any, ...], str]) -> bool:
    """Whether a job's very run is done; another in its place is refused, not overwritten."""
    if not RunDirectory(job.out).exists:
        return False
    config = job.spec.config
    key = (job.spec.task, config.reward, config.gamma, config.success)
    if key not in fingerprints:
        fingerprints[key] = mdp_of(job.spec).fingerprint()
    return RunDirectory.prepare(job.out, job.spec, fingerprints[key], "").finished


def find_runs(directory: Path) -> list[RunDirectory]:
    """All run directories at or below a directory, in order of their names."""
    if not directory.is_dir():
        raise RollinError(f"{directory} is not a directory.")
    return [RunDirectory(path.parent) for path in sorted(directory.rglob("config.json"))]
