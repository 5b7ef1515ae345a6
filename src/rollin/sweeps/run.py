"""Doing the runs of a study, from Python or from the command line."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from rollin.checks import at_least, one_of
from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.records import Record
from rollin.sweeps.jobs import Executor, JobEvent
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.machine import cores
from rollin.sweeps.plan import StudyPlan
from rollin.sweeps.queue import RETRIES, run_jobs
from rollin.sweeps.sweep import Sweep, jobs_of

Backend = Literal["local", "ray"]


def run_study(
    study: StudyPlan,
    out: Path,
    *,
    seeds: int | None = None,
    scale: float = 1.0,
    jobs: int | None = None,
    retries: int = RETRIES,
    on_event: Callable[[JobEvent], None] = lambda event: None,
    backend: Backend = "local",
    **where: Any,
) -> list[Record]:
    """Do a study's runs in a directory, or go on with them; returns what they gave.

    seeds: 0 … n-1 of every condition, the study's number if not given; scale: shorten training by
    this factor; on_event: told what becomes of each run; backend, where: see `executor`.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RollinError(
            "A study is run while a worker process imports this script: put the call behind "
            'if __name__ == "__main__":, as every script that starts processes needs it.'
        )
    count = at_least(1, "seeds", study.seeds if seeds is None else seeds)
    planned = jobs_of(study, out, count, scale)
    sweep = Sweep(study, scale, out, tuple(planned))
    place = executor(out, "Study.run", jobs, backend, **where)()
    backlog = sweep.plan(f"rollin.Study({study.name!r}, …).run({str(out)!r})")
    failed = run_jobs(backlog.todo, place, retries=retries, on_event=on_event)
    if failed or backlog.broken:
        first = failed[0].name if failed else backlog.broken[0][0].name
        why = RunDirectory(failed[0].out).status().get("error") if failed else backlog.broken[0][1]
        raise RollinError(
            f"{len(failed) + len(backlog.broken)} of {len(planned)} runs could not be done, the "
            f"first being {first}: {why} The same call tries again."
        )
    at = [round(r.step * scale) for r in study.readings if r.step is not None]
    return [read_record(RunDirectory(job.out), at) for job in planned]


def executor(
    out: Path, command: str, jobs: int | None, backend: Backend = "local", **where: Any
) -> Callable[[], Executor]:
    """What makes the place where runs are done.

    jobs: runs at the same time, all cores or all that a cluster has room for if not given. where:
    address, storage and gpus of a Ray cluster.
    """
    one_of("backend", backend, ("local", "ray"))
    if backend == "local":
        if where:
            raise RollinError(f"{', '.join(where)} belong to the backend ray.")
        return lambda: LocalExecutor(jobs or cores(), command)
    from rollin.sweeps.cluster import RayExecutor

    return lambda: RayExecutor(out, command, where.pop("address", None), jobs, **where)
