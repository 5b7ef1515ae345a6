"""`rollin resume RUN`: go on with an interrupted run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from rollin.cli.arguments import parse, typed_command
from rollin.cli.train import run_with_progress
from rollin.runs.directory import RunDirectory


@dataclass(frozen=True)
class ResumeOptions:
    """Go on with an interrupted run from its last checkpoint."""

    run: tyro.conf.Positional[Path]
    """The run directory."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(ResumeOptions, arguments, "resume")
    spec = RunDirectory.open(options.run).spec()
    return run_with_progress(spec, options.run, typed_command("resume", arguments))
