"""`rollin reproduce`: plans, interruption, what is passed over, bad input."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from rollin.cli import main
from rollin.cli.study_runs import length_notes
from rollin.paper.tables import find_table
from rollin.runs.directory import RunDirectory
from rollin.runs.files import read_json
from rollin.runs.spec import Job, JobEvent
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.machine import cache_rates, cached_rates
from tests.forks import forking
from tests.here import HereExecutor
from tests.killing import needs_signals
from tests.runs.test_tabular_runs import assert_same_run
from tests.undrawn import undrawn

CELLS = "reward=hard,alpha=0.001,beta=0,beta=0.75"


def reproduce(out: Path, *more: str, table: str = "four-rooms") -> int:
    return main(["reproduce", table, "--out", str(out), *more])


def short(out: Path, *more: str) -> int:
    return reproduce(out, "--cells", CELLS, "--steps", "20", "--jobs", "1", *more)


def runs_by(make: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what `make` gives for a command do the runs."""
    monkeypatch.setattr(
        "rollin.cli.study_runs.executor_of", lambda place, out, command: lambda: make(command)
    )


class Interrupted(HereExecutor):
    """Ctrl-C comes when the first run has been done."""

    def start(self, job: Job) -> None:
        super().start(job)
        os.kill(os.getpid(), signal.SIGINT)


@needs_signals
@undrawn()
def test_an_interrupted_table_goes_on_without_repeating(tmp_path, capfd, monkeypatch) -> None:
    """In this process; that of a user is interrupted in tests of `rollin sweep`."""
    out = tmp_path / "sweep"
    arguments = [
        "reproduce", "four-rooms", "--cells",
        "reward=hard,alpha=0.001,beta=0,beta=0.5,beta=0.75,beta=0.9", "--seeds", "1",
        "--steps", "20", "--jobs", "1", "--out", str(out),
    ]  # fmt: skip
    runs_by(Interrupted, monkeypatch)
    assert main(arguments) == 130
    said = capfd.readouterr()
    assert "Stopping" in said.err
    assert re.search(r"Stopped at 1 of 4 runs\. Resume with: rollin reproduce", said.out)
    first = {path: path.stat().st_mtime_ns for path in out.rglob("result.json")}
    assert len(first) == 1
    assert not (out / "report.html").exists()
    runs_by(HereExecutor, monkeypatch)
    assert main(arguments) == 0
    said = capfd.readouterr().out
    assert len(list(out.rglob("result.json"))) == 4
    for path, stamp in first.items():
        assert path.stat().st_mtime_ns == stamp
    assert said.count("finished ") == 3
    assert "shortened to 0.0004 of the paper's (20 steps, not 50,000)" in said
    assert f"Report: {out / 'report.html'}" in said
    assert "shortened" in (out / "report.html").read_text()


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_tables_of_a_family_share_runs_and_others_are_refused(tmp_path, capsys) -> None:
    assert short(tmp_path, "--seeds", "1") == 0
    runs = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("result.json")}
    assert len(runs) == 2
    assert "finished" in capsys.readouterr().out
    more = ("--cells", CELLS, "--steps", "20", "--jobs", "1", "--seeds", "2")
    assert reproduce(tmp_path, *more, table="four-rooms-summary") == 0
    said = capsys.readouterr().out
    assert said.count("finished ") == 2  # the second seeds alone
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in runs.items())
    assert reproduce(tmp_path, "--steps", "40") == 2
    assert "holds runs at 0.0004 of their full length" in capsys.readouterr().err
    assert reproduce(tmp_path, table="velocity-summary") == 2
    assert "the sweep of another study (four-rooms, four-rooms-s" in capsys.readouterr().err
    assert len(list(tmp_path.rglob("result.json"))) == 4


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_runs_stop_at_a_step_and_continue_to_the_same_end(tmp_path, capsys) -> None:
    some = ("--seeds", "1", "--steps", "600")
    assert short(tmp_path / "a", *some, "--until", "250") == 0
    runs = sorted(path.parent for path in (tmp_path / "a").rglob("config.json"))
    assert [RunDirectory(run).saved().step for run in runs] == [250, 250]
    assert "Report: " in capsys.readouterr().out
    assert short(tmp_path / "a", *some, "--until", "250") == 0  # nothing is left to do
    assert "finished " not in capsys.readouterr().out
    assert short(tmp_path / "a", *some, "--until", "300") == 0
    assert [RunDirectory(run).saved().step for run in runs] == [300, 300]
    assert short(tmp_path / "a", *some) == 0
    assert short(tmp_path / "b", *some) == 0
    for run in runs:
        assert_same_run(tmp_path / "b" / run.relative_to(tmp_path / "a"), run)


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_a_corrupt_run_directory_is_named_skipped_and_reported(tmp_path, capsys) -> None:
    assert short(tmp_path, "--seeds", "1") == 0
    broken, whole = sorted(path.parent for path in tmp_path.rglob("result.json"))
    (broken / "config.json").write_text('{"engine": ')
    capsys.readouterr()
    assert short(tmp_path, "--seeds", "2") == 2
    said = capsys.readouterr()
    assert said.out.count("finished ") == 2  # the others go on
    assert f"Skipped run directories: 1, the first {broken}" in said.err
    assert "config.json is not valid JSON" in said.err
    assert (broken / "config.json").read_text() == '{"engine": '  # nothing was lost
    assert str(broken) in (tmp_path / "report.html").read_text()
    assert (whole / "result.json").exists()


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_a_run_that_fails_is_tried_again_and_told(tmp_path, capsys) -> None:
    assert short(tmp_path, "--seeds", "1") == 0
    for name in ("result.json", "policy.safetensors"):
        next(tmp_path.rglob(f"*beta=0.75*/seed=0/{name}")).unlink()
    blocked = next(tmp_path.rglob("*beta=0.75*")) / "seed=0" / "policy.safetensors"
    blocked.mkdir()  # where a file is to be written
    capsys.readouterr()
    assert short(tmp_path, "--seeds", "1", "--retries", "1") == 2
    said = capsys.readouterr()
    assert said.out.count("again in 2 s") == 1
    assert "1 of 2 runs failed, each after up to 2 attempts" in said.err
    assert "policy.safetensors could not be written" in said.err
    assert (tmp_path / "report.html").exists()
    blocked.rmdir()
    assert short(tmp_path, "--seeds", "1") == 0


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_longer_runs_and_runs_of_no_steps_are_told_as_they_are(tmp_path, capsys) -> None:
    some = ("--cells", "reward=hard,alpha=0.001,beta=0", "--seeds", "1", "--jobs", "1")
    assert reproduce(tmp_path / "a", *some, "--scale", "1e-9") == 0
    assert "shortened to 2e-05 of the paper's (1 steps, not 50,000)" in capsys.readouterr().out
    assert read_json(tmp_path / "a" / "sweep.json")["scale"] == 1 / 50_000
    table = find_table("four-rooms")
    (note, seeds) = length_notes(table, 1, 2.0)
    assert seeds == "seeds of each condition: 1; the paper has 10."
    assert note.startswith("training is lengthened to 2 of the paper's (100,000 steps, not")


