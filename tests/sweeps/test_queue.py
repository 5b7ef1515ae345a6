"""The schedule of a sweep: order, retries, and a whole cluster on a virtual clock."""

import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.schedule import World, simulate
from hypothesis import given
from hypothesis import strategies as st

from rollin.errors import RollinError
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.spec import Job, JobEvent, RunSpec, configured
from rollin.sweeps.queue import LONGEST_DELAY, UNBEGUN, Queue, attempt, run_jobs

SPEC = RunSpec("four-rooms", TabularConfig(steps=100))


def jobs(n: int) -> list[Job]:
    return [Job(str(i), SPEC, Path(str(i))) for i in range(n)]


def ends(queue: Queue, kind: str, *steps: int | None) -> list[str]:
    """What becomes of the next attempts, each after the longest delay, that end at these steps."""
    found = []
    for count, step in enumerate(steps):
        now = count * LONGEST_DELAY
        assert queue.next(now) is not None
        found.append(end(queue, queue.start(), kind, step, now).kind)
    return found


def end(queue: Queue, job: Job, kind, step: int | None = None, now: float = 0.0) -> JobEvent:
    if step is not None:
        queue.take(JobEvent("progress", job, {"step": step}), now)
    return queue.take(JobEvent(kind, job, {"error": "because"}), now)


def test_jobs_start_in_their_order_and_are_done_once() -> None:
    queue = Queue(jobs(2))
    assert queue.next(0.0) is queue.next(0.0)
    first = queue.start()
    assert first.name == "0"
    assert queue.start().name == "1"
    assert queue.next(1e9) is None
    assert end(queue, first, "finished").kind == "finished"
    with pytest.raises(ValueError, match="0 is not running"):
        end(queue, first, "finished")
    assert queue.unfinished


def test_an_error_is_tried_again_a_stated_number_of_times() -> None:
    queue = Queue(jobs(1), retries=2)
    now = 0.0
    for expected in (2.0, 4.0):
        again = end(queue, queue.start(), "failed", step=10, now=now)
        assert again.kind == "again"
        assert again.status == {"error": "because", "seconds": expected}
        assert queue.next(now + expected - 0.01) is None  # not at once
        now += expected
        assert queue.next(now) is not None
    assert end(queue, queue.start(), "failed", step=99, now=now).kind == "failed"
    assert [job.name for job in queue.failed] == ["0"]
    assert not queue.unfinished


def test_a_final_error_is_not_tried_again() -> None:
    queue = Queue(jobs(2), retries=2)
    told = JobEvent("failed", queue.start(), {"error": "no MuJoCo", "final": True})
    assert queue.take(told, 0.0).kind == "failed"
    assert [job.name for job in queue.failed] == ["0"]
    assert queue.start().name == "1"


def test_a_missing_extra_is_final(monkeypatch, tmp_path) -> None:
    monkeypatch.delitem(sys.modules, "rollin.sac.jax", raising=False)
    monkeypatch.setitem(sys.modules, "jax", None)
    config = configured(RollinConfig(), {"learner": "jax", "steps": 10})
    ignored: Any = lambda *_: None  # noqa: E731
    kind, status = attempt(
        Job("a", RunSpec("point-umaze", config), tmp_path / "a"), "", ignored, bool
    )
    assert kind == "failed"
    assert "pip install '.[jax]'" in status["error"]
    assert status["final"]


def test_a_loss_counts_only_if_the_run_got_no_farther() -> None:
    """A machine lost again and again, but the run gets on; then twice without progress."""
    found = ends(Queue(jobs(1), retries=1), "lost", *range(1, 50), 49, 49)
    assert found == ["again"] * 50 + ["failed"]


def test_a_run_that_never_began_is_forgiven_for_long_but_not_for_ever() -> None:
    found = ends(Queue(jobs(1), retries=0), "lost", *[None] * (UNBEGUN + 1))
    assert found == ["again"] * UNBEGUN + ["failed"]


def test_a_run_that_another_process_has_is_looked_at_until_it_is_free() -> None:
    queue = Queue(jobs(1), retries=0)
    assert ends(queue, "busy", *[None] * 100) == ["again"] * 100
    assert queue.next(101 * LONGEST_DELAY) is not None
    assert end(queue, queue.start(), "finished").kind == "finished"
    assert not queue.unfinished


def test_two_jobs_in_one_directory_are_refused() -> None:
    with pytest.raises(ValueError, match="the same directory"):
        Queue([*jobs(1), *jobs(1)])
    with pytest.raises(RollinError, match="--retries must be at least 0"):
        Queue([], retries=-1)


