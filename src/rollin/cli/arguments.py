"""What the subcommands share: option parsing, stopping by signal, the command as typed."""

import os
import shlex
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import tyro
from rich.console import Console

from rollin.errors import RollinError
from rollin.runs.systems import STOPS

Options = TypeVar("Options")

TYRO_CONFIG = (tyro.conf.OmitArgPrefixes,)


def parse(
    options: type[Options],
    arguments: Sequence[str],
    command: str,
    default: Options | None = None,
) -> Options:
    """Options from a dataclass whose field docstrings are the help; exits with 2 on misuse.

    default: where other values than the dataclass's own stand if nothing is given.
    """
    return tyro.cli(
        options,
        default=default,  # pyright: ignore[reportReturnType]  (None: the dataclass's own)
        prog=f"rollin {command}",
        description=options.__doc__,
        args=list(arguments),
        config=TYRO_CONFIG,
    )


def check_file(flag: str, path: Path | None, suffixes: Iterable[str] = ()) -> None:
    """Refuse a file that could not be written in the end, before anything is run."""
    if path is None:
        return
    known = tuple(suffixes)
    if known and path.suffix not in known:
        raise RollinError(f"{flag} must end in {' or '.join(known)}, got {path}.")
    if not path.parent.is_dir():
        raise RollinError(f"{flag}: the directory {path.parent} does not exist.")


def make_console(width: int | None = None) -> Console:
    """A console that prints text as it is: a path with brackets is not markup.

    width: of tables where the output is not a terminal.
    """
    console = Console(markup=False, highlight=False)
    if width is not None and not console.is_terminal:
        return Console(markup=False, highlight=False, width=width)
    return console


def typed_command(command: str, arguments: Sequence[str]) -> str:
    """The command line, to be recorded with results."""
    return shlex.join(["rollin", command, *arguments])


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """While inside, Ctrl-C, kill and a closed terminal set a flag instead of ending the program."""
    stop = False

    def ask_to_stop(signum: int, frame: Any) -> None:
        nonlocal stop
        if stop:  # a second Ctrl-C means it
            raise KeyboardInterrupt
        stop = True
        with suppress(OSError):  # the terminal may be gone; print is not for signal handlers
            os.write(2, "\nStopping: writing a checkpoint …\n".encode())

    before = {s: signal.signal(s, ask_to_stop) for s in STOPS}
    try:
        yield lambda: stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
