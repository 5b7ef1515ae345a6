"""Options of `rollin reproduce` and `rollin sweep`, and which of them go together."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rollin.checks import at_least, positive
from rollin.errors import RollinError
from rollin.sac.learner import LearnerName
from rollin.sweeps.queue import RETRIES
from rollin.sweeps.study import Study

WIDE = 140  # columns of tables where the output is not a terminal


@dataclass(frozen=True)
class PlaceOptions:
    """Where runs are done, and how many at a time."""

    jobs: int | None = None
    """Number of parallel runs; by default one per core, or as many as the cluster has room
    for."""
    backend: Literal["local", "ray"] = "local"
    """local: processes on this machine; ray: a Ray cluster (needs the extra rollin[ray])."""
    address: str | None = None
    """Address of a running Ray cluster: auto or host:port. Defaults to RAY_ADDRESS; if that is
    not set, a cluster is started on this machine."""
    storage: Literal["auto", "shared", "fetch"] = "auto"
    """Where runs on a cluster write: to --out, if all machines can see it (shared), or to a local
    disk from which the files are fetched (fetch); auto: each run finds out."""
    learner: LearnerName = "cpu"
    """cpu, or jax for GPUs (needs the extra rollin[jax])."""
    gpus: float = 1.0
    """Share of a GPU for each run with --learner jax on a cluster that has any."""
    retries: int = RETRIES
    """How often a failed run is retried."""
    until: int | None = None
    """Stop every run at this step, with a checkpoint. The same command with a later step, or
    without one, continues the runs."""


@dataclass(frozen=True)
class ReproduceOptions:
    """Run all cells of a table or figure of the paper. Interrupted sweeps can be resumed."""

    table: tyro.conf.Positional[Annotated[str | None, tyro.conf.arg(metavar="[TABLE]")]] = None
    """Name of a table, a figure or a computed result, as --list shows them."""
    list: bool = False
    """List all tables and figures with their runs, and with their hours on this machine once its
    speed has been measured. With a name: list the conditions of that table."""
    cells: str | None = None
    """Only some cells: "env=hopper,beta=0,beta=0.1" (a label given twice matches either
    value)."""
    seeds: int | None = None
    """Seeds 0 … N-1 of every cell; the paper's number if not given."""
    scale: float | None = None
    """Shorten training, and the steps at which it is read, by this factor."""
    steps: int | None = None
    """Steps of every run, instead of --scale."""
    measure: bool = False
    """With --list: measure this machine's speed (half a minute), even if it was measured
    before."""
    out: Path | None = None
    """Directory of the sweep; tables of the same family share their runs there. runs/FAMILY if not
    given, with the scale if that is not 1."""
    place: PlaceOptions = field(default_factory=PlaceOptions)


def check(options: ReproduceOptions) -> None:
    """Refuse options that cannot be meant."""
    check_place(options.place)
    if options.scale is not None:
        positive("--scale", options.scale)
    if options.scale is not None and options.steps is not None:
        raise RollinError("--scale and --steps both say how long a run is: give one of them.")
    if options.measure and not options.list:
        raise RollinError("--measure belongs to --list.")
    if options.list and options.table is None and options.cells is not None:
        raise RollinError("--cells belongs to one table: name it, or leave out --cells.")


def check_place(options: PlaceOptions) -> None:
    """Refuse options that do not go together."""
    at_least(0, "--retries", options.retries)
    positive("--gpus", options.gpus)
    if options.until is not None:
        at_least(1, "--until", options.until)
    if options.jobs is not None:
        at_least(1, "--jobs", options.jobs)
    if options.backend == "local":
        for name in ("address", "storage", "gpus"):
            if getattr(options, name) != getattr(PlaceOptions, name):
                raise RollinError(f"--{name} belongs to --backend ray.")


def check_taken(options: ReproduceOptions, takes: Sequence[str]) -> None:
    """Refuse options that mean nothing to what has no cells."""
    given = [(options, f) for f in fields(options) if f.name not in ("table", "list", "place")]
    given += [(options.place, f) for f in fields(options.place)]
    for part, field_ in given:
        if field_.name not in takes and getattr(part, field_.name) != field_.default:
            known = ", ".join(f"--{name}" for name in takes)
            raise RollinError(
                f"--{field_.name} does not apply to {options.table}: it takes {known}."
            )


def scale_asked(study: Study, options: ReproduceOptions) -> float:
    """The factor by which training is shortened, so that it is a whole number of steps."""
    steps = options.steps or max(1, round((options.scale or 1.0) * study.steps))
    return steps / study.steps
