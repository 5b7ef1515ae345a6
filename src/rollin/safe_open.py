"""Untrusted files: regular files of bounded size, JSON of bounded depth and numbers.

A link may lead anywhere, a pipe waits for ever, a device has no end. The size of the opened file is
checked before any of it is read: a sparse file of terabytes takes no space on a disk.
"""

import errno
import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rollin.errors import RollinError, reason

LARGEST = 32 << 20  # bytes of a JSON file
LARGEST_STATUS = 1 << 20  # of a status.json, or of a study in TOML
LARGEST_TABLE = 512 << 20  # of a CSV
LARGEST_RECORDS = 128 << 20  # of a runs.csv, and of the files beside it
LARGEST_POLICY = 1 << 30  # of a policy, or of an MDP
LARGEST_STATE = 2 << 30  # of a checkpoint, whose replay is a file of its own
LARGEST_REPLAY = 64 << 30  # of all transitions of a run, which are read part by part
LARGEST_BUFFER = 8 << 30  # of a callback's file, which holds an explorer's replay
DEEPEST = 64  # lists and objects inside each other
MOST_DIGITS = 40  # of a whole number: 128 bits have 39


def open_regular(path: Path, flags: int, *, follow: bool = False) -> int:
    """Return a handle of a regular file; raise for a link, a pipe, a device or a directory.

    follow: open the target of a link, where the user has named the path.
    """
    safe = os.O_NONBLOCK  # a pipe would wait for its other end
    if not follow:
        safe |= os.O_NOFOLLOW
    try:
        handle = os.open(path, flags | safe, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RollinError(f"{path} is a link: replace it with a copy of the file.") from error
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise _not_regular(path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_regular(path)
    return handle


def _not_regular(path: Path) -> RollinError:
    return RollinError(f"{path} is not a regular file: replace it with a copy.")


def check_regular(path: Path) -> None:
    """Raise for a link, a pipe, a device or a directory in the place of a file."""
    if os.path.lexists(path):
        try:
            os.close(open_regular(path, os.O_RDONLY))
        except OSError as error:
            raise RollinError(f"{path} could not be read: {reason(error)}.") from error


@contextmanager
def open_bounded(path: Path, most: int = LARGEST, *, follow: bool = False) -> Iterator[BinaryIO]:
    """Open a regular file to read it; raise if it has more than `most` bytes."""
    try:
        with open(open_regular(path, os.O_RDONLY, follow=follow), "rb") as file:
            check_size(path, os.fstat(file.fileno()).st_size, most)
            yield file
    except OSError as error:
        raise RollinError(f"{path} could not be read: {reason(error)}.") from error


def check_size(path: Path, size: int, most: int) -> None:
    """Raise if a file is larger than any of its kind."""
    if size > most:
        raise RollinError(
            f"{path} has {size:,} bytes, and rollin reads at most {most:,} of such a file: restore "
            "the original."
        )


def read_bounded(path: Path, most: int = LARGEST, *, follow: bool = False) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes."""
    try:
        with open_bounded(path, most, follow=follow) as file:
            return file.read(min(os.fstat(file.fileno()).st_size, most))  # it may grow meanwhile
    except ValueError as error:  # a path that no system takes
        raise RollinError(f"{path} could not be read: {error}.") from error


class ExcessError(ValueError):
    """Well-formed values beyond all bounds; the text is the end of a sentence."""


def parse_json(text: str, parse_float: Callable[[str], float] = float) -> Any:
    """Return the value of a JSON text; raise ValueError, or ExcessError beyond the bounds."""
    try:
        value = json.loads(
            text, parse_float=parse_float, parse_constant=parse_float, parse_int=_whole
        )
    except RecursionError as error:
        raise too_deep() from error
    check_bounds(value)
    return value


def check_bounds(value: Any) -> None:
    """Raise ExcessError for values nested too deeply, and for numbers of too many digits."""
    layer = [value]
    depth = 0
    while layer:
        if depth > DEEPEST:
            raise too_deep()
        inner: list[Any] = []
        for part in layer:
            if isinstance(part, dict):
                inner.extend(part.values())
            elif isinstance(part, list | tuple):
                inner.extend(part)
            elif isinstance(part, int) and abs(part) >= 10**MOST_DIGITS:
                raise too_long()
        layer = inner
        depth += 1


def finite(text: str) -> float:
    """Return the number of a text; raise ValueError for NaN, Infinity and 1e999."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:MOST_DIGITS]} is not a finite number")
    return number


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS + 1:  # and a sign
        raise too_long()
    return int(text)


def too_deep() -> ExcessError:
    """Return the error for values nested too deeply."""
    return ExcessError(f"it is nested more than {DEEPEST} levels deep")


def too_long() -> ExcessError:
    """Return the error for whole numbers of too many digits."""
    return ExcessError(f"it holds a whole number of more than {MOST_DIGITS} digits")
