"""Sweeps: parallel workers, interruption, failure of one run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rollin.errors import RollinError
from rollin.runs.backend import Job, Report, run_jobs
from rollin.runs.files import read_json
from rollin.runs.spec import RunSpec, TabularConfig
from rollin.runs.sweep import Sweep, find_runs
from tests.test_runs import assert_same_run, spec


def jobs(out: Path, n: int, **options) -> list[Job]:
    return [Job(f"seed={i}", spec(seed=i, **options), out / f"seed={i}") for i in range(n)]


def test_jobs_run_in_parallel_and_equal_single_runs(tmp_path) -> None:
    reports: list[Report] = []
    todo = jobs(tmp_path / "sweep", 3)
    assert run_jobs(todo, 2, "cmd", reports.append) == []
    kinds = [(r.kind, r.job.name) for r in reports if r.kind != "progress"]
    assert sorted(kinds) == sorted(
        (kind, job.name) for job in todo for kind in ("started", "finished")
    )
    from rollin.runs.driver import run

    run(todo[1].spec, tmp_path / "alone", "cmd")
    assert_same_run(tmp_path / "alone", todo[1].out)


def test_one_bad_run_does_not_end_the_sweep(tmp_path) -> None:
    todo = jobs(tmp_path / "sweep", 3, steps=30)
    bad = Job("bad", RunSpec("no_such:task", TabularConfig(steps=10)), tmp_path / "sweep" / "bad")
    reports: list[Report] = []
    failed = run_jobs([todo[0], bad, *todo[1:]], 1, "", reports.append)
    assert failed == [bad]
    errors = [r.status["error"] for r in reports if r.kind == "failed"]
    assert "no_such:task cannot be loaded" in errors[0]
    assert all((job.out / "result.json").exists() for job in todo)


def test_a_killed_worker_costs_only_its_run(tmp_path) -> None:
    todo = [*jobs(tmp_path, 1, steps=100_000), *jobs(tmp_path / "more", 2, steps=30)]
    reports: list[Report] = []

    def kill_first(report: Report) -> None:
        reports.append(report)
        if report.kind == "progress" and report.job is todo[0]:
            os.kill(read_json(todo[0].out / "status.json")["pid"], signal.SIGKILL)

    assert run_jobs(todo, 1, "", kill_first) == [todo[0]]
    died = next(r for r in reports if r.kind == "failed")
    assert "worker process died" in died.status["error"]
    assert all((job.out / "result.json").exists() for job in todo[1:])


def test_a_worker_killed_while_idle_does_not_end_the_sweep(tmp_path) -> None:
    """A worker is killed between two jobs; only the job that was handed to it may fail."""
    todo = [*jobs(tmp_path, 1, steps=5), *jobs(tmp_path / "more", 2, steps=400)]
    reports: list[Report] = []

    def kill_after_first(report: Report) -> None:
        reports.append(report)
        if report.kind == "finished" and report.job is todo[0]:
            os.kill(read_json(todo[0].out / "status.json")["pid"], signal.SIGKILL)
            time.sleep(0.3)

    failed = run_jobs(todo, 1, "", kill_after_first)
    assert todo[0] not in failed
    assert len(failed) <= 1  # at most the job that was handed to the dead worker
    assert (todo[2].out / "result.json").exists()


def test_an_interrupted_sweep_goes_on_and_repeats_nothing(tmp_path) -> None:
    out = tmp_path / "sweep"
    command = [sys.executable, "-m", "rollin", "demo", "--out", str(out), "--seeds", "2",
               "--steps", "900", "--jobs", "2"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 120
    while not list(out.rglob("result.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    first = {p: p.stat().st_mtime_ns for p in out.rglob("result.json")}
    assert first
    if len(first) < 4:  # the signal may come after the last run on a fast machine
        assert "Go on with: rollin demo" in text
        assert not (out / "report.html").exists()
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "Report: " in done.stdout
    assert (out / "report.html").exists()
    results = list(out.rglob("result.json"))
    assert len(results) == 4
    for path, stamp in first.items():
        assert path.stat().st_mtime_ns == stamp


def test_a_directory_of_something_else_is_refused(tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("keep me")
    with pytest.raises(RollinError, match="is not a sweep"):
        Sweep("demo", tmp_path, ()).prepare("")
    Sweep("demo", tmp_path / "s", ()).prepare("first")
    with pytest.raises(RollinError, match=r"another table \(demo\)"):
        Sweep("four-rooms", tmp_path / "s", ()).prepare("second")
    assert read_json(tmp_path / "s" / "sweep.json")["command"] == "first"


def test_another_spec_in_a_jobs_place_is_refused(tmp_path) -> None:
    one = jobs(tmp_path, 1, steps=20)
    run_jobs(one, 1)
    with pytest.raises(RollinError, match="holds another run"):
        Sweep("demo", tmp_path / "x", tuple(jobs(tmp_path, 1, steps=25))).prepare("")


def test_bad_worker_counts_and_directories_are_named(tmp_path) -> None:
    with pytest.raises(RollinError, match="at least 1"):
        run_jobs([], 0)
    with pytest.raises(RollinError, match="is not a directory"):
        find_runs(tmp_path / "nowhere")
