"""`rollin resume RUN`: go on with an interrupted run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rollin.cli.arguments import parse, typed_command
from rollin.cli.train import run_with_progress
from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import spec_of
from rollin.runs.exported import is_exported
from rollin.runs.trust import check_trust


@dataclass(frozen=True)
class ResumeOptions:
    """Resume an interrupted run from its last checkpoint."""

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The run directory."""
    trust: bool = False
    """Run the code that the run names as its task, module:factory, though you did not make it."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ResumeOptions, arguments, "resume")
    if is_exported(options.run):
        raise RollinError(
            f"{options.run} holds a policy without its run, which rollin evaluate plays: resume "
            "the run directory that it was exported from."
        )
    directory = RunDirectory.open(options.run)
    spec = spec_of(directory)
    check_trust(options.run, directory.config, trust=options.trust)
    return run_with_progress(spec, options.run, typed_command("resume", arguments))
