"""Processes: several on one new directory, one that an environment ends, one that it blocks."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rollin.cli import main
from rollin.errors import ProcessExitError, RollinError, exits_refused
from rollin.runs.directory import RunBusyError
from rollin.runs.engines import run
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.files import is_occupied
from rollin.runs.spec import RunSpec
from tests.forks import CONTEXT, begin
from tests.killing import needs_signals
from tests.toys import Line

FEW = ("--steps", "300", "--warmup", "16", "--batch", "16", "--hidden", "8", "8")
LONG = RunSpec("four-rooms", TabularConfig(steps=10**6, batch=10))


class Faulty(Line):
    """Something happens in the first step of a run; steps before it try the environment."""

    def step(self, action: Any) -> Any:
        if Path(sys.argv[-1], "config.json").exists():
            self.fault()
        return super().step(action)

    def fault(self) -> None:
        raise NotImplementedError


class Crash(Faulty):
    """The process ends, as after a fault of a C library."""

    def fault(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class Block(Faulty):
    """The step does not return."""

    def fault(self) -> None:
        time.sleep(600)


def leaves() -> None:
    """The process ends before there is an environment."""
    os._exit(0)


# ---------------------------------------------------------------------- several at once


def begin_run(out: Path, together: Any, over: Any, ends: Any) -> None:
    """Run when all are there, until all others have ended."""
    together.wait()
    try:
        run(LONG, out, should_stop=over.is_set)
        ends.put((os.getpid(), "ran"))
    except RunBusyError as error:
        ends.put((os.getpid(), str(error)))
    except BaseException as error:
        ends.put((os.getpid(), f"{type(error).__name__}: {error}"))


def test_of_four_processes_on_one_new_directory_one_runs(tmp_path) -> None:
    for attempt in range(3):
        out = tmp_path / str(attempt) / "run"
        together, over, ends = CONTEXT.Barrier(4), CONTEXT.Event(), CONTEXT.Queue()
        begun = [begin(begin_run, out, together, over, ends) for _ in range(4)]
        told = [ends.get(timeout=60) for _ in range(3)]
        over.set()
        runner, how = ends.get(timeout=60)
        for process in begun:
            process.join()
        assert how == "ran"
        sentence = f"{out} is being run by process {runner}: wait for it, or use another --out."
        assert [words for _, words in told] == [sentence] * 3


def test_a_directory_that_another_process_has_just_made_is_not_occupied(tmp_path, monkeypatch):
    """Another process makes it right after the first look."""
    place = tmp_path / "run"
    made: list[str] = []
    for look in ("listdir", "stat"):
        whole = getattr(os, look)

        def looked(path, *rest, whole=whole, **more):
            try:
                return whole(path, *rest, **more)
            finally:
                if str(path) == str(place) and not made:
                    made.append(place.name)
                    os.mkdir(place)

        monkeypatch.setattr(os, look, looked)
    assert not is_occupied(place)
    (place / "notes").touch()
    assert is_occupied(place)
    assert is_occupied(place / "notes")


def test_a_lock_of_a_run_that_did_not_begin_is_no_other_s_file(tmp_path) -> None:
    (tmp_path / ".lock").touch()
    assert not run(LONG, tmp_path, should_stop=lambda: True)
    (tmp_path / "config.json").unlink()
    with pytest.raises(RollinError, match="exists and is not a run directory"):
        run(LONG, tmp_path)


# ---------------------------------------------------------------------- ended by the environment


def test_an_exit_while_an_environment_is_made_is_an_error(tmp_path, capsys) -> None:
    task = "tests.runs.test_processes:leaves"
    assert main(["train", task, *FEW, "--out", str(tmp_path / "a")]) == 2
    assert "it called os._exit(0) (" in capsys.readouterr().err


# a warning of JAX, if it has been imported: the child leaves its threads alone
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_only_the_process_itself_is_kept_from_leaving() -> None:
    leave = os._exit
    with exits_refused():
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(ProcessExitError):
            os._exit(0)
    assert os._exit is leave


@needs_signals
def test_a_run_whose_process_has_crashed_is_listed_as_killed(tmp_path, capsys) -> None:
    process = started("Crash", tmp_path / "a")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGSEGV
    assert main(["list", str(tmp_path)]) == 0
    assert "killed" in capsys.readouterr().out


# ---------------------------------------------------------------------- blocked by the environment

SOON = """
import sys
from rollin.cli import console, main
console.SILENT_SECONDS, console.BLOCKED_SECONDS = 1.0, 0.2
sys.exit(main(sys.argv[1:]))
"""


def started(task: str, out: Path) -> "subprocess.Popen[str]":
    words = ["train", f"tests.runs.test_processes:{task}", *FEW, "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-c", SOON, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@needs_signals
def test_a_blocked_run_is_hinted_at_and_stopped_by_the_first_signal(tmp_path, capsys) -> None:
    process = started("Block", tmp_path / "a")
    assert process.stderr is not None
    try:
        hint = process.stderr.readline()
        assert hint == (
            "rollin: no step for 1 s: the environment has not returned. Ctrl-C stops the run.\n"
        )
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert told.endswith("rollin: interrupted.\n")
    assert main(["list", str(tmp_path)]) == 0
    assert "interrupted" in capsys.readouterr().out