@needs_signals
def test_a_closed_terminal_lets_runs_save(tmp_path, capfd, monkeypatch) -> None:
    out = tmp_path / "sweep"

    def closing(command: str) -> LocalExecutor:
        made = forking(1, command)
        wait = made.wait

        def wait_and_close(seconds: float) -> list[JobEvent]:
            if list(out.rglob("status.json")):
                made.wait = wait  # once: a second signal would not wait for runs to save
                os.kill(os.getpid(), signal.SIGHUP)
            return wait(seconds)

        made.wait = wait_and_close
        return made

    runs_by(closing, monkeypatch)
    some = ("--cells", "reward=hard,alpha=0.001,beta=0", "--seeds", "1", "--jobs", "1")
    assert reproduce(out, *some) == 128 + signal.SIGHUP
    assert "Stopping" in capfd.readouterr().err
    assert list(out.rglob("manifest.json"))


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_what_is_run_is_what_the_paper_has(tmp_path) -> None:
    assert short(tmp_path, "--seeds", "1") == 0
    plan = read_json(tmp_path / "sweep.json")
    assert sorted(plan["runs"]) == [
        "reward=hard,alpha=0.001,method=baseline,beta=0/seed=0",
        "reward=hard,alpha=0.001,method=rollin,beta=0.75/seed=0",
    ]
    for place, spec_hash in plan["runs"].items():
        assert read_json(tmp_path / place / "config.json")["spec_hash"] == spec_hash


@pytest.mark.parametrize("name", ["reward-maps", "goal-path"])
def test_a_figure_without_runs_is_drawn(name, tmp_path, capsys) -> None:
    assert main(["reproduce", name, "--out", str(tmp_path / "p")]) == 0
    with Image.open(tmp_path / "p" / f"{name}.png") as picture:
        assert min(picture.size) > 300
    assert (tmp_path / "p" / f"{name}.svg").read_text().startswith("<svg")
    assert f"Picture: {tmp_path / 'p' / name}.png" in capsys.readouterr().out


SPEED = {"four-rooms": 5000.0, "antmaze-umaze": 100.0, "walker": 100.0, "hopper": 100.0,
         "humanoid": 50.0, "ant": 100.0}  # fmt: skip


@pytest.fixture
def listed(capsys) -> Callable[..., tuple[str, dict[str, list[str]]]]:
    """What `rollin reproduce --list` prints, and the last three cells of each row by its name."""

    def call(*words: str) -> tuple[str, dict[str, list[str]]]:
        assert main(["reproduce", "--list", "--jobs", "4", *words]) == 0
        text = capsys.readouterr().out
        return text, {line.split()[0]: line.split()[-3:] for line in text.splitlines() if line}

    return call


