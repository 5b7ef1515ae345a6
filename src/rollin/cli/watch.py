"""`rollin watch DIR...`: the report of runs as a page that follows them while they go on."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rollin.cli.arguments import make_console, parse, stop_on_signal
from rollin.cli.watch_page import Watched
from rollin.cli.watch_server import Server
from rollin.errors import RollinError
from rollin.paper.tables import tables
from rollin.sweeps.sweep import find_runs

LARGEST_PORT = 65_535
FEWEST, MOST = 0.5, 3600.0  # seconds between two looks
HEAR_SECONDS = 0.2  # between two questions whether to stop


@dataclass(frozen=True)
class WatchOptions:
    """The report of runs as a page in the browser that follows them, on this machine alone.

    Tables show finished runs; curves go as far as a run has saved, which it does every 20 seconds.
    The runs themselves are only looked at. Ctrl-C stops it.
    """

    directories: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="DIR")]]
    """Run directories, sweeps, or directories with runs below them, now or later."""
    port: int = 0
    """Where to serve the page on 127.0.0.1; 0 takes a free port."""
    every: float = 5.0
    """Seconds between two looks at the runs; a report that takes long is made less often."""
    title: str | None = None
    """Title of the page; by default it names the tasks."""
    study: str | None = None
    """Show only this study or table of the paper; by default those that the runs belong to."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(WatchOptions, arguments, "watch")
    _check(options)
    known = list(tables().values())
    watched = Watched(
        options.directories, known, every=options.every, title=options.title, only=options.study
    )
    console = make_console()
    with Server(lambda: watched.page, options.port) as server, stop_on_signal("Stopped.") as stop:
        for work in (watched.follow, server.serve_forever):
            threading.Thread(target=work, daemon=True).start()
        console.print(f"Live page: {server.address}", soft_wrap=True)
        console.print("Ctrl-C stops it.")
        console.file.flush()
        while not stop():
            time.sleep(HEAR_SECONDS)
        watched.stop()
        server.shutdown()
    return stop.code


def _check(options: WatchOptions) -> None:
    if not options.directories:
        raise RollinError("rollin watch needs at least one directory of runs.")
    if not 0 <= options.port <= LARGEST_PORT:
        raise RollinError(f"--port must be from 0 to {LARGEST_PORT}, got {options.port}.")
    if not FEWEST <= options.every <= MOST:
        raise RollinError(f"--every must be from {FEWEST:g} to {MOST:g} s, got {options.every:g}.")
    for directory in options.directories:
        find_runs(directory)  # refuses what is no directory
