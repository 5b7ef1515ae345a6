"""The one exception that users meet: a sentence that says what to do.

Exceptions of other code, such as a user's environment, become a `ForeignError`, whose sentence
names the file and the line. ROLLIN_DEBUG=1 makes the command line print the whole traceback.
"""

import os
import re
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from rollin.texts import one_line, visible

DEBUG = "ROLLIN_DEBUG"
LONGEST = 1000  # letters of a foreign error's text, so that the place behind it is not cut off
OWN = str(Path(__file__).parent) + os.sep
INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
STANDARD = sysconfig.get_path("stdlib") + os.sep

FLAG = re.compile(r"--([a-z]+(?:-[a-z]+)*)")  # an option as it stands on the command line


class RollinError(Exception):
    """Input that cannot be used: names what was expected, what came and how to fix it.

    The command line prints the sentence and exits with code 2.
    """


class MissingExtraError(RollinError):
    """A package is not installed, which stays so however often it is asked for."""


def reason(error: OSError) -> str:
    """The system's words for an error, without the path."""
    return (error.strerror or str(error)).lower()


class ProcessExitError(BaseException):
    """Other code has called os._exit, which would end the program without a word."""

    def __init__(self, code: object) -> None:
        super().__init__(code)
        self.code = code


class ForeignError(RollinError):
    """Code that is not rollin's has raised; the sentence names the error, the file and the line."""


def foreign(before: str, error: BaseException, after: str = ".") -> ForeignError:
    """The error to raise `from` an exception of other code, which is described between the words.

    before: such as "The environment's step raised"; a call of sys.exit or os._exit is described
    without the word raised.
    """
    if isinstance(error, SystemExit | ProcessExitError) and before.endswith(" raised"):
        words = f"{before.removesuffix(' raised')} {described(error).removeprefix('it ')}"
    else:
        words = f"{before} {described(error)}"
    return ForeignError(f"{words}{after}")


def described(error: BaseException) -> str:
    """Kind, text and place of an error, to stand in a sentence."""
    place = place_of(error)
    return f"{told(error)} ({place})" if place else told(error)


def told(error: BaseException) -> str:
    """Kind and text of an error in one line, to stand in a sentence; any `__str__` is survived."""
    if isinstance(error, SystemExit):  # which would end the program, and may look like success
        return f"it called sys.exit({_text(error.code, repr)})"
    if isinstance(error, ProcessExitError):
        return f"it called os._exit({_text(error.code, repr)})"
    text = one_line(" ".join(_text(error).split()).rstrip("."), LONGEST)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def sentence(error: BaseException) -> str:
    """What to show of an error of any kind: rollin's as it is, others with kind and place."""
    return str(error) if isinstance(error, RollinError) else described(error)


def _text(value: object, show: Callable[[object], str] = str) -> str:
    """str or repr of a value of other code, which may raise anything."""
    try:
        return show(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"its text cannot be shown, because of {type(error).__name__}"


def place_of(error: BaseException) -> str:
    """File and line of the innermost frame outside rollin; empty if there is none.

    If that is in a library, the innermost frame of the user's code is named first.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return ""  # its text names them
    frames = [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith("<frozen ")
    ]
    if isinstance(error, ProcessExitError):
        frames = frames[:-1]  # rollin's, in the place of os._exit
    outside = [not file.startswith(OWN) for file, _, _ in frames]
    frames = frames[outside.index(True) :] if any(outside) else []
    users = [frame for frame in frames if _is_users(frame[0])]
    if not frames or not (users or INSTALLED.match(frames[-1][0])):
        return ""
    places = [users[-1]] if users else []
    places += [frames[-1]] if frames[-1] not in places else []
    return ", down to ".join(f"{_shown(file)}:{line} in {name}" for file, line, name in places)


def _is_users(file: str) -> bool:
    """Whether a file belongs to neither rollin, an installed package nor Python."""
    return not (file.startswith((OWN, STANDARD)) or INSTALLED.match(file))


def _shown(file: str) -> str:
    """A path below the working directory or site-packages as from there; others as they are."""
    if file.startswith(OWN):
        return f"rollin{os.sep}{file.removeprefix(OWN)}"
    if INSTALLED.match(file):
        return INSTALLED.sub("", file)
    with suppress(OSError):  # the working directory may be gone
        return file.removeprefix(str(Path.cwd()) + os.sep)
    return file


def debug_hint(error: BaseException) -> str:
    """How to see the traceback of an error of other code, to stand behind its sentence."""
    cause: BaseException | None = error
    while isinstance(cause, RollinError) and not isinstance(cause, ForeignError):
        cause = cause.__cause__
    if _debugs() or not isinstance(cause, ForeignError):
        return ""
    return f" {DEBUG}=1 in the environment shows the whole traceback."


def show_traceback(error: BaseException) -> None:
    """Print the traceback of an error, with what caused it, if ROLLIN_DEBUG is set."""
    if _debugs():
        sys.stderr.write(visible("".join(traceback.format_exception(error))))


def _debugs() -> bool:
    return os.environ.get(DEBUG, "0") not in ("", "0")


@contextmanager
def exits_refused() -> Iterator[None]:
    """While inside, os._exit raises in the main thread, and never exits with code 0.

    Processes that are forked off may end as they like.
    """
    leave, own = os._exit, os.getpid()

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
    """Inside, an error names options as Python has them: log_every, not --log-every."""
    try:
        yield
    except RollinError as error:
        said = str(error)
        named = FLAG.sub(lambda found: found[1].replace("-", "_"), said)
        if named == said:
            raise
        raise RollinError(named) from error
