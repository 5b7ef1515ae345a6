"""What the subcommands share: option parsing, stopping by signal, the command as typed."""

import os
import re
import shlex
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import tyro
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rollin.checks import flag
from rollin.errors import RollinError
from rollin.runs.systems import STOPS
from rollin.texts import visible

Options = TypeVar("Options")

FRACTION = re.compile(r"\s*-?\w[\w.]*\s*/\s*-?\w[\w.]*\s*")
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


def spelled_out(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """Fractions such as 1/24 as numbers, --geometric as --sampling geometric.

    options: the names of the options, of whose values alone this is true.
    """
    flags = {flag(name) for name in options}
    words: list[str] = []
    for word in arguments:
        name, equals, value = word.partition("=")
        words += [name, value] if equals and name in flags and _is_fraction(value) else [word]
    found: list[str] = []
    for before, word in pairwise(["", *words]):
        if word == "--geometric":
            found += ["--sampling", "geometric"]
        elif before in flags and _is_fraction(word):
            found.append(repr(_number(before, word)))
        else:
            found.append(word)
    return found


def _is_fraction(text: str) -> bool:
    return FRACTION.fullmatch(text) is not None


def _number(name: str, text: str) -> float:
    """The value of a fraction such as 1/24."""
    try:
        return float(Fraction(text.replace(" ", "")))
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise RollinError(
            f"{name} must be a number or a fraction such as 1/24, got {text}."
        ) from error


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
    console = _Console(markup=False, highlight=False)
    if width is not None and not console.is_terminal:
        return _Console(markup=False, highlight=False, width=width)
    return console


class _Console(Console):
    """Shows control characters in names and texts of files, instead of obeying them."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for part in super().render(renderable, options):
            yield part if part.control else Segment(visible(part.text), part.style)

    def on_broken_pipe(self) -> None:
        raise  # it is called where the error is handled; `main` says what it means


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
