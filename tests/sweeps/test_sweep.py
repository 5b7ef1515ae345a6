"""Sweeps: parallel workers, interruption, failure of one run."""

import os
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import BASE, Demands, engine_of, run
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.files import read_json
from rollin.runs.spec import Job, JobEvent, RunSpec
from rollin.sweeps import local
from rollin.sweeps.condition import Condition
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.machine import _free_of_container, cores, free_memory
from rollin.sweeps.queue import run_jobs
from rollin.sweeps.study import Study
from rollin.sweeps.sweep import Fingerprints, Sweep, find_runs
from tests.forks import forking, serve_eagerly
from tests.here import HereExecutor, hurried
from tests.killing import needs_signals
from tests.runs.test_tabular_runs import assert_same_run, spec


def jobs(out: Path, n: int, **options) -> list[Job]:
    return [Job(f"seed={i}", spec(seed=i, **options), out / f"seed={i}") for i in range(n)]


def test_jobs_run_in_parallel_and_equal_single_runs(tmp_path) -> None:
    reports: list[JobEvent] = []
    todo = jobs(tmp_path / "sweep", 3)
    assert run_jobs(todo, LocalExecutor(2, "cmd"), on_event=reports.append) == []
    kinds = [(r.kind, r.job.name) for r in reports if r.kind != "progress"]
    assert sorted(kinds) == sorted(
        (kind, job.name) for job in todo for kind in ("started", "finished")
    )
    run(todo[1].spec, tmp_path / "alone", "cmd")
    assert_same_run(tmp_path / "alone", todo[1].out)


def test_one_bad_run_does_not_end_the_sweep(tmp_path) -> None:
    todo = jobs(tmp_path, 3, steps=30)
    bad = Job("bad", RunSpec("no_such:task", TabularConfig(steps=10)), tmp_path / "bad")
    reports: list[JobEvent] = []
    planned = [todo[0], bad, *todo[1:]]
    assert run_jobs(planned, forking(1), retries=0, on_event=reports.append) == [bad]
    errors = [r.status["error"] for r in reports if r.kind == "failed"]
    assert "no_such:task cannot be loaded" in errors[0]
    assert all((job.out / "result.json").exists() for job in todo)


def killer(victim: Job, times: int, reports: list[JobEvent]):
    """Kills the worker of a job when it reports, so many times."""

    def kill(report: JobEvent) -> None:
        reports.append(report)
        killed = sum(r.kind == "again" for r in reports)
        begun = report.kind == "progress" and report.status["step"] > 1
        if begun and report.job is victim and killed < times:
            with suppress(ProcessLookupError):  # news of one that is dead may still come
                os.kill(read_json(victim.out / "status.json")["pid"], signal.SIGKILL)

    return kill