@given(
    st.integers(1, 12),
    st.integers(0, 3),
    st.lists(st.sampled_from(["finished", "failed", "lost", "busy", "progress"]), max_size=200),
)
def test_whatever_happens_no_job_is_forgotten_or_done_twice(n, retries, events) -> None:
    queue = Queue(jobs(n), retries)
    finished: list[str] = []
    now = 0.0
    for step, kind in enumerate(events):
        now += LONGEST_DELAY
        while queue.next(now) is not None and len(queue.running) < 3:
            assert queue.start().name not in finished
        if not queue.running:
            break
        job = next(iter(queue.running.values()))
        report = queue.take(JobEvent(kind, job, {"error": "x", "step": step}), now)
        finished += [job.name] if report.kind == "finished" else []
    waiting = []
    while queue.next(now + LONGEST_DELAY) is not None:
        waiting.append(queue.start())
        del queue.running[str(waiting[-1].out)]
    names = [*finished, *(job.name for job in (*queue.failed, *queue.running.values(), *waiting))]
    assert sorted(names) == sorted(job.name for job in jobs(n))


class Immediate:
    """An executor with room for one, whose jobs end as they are told to."""

    def __init__(self, kinds: dict[str, list[str]]) -> None:
        self.kinds, self.job, self.stopped = kinds, None, False

    def room(self, job: Job) -> bool:
        return self.job is None

    def start(self, job: Job) -> None:
        self.job = job

    def wait(self, seconds: float) -> list[JobEvent]:
        if self.job is None:
            return []
        job, self.job = self.job, None
        kind = (self.kinds.get(job.name) or ["finished"]).pop(0)
        return [JobEvent(kind, job, {"error": "because"})]  # pyright: ignore[reportArgumentType]

    def stop(self) -> list[JobEvent]:
        self.stopped = True
        return [JobEvent("stopped", self.job, {})] if self.job else []


def test_the_others_go_on_after_a_failure() -> None:
    executor = Immediate({"1": ["failed", "failed"], "2": ["failed", "finished"]})
    seen: list[JobEvent] = []
    clock = iter(range(0, 10**6, 10)).__next__
    failed = run_jobs(jobs(4), executor, retries=1, on_event=seen.append, clock=clock)
    assert [job.name for job in failed] == ["1"]
    ends = [(r.job.name, r.kind) for r in seen if r.kind != "started"]
    assert sorted(ends) == [
        ("0", "finished"), ("1", "again"), ("1", "failed"), ("2", "again"), ("2", "finished"),
        ("3", "finished"),
    ]  # fmt: skip
    assert executor.stopped


def test_a_stop_ends_the_sweep_and_tells_the_executor() -> None:
    executor = Immediate({})
    seen: list[JobEvent] = []
    run_jobs(
        jobs(4), executor, on_event=seen.append,
        should_stop=lambda: any(r.kind == "finished" for r in seen),
    )  # fmt: skip
    assert executor.stopped
    assert sum(r.kind == "finished" for r in seen) == 1


@pytest.mark.parametrize("slots", [2, 64, 640])
def test_ten_thousand_runs_with_failures_are_all_accounted_for(slots) -> None:
    row = simulate(10_000, slots, kills=3, world=World(), seed=slots)
    assert row["run_twice"] == 0
    assert row["forgotten"] == 0
    assert row["finished"] + row["failed_for_good"] == 10_000
    assert 0 < row["failed_for_good"] < 30  # the hopeless ones
    assert row["errors"] > 100
    assert row["lost"] > 100
    assert row["overhead"] - row["schedule_share"] < 0.01  # that share is of a real clock


def test_the_simulation_would_notice_a_bad_schedule(monkeypatch) -> None:
    """A queue that starts what is finished again, and one that forgets what was lost."""
    honest = Queue.take
    repeated: list[Job] = []

    def repeats(self: Queue, report: JobEvent, now: float) -> JobEvent:
        if report.kind == "finished" and not repeated:
            repeated.append(report.job)
            self._waiting.append(report.job)
        return honest(self, report, now)

    monkeypatch.setattr(Queue, "take", repeats)
    assert simulate(50, 4, 0, World(), 0)["run_twice"] > 0

    def forgets(self: Queue, report: JobEvent, now: float) -> JobEvent:
        found = honest(self, report, now)
        if found.kind == "again":
            self._delayed.pop()
        return found

    monkeypatch.setattr(Queue, "take", forgets)
    assert simulate(200, 4, 0, World(worker_hours=10), 0)["forgotten"] > 0