def test_the_list_has_every_table_with_runs_and_hours(rates_cache, listed) -> None:
    cache_rates(SPEED, 4)
    _, rows = listed()
    # 36 cells × 8 seeds × 3,000,000 steps / 100 a second / 4 at a time = 600 hours
    assert rows["antmaze-vanilla"] == ["36", "288", "600"]
    # 28 × 10 × 50,000 / 5000 / 4 = 700 s
    assert rows["four-rooms"] == ["28", "280", "0.19"]
    # 3 cells × 8 seeds × 1,000,000 steps: three robots at 100 a second and one at 50, 4 at a time
    assert rows["velocity-summary"] == ["12", "96", "83.3"]
    assert rows["reward-maps"] == ["–", "–", "0"]
    assert rows["paper-numbers"] == ["–", "–", "–"]
    _, rows = listed("--steps", "5000")
    assert rows["velocity-summary"] == ["12", "96", "0.42"]
    _, rows = listed("--scale", "0.1", "--seeds", "2")
    assert rows["antmaze-vanilla"] == ["36", "72", "15.0"]


def test_the_list_of_a_table_has_its_conditions_with_seeds_and_hours(rates_cache, capsys) -> None:
    words = ["reproduce", "antmaze-decisive", "--list", "--jobs", "2"]
    assert main(words) == 0
    assert "To see hours, measure" in capsys.readouterr().out
    cache_rates({"antmaze-umaze": 100.0}, 2)
    assert main([*words, "--until", "1500000"]) == 0
    said = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines() if "beta=" in line}
    # 4 seeds × 1,500,000 steps / 100 a second / 2 at a time = 8.3 hours
    assert rows["curriculum=1/12,method=rollin,beta=0.9"] == ["10", "–", "13", "1,500,000", "8.3"]
    assert len(rows) == 3
    assert "25.0 hours on this machine with 2 runs side by side" in said
    assert main(["reproduce", "four-rooms", "--list", "--cells", CELLS, "--steps", "20"]) == 0
    said = capsys.readouterr().out
    assert sum("beta=" in line and " 20 " in line for line in said.splitlines()) == 2


def test_the_list_comes_without_hours_where_none_were_measured(
    rates_cache, listed, monkeypatch
) -> None:
    monkeypatch.setattr("rollin.cli.reproduce.measure_side_by_side", None)  # not to be called
    for damaged in (None, "{", '{"a": NaN}'):
        if damaged is not None:
            rates_cache.parent.mkdir(parents=True, exist_ok=True)
            rates_cache.write_text(damaged)
        said, rows = listed()
        assert rows["four-rooms"] == ["28", "280", "–"]
        assert said.endswith(
            "To see hours, measure for half a minute: rollin reproduce --list --measure --jobs 4\n"
        )
        assert "steps per second" not in said
    cache_rates({"four-rooms": 5000.0}, 4)
    said, rows = listed()
    assert rows["four-rooms"] == ["28", "280", "0.19"]
    assert rows["velocity-summary"] == ["12", "96", "–"]
    assert "measured: four-rooms 5,000; " in said
    assert "--list --measure --jobs 4" in said


@pytest.mark.parametrize("writable", [True, False])
def test_rates_are_measured_anew_told_as_they_come_and_kept(
    writable, rates_cache, capsys, listed, monkeypatch
) -> None:
    told: list[str] = []

    def measure_side_by_side(specs, workers):
        assert workers == 4
        for task in specs:
            yield task, SPEED[task]
            told.append(capsys.readouterr().out)

    monkeypatch.setattr("rollin.cli.reproduce.measure_side_by_side", measure_side_by_side)
    cache_rates(dict.fromkeys(SPEED, 1.0), 4)
    if not writable:
        rates_cache.unlink()
        rates_cache.parent.rmdir()
        rates_cache.parent.touch()  # a file where a directory is to be
    said, _ = listed("--measure")
    assert [text.split()[-2:] for text in told] == [[t, f"{SPEED[t]:,.0f}"] for t in SPEED]
    assert re.search(r"^four-rooms +Tables 6, 7 .* 0\.19$", said, re.MULTILINE)
    assert "rollin reproduce --list --measure" not in said
    assert ("the rates are not kept" in said) == (not writable)
    assert cached_rates(SPEED, 4) == (SPEED if writable else {})


def test_the_list_loads_nothing_that_computes_or_draws(tmp_path) -> None:
    code = (
        "import sys; from rollin.cli import main; assert main(['reproduce', '--list']) == 0;"
        "print([m for m in ('numba', 'scipy', 'matplotlib', 'mujoco', 'ray', 'jax') "
        "if m in sys.modules])"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
