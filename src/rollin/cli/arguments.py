"""What the subcommands share: option parsing, stopping by signal, the command as typed."""

import _thread
import io
import os
import re
import shlex
import signal
import threading
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from fractions import Fraction
from itertools import dropwhile, pairwise, takewhile
from pathlib import Path
from typing import Any, TypeVar

import tyro
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rollin.checks import MOST_STEPS, flag
from rollin.cli.blocking import interrupt_blocked
from rollin.cli.usage import help_text, whole_number_flags
from rollin.errors import RollinError
from rollin.runs.systems import STOPS
from rollin.texts import visible

Options = TypeVar("Options")

FRACTION = re.compile(r"\s*-?\w[\w.]*\s*/\s*-?\w[\w.]*\s*")
NO_FORMS: Mapping[str, Mapping[str, Any]] = {}
TYRO_CONFIG = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)
WHOLE = re.compile(r"[+-]?\d[\d_]*(\.\d*)?([eE][+-]?\d+)?")  # 20000, 20_000, 2e4, 1.5e6
PHRASES = {
    "invalid literal for int() with base 10:": "a whole number is expected, got",
    "could not convert string to float:": "a number is expected, got",
    "no type matching INT could be instantiated from": "a whole number is expected, got",
    "no type matching FLOAT could be instantiated from": "a number is expected, got",
    "Could not find valid parse for arguments:": "values with spaces between them are expected, "
    "such as 32 32, got",
    ", 'None'": "",
    "'None', ": "",
    "(required)": "",
}
"""Words of the parser, and ours for the same."""
RULE = re.compile(r"[─╭╮╰╯ -]*")  # a line of the box in which tyro tells what is wrong, or none


def parse(
    options: type[Options],
    arguments: Sequence[str],
    command: str,
    default: Options | None = None,
    task: str = "",
) -> Options:
    """Options from a dataclass whose field docstrings are the help; exits with 2 on misuse.

    default: where other values than the dataclass's own stand if nothing is given; task: what the
    help has to be asked for with, because its options depend on it.
    """
    if {"-h", "--help"} & set(arguments):
        print(help_text(options, default, command))
        raise SystemExit(0)
    complaint = io.StringIO()
    try:
        with redirect_stderr(complaint):
            return tyro.cli(
                options,
                default=default,  # pyright: ignore[reportReturnType]  (None: the dataclass's own)
                prog=f"rollin {command}",
                description=options.__doc__,
                args=in_digits(arguments, whole_number_flags(options)),
                config=TYRO_CONFIG,
            )
    except SystemExit as stop:
        asked = f"{command} {shlex.quote(task)}" if task else command
        raise RollinError(_sentence(complaint.getvalue(), asked)) from stop


def _sentence(box: str, command: str) -> str:
    """What tyro says in a box of several parts, of which the first tells what is wrong."""
    lines = dropwhile(RULE.fullmatch, (line.strip("│ ") for line in box.splitlines()[1:]))
    what = " ".join(takewhile(lambda line: not RULE.fullmatch(line), lines))
    for theirs, ours in PHRASES.items():
        what = what.replace(theirs, ours)
    what = what.rstrip(". ")
    likely = re.search(r"Perhaps you meant:\W+(--[\w-]+)", box)
    meant = f" Did you mean {likely[1]}?" if likely else ""
    return f"{what}.{meant} rollin {command} --help lists what there is."


def in_digits(arguments: Sequence[str], flags: Container[str]) -> list[str]:
    """Whole numbers in digits alone: --steps 2e4 is 20,000."""
    found: list[str] = []
    for before, word in pairwise(["", *arguments]):
        name, equals, value = word.partition("=")
        if equals and name in flags:
            found.append(f"{name}={_digits(value)}")
        else:
            found.append(_digits(word) if before in flags else word)
    return found


def _digits(text: str) -> str:
    if WHOLE.fullmatch(text):
        number = Fraction(text.replace("_", ""))
        if number.denominator == 1 and abs(number) < MOST_STEPS:
            return str(number)
    return text


def spelled_out(
    arguments: Sequence[str],
    options: Sequence[str],
    short_forms: Mapping[str, Mapping[str, Any]] = NO_FORMS,
) -> list[str]:
    """Fractions such as 1/24 as numbers, --geometric as --sampling geometric.

    options: the names of the options, of whose values alone this is true; short_forms: what one
    word stands for, but for options that are given themselves.
    """
    flags = {flag(name) for name in options}
    words: list[str] = []
    for word in arguments:
        name, equals, value = word.partition("=")
        words += [name, value] if equals and name in flags and _is_fraction(value) else [word]
    found: list[str] = []
    for before, word in pairwise(["", *words]):
        form = short_forms.get(word.removeprefix("--")) if word.startswith("--") else None
        if form is not None:
            own = {w.partition("=")[0].replace("--no-", "--") for w in words}
            given = [name for name in form if flag(name) not in own]
            found += [part for name in given for part in _flagged(name, form[name])]
        elif before in flags and _is_fraction(word):
            found.append(repr(_number(before, word)))
        else:
            found.append(word)
    return found


def _flagged(name: str, value: Any) -> list[str]:
    """An option as words of a command line."""
    return [flag(name)] if value is True else [flag(name), str(value)]


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


class Stop:
    """Whether a signal has asked to stop, and the exit code that says so: 130 after Ctrl-C.

    left: set once what was to stop has ended.
    """

    signal: int | None = None

    def __init__(self) -> None:
        self.left = threading.Event()

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.signal is not None

    @property
    def code(self) -> int:
        """As shells have it: 128 and the number of the signal; 0 without one."""
        return 0 if self.signal is None else 128 + self.signal


@contextmanager
def stop_on_signal(saying: str = "Stopping: writing a checkpoint …") -> Iterator[Stop]:
    """While inside, Ctrl-C, kill and a closed terminal set a flag instead of ending the program.

    If the environment does not return from a call, the run cannot see the flag: it is interrupted.
    """
    stop = Stop()

    def ask_to_stop(signum: int, frame: Any) -> None:
        if stop():  # a second Ctrl-C means it
            raise KeyboardInterrupt
        stop.signal = signum
        with suppress(OSError):  # the terminal may be gone; print is not for signal handlers
            os.write(2, f"\n{saying}\n".encode())
        _thread.start_new_thread(interrupt_blocked, (signum, stop.left))

    before = {s: signal.signal(s, ask_to_stop) for s in STOPS}
    try:
        yield stop
    finally:
        stop.left.set()
        for number, handler in before.items():
            signal.signal(number, handler)
