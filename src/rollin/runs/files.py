"""Writing files so that a crash, a kill or a full disk never leaves half of one behind."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from rollin.errors import RollinError, reason
from rollin.runs.systems import patiently, sync_directory

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
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(path, text.encode(), durable=durable)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, or say which file is broken."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RollinError(f"{path} could not be read: {reason(error)}.") from error
    except ValueError as error:
        raise RollinError(
            f"{path} is not valid JSON ({error}): the file was cut off or edited; "
            "move its directory away and run again."
        ) from error
    if not isinstance(value, dict):
        raise RollinError(f"{path} must hold a JSON object, got {type(value).__name__}.")
    return value


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
