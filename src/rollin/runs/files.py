"""Writing files so that a crash, a kill or a full disk never leaves half of one behind."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from rollin.errors import RollinError, reason
from rollin.regular import LARGEST, open_bounded, read_bounded
from rollin.runs.systems import patiently, sync_directory
from rollin.values import ExcessError, finite, parse_json

PART = 1 << 20  # bytes of a file that are in memory at a time
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
    # a path that the system's encoding cannot tell, in a command, is written as it can be
    write_atomically(path, text.encode(errors="replace"), durable=durable)


def read_json(path: Path, most: int = LARGEST) -> dict[str, Any]:
    """Read a JSON object of at most so many bytes, or say which file is broken."""
    data = read_bounded(path, most)
    try:
        value = parse_json(data.decode(), finite)
    except ExcessError as error:
        raise RollinError(f"{path} cannot be read: {error}. Restore the original.") from error
    except ValueError as error:
        raise RollinError(
            f"{path} is not valid JSON ({error}): the file was cut off or edited; "
            "move its directory away and run again."
        ) from error
    if b"\\u" in data and not _encodable(value):
        raise RollinError(
            f"{path} cannot be read: it holds half of a letter (a lone surrogate). Put back what "
            "was there."
        )
    if not isinstance(value, dict):
        raise RollinError(
            f"{path} cannot be read: it must hold a JSON object, got {type(value).__name__}."
        )
    return value


def _encodable(value: Any) -> bool:
    """Whether all text can be written again, which half of a surrogate pair cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def sha256(data: bytes) -> str:
    """The checksum of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path, most: int) -> str:
    """The checksum of a file of at most so many bytes, which is read part by part."""
    sum_ = hashlib.sha256()
    with open_bounded(path, most) as file:
        while part := file.read(PART):
            sum_.update(part)
    return sum_.hexdigest()


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


def own_directory(path: Path) -> None:
    """Create a directory inside one of ours; what a link leads to is not ours."""
    check_own(path)
    make_directory(path)


def check_own(path: Path) -> None:
    """Refuse a link in the place of a directory inside one of ours."""
    if path.is_symlink():
        raise RollinError(f"{path} is a link: put a directory there, or nothing.")


def make_directory(path: Path) -> None:
    """Create a directory with its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RollinError(
            f"The directory {path} could not be made: {reason(error)}. Choose another --out."
        ) from error
