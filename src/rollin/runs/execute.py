"""Begin or go on with a spec in a directory."""

from functools import partial
from pathlib import Path
from typing import Any

from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver, OnStatus, ShouldStop
from rollin.runs.engines import engine_of
from rollin.runs.spec import Membership, RunSpec


def run(
    spec: RunSpec[Any],
    out: Path,
    command: str = "",
    on_status: OnStatus = lambda status: None,
    should_stop: ShouldStop = lambda: False,
    of: Membership | None = None,
    until: int | None = None,
) -> bool:
    """Run a spec in a directory, or resume it; a finished one is left as it is.

    until: stop at the first end of an episode at this step or later, with a checkpoint.
    """
    # a bad task is refused before anything is written
    made = engine_of(spec).run(spec, RunDirectory(out))
    return execute(made, command, on_status, should_stop, of, until)


def execute(
    prepared: Driver[Any],
    command: str = "",
    on_status: OnStatus = lambda status: None,
    should_stop: ShouldStop = lambda: False,
    of: Membership | None = None,
    until: int | None = None,
) -> bool:
    """Run what was prepared, or go on with it, and close it."""
    directory = prepared.directory
    try:
        beside = prepared.beside()
        task = prepared.fingerprint()
        claim = partial(RunDirectory.claim, directory.path, prepared.spec, task, command, of)
        if directory.exists:
            claim(**beside)  # another run is refused as such, whoever has it
        else:
            directory.make()
        with directory.lock():
            claim(**beside)  # one of several processes that begin at once
            if directory.finished:
                prepared.tidy()  # if a kill came just before that
                return True
            return prepared.execute(on_status, should_stop, until)
    finally:
        prepared.close()
