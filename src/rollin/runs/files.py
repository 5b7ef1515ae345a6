"""Writing files so that a crash, a kill or a full disk never leaves half of one behind."""

import errno
import hashlib
import json
import math
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from rollin.errors import RollinError, reason
from rollin.runs.systems import patiently, sync_directory

LARGEST = 64 << 20  # bytes of a JSON file
LARGEST_DATA = 8 << 30  # bytes of a CSV or of tensors
TEMPORARY = ".rollin-"  # how names of unfinished files begin


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write to a temporary name beside `path`, sync, rename: readers see the old or the new file.

    durable=False skips the sync, for files that are only looked at (a live status).
    """
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{TEMPORARY}{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        patiently(lambda: Path(temporary).replace(path))
        if durable:
            sync_directory(path.parent)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise RollinError(f"{path} could not be written: {reason(error)}.") from error


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Atomically write a value as indented JSON."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:  # JSON has no NaN
        raise RollinError(
            f"{path} could not be written: it would hold a number that is not finite."
        ) from error
    write_atomically(path, text.encode(), durable=durable)


def open_regular(path: Path, flags: int) -> int:
    """A handle of a regular file; a link, a pipe, a device or a directory is refused.

    Opening a pipe would wait for whoever is at its other end, for ever if nobody is.
    """
    safe = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
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


def read_bounded(path: Path, most: int = LARGEST) -> bytes:
    """The bytes of a regular file of sane size; links, pipes and devices are refused."""
    try:
        with open(open_regular(path, os.O_RDONLY), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise RollinError(
                    f"{path} has {size:,} bytes, more than any file that rollin writes."
                )
            return file.read(most)
    except OSError as error:
        raise RollinError(f"{path} could not be read: {reason(error)}.") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, or say which file is broken."""
    data = read_bounded(path)
    try:
        value = json.loads(data.decode(), parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise RollinError(f"{path} is nested too deeply to be one of rollin's files.") from error
    except ValueError as error:
        raise RollinError(
            f"{path} is not valid JSON ({error}): the file was cut off or edited; "
            "move its directory away and run again."
        ) from error
    if not isinstance(value, dict):
        raise RollinError(
            f"{path} cannot be read: it must hold a JSON object, got {type(value).__name__}."
        )
    return value


def _finite(text: str) -> float:
    """A number of a JSON file; Python would also take NaN, Infinity and 1e999."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def sha256(data: bytes) -> str:
    """The checksum of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def seal(values: Any) -> str:
    """The checksum of plain values, the same before they are written and after they are read."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode())


def remove_temporaries(directory: Path) -> None:
    """Delete what a kill in the middle of a write has left behind."""
    for path in directory.glob(f"{TEMPORARY}*"):
        remove_file(path)


def remove_file(path: Path) -> None:
    """Delete a file, if it is there."""
    patiently(lambda: path.unlink(missing_ok=True))


def is_occupied(directory: Path, *ours: str) -> bool:
    """Whether something is there that is not ours to replace: a file, or a directory in use.

    ours: names that may be there.
    """
    if not directory.is_dir():
        return directory.exists()
    names = (path.name for path in directory.iterdir())
    return any(not name.startswith(TEMPORARY) and name not in ours for name in names)


def make_directory(path: Path) -> None:
    """Create a directory with its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RollinError(
            f"The directory {path} could not be made: {reason(error)}. Choose another --out."
        ) from error
