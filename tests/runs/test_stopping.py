"""A run that is told to stop leaves soon, wherever it is; locks and states tell the truth."""

import io
import json
import os
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from rollin.__main__ import run as rollin_command
from rollin.cli import main
from rollin.runs import driver
from rollin.runs.directory import RunBusyError, RunDirectory
from rollin.runs.engines import run
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.spec import RunSpec, configured
from rollin.runs.systems import process_began, take_lock
from tests.killing import needs_signals, same_run
from tests.toys import Line, Walk
from tests.undrawn import undrawn

DEEP = {"hidden": (8, 8), "batch": 16, "warmup": 16, "eval_episodes": 2}
ROOMS = RunSpec("four-rooms", TabularConfig(steps=4, batch=10, log_every=1))
taken = {"steps": 0}  # by the environments below


class CountedWalk(Walk):
    def step(self, action: Any) -> Any:
        taken["steps"] += 1
        return super().step(action)


class CountedLine(Line):
    def step(self, action: Any) -> Any:
        taken["steps"] += 1
        return super().step(action)


gymnasium.register("CountedWalk-v0", "tests.runs.test_stopping:CountedWalk")
SPECS = {
    "sac": RunSpec(
        "CountedWalk-v0", configured(SACRunConfig(), {**DEEP, "steps": 90, "log_every": 45})
    ),
    "rollin": RunSpec(
        "tests.runs.test_stopping:CountedLine",
        configured(RollinConfig(), {**DEEP, "steps": 90, "log_every": 45, "threshold": 9.0}),
    ),
}


@pytest.mark.parametrize("after", range(20, 80, 5))
@pytest.mark.parametrize("engine", SPECS)
def test_a_run_leaves_at_once_if_it_waited_long_enough_and_goes_on_to_the_same_end(
    engine, after, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)  # asks at every step
    monkeypatch.setattr(driver, "STOP_SECONDS", -1.0)
    spec = SPECS[engine]
    before: list[int] = []  # the steps until it is first asked: environments are tried at first

    def should_stop() -> bool:
        before.append(taken["steps"])
        return taken["steps"] - before[0] >= after

    assert not run(spec, tmp_path / "a", should_stop=should_stop)
    assert taken["steps"] - before[0] <= after + 2  # wherever it was, in an evaluation, too
    assert json.loads((tmp_path / "a" / "status.json").read_text())["state"] == "interrupted"
    assert run(spec, tmp_path / "a")
    whole = tmp_path.parent / f"whole-{engine}"
    if not whole.exists():
        assert run(spec, whole)
    same_run(tmp_path / "a", whole)


def test_a_run_may_end_its_episode_and_save_if_that_is_soon(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)
    monkeypatch.setattr(driver, "STOP_SECONDS", 1e9)
    taken["steps"] = 0
    assert not run(SPECS["sac"], tmp_path, should_stop=lambda: taken["steps"] >= 40)
    assert (tmp_path / "checkpoint" / "manifest.json").exists()


# ------------------------------------------------------------------ locks and states


@needs_signals
@pytest.mark.filterwarnings(
    "ignore"
)  # JAX of other tests warns of forks, of which this is the test
def test_a_child_that_is_forked_off_does_not_keep_the_lock(tmp_path) -> None:
    run(ROOMS, tmp_path)
    directory = RunDirectory(tmp_path)
    reads, writes = os.pipe()
    with directory.lock():
        child = os.fork()
        if child == 0:
            os.close(writes)
            os.read(reads, 1)  # until the parent is done
            os._exit(0)
        with pytest.raises(RunBusyError, match=f"by process {os.getpid()}"), directory.lock():
            pass
    with directory.lock():
        pass
    os.close(reads)
    os.close(writes)
    os.waitpid(child, 0)


