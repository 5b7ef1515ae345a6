"""Opening files that others may have put there: regular ones of a sane size, nothing else.

A link may lead anywhere, a pipe waits for ever, a device has no end. The size of the opened file is
checked before any of it is read: a sparse file of terabytes takes no space on a disk.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rollin.errors import RollinError, reason

LARGEST = 32 << 20  # bytes of a JSON file
LARGEST_STATUS = 1 << 20  # of a status.json, or of a study in TOML
LARGEST_TABLE = 512 << 20  # of a CSV
LARGEST_RECORDS = 128 << 20  # of a runs.csv, and of the files beside it
LARGEST_POLICY = 1 << 30  # of a policy, or of an MDP
LARGEST_STATE = 2 << 30  # of a checkpoint, whose replay is a file of its own
LARGEST_REPLAY = 64 << 30  # of all transitions of a run, which are read part by part
LARGEST_BUFFER = 8 << 30  # of a callback's file, which holds an explorer's replay


def open_regular(path: Path, flags: int, *, follow: bool = False) -> int:
    """A handle of a regular file; a link, a pipe, a device or a directory is refused.

    Opening a pipe would wait for whoever is at its other end, for ever if nobody is. follow: take
    what a link leads to, where the user has named the path.
    """
    safe = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    safe |= 0 if follow else getattr(os, "O_NOFOLLOW", 0)
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
    """Refuse a link, a pipe, a device or a directory in the place of a file, if one is there."""
    if os.path.lexists(path):
        try:
            os.close(open_regular(path, os.O_RDONLY))
        except OSError as error:
            raise RollinError(f"{path} could not be read: {reason(error)}.") from error


@contextmanager
def open_bounded(path: Path, most: int = LARGEST, *, follow: bool = False) -> Iterator[BinaryIO]:
    """Open a regular file to read it; one of more than `most` bytes is refused unread."""
    try:
        with open(open_regular(path, os.O_RDONLY, follow=follow), "rb") as file:
            check_size(path, os.fstat(file.fileno()).st_size, most)
            yield file
    except OSError as error:
        raise RollinError(f"{path} could not be read: {reason(error)}.") from error


def check_size(path: Path, size: int, most: int) -> None:
    """Refuse a file that is larger than any of its kind."""
    if size > most:
        raise RollinError(
            f"{path} has {size:,} bytes, and rollin reads at most {most:,} of such a file: restore "
            "the original."
        )


def read_bounded(path: Path, most: int = LARGEST, *, follow: bool = False) -> bytes:
    """The bytes of a regular file of sane size; links, pipes and devices are refused."""
    try:
        with open_bounded(path, most, follow=follow) as file:
            return file.read(min(os.fstat(file.fileno()).st_size, most))  # it may grow meanwhile
    except ValueError as error:  # a path that no system takes
        raise RollinError(f"{path} could not be read: {error}.") from error
