"""What a sweep shows while it runs, and what `rollin list` shows of it from outside."""

import io
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from rollin.cli import main
from rollin.cli.console import Overview, SweepProgress, duration
from rollin.cli.list_runs import overview_of
from rollin.paper.four_rooms import STEPS, condition
from rollin.paper.tables import find_table
from rollin.runs.directory import RunDirectory
from rollin.runs.files import read_json, write_json
from rollin.runs.spec import Job, JobEvent
from rollin.sweeps.queue import run_jobs
from rollin.sweeps.sweep import Sweep
from tests.here import HereExecutor
from tests.made_runs import reseal


def status(step: int, steps: int = 1000) -> dict:
    shown = {"k": "3/16", "κ": "0.188"}
    return {"step": step, "steps": steps, "shown": shown, "steps_per_second": 50.0,
            "eta_seconds": (steps - step) / 50}  # fmt: skip


def job(name: str) -> Job:
    return Job(name, condition("easy", 0.001, 0.0).spec(0, 1000 / STEPS), Path(name))


def console(*, terminal: bool, width: int = 100, height: int = 14) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=terminal, width=width, height=height, color_system=None,
        legacy_windows=False,
    )  # fmt: skip


def said(of: Console) -> str:
    assert isinstance(of.file, io.StringIO)
    return of.file.getvalue()


def test_durations_are_short_and_exact() -> None:
    assert duration(None) == "–"
    assert duration(59.4) == "0:59"
    assert duration(59.6) == "1:00"
    assert duration(3723) == "1:02:03"
    assert duration(48 * 3600 + 5 * 60) == "2 d 00:05"


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The seconds that the process sees, to be set."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_the_eta_of_a_resumed_sweep_counts_only_new_work(clock) -> None:
    progress = SweepProgress(2, 0, console(terminal=True))
    clock[0] = 10.0
    progress.take(JobEvent("started", job("a"), {}))
    for step in (900, 950):  # resumed at 900; 50 steps in 10 s leave 1050 for 210 s
        progress.take(JobEvent("progress", job("a"), status(step)))
    assert duration(progress.overview.seconds_left) == "3:30"


def test_compiling_is_said_once_and_is_no_time_of_work(clock) -> None:
    plain, wide = console(terminal=False), console(terminal=True)
    for out in (plain, wide):
        progress = SweepProgress(2, 0, out)
        for name in "ab":
            progress.take(JobEvent("started", job(name), {}))
            progress.take(JobEvent("progress", job(name), {**status(0), "compiling": True}))
        out.print(progress)
        clock[0] += 60.0
        for name in "ab":
            progress.take(JobEvent("progress", job(name), status(0)))
        clock[0] += 10.0
        for name in "ab":
            for step in (1, 100):
                progress.take(JobEvent("progress", job(name), status(step)))
        assert duration(progress.overview.seconds_left) == "1:30"
    assert said(plain).count("Compiling, once per machine …") == 1
    assert said(wide).count("compiling, once per machine") == 2
    assert "0/1,000" not in said(wide)


def test_the_dashboard_shows_queue_running_done_failed_and_eta(clock) -> None:
    out = console(terminal=True)
    progress = SweepProgress(6, 1, out, "four-rooms in DIR")
    for name in "abc":
        progress.take(JobEvent("started", job(name), {}))
    clock[0] = 10.0
    for step in (1, 400):
        progress.take(JobEvent("progress", job("a"), status(step)))
    progress.take(JobEvent("failed", job("b"), {"error": "it broke"}))
    progress.take(JobEvent("again", job("c"), {"error": "lost", "seconds": 2.0}))
    out.print(progress)
    shown = said(out)
    assert "four-rooms in DIR" in shown
    assert "1 of 6 done, 1 failed, 1 running, 3 waiting, 1:30" in shown
    assert "400/1,000" in shown
    assert "0.188" in shown
    assert " 50 " in shown
    assert "failed b: it broke" in shown
    assert "again in 2 s: c: lost" in shown


def test_the_dashboard_of_a_cluster_fits_the_terminal() -> None:
    out = console(terminal=True, height=12)
    progress = SweepProgress(500, 0, out)
    for i in range(100):
        progress.take(JobEvent("progress", job(f"run {i:03}"), status(i + 1)))
    out.print(progress)
    lines = said(out).splitlines()
    assert len(lines) <= 12
    assert any("and 96 more running" in line for line in lines)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_names_are_cut_before_numbers_on_a_narrow_terminal(width) -> None:
    out = console(terminal=True, width=width)
    name = "noise=0.25 sampling=geometric delta=1/24 method=baseline beta=0.75 seed=3"
    progress = SweepProgress(500, 0, out)
    shown = status(1_234_567, 3_000_000)
    shown["shown"] |= {"training mean / threshold": "126.67 / 200", "roll-ins": "12345"}
    progress.take(JobEvent("progress", job(name), shown))
    out.print(progress)
    lines = said(out).splitlines()
    head = next(line for line in lines if line.startswith("run"))
    row = next(line for line in lines if line.startswith("noise=0.25 sampling"))
    assert "1,234,567/3,000,000" in row
    assert "0.188" in row
    assert row.split()[-2:] == ["50", "9:48:29"]
    assert head.split()[-2:] == ["steps/s", "left"]
    assert max(map(len, lines)) <= width


