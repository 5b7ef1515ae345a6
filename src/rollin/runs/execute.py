"""Begin or go on with a spec in a directory."""

from pathlib import Path
from typing import Any

from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver, OnStatus, ShouldStop
from rollin.runs.spec import RunSpec


def make_run(spec: RunSpec[Any], directory: RunDirectory) -> Driver[Any]:
    """The run of a spec, by its engine."""
    if spec.config.engine == "sac":
        from rollin.runs.engines.sac import SACRun

        return SACRun(spec, directory)
    if spec.config.engine == "rollin":
        from rollin.runs.engines.rollin import RollinRun

        return RollinRun(spec, directory)
    from rollin.runs.engines.tabular import TabularRun

    return TabularRun(spec, directory)


def run(
    spec: RunSpec[Any],
    out: Path,
    command: str = "",
    on_status: OnStatus = lambda status: None,
    should_stop: ShouldStop = lambda: False,
) -> bool:
    """Run a spec in a directory, or go on with it; a finished one is left as it is."""
    # a bad task is refused before anything is written
    return execute(make_run(spec, RunDirectory(out)), command, on_status, should_stop)


def execute(
    prepared: Driver[Any],
    command: str = "",
    on_status: OnStatus = lambda status: None,
    should_stop: ShouldStop = lambda: False,
) -> bool:
    """Run what was prepared, or go on with it, and close it."""
    directory = prepared.directory
    try:
        RunDirectory.claim(
            directory.path, prepared.spec, prepared.fingerprint(), command, **prepared.beside()
        )
        with directory.lock():
            if directory.finished:
                prepared.tidy()  # if a kill came just before that
                return True
            return prepared.execute(on_status, should_stop)
    finally:
        prepared.close()
