"""The schedule of a sweep at the size of a cluster: 10,000 runs, a virtual clock, random failures.

    python -m benchmarks.schedule              # prints the table, writes results/cost/schedule.csv

The real `run_jobs` and its queue decide; only the place where runs are done is made up. There,
runs raise errors, worker processes and whole machines are lost, some runs fail always, and the
sweep itself is killed now and then and started again. The books of that place show whether a run
was lost or done twice, and what part of the machines' time was not spent on training.
"""

import argparse
import csv
import heapq
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rollin.runs.driver import CHECKPOINT_SECONDS
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.spec import Job, JobEvent, RunSpec
from rollin.sweeps.queue import run_jobs

RESULTS = Path(__file__).parents[1] / "results" / "cost"
HOUR = 3600.0
NODE_SLOTS = 64
STEPS = 1_000_000  # of every run, so that a step is a millionth of its work
COLUMNS = ("runs", "slots", "killed_sweeps", "finished", "failed_for_good", "errors", "lost",
           "run_twice", "forgotten", "training_hours", "start_share", "repeated_share",
           "pause_share", "schedule_share", "overhead", "tail_share")  # fmt: skip


@dataclass(frozen=True)
class World:
    """What runs cost and what goes wrong."""

    mean_hours: float = 4.0
    start_seconds: float = 10.0  # of a run: imports, compiled kernels, reading a checkpoint
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    error_share: float = 0.02  # of attempts that raise an error somewhere
    worker_hours: float = 100.0  # between two losses of one worker process
    node_hours: float = 500.0  # between two losses of one machine
    hopeless_share: float = 0.001  # of runs that fail always, at the same step


class Killed(Exception):  # noqa: N818
    """The sweep itself was killed."""


@dataclass
class Books:
    """What was really done, whoever asked for it."""

    saved: dict[str, float] = field(default_factory=dict)  # seconds of work in a run's checkpoint
    ends: Counter[str] = field(default_factory=Counter)  # how often each run finished
    begun_while_running: int = 0
    begun_when_finished: int = 0
    errors: int = 0
    lost: int = 0
    start: float = 0.0  # seconds of machines
    repeated: float = 0.0


@dataclass
class _Run:
    job: Job
    node: int
    began: float
    end: float
    kind: str


