"""Return against CPU time: ours and the packages learn two quick tasks, three seeds each.

    make bench-learning    or    python -m benchmarks.learning --peers PYTHON [--jobs N] …

One process per contestant and seed, on one core, one after the other or as many as `--jobs`. What
has been measured on this kind of CPU is not measured again (`--anew NAME` does); a stopped run
loses only the trials under way. Records results/sac/learning.csv, and from it
results/sac/learning.md and docs/images/learning-speed.png; `--page` writes these alone.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from queue import Empty, Queue

from benchmarks.learning_page import CONTESTANTS, RECORDS, TASKS, write_page
from benchmarks.peers.sac.learn import Trial
from benchmarks.records import Row, read, replaced, write
from benchmarks.turns import OURS, ROOT, allowed_cores, environment
from rollin.runs.systems import processor

SEEDS = 3
WARMUP = 1_000  # random steps of everybody
KEYS = ("processor", "task", "contestant", "seed")
LEARN = ROOT / "benchmarks" / "peers" / "sac" / "learn.py"

Work = tuple[str, str, int]
"""Task, contestant and seed."""


def trial_of(task: str, seed: int) -> Trial:
    """What is run."""
    of = TASKS[task]
    return Trial(of.env, seed, WARMUP, of.every, of.episodes, of.target, of.seconds)


def wanted(seeds: int, only: list[str], anew: list[str]) -> Iterator[Work]:
    """What is missing, seeds outside, so that all contestants have the first one early."""
    known = {tuple(row[key] for key in KEYS) for row in read(RECORDS)}
    for seed in range(seeds):
        for task in TASKS:
            for name in only:
                if name in anew or (processor(), task, name, seed) not in known:
                    yield task, name, seed


def learn(work: Work, peers: str, core: int) -> list[Row]:
    """Run a trial on a core; its rows."""
    task, name, seed = work
    python = sys.executable if name in OURS else peers
    process = subprocess.Popen(
        [python, str(LEARN), name, json.dumps(asdict(trial_of(task, seed)))],
        env=environment(1),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.sched_setaffinity(process.pid, [core])
    printed, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{name} ended with code {process.returncode}:\n{errors}")
    version, *lines = printed.splitlines()
    rows = []
    for line in lines:
        step, used, mean = line.split()
        same = {"processor": processor(), "version": version, "task": task, "contestant": name}
        rows.append({**same, "seed": seed, "step": step, "cpu_seconds": used, "return": mean})
    return rows


def run(todo: Queue[Work], peers: str, core: int, lock: threading.Lock) -> None:
    """Take trials from the queue until it is empty, and put each one's rows into the file."""
    while True:
        try:
            work = todo.get_nowait()
        except Empty:
            return
        rows = learn(work, peers, core)
        with lock:
            write(RECORDS, replaced(read(RECORDS), rows, KEYS))
        last = rows[-1]
        print(
            *work, "steps", last["step"], "CPU s", last["cpu_seconds"], last["return"], flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="Python of the peers' environment")
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time, a core each")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--anew", nargs="+", choices=CONTESTANTS, default=[])
    parser.add_argument("--page", action="store_true", help="from the records alone")
    options = parser.parse_args()
    if not options.page:
        if options.peers is None:
            parser.error("--peers must name the Python of the peers' environment")
        todo: Queue[Work] = Queue()
        for work in wanted(options.seeds, options.only, options.anew):
            todo.put(work)
        lock, cores = threading.Lock(), allowed_cores()
        with ThreadPoolExecutor(options.jobs) as pool:
            on = [cores[i % len(cores)] for i in range(options.jobs)]
            list(pool.map(lambda core: run(todo, options.peers, core, lock), on))
    write_page()


if __name__ == "__main__":
    main()
