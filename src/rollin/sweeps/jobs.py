"""A run to be done, the news of it, and what a place where runs are done must offer."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from rollin.runs.spec import Membership, RunSpec

EventKind = Literal["started", "progress", "finished", "stopped", "failed", "lost", "busy", "again"]


@dataclass(frozen=True)
class Job:
    """A spec, the directory it runs in, and the condition of a study that it is run for.

    until: a step at which the run stops for now; None: its last.
    """

    name: str
    spec: RunSpec[Any]
    out: Path
    of: Membership | None = None
    until: int | None = None


@dataclass(frozen=True)
class JobEvent:
    """News of a job.

    failed: the run itself went wrong; lost: what ran it is gone; busy: another process has it;
    again: it will be tried again, after any of these.
    """

    kind: EventKind
    job: Job
    status: dict[str, Any]

    @property
    def is_end(self) -> bool:
        """Whether the job is no longer running."""
        return self.kind not in ("started", "progress")


OnJobEvent = Callable[[JobEvent], None]


class Executor(Protocol):
    """Where jobs run."""

    def room(self, job: Job) -> bool:
        """Whether there is room for a job now."""
        ...

    def start(self, job: Job) -> None:
        """Begin with a job, or go on with it."""
        ...

    def wait(self, seconds: float) -> list[JobEvent]:
        """News, as soon as there are any, or none after so many seconds."""
        ...

    def stop(self) -> list[JobEvent]:
        """Have all running jobs save and leave; their last news. Nothing can be started after."""
        ...