class SimulatedCluster:
    """A made-up place where runs are done: an `Executor` with a clock of its own."""

    def __init__(self, slots: int, world: World, books: Books, seed: int, kill_at: float) -> None:
        self.slots, self.world, self.books, self.kill_at = slots, world, books, kill_at
        self.now = 0.0
        self.idle = 0.0  # seconds of places that were free
        self.pause = 0.0  # of these, while there was a run that could have been there
        self.left = 0  # runs that are neither finished nor given up
        self.running: dict[str, _Run] = {}
        self.free = [i % max(1, slots // NODE_SLOTS) for i in range(slots)]
        self._random = np.random.default_rng(seed)
        self._events: list[tuple[float, int, str]] = []
        self._count = 0
        nodes = max(1, slots // NODE_SLOTS)
        self._node_loss = self._random.exponential(world.node_hours * HOUR / nodes)

    def clock(self) -> float:
        """Seconds of the virtual clock."""
        return self.now

    def room(self, job: Job) -> bool:
        """Whether a place is free."""
        return bool(self.free)

    def start(self, job: Job) -> None:
        """Draw how a run will end."""
        key, world, books = str(job.out), self.world, self.books
        books.begun_while_running += key in self.running
        books.begun_when_finished += books.ends[key] > 0
        work = run_seconds(key, world) - books.saved.get(key, 0.0)
        ends = {"finished": world.start_seconds + work}
        draw = self._random
        ends["lost"] = draw.exponential(world.worker_hours * HOUR)
        if hopeless(key, world):
            ends["failed"] = world.start_seconds + 0.5 * work
        elif draw.random() < world.error_share:
            ends["failed"] = world.start_seconds + draw.random() * work
        kind = min(ends, key=lambda name: ends[name])
        end = self.now + ends[kind]
        self.running[key] = _Run(job, self.free.pop(), self.now, end, kind)
        self._count += 1
        heapq.heappush(self._events, (end, self._count, key))

    def wait(self, seconds: float) -> list[JobEvent]:
        """Go to the next event; without any, let the time go by."""
        while self._events and not self._is_current(self._events[0]):
            heapq.heappop(self._events)
        following = self._events[0][0] if self._events else self.now + seconds
        if min(following, self._node_loss) >= self.kill_at:
            self._go_to(self.kill_at)
            raise Killed
        if self._node_loss < following:
            self._go_to(self._node_loss)
            return self._lose_a_node()
        self._go_to(following)
        if not self._events:
            return []
        return self._end(heapq.heappop(self._events)[2])

    def _go_to(self, then: float) -> None:
        free = len(self.free)
        self.idle += free * (then - self.now)
        self.pause += min(free, self.left - len(self.running)) * (then - self.now)
        self.now = then

    def hear(self, report: JobEvent) -> None:
        """What the schedule says: a run that is done, or given up, waits no longer."""
        self.left -= report.kind in ("finished", "failed")

    def stop(self) -> list[JobEvent]:
        """The sweep is over, or was killed: what runs is gone, but for its checkpoints."""
        for key in list(self.running):
            self._end(key, "lost")
        return []

    def _is_current(self, event: tuple[float, int, str]) -> bool:
        run = self.running.get(event[2])
        return run is not None and run.end == event[0]

    def _lose_a_node(self) -> list[JobEvent]:
        nodes = max(1, self.slots // NODE_SLOTS)
        self._node_loss += self._random.exponential(self.world.node_hours * HOUR / nodes)
        node = int(self._random.integers(nodes))
        keys = [key for key, run in self.running.items() if run.node == node]
        return [report for key in keys for report in self._end(key, "lost")]

    def _end(self, key: str, kind: str | None = None) -> list[JobEvent]:
        run, world, books = self.running.pop(key), self.world, self.books
        self.free.append(run.node)
        kind = kind or run.kind
        before = books.saved.get(key, 0.0)
        spent = self.now - run.began
        started = min(spent, world.start_seconds)
        done = before + spent - started
        books.start += started
        if kind == "finished":
            books.saved[key] = run_seconds(key, world)
            books.ends[key] += 1
            return [JobEvent("finished", run.job, {})]
        saved = max(before, done - done % world.checkpoint_seconds)
        books.saved[key] = saved
        books.repeated += done - saved
        books.errors += kind == "failed"
        books.lost += kind == "lost"
        step = int(STEPS * done / run_seconds(key, world))
        reached = JobEvent("progress", run.job, {"step": step})
        end = JobEvent("failed" if kind == "failed" else "lost", run.job, {"error": kind})
        return [reached, end]


def _number(key: str, salt: int) -> float:
    """A number in [0, 1) that belongs to a run."""
    return float(np.random.default_rng([int(Path(key).name), salt]).random())


def run_seconds(key: str, world: World) -> float:
    """What a run takes without any failure."""
    return HOUR * world.mean_hours * (0.5 + _number(key, 1))


def hopeless(key: str, world: World) -> bool:
    """Whether a run fails always."""
    return _number(key, 2) < world.hopeless_share


def simulate(runs: int, slots: int, kills: int, world: World, seed: int) -> dict[str, float]:
    """A whole sweep, started again after each time that it was killed; a row of the table."""
    spec = RunSpec("four-rooms", TabularConfig(steps=STEPS))
    jobs = [Job(str(i), spec, Path("runs") / str(i)) for i in range(runs)]
    books = Books()
    generator = np.random.default_rng(seed)
    expected = runs * world.mean_hours * HOUR / slots
    pause = idle = elapsed = decided = 0.0
    killed = 0
    failed: list[Job] = []
    while True:
        todo = [job for job in jobs if not books.ends[str(job.out)]]
        at = generator.uniform(0.02, 0.2) * expected if killed < kills else float("inf")
        cluster = SimulatedCluster(slots, world, books, seed + killed, at)
        cluster.left = len(todo)
        began = time.process_time()
        try:
            failed = run_jobs(todo, cluster, clock=cluster.clock, on_event=cluster.hear)
        except Killed:
            killed += 1
            continue
        finally:
            decided += time.process_time() - began
            elapsed += cluster.now
            pause += cluster.pause
            idle += cluster.idle
        break
    training = sum(books.saved.values())
    finished = sum(1 for count in books.ends.values() if count)
    overhead = {
        "start_share": books.start / training,
        "repeated_share": books.repeated / training,
        "pause_share": pause / training,
        "schedule_share": decided / elapsed,
    }
    return {
        "runs": runs, "slots": slots, "killed_sweeps": killed, "finished": finished,
        "failed_for_good": len(failed), "errors": books.errors, "lost": books.lost,
        "run_twice": sum(count - 1 for count in books.ends.values())
        + books.begun_while_running + books.begun_when_finished,
        "forgotten": runs - finished - len(failed), "training_hours": training / HOUR, **overhead,
        "overhead": sum(overhead.values()),
        # towards the end there are fewer runs than room for them, whoever shares them out
        "tail_share": (idle - pause) / training,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=5)
    options = parser.parse_args()
    rows = []
    for slots in (2, 64, 6400):
        row = simulate(options.runs, slots, options.kills, World(), seed=0)
        rows.append(row)
        print({name: round(value, 5) for name, value in row.items()}, flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "schedule.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: f"{value:.6g}" for name, value in row.items()} for row in rows)


if __name__ == "__main__":
    main()