@needs_signals
def test_the_run_of_a_killed_worker_is_gone_on_with(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(local, "_serve", serve_eagerly)
    todo = [*jobs(tmp_path, 1, steps=600), *jobs(tmp_path / "more", 1, steps=30)]
    reports: list[JobEvent] = []
    kill = killer(todo[0], 1, reports)
    assert run_jobs(todo, forking(1), on_event=kill, clock=hurried) == []
    (again,) = [r for r in reports if r.kind == "again"]
    assert again.job is todo[0]
    assert "worker process died" in again.status["error"]
    assert all((job.out / "result.json").exists() for job in todo)
    later = [r for r in reports[reports.index(again) :] if r.job is todo[0]]
    steps = [r.status["step"] for r in later if r.kind == "progress"]
    assert steps[0] > 1  # it did not begin anew
    run(todo[0].spec, tmp_path / "alone")
    assert_same_run(tmp_path / "alone", todo[0].out)


@needs_signals
def test_a_run_whose_worker_dies_again_and_again_is_given_up(tmp_path) -> None:
    todo = [*jobs(tmp_path, 1, steps=100_000), *jobs(tmp_path / "more", 2, steps=30)]
    reports: list[JobEvent] = []
    kill = killer(todo[0], 99, reports)
    assert run_jobs(todo, forking(1), retries=0, on_event=kill, clock=hurried)[-1:] == [todo[0]]
    assert read_json(todo[0].out / "status.json")["state"] == "failed"
    assert all((job.out / "result.json").exists() for job in todo[1:])


@needs_signals
def test_a_worker_that_is_told_to_leave_costs_neither_its_run_nor_another(tmp_path) -> None:
    todo = [*jobs(tmp_path, 1, steps=3000), *jobs(tmp_path / "more", 2, steps=30)]
    reports: list[JobEvent] = []

    def terminate(report: JobEvent) -> None:
        reports.append(report)
        if report.kind == "progress" and not any(r.kind == "again" for r in reports):
            os.kill(read_json(todo[0].out / "status.json")["pid"], signal.SIGTERM)

    assert run_jobs(todo, forking(1), retries=0, on_event=terminate, clock=hurried) == []
    assert {r.job.name for r in reports if r.kind == "again"} == {todo[0].name}
    assert all((job.out / "result.json").exists() for job in todo)


def test_a_run_that_another_process_has_is_waited_for(tmp_path) -> None:
    (job,) = jobs(tmp_path, 1, steps=20)
    taken = RunDirectory.claim(job.out, job.spec, Fingerprints().of(job.spec), "")
    reports: list[JobEvent] = []
    with ExitStack() as held:
        held.enter_context(taken.lock())

        def let_go(report: JobEvent) -> None:
            reports.append(report)
            if report.kind == "again":
                held.close()

        assert run_jobs([job], forking(1), retries=0, on_event=let_go, clock=hurried) == []
    assert [r.kind for r in reports if r.is_end] == ["again", "finished"]
    assert "is being run by process" in reports[1].status["error"]


@needs_signals
def test_a_worker_killed_while_idle_does_not_cost_a_run(tmp_path) -> None:
    todo = [*jobs(tmp_path, 1, steps=5), *jobs(tmp_path / "more", 2, steps=200)]

    def kill_after_first(report: JobEvent) -> None:
        if report.kind == "finished" and report.job is todo[0]:
            os.kill(read_json(todo[0].out / "status.json")["pid"], signal.SIGKILL)
            time.sleep(0.3)

    assert run_jobs(todo, forking(1), on_event=kill_after_first, clock=hurried) == []
    assert all((job.out / "result.json").exists() for job in todo)


def test_runs_that_take_too_much_memory_together_wait_for_each_other(tmp_path) -> None:
    todo = jobs(tmp_path, 2, steps=30)
    running = 0
    most: list[int] = []

    def count(report: JobEvent) -> None:
        nonlocal running
        running += {"started": 1, "finished": -1}.get(report.kind, 0)
        most.append(running)

    assert run_jobs(todo, forking(2, memory=2 * BASE - 1), on_event=count) == []
    assert max(most) == 1
    tiny = forking(2, memory=1)  # less than one run takes: it is let in all the same
    assert run_jobs(jobs(tmp_path / "tiny", 2, steps=5), tiny) == []


def demands_of(of: RunSpec) -> Demands:
    return engine_of(of).demands(of)


def test_memory_is_what_the_replay_will_take() -> None:
    from rollin.paper.tables import find_table

    condition = find_table("velocity-summary").conditions[-1]
    assert condition.task == "ant"
    # a row: 8 actions, 27 observed before and after, 1 of context, reward, flag, 2 of outcome
    taken = demands_of(condition.spec(0))
    env_row = (taken.memory - BASE) / condition.config.steps
    assert taken.cpus == 1
    assert taken.gpus == 0
    assert env_row == 4 * (8 + 2 * 27 + 1 + 2 + 2) + 16
    assert demands_of(condition.spec(0, 0.1)).memory == BASE + round(0.1 * env_row * 1_000_000)
    assert demands_of(spec()).memory == BASE


def test_a_containers_limit_is_respected(tmp_path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/job/step\n")
    root = tmp_path / "root"
    (root / "job" / "step").mkdir(parents=True)
    assert _free_of_container(root, own) is None
    (root / "job" / "memory.max").write_text("1000\n")  # the limit of a group above
    (root / "job" / "memory.current").write_text("700\n")
    assert _free_of_container(root, own) == 300
    (root / "job" / "memory.stat").write_text("anon 100\ninactive_file 250\n")
    assert _free_of_container(root, own) == 550  # pages of files can be had back
    (root / "memory.max").write_text("500\n")
    (root / "memory.current").write_text("400\n")
    assert _free_of_container(root, own) == 100
    for path in root.rglob("memory.max"):
        path.write_text("max\n")
    assert _free_of_container(root, own) is None
    assert free_memory() > 0
    assert 1 <= cores() <= (os.cpu_count() or 1)


def sweep(out: Path, todo: list[Job], name: str = "demo", scale: float = 1.0) -> Sweep:
    condition = Condition({"reward": "easy"}, "four-rooms", {"reward": "easy"})
    study = Study(name, (condition,), family=name.partition("-")[0])
    return Sweep(study.entry(scale), study.shared, scale, out, tuple(todo))


def test_a_directory_of_something_else_is_refused(tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("keep me")
    with pytest.raises(RollinError, match="is not a sweep"):
        sweep(tmp_path, []).plan("")
    sweep(tmp_path / "s", []).plan("first")
    with pytest.raises(RollinError, match=r"another study \(demo\), not of velocity-summary"):
        sweep(tmp_path / "s", [], "velocity-summary").plan("second")
    with pytest.raises(RollinError, match=r"at 1 of their full length, not 0\.5"):
        sweep(tmp_path / "s", [], scale=0.5).plan("second")
    assert read_json(tmp_path / "s" / "sweep.json")["commands"] == ["first"]


@pytest.mark.parametrize(
    "text",
    ['{"family": "demo"}', '{"table": "demo", "command": "x"}', "[]", "{",
     '{"family": "demo", "scale": 1, "tables": ["demo"], "commands": [], "runs": []}'],
)  # fmt: skip
def test_a_sweep_file_that_cannot_be_told_is_refused(tmp_path, text) -> None:
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(RollinError, match=r"sweep\.json"):
        sweep(tmp_path, []).plan("")
    assert (tmp_path / "sweep.json").read_text() == text


def test_tables_of_one_family_share_their_runs(tmp_path) -> None:
    out = tmp_path / "s"
    first, both = jobs(out, 1, steps=20), jobs(out, 2, steps=20)
    assert sweep(out, first, "demo-one").plan("one").todo == first
    run_jobs(first, HereExecutor())
    plan = sweep(out, both, "demo-two").plan("two")
    assert plan.done == first
    assert plan.todo == both[1:]
    kept = read_json(out / "sweep.json")
    assert [entry["name"] for entry in kept["studies"]] == ["demo-one", "demo-two"]
    assert kept["commands"] == ["one", "two"]
    assert kept["runs"] == {f"seed={i}": job.spec.hash for i, job in enumerate(both)}


def test_a_broken_run_directory_is_passed_over_and_named(tmp_path) -> None:
    out = tmp_path / "s"
    todo = jobs(out, 4, steps=20)
    sweep(out, todo).plan("")
    run_jobs(todo[:3], HereExecutor())
    (todo[0].out / "config.json").write_text("{")
    (todo[1].out / "result.json").write_text("")
    plan = sweep(out, todo).plan("")
    assert [job for job, _ in plan.broken] == todo[:2]
    for (_, why), name in zip(plan.broken, ("config.json", "result.json"), strict=True):
        assert name in why
        assert "is not valid JSON" in why or "cannot be read" in why
    assert plan.done == [todo[2]]
    assert plan.todo == [todo[3]]
    others = jobs(out, 4, steps=25)  # another plan for the same places
    sweep(out, others).plan("")
    assert read_json(out / "sweep.json")["runs"]["seed=2"] == todo[2].spec.hash


def test_another_spec_in_a_jobs_place_is_passed_over(tmp_path) -> None:
    one = jobs(tmp_path, 1, steps=20)
    run_jobs(one, HereExecutor())
    ((_, why),) = sweep(tmp_path, jobs(tmp_path, 1, steps=25))._sorted().broken
    assert "holds another run" in why


def test_bad_worker_counts_and_directories_are_named(tmp_path) -> None:
    with pytest.raises(RollinError, match="at least 1"):
        LocalExecutor(0)
    with pytest.raises(RollinError, match="is not a directory"):
        find_runs(tmp_path / "nowhere")
