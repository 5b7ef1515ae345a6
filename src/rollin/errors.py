"""The one exception that users meet: a sentence that says what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

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


def told(error: BaseException) -> str:
    """Kind and text of an error of somebody else's code, in one line, to stand in a sentence."""
    if isinstance(error, SystemExit):  # which would end the program, and may look like success
        return f"it called sys.exit({error.code!r})"
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


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
