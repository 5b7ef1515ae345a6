"""What other systems lack is taken away here, and the rest must still work."""

import ctypes
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from rollin.errors import RollinError
from rollin.runs import systems
from rollin.runs.directory import RunBusyError, RunDirectory
from rollin.runs.files import read_json, remove_file, write_atomically
from rollin.runs.spec import Job, JobEvent
from rollin.runs.systems import is_alive, patiently
from rollin.sweeps import local, machine
from tests.forks import forking
from tests.runs.test_tabular_runs import spec

# what a Python of Windows does not have, for this process and all that it starts
WITHOUT = """
import os, signal, subprocess, sys  # subprocess takes a system with msvcrt for Windows
for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGALRM"):
    vars(signal).pop(name, None)
for name in ("sched_getaffinity", "sched_setaffinity", "sysconf", "O_DIRECTORY", "fork", "getuid",
             "geteuid", "getloadavg"):
    vars(os).pop(name, None)
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty"):
    sys.modules[name] = None
import ctypes, types

class Kernel:
    def GlobalMemoryStatusEx(self, status):
        status._obj.free = 8 << 30

ctypes.WinDLL = lambda name, use_last_error: Kernel()
fake = sys.modules["msvcrt"] = types.ModuleType("msvcrt")
fake.LK_NBLCK, fake.locking = 2, lambda handle, mode, size: None
"""
EXTRAS = ("rollin.sac.jax", "rollin.sweeps.cluster")
PROGRAM = f"""
import importlib, pkgutil, signal, sys
import rollin
from rollin.cli import main
if __name__ == "__main__":
    for module in pkgutil.walk_packages(rollin.__path__, "rollin."):
        if module.name not in {EXTRAS}:
            importlib.import_module(module.name)
    assert not hasattr(signal, "SIGHUP") and sys.modules["fcntl"] is None
    out = sys.argv[1]
    assert main(["train", "four-rooms", "--steps", "20", "--out", out + "/one"]) == 0
    some = ["--cells", "reward=hard,alpha=0.001,beta=0", "--seeds", "1", "--jobs", "1"]
    sweep = out + "/sweep"
    assert main(["reproduce", "four-rooms", *some, "--steps", "20", "--out", sweep]) == 0
    assert main(["list", out]) == 0
    from rollin.sweeps.machine import cores, free_memory
    assert cores() >= 1 and free_memory() > 0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="lacks it all")
def test_all_modules_load_and_commands_work_without_what_windows_lacks(tmp_path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(WITHOUT)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    paths = [str(tmp_path / "without"), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, program, tmp_path / "out"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").rglob("result.json"))) == 2
    assert "finished" in done.stdout


def test_words_that_an_output_cannot_spell_do_not_end_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rollin", "reproduce", "--list"],
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Four rooms: progress and return, all beta" in done.stdout.decode("cp1252")


# ------------------------------------------------------------------ files


class SharingError(PermissionError):
    """What Windows raises where somebody has the file open."""

    winerror = 32


def test_a_file_that_somebody_has_open_is_replaced_when_it_is_let_go(tmp_path, monkeypatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    replace, unlink = Path.replace, Path.unlink

    def refuse(change):
        def changed(path, *given, **named):
            if len(pauses) < 3:
                raise SharingError(13, "The process cannot access the file")
            return change(path, *given, **named)

        return changed

    monkeypatch.setattr(Path, "replace", refuse(replace))
    monkeypatch.setattr(Path, "unlink", refuse(unlink))
    write_atomically(tmp_path / "status.json", b"new")
    assert (tmp_path / "status.json").read_bytes() == b"new"
    assert len(pauses) == 3
    pauses.clear()
    remove_file(tmp_path / "status.json")
    assert len(pauses) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_stays_open_is_one_sentence(tmp_path, monkeypatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)

    def refuse(path, target):
        raise SharingError(13, "The process cannot access the file")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(RollinError, match=r"a\.json could not be written: the process cannot acc"):
        write_atomically(tmp_path / "a.json", b"new")
    assert sum(pauses) < 3
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_may_not_be_written_is_told_at_once(monkeypatch) -> None:
    monkeypatch.setattr("time.sleep", None)  # not to be called

    def refuse() -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(PermissionError):
        patiently(refuse)


def test_files_are_written_where_directories_cannot_be_opened(tmp_path, monkeypatch) -> None:
    opened = os.open

    def open_files(path, flags, *more, **named):
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", open_files)
    monkeypatch.delattr(os, "O_DIRECTORY", raising=False)
    write_atomically(tmp_path / "a.json", b"new")
    assert (tmp_path / "a.json").read_bytes() == b"new"


@pytest.mark.skipif(sys.platform == "win32", reason="has its own lock")
def test_a_run_is_held_by_the_lock_of_windows(tmp_path, monkeypatch) -> None:
    import fcntl

    places: list[int] = []

    def locking(handle: int, mode: int, size: int) -> None:
        assert (mode, size) == (2, 1)
        places.append(os.lseek(handle, 0, os.SEEK_CUR))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    fake = types.ModuleType("msvcrt")
    vars(fake).update(LK_NBLCK=2, locking=locking)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    run = RunDirectory(tmp_path)
    with run.lock():
        assert (tmp_path / ".lock").read_text() == str(os.getpid())
        with pytest.raises(RunBusyError, match=f"being run by process {os.getpid()}: "), run.lock():
            pass
    with run.lock():
        pass
    assert min(places) > 1 << 20  # what the file says can be read by others

    def missing(handle: int, mode: int, size: int) -> None:
        raise OSError(22, "Invalid argument")

    vars(fake)["locking"] = missing
    with run.lock(), run.lock():  # a file system without locks
        pass


# ------------------------------------------------------------------ processes and the machine


class Kernel:
    """As much of Windows as is asked for: processes by number, and memory."""

    def __init__(self, running: dict[int, bool], error: int = 0) -> None:
        self.running, self.error, self.open = running, error, []

    def __call__(self, name: str, use_last_error: bool) -> "Kernel":
        assert (name, use_last_error) == ("kernel32", True)
        return self

    def OpenProcess(self, access: int, inherit: bool, pid: int) -> int:
        assert access == 0x100000
        if pid in self.running:
            self.open.append(pid)
            return pid
        return 0

    def WaitForSingleObject(self, process: int, milliseconds: int) -> int:
        assert milliseconds == 0
        return 0x102 if self.running[process] else 0

    def CloseHandle(self, process: int) -> None:
        self.open.remove(process)

    def GlobalMemoryStatusEx(self, status) -> None:
        assert status._obj.length == ctypes.sizeof(status._obj) == 64
        status._obj.physical, status._obj.free = 16 << 30, 5 << 30


def test_on_windows_a_process_is_looked_at_without_a_signal(monkeypatch) -> None:
    kernel = Kernel({10: True, 11: False})
    monkeypatch.setattr(ctypes, "WinDLL", kernel, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: kernel.error, raising=False)
    monkeypatch.setattr(os, "kill", None)  # signal 0 would be Ctrl-C
    monkeypatch.setattr(sys, "platform", "win32")
    assert [is_alive(10), is_alive(11)] == [True, False]
    assert kernel.open == []
    kernel.error = 87  # no such process
    assert not is_alive(12)
    kernel.error = 5  # somebody else's
    assert is_alive(12)


def test_memory_and_cores_where_linux_files_and_calls_are_missing(monkeypatch) -> None:
    monkeypatch.setattr(machine, "_lines", lambda path: [])
    monkeypatch.setattr(machine, "_free_of_container", lambda: None)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert machine.cores() == os.cpu_count()
    pages = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)  # as on macOS
    assert machine.free_memory() == int(0.9 * 4_096_000)
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(ctypes, "WinDLL", Kernel({}), raising=False)
    assert machine.free_memory() == int(0.9 * (5 << 30))


def test_workers_save_and_leave_where_no_signal_can_tell_them(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(local, "CAN_ASK_TO_LEAVE", False)
    monkeypatch.setattr("multiprocessing.process.BaseProcess.terminate", None)  # kills on Windows
    short, long = (Job(f"{n}", spec(steps=n), tmp_path / f"{n}") for n in (5, 1_000_000))
    executor = forking(2, memory=1 << 40)
    news: list[JobEvent] = []
    for job in (short, long):
        executor.start(job)
    while not (
        any(report.kind == "finished" for report in news)
        and any(report.kind == "progress" and report.job is long for report in news)
    ):
        news += executor.wait(0.1)
    workers = [worker.process for worker in executor._pool]  # one is idle by now
    (last,) = executor.stop()
    assert (last.kind, last.job) == ("stopped", long)
    assert [process.exitcode for process in workers] == [0, 0]
    assert read_json(long.out / "status.json")["state"] == "interrupted"
    assert (long.out / "checkpoint" / "manifest.json").exists()


def test_signals_to_stop_are_those_that_there_are() -> None:
    names = {number.name for number in systems.STOPS}
    windows = sys.platform == "win32"
    assert names == {"SIGINT", "SIGTERM", "SIGBREAK" if windows else "SIGHUP"}
