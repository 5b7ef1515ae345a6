"""The one exception that users see, a sentence that says what to do; and text that is safe to show.

Exceptions of other code, such as a user's environment, become a `ForeignError`, whose sentence
names the file and the line. With ROLLIN_DEBUG=1 the command line prints the whole traceback.
"""

import os
import re
import sys
import sysconfig
import threading
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

# ------------------------------------------------------------------ text
#
# Control characters could move a terminal's cursor, change its title or end a line early.
# Characters without a width, or that turn the direction of text, make two names look the same.

_FORMLESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks by category that no font draws: fillers, joiners, variation selectors."""

LONGEST = 2000  # letters of a sentence, which may quote a file

_PLAIN = {
    "κ": "kappa", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "Delta", "ε": "eps",
    "ζ": "zeta", "η": "eta", "θ": "theta", "μ": "mu", "ρ": "rho", "π": "pi", "ω": "omega",
    "σ": "sigma", "Σ": "sum", "∈": "in", "∞": "inf", "√": "sqrt", "≤": "<=", "≥": ">=", "≈": "~",
    "±": "+-", "×": "x", "·": "*", "−": "-", "–": "-", "…": "...", "→": "->", "◆": "*",
}  # fmt: skip
"""Letters of rollin's output in ASCII."""


