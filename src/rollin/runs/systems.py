"""The machine of a run: what operating systems differ in, and versions recorded with results.

Linux and macOS have the same of these; Windows has no SIGHUP, no flock, no handle of a directory,
no signal 0, and refuses to replace or delete a file that is open elsewhere.
"""

import ctypes
import errno
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from rollin import __version__

STOPS = tuple(  # Ctrl-C, kill, a terminal that is closed, Ctrl-Break
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    if hasattr(signal, name)
)
CAN_ASK_TO_LEAVE = sys.platform != "win32"
"""Whether a process can be asked to end itself; what Windows has instead ends it at once."""
REUSES_ADDRESS = sys.platform != "win32"
"""Whether a port that was just left may be taken again; on Windows the flag for it would let
another program listen where we do."""

SHARING = (5, 32)  # Windows: access denied, or in use: a file that is open elsewhere
PATIENCE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # seconds between attempts
LARGEST_PID = 2**31 - 1  # what systems take for the number of a process
LOCKED_BYTE = 1 << 30  # beyond the contents of a lock's file: on Windows no process can read it


def patiently(change: Callable[[], Any]) -> None:
    """Replace or delete a file, again and again while Windows reports that it is open elsewhere."""
    for pause in PATIENCE:
        try:
            change()
        except PermissionError as error:
            if getattr(error, "winerror", None) not in SHARING:
                raise
            time.sleep(pause)
        else:
            return
    change()


def sync_directory(path: Path) -> None:
    """Bring a rename to the disk, where a directory can be opened at all."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def take_lock(handle: int) -> bool:
    """Take a lock that ends with the process, unless another process has it: then False.

    A file system without locks always gives it.
    """
    try:
        import fcntl
    except ImportError:
        return _take_lock_of_windows(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def release_lock(handle: int) -> None:
    """Give a lock up at once, also if a child that was just forked still has the file open."""
    with suppress(ImportError, OSError):  # on Windows it ends with the handle
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)


def _take_lock_of_windows(handle: int) -> bool:
    import msvcrt

    lock: Any = msvcrt  # whose names a type checker knows on Windows alone
    os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
    try:
        lock.locking(handle, lock.LK_NBLCK, 1)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EDEADLK)
    return True


_held: set[int] = set()
"""Handles of locks that end with this process, whatever becomes of its children."""


@contextmanager
def not_in_children(handle: int) -> Iterator[None]:
    """While inside, a process that is forked off does not keep what this handle has locked."""
    _held.add(handle)
    try:
        yield
    finally:
        _held.discard(handle)


def _let_go() -> None:
    """In a forked child: put something else in the place of the handles that hold locks."""
    if not _held:
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in _held:
        os.dup2(nothing, handle, inheritable=False)
    os.close(nothing)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def process_began(pid: int) -> int | None:
    """When a process of this machine began, in ticks since the system did; None if unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[19])  # behind its name, which may hold spaces
    except (OSError, ValueError, IndexError):
        return None


def is_alive(pid: int) -> bool:
    """Whether a process of this machine is there."""
    if sys.platform == "win32":  # where signal 0 is Ctrl-C
        return _is_alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def _is_alive_on_windows(pid: int) -> bool:
    synchronize, denied, still_running = 0x0010_0000, 5, 0x102
    kernel = _windows_kernel()
    process = kernel.OpenProcess(synchronize, False, pid)
    if not process:
        return vars(ctypes)["get_last_error"]() == denied  # another user's
    try:
        return kernel.WaitForSingleObject(process, 0) == still_running
    finally:
        kernel.CloseHandle(process)


class _MemoryStatus(ctypes.Structure):
    """What Windows reports of memory."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in (
            "physical", "free", "paged", "free_paged", "virtual", "free_virtual", "extended",
        )),
    )  # fmt: skip


def physical_memory() -> int:
    """Bytes of memory, on Windows those that are free; for systems that report no more."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    _windows_kernel().GlobalMemoryStatusEx(ctypes.byref(status))
    return status.free


def _windows_kernel() -> Any:
    return vars(ctypes)["WinDLL"]("kernel32", use_last_error=True)


def processor() -> str:
    """The CPU's name, with family and model where the name says little."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    known: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        known.setdefault(name.strip(), value.strip())
    family, model = known.get("cpu family", "?"), known.get("model", "?")
    return f"{known.get('model name', platform.machine())} (family {family}, model {model})"


LIBRARIES = ("numpy", "numba", "llvmlite", "gymnasium", "mujoco", "jax")


def versions() -> dict[str, str]:
    """Versions of this package, of Python and of the libraries that compute."""
    return dict(_installed())


def changed_since(then: Mapping[str, str]) -> str:
    """What has another version now, such as "numpy 2.3.0 → 2.4.6"; empty if nothing has."""
    now = _installed()
    both = [name for name in then if name in now]
    return ", ".join(
        f"{name} {then[name]} → {now[name]}" for name in both if then[name] != now[name]
    )


@cache
def _installed() -> dict[str, str]:
    """They are looked up once: that takes longer than a small run."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"rollin": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # jax is an extra
            continue
    return found