@needs_signals
@pytest.mark.parametrize("holder", ["gone", "", "x", "99999999999999999999", "-1"])
def test_a_lock_that_somebody_left_names_no_dead_process(holder, tmp_path) -> None:
    run(ROOMS, tmp_path)
    if holder == "gone":
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        holder = str(ended.pid)
    with (tmp_path / ".lock").open("w") as file:
        file.write(holder)
        file.flush()
        assert take_lock(file.fileno())
        told = (
            rf"that process {holder} started, which is gone"
            if len(holder) in range(2, 12)
            else r"process \?"
        )
        told = r"process \?" if holder == "-1" else told
        with pytest.raises(RunBusyError, match=told), RunDirectory(tmp_path).lock():
            pass


@pytest.mark.skipif(process_began(os.getpid()) is None, reason="the system does not tell")
def test_a_process_that_has_the_number_of_one_that_is_gone_is_not_the_run(tmp_path, capsys) -> None:
    run(ROOMS, tmp_path / "a")
    (tmp_path / "a" / "result.json").unlink()
    for began, state in ((process_began(os.getpid()), "running"), (1, "killed"), (None, "running")):
        told = {"state": "running", "pid": os.getpid(), "began": began, "updated": time.time()}
        (tmp_path / "a" / "status.json").write_text(json.dumps(told))
        assert main(["list", str(tmp_path)]) == 0
        assert state in capsys.readouterr().out


def test_a_status_that_cannot_be_written_ends_no_run(tmp_path) -> None:
    run(ROOMS, tmp_path / "whole")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.json").write_bytes((tmp_path / "whole" / "config.json").read_bytes())
    (tmp_path / "a" / "status.json").mkdir()
    assert run(ROOMS, tmp_path / "a")
    same_run(tmp_path / "a", tmp_path / "whole")


# ------------------------------------------------------------------ outputs


class Closed(io.StringIO):
    """An output that nobody reads."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def fileno(self) -> int:
        return self.handle

    handle = -1


def test_a_command_whose_output_is_closed_ends_without_a_word(
    tmp_path, capsys, monkeypatch
) -> None:
    run(ROOMS, tmp_path / "runs" / "a")
    for command in (
        ["train", "four-rooms", "--steps", "4", "--batch", "10", "--out", str(tmp_path / "b")],
        ["list", str(tmp_path / "runs")],
        ["list", "--help"],
        ["--help"],
        ["--version"],
    ):
        with (tmp_path / "closed").open("w") as file, monkeypatch.context() as patch:
            closed = Closed()
            closed.handle = file.fileno()
            patch.setattr(sys, "stdout", closed)
            assert main(command) == 141  # as of a program that SIGPIPE has ended
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp437"])
def test_letters_that_an_output_lacks_become_ascii(encoding, tmp_path, monkeypatch) -> None:
    run(ROOMS, tmp_path / "a")
    written, told = io.BytesIO(), io.BytesIO()
    out, err = io.TextIOWrapper(written, encoding), io.TextIOWrapper(told, encoding)
    monkeypatch.setattr(sys, "argv", ["rollin", "resume", str(tmp_path / "a")])
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        rollin_command()
    assert left.value.code == 0
    out.flush()
    err.flush()
    assert b"kappa = 0." in written.getvalue()
    assert told.getvalue() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="paths are text elsewhere")
@undrawn()
def test_a_path_that_is_no_text_is_taken(tmp_path, capsys) -> None:
    odd = Path(os.fsdecode(bytes(tmp_path) + b"/a\xffb"))
    few = ["--steps", "4", "--batch", "10", "--log-every", "1"]
    for command in (
        ["train", "four-rooms", *few, "--out", str(odd)],
        ["resume", str(odd)],
        ["list", str(tmp_path)],
        ["report", str(tmp_path)],
        ["plot", str(tmp_path), "--out", str(tmp_path / "c.png")],
    ):
        assert main(command) == 0
    (tmp_path / "report.html").read_bytes().decode()
    capsys.readouterr()