def plainly(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII for letters missing in an encoding, as a handler of `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in lacking), error.end


def visible(text: str) -> str:
    """Return text with invisible characters replaced by their codes, except ends of lines."""
    if text.isprintable() and not _FORMLESS.search(text):
        return text
    return "".join(letter if _is_visible(letter) else _code(letter) for letter in text)


def _is_visible(letter: str) -> bool:
    if letter.isprintable():
        return not _FORMLESS.match(letter)
    return letter == "\n" or unicodedata.category(letter) == "Zs"


def _code(letter: str) -> str:
    code = ord(letter)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, most: int | None = None) -> str:
    """Return `visible` text on one line, cut off if it is longer than `most`."""
    line = visible(" ".join(text.split("\n")))
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"


def short_repr(owner: object, **parts: Any) -> str:
    """Return `Name(part=value, …)` on one line, with numbers of four digits and cut-off values."""
    values = ", ".join(f"{name}={_short(part)}" for name, part in parts.items())
    return f"{type(owner).__name__}({values})"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return one_line(f"[{', '.join(map(_short, value))}]", 40)
    return one_line(getattr(value, "__name__", None) or repr(value), 60)


# ------------------------------------------------------------------ errors

DEBUG = "ROLLIN_DEBUG"
LONGEST_FOREIGN = (
    1000  # letters of a foreign error's text, so that the place after it is not cut off
)
OWN = str(Path(__file__).parent) + os.sep
INSTALLED = re.compile(r".*/(?:site|dist)-packages/")
STANDARD = sysconfig.get_path("stdlib") + os.sep

FLAG = re.compile(r"--([a-z]+(?:-[a-z]+)*)")  # an option as it stands on the command line
CONVENTIONAL = {
    "batch": "batch_size",
    "hidden": "hidden_sizes",
    "warmup": "learning_starts",
    "capacity": "buffer_size",
    "p": "geometric_p",
    "last": "average_over",
    "literal": "as_printed",
}
"""Options that the command line calls as other libraries do; their own names are in every hash."""
OPTION_NAMES = {conventional: name for name, conventional in CONVENTIONAL.items()}


class RollinError(Exception):
    """Unusable input: states what was expected, what was given and how to fix it.

    The command line prints the sentence and exits with code 2.
    """


class MissingExtraError(RollinError):
    """A package is not installed; retrying does not help."""


def install_hint(extra: str) -> str:
    """Return how to install an extra from a clone: on PyPI, rollin is another project."""
    return f"run pip install '.[{extra}]' in a clone of rollin"


def reason(error: OSError) -> str:
    """Return the system's description of an error, without the path."""
    return (error.strerror or str(error)).lower()


class ProcessExitError(BaseException):
    """Other code called os._exit, which would end the program silently."""

    def __init__(self, code: object) -> None:
        super().__init__(code)
        self.code = code


class ForeignError(RollinError):
    """Code outside rollin raised; the sentence names the error, the file and the line."""


def foreign(before: str, error: BaseException, after: str = ".") -> ForeignError:
    """Return the error to raise `from` an exception of other code, described between two texts.

    before: such as "The environment's step raised"; "raised" is left out for sys.exit and os._exit.
    """
    description = describe(error)
    if isinstance(error, SystemExit | ProcessExitError) and before.endswith(" raised"):
        before, description = before.removesuffix(" raised"), description.removeprefix("it ")
    return ForeignError(f"{before} {description}{after}")


def describe(error: BaseException) -> str:
    """Return kind, text and place of an error, as a part of a sentence."""
    place = place_of(error)
    return f"{format_exception(error)} ({place})" if place else format_exception(error)


def format_exception(error: BaseException) -> str:
    """Return kind and text of an error on one line, as a part of a sentence."""
    if isinstance(error, SystemExit):  # which would end the program, and may look like success
        return f"it called sys.exit({_text(error.code, repr)})"
    if isinstance(error, ProcessExitError):
        return f"it called os._exit({_text(error.code, repr)})"
    text = one_line(" ".join(_text(error).split()).rstrip("."), LONGEST_FOREIGN)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def sentence(error: BaseException) -> str:
    """Return the text of an error of rollin, or the description of another one."""
    return str(error) if isinstance(error, RollinError) else describe(error)


def _text(value: object, show: Callable[[object], str] = str) -> str:
    """Return str or repr of a value of other code, which may raise anything."""
    try:
        return show(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"its text cannot be shown, because of {type(error).__name__}"


def place_of(error: BaseException) -> str:
    """Return file and line of the innermost frame outside rollin; empty if there is none.

    If that is in a library, the innermost frame of the user's code comes first.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return ""  # its text has both
    frames = [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith("<frozen ")
    ]
    if isinstance(error, ProcessExitError):
        frames = frames[:-1]  # rollin's replacement of os._exit
    outside = [not file.startswith(OWN) for file, _, _ in frames]
    frames = frames[outside.index(True) :] if any(outside) else []
    users = [frame for frame in frames if _is_users(frame[0])]
    if not frames or not (users or INSTALLED.match(frames[-1][0])):
        return ""
    places = [users[-1]] if users else []
    places += [frames[-1]] if frames[-1] not in places else []
    return ", down to ".join(f"{_short_path(file)}:{line} in {name}" for file, line, name in places)


def _is_users(file: str) -> bool:
    """Return whether a file belongs to neither rollin, an installed package nor Python."""
    return not (file.startswith((OWN, STANDARD)) or INSTALLED.match(file))


def _short_path(file: str) -> str:
    """Return a path relative to the working directory or site-packages, if it is below one."""
    if file.startswith(OWN):
        return f"rollin{os.sep}{file.removeprefix(OWN)}"
    if INSTALLED.match(file):
        return INSTALLED.sub("", file)
    with suppress(OSError):  # the working directory may be gone
        return file.removeprefix(str(Path.cwd()) + os.sep)
    return file


def debug_hint(error: BaseException) -> str:
    """Return how to see the traceback of an error of other code, to follow its sentence."""
    cause: BaseException | None = error
    while isinstance(cause, RollinError) and not isinstance(cause, ForeignError):
        cause = cause.__cause__
    if _debugs() or not isinstance(cause, ForeignError):
        return ""
    return f" {DEBUG}=1 in the environment shows the whole traceback."


def show_traceback(error: BaseException) -> None:
    """Print the traceback of an error and its causes, if ROLLIN_DEBUG is set."""
    if _debugs():
        sys.stderr.write(visible("".join(traceback.format_exception(error))))


def _debugs() -> bool:
    return os.environ.get(DEBUG, "0") not in ("", "0")


@contextmanager
def exits_refused() -> Iterator[None]:
    """While inside, os._exit raises in the main thread, and exits with code 2 instead of 0.

    Forked processes are not affected.
    """
    leave = os._exit
    own = os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() == own and threading.current_thread() is threading.main_thread():
            raise ProcessExitError(status)
        if os.getpid() == own and status == 0:
            with suppress(OSError):
                os.write(2, b"rollin: A thread of other code called os._exit(0).\n")
            leave(2)
        leave(status)

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = leave


@contextmanager
def in_python() -> Iterator[None]:
    """Inside, errors name options as in Python: log_every and batch, not --batch-size."""

    def python_name(match: re.Match[str]) -> str:
        name = match[1].replace("-", "_")
        return OPTION_NAMES.get(name, name)

    try:
        yield
    except RollinError as error:
        text = str(error)
        in_python_terms = FLAG.sub(python_name, text)
        if in_python_terms == text:
            raise
        raise RollinError(in_python_terms) from error
