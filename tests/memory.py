"""Temporary files of the tests in memory, where the system has a place for them.

Everything here is written so that it survives a power cut, which takes some milliseconds for each
file on a disk, and more where other work writes to it. In memory the same calls cost nothing.
"""

import os
import shutil
import tempfile
from multiprocessing.util import Finalize
from pathlib import Path

PLACE = Path("/dev/shm")
NAME = "rollin-"  # short: sockets below have names of some hundred letters at most
ROOM = 4 << 30  # bytes; the tests take some 200 MB


def use_memory() -> None:
    """Put temporary files of this process and of its children there, unless TMPDIR is set."""
    if "TMPDIR" in os.environ or not has_room(PLACE):
        return
    for left in PLACE.glob(f"{NAME}[0-9]*"):  # by tests that were killed
        if not Path("/proc", left.name.removeprefix(NAME)).exists():
            shutil.rmtree(left, ignore_errors=True)
    here = PLACE / f"{NAME}{os.getpid()}"
    here.mkdir(mode=0o700)
    remove = {"args": (here,), "kwargs": {"ignore_errors": True}}
    Finalize(None, shutil.rmtree, **remove, exitpriority=-200)  # after multiprocessing's own, -100
    os.environ["TMPDIR"] = str(here)
    tempfile.tempdir = None  # what was found before does not count


def has_room(place: Path) -> bool:
    """Whether files can be written there, and programs among them be run."""
    if not os.access(place, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(place)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize > ROOM
