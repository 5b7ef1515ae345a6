"""`rollin resume RUN`: go on with an interrupted run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from rollin.cli.arguments import parse, typed_command
from rollin.cli.train import run_with_progress
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import spec_of


@dataclass(frozen=True)
class ResumeOptions:
    """Resume an interrupted run from its last checkpoint."""

    run: tyro.conf.Positional[Path]
    """The run directory."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ResumeOptions, arguments, "resume")
    spec = spec_of(RunDirectory.open(options.run))
    return run_with_progress(spec, options.run, typed_command("resume", arguments))
