"""Keeps a copy of a run directory on another machine: only what is new is sent.

Files that grow (rows of a CSV, of the replay, of events) are sent from where the copy ends; all
others whole, and put in place so that a copy cut off at any moment is one that a run can go on
from: what the run is, then rows, then a checkpoint's data, then its manifest, the result last.
"""

import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rollin.errors import RollinError, reason
from rollin.regular import open_regular
from rollin.runs.directory import LOCK
from rollin.runs.files import TEMPORARY, make_directory, remove_file, write_atomically

GROWING = (".csv", ".f32")
EVENTS = "events.out"
OVERLAP = 1 << 16  # bytes sent again: the last row of a replay may be rewritten
CHUNK = 32 << 20  # bytes of a piece at the most
ORDER = ("state-", "manifest.json", "policy.safetensors", "result.json")
"""What comes after all else, in this order."""


@dataclass(frozen=True)
class Piece:
    """Bytes of a file from an offset on; the file ends at `end`. No data: the file is gone."""

    name: str
    offset: int = 0
    end: int = 0
    data: bytes | None = None


@dataclass(frozen=True)
class _Known:
    """What the copy has of a file: its size, when that was last changed here, its checksum."""

    size: int
    changed: int
    crc: int | None = None


class Sender:
    """Tells what a copy lacks.

    same: whether the copy is the same as the directory now, as when that was just made from it.
    """

    def __init__(self, directory: Path, *, same: bool = False) -> None:
        self.directory = directory
        self._known: dict[str, _Known] = {}
        if same:
            for name, path in self._files().items():
                about = path.stat()
                # a resumed run cuts its rows back and may write others in their place
                crc = _checksum(path, about.st_size) if _grows(name) else None
                self._known[name] = _Known(about.st_size, about.st_mtime_ns, crc)

    def pieces(self) -> Iterator[Piece]:
        """What is new since the last call; to be read to the end while nobody writes."""
        files = self._files()
        for name in sorted(files, key=_place):
            path = files[name]
            about, known = path.stat(), self._known.get(name)
            if known is not None and (known.size, known.changed) == (
                about.st_size,
                about.st_mtime_ns,
            ):
                continue
            begin = self._begin(path, about.st_size, known) if _grows(name) else 0
            yield from _read(path, name, begin, about.st_size)
            self._known[name] = _Known(about.st_size, about.st_mtime_ns)
        for name in self._known.keys() - files.keys():
            del self._known[name]
            yield Piece(name)

    def _begin(self, path: Path, size: int, known: _Known | None) -> int:
        """Where a file that grows differs from its copy, at the earliest."""
        if known is None or size < known.size:
            return 0
        if known.crc is not None and _checksum(path, known.size) != known.crc:
            return 0
        return max(0, known.size - OVERLAP)

    def _files(self) -> dict[str, Path]:
        return {
            path.relative_to(self.directory).as_posix(): path
            for path in self.directory.rglob("*")
            if path.is_file() and path.name != LOCK and not path.name.startswith(TEMPORARY)
        }


def receive(directory: Path, pieces: Iterable[Piece]) -> None:
    """Bring a copy up to date."""
    for piece in pieces:
        path = directory / piece.name
        if piece.data is None:
            remove_file(path)
            if path.parent != directory and not any(path.parent.iterdir()):
                path.parent.rmdir()
            continue
        make_directory(path.parent)
        if not _grows(piece.name) and len(piece.data) == piece.end:
            write_atomically(path, piece.data)
            continue
        try:
            with open(open_regular(path, os.O_RDWR | os.O_CREAT), "r+b") as file:
                file.seek(piece.offset)
                file.write(piece.data)
                file.truncate()
                if piece.offset + len(piece.data) == piece.end:
                    file.flush()
                    os.fsync(file.fileno())  # a manifest that counts these rows comes after them
        except OSError as error:
            raise RollinError(f"{path} could not be written: {reason(error)}.") from error


def _grows(name: str) -> bool:
    return name.endswith(GROWING) or EVENTS in name


def _place(name: str) -> tuple[int, str]:
    """Where a file stands in the order of sending."""
    last = Path(name).name
    if last == "config.json":
        return -2, name
    if _grows(name):
        return -1, name
    return next((i + 1 for i, start in enumerate(ORDER) if last.startswith(start)), 0), name


def _read(path: Path, name: str, begin: int, end: int) -> Iterator[Piece]:
    with path.open("rb") as file:
        file.seek(begin)
        at = begin
        while True:
            data = file.read(min(CHUNK, end - at))
            yield Piece(name, at, end, data)
            at += len(data)
            if at >= end or not data:
                return


def _checksum(path: Path, size: int) -> int:
    crc = 0
    with path.open("rb") as file:
        while size > 0 and (data := file.read(min(CHUNK, size))):
            crc = zlib.crc32(data, crc)
            size -= len(data)
    return crc
