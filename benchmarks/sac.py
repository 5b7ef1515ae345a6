"""SAC on one core and on two: ours and its peers taking turns in one run.

    make bench-sac    or    python -m benchmarks.sac --peers PYTHON [--only PART] [--lanes N] …

Every contestant is a process of its own that runs only in its turn (the others are stopped), pinned
to the same cores. A round lets each work for 0.3 s; tables show medians over rounds.
Then each is started a few times for the seconds to its first update, and our own training step is
taken apart. `--lanes 8` does the first part with the instructions of AVX2 alone. Replaces the rows
of this kind of CPU in results/sac/{speed,start,parts}.csv; `--only page` writes the page and its
chart from the files alone (see `benchmarks.sac_page`) and needs no peers.
"""

import argparse
import os
import statistics
import tempfile
import time
from typing import Any

from benchmarks.peers.sac.case import Case
from benchmarks.records import Row, read, replaced, write
from benchmarks.sac_page import (
    CONTESTANTS,
    DATA,
    FLOORS,
    SLOW,
    TASKS,
    Task,
    title_of,
    write_page,
)
from benchmarks.turns import Worker, allowed_cores, end_on_request, launch_all, take_turns
from rollin.runs.systems import processor

ROUNDS, ROUND_SECONDS = 7, 0.3
STARTS = 2
MEASURES = ("updates", "steps")


def contestants(task: Task, cores: int, lanes: int | None) -> list[str]:
    """Who takes part; some only with wide networks and the machine's own vectors."""
    all_of_them = task.wide and lanes is None
    names = [name for name in CONTESTANTS if all_of_them or name not in SLOW]
    return [*names, *FLOORS] if task.wide and cores == 1 else names


def case_of(task: Task, cores: int) -> Case:
    """A task on so many cores."""
    return Case(task.env, task.hidden, task.batch, cores)


def measure(title: str, cores: int, options: argparse.Namespace) -> list[Row]:
    """All contestants of a task on so many cores, in turn."""
    task = TASKS[title]
    case = case_of(task, cores)
    names = [(name, case) for name in contestants(task, cores, options.lanes)]
    workers = launch_all(names, options.peers, options.lanes)
    try:
        for what in MEASURES:
            able = [worker for worker in workers if can(worker.name, what, task)]
            take_turns(able, what, options.rounds, options.seconds)
    finally:
        for worker in workers:
            worker.close()
    (lanes,) = {worker.lanes for worker in workers if worker.name == "rollin cpu"}
    same = {"processor": processor(), "lanes": lanes, "forced": int(options.lanes is not None)}
    return [
        {**same, **row_of(worker, title_of(title, what), cores, what)}
        for what in MEASURES
        for worker in workers
        if what in worker.turns
    ]


def can(name: str, what: str, task: Task) -> bool:
    """Whether a contestant can do it and it is wanted."""
    if what == "updates":
        return task.wide and name != "RLtools"
    return name not in FLOORS


def row_of(worker: Worker, title: str, cores: int, what: str) -> Row:
    """What goes into the CSV besides the kind of machine."""
    rates = [turn.per_second for turn in worker.turns[what]]
    return {
        "version": worker.version,
        "case": title,
        "cores": cores,
        "contestant": worker.name,
        "per_second": round(statistics.median(rates), 2),
        "lowest": round(min(rates), 2),
        "highest": round(max(rates), 2),
        "per_cpu_second": round(worker.median(what).per_cpu_second, 2),
        "rounds": len(rates),
    }


def starts(peers: str) -> list[Row]:
    """Seconds from the start of a process to its first training step, of everybody.

    first: with empty caches, as on a machine that has never run it; later: medians of some starts.
    """
    case = case_of(TASKS["Hopper"], 1)
    found: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    rows: list[Row] = []
    lanes = None
    with tempfile.TemporaryDirectory(prefix="rollin-bench-") as directory:
        caches = ("NUMBA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TMPDIR")  # RLtools' in the last
        empty: dict[str, str] = dict.fromkeys(caches, directory)
        for i in range(1 + STARTS):
            for name, seconds in found.items():
                worker = Worker.launch(name, case, peers, extra=empty)
                seconds.append(worker.start)
                lanes = worker.lanes or lanes
                worker.close()
                if i == STARTS:
                    rows.append({"version": worker.version, "contestant": name})
    for row in rows:
        first, *later = found[row["contestant"]]
        row |= {"first": round(first, 2), "later": round(statistics.median(later), 2)}
        row |= {"runs": len(later)}
    return [{"processor": processor(), "lanes": lanes, **row} for row in rows]


def parts(title: str) -> Row:
    """Microseconds that acting, storing and drawing take in our training steps, on one core."""
    from benchmarks.peers.sac.ours import RollinCpu
    from rollin import __version__
    from rollin.sac.cpu import simd

    os.sched_setaffinity(0, set(allowed_cores()[:1]))
    task = TASKS[title]
    ours = RollinCpu(case_of(task, 1))
    spent = {"act": 0.0, "append": 0.0, "draw": 0.0, "gather": 0.0}

    def watch(owner: Any, name: str) -> None:
        call = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args, **options)
            finally:
                spent[name] += time.perf_counter() - began

        setattr(owner, name, timed)

    watch(ours.learner, "act")
    for name in ("append", "draw", "gather"):
        watch(ours.replay, name)
    ours.steps(50)
    spent.update(dict.fromkeys(spent, 0.0))
    count = 1500 if task.wide else 20_000
    began = time.perf_counter()
    ours.steps(count)
    whole = time.perf_counter() - began
    micro = {name: round(1e6 * value / count, 1) for name, value in spent.items()}
    return {
        "processor": processor(),
        "lanes": simd.LANES,
        "version": f"rollin {__version__}",
        "task": title,
        **micro,
        "whole_step": round(1e6 * whole / count, 1),
    }


def add(name: str, rows: list[Row], keys: tuple[str, ...] = ()) -> None:
    """Put new rows in the place of those of the same kind of CPU."""
    path = DATA / name
    write(path, replaced(read(path), rows, ("processor", "lanes", *keys)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="Python of the peers' environment")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="of a turn")
    parser.add_argument("--only", choices=("speed", "start", "parts", "page"), help="one part")
    parser.add_argument("--lanes", type=int, choices=(8, 4), help="narrower vectors; speed alone")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--cores", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    options = parser.parse_args()
    if options.peers is None and options.only not in ("parts", "page"):
        parser.error("--peers must name the Python of the peers' environment (make bench-sac)")
    end_on_request()
    only = "speed" if options.lanes is not None else options.only
    if only in (None, "speed"):
        for title in options.tasks:
            for cores in options.cores:
                if cores > len(allowed_cores()):
                    continue
                if options.lanes is not None and cores == 2 and not TASKS[title].wide:
                    continue
                rows = measure(title, cores, options)
                add("speed.csv", rows, ("case", "cores"))
                said = (f"{row['contestant']} {row['per_second']}," for row in rows)
                print(title, cores, *said, flush=True)
    if only in (None, "start"):
        add("start.csv", starts(str(options.peers)))
    if only in (None, "parts"):
        add("parts.csv", [parts(title) for title in ("Hopper", "Ant", "small networks")])
    write_page()


if __name__ == "__main__":
    main()