def test_without_a_terminal_there_are_plain_lines_but_not_too_many(clock) -> None:
    out = console(terminal=False, width=200)
    progress = SweepProgress(200, 0, out)
    for second in range(0, 40):
        clock[0] = float(second)
        for i in range(50):
            progress.take(JobEvent("progress", job(f"run {i:03}"), status(second + 1)))
    progress.take(JobEvent("finished", job("run 000"), {}))
    lines = said(out).splitlines()
    assert lines[0].startswith("run 000 step 17/1000 k 3/16 κ 0.188 50 steps/s 0:20 left")
    assert len(lines) == 9  # four in every fifteen seconds, and the finished one
    assert lines[-1].startswith("finished run 000 (1/200, ")


@pytest.fixture
def sweep(tmp_path) -> Sweep:
    """Two finished runs, of five that are planned."""
    out = tmp_path / "sweep"
    one = condition("easy", 0.001, 0.0)
    jobs = tuple(
        Job(f"seed={i}", one.spec(i, 30 / STEPS), out / one.name / f"seed={i}") for i in range(5)
    )
    made = replace(find_table("four-rooms").sweep(out, 1, 30 / STEPS), jobs=jobs)
    made.plan("rollin reproduce four-rooms")
    run_jobs(jobs[:2], HereExecutor())
    return made


def running(sweep: Sweep, i: int, **values) -> None:
    """Make a planned run look as if it was running."""
    job = sweep.jobs[i]
    RunDirectory.claim(job.out, job.spec, None, "").write_status(
        "running", **{**status(10, 30), **values}
    )


def test_list_shows_a_sweep_from_outside_while_it_runs(sweep, capsys) -> None:
    running(sweep, 2)
    running(sweep, 3, host="elsewhere")
    assert main(["list", str(sweep.out)]) == 0
    text = capsys.readouterr().out
    assert f"{sweep.out}: four-rooms at 0.0006 of the full length" in text.replace("\n", "")
    assert "2 of 5 done, 2 running, 1 waiting" in text
    (row,) = [line for line in text.splitlines() if "seed=2 " in line]
    assert "running" in row
    assert "10/30" in row
    assert "0.188" in row
    assert " 50 " in row


def test_runs_whose_process_is_gone_are_not_shown_as_running(sweep, capsys) -> None:
    running(sweep, 2, pid=2**22 + 1)  # beyond any process number
    running(sweep, 3, host="elsewhere")
    path = sweep.jobs[3].out / "status.json"
    write_json(path, {**read_json(path), "updated": time.time() - 3600})
    assert main(["list", str(sweep.out)]) == 0
    text = capsys.readouterr().out
    assert text.count("killed") == 2
    assert "2 of 5 done, 0 running, 3 waiting, – left" in text


def test_list_names_broken_runs_and_a_broken_sweep(sweep, capsys) -> None:
    (sweep.jobs[0].out / "config.json").write_text("{")
    (sweep.jobs[1].out / "result.json").write_text("")
    assert main(["list", str(sweep.out)]) == 0
    text = capsys.readouterr().out
    assert text.count("broken: ") == 2
    assert "0 of 5 done, 2 failed, 0 running, 3 waiting" in text
    (sweep.out / "sweep.json").write_text("[]")
    assert main(["list", str(sweep.out)]) == 0
    assert "sweep.json cannot be read" in capsys.readouterr().out


def test_list_takes_odd_values_for_what_they_are(sweep, capsys) -> None:
    running(sweep, 2, steps_per_second=0.0)
    path = sweep.jobs[2].out / "status.json"
    write_json(path, {n: v for n, v in read_json(path).items() if n != "eta_seconds"})
    running(sweep, 3, steps="many")
    assert main(["list", str(sweep.out)]) == 0
    text = capsys.readouterr().out
    assert "2 of 5 done, 1 failed, 1 running, 1 waiting, – left" in text
    assert "broken: status.json holds other values than expected" in text


def test_many_runs_are_counted_and_all_shown_if_asked_for(sweep, capsys, monkeypatch) -> None:
    monkeypatch.setattr("rollin.cli.list_runs.MANY", 1)
    running(sweep, 2)
    main(["list", str(sweep.out)])
    text = capsys.readouterr().out
    assert "2 more runs are finished or waiting: --all shows them." in text
    assert "seed=0" not in text
    assert "seed=2" in text
    main(["list", str(sweep.out), "--all"])
    assert "seed=0" in capsys.readouterr().out


def test_the_time_left_is_worked_out_from_finished_and_running_runs(tmp_path) -> None:
    """Two run, with 10 s and 20 s to go; two wait; a finished one took 60 s: (30 + 120) / 2."""
    paths = [tmp_path / str(i) for i in range(5)]
    paths[0].mkdir()
    write_json(paths[0] / "result.json", {"sha256": {}})
    reseal(paths[0], seconds=60.0)
    found = {paths[0]: ("finished", {})}
    for path, eta in zip(paths[1:3], (10.0, 20.0), strict=True):
        found[path] = ("running", {**status(1), "eta_seconds": eta})
    overview = overview_of(paths, found)
    assert overview.waiting == 2
    assert overview.seconds_left == 75.0
    assert Overview(4, 1, {"a": status(500)}).share == 0.375
