"""How the cost of a step grows with sizes and threads: ours beside the best peers.

    make bench-scaling    or    python -m benchmarks.scaling --peers PYTHON [--rounds N] [--page]

SAC: training steps on an environment of 5 µs with Hopper's sizes, hidden layers of 32 to 1024 units
with batches of 256, then batches of 32 to 1024 with layers of 256; ours and jaxrl on one core and
on two, RLtools on one, at the ends and in the middle, because each of its points calls the C++
compiler. All contestants of a point take turns (see `benchmarks.turns`). Tabular: see
`benchmarks.scaling_tabular`. Replaces this kind of CPU's rows in results/sac/scaling.csv and writes
results/sac/scaling.md and docs/images/scaling.png from it; `--page` writes these alone.
"""

import argparse
import json
import subprocess
import sys
import time

from benchmarks.peers.sac.case import Case
from benchmarks.records import Row, read, replaced, write
from benchmarks.scaling_page import RECORDS, write_page
from benchmarks.turns import ROOT, allowed_cores, end_on_request, launch_all, take_turns
from rollin.runs.systems import processor

ROUNDS, ROUND_SECONDS = 5, 0.25
WIDTH, BATCH = 256, 256
SIZES = (32, 64, 128, 256, 512, 1024)
COMPILED = ((32, 256), (256, 256), (1024, 256), (256, 32), (256, 1024))
"""Width and batch of RLtools' points."""


def measure(width: int, batch: int, options: argparse.Namespace) -> list[Row]:
    """A point: everybody in turn. A row's axis is filled in by the caller."""
    threads = [n for n in (1, 2) if n <= len(allowed_cores())]
    cases = {n: Case("spin", (width, width), batch, n) for n in threads}
    names = [(name, cases[n]) for name in ("rollin cpu", "jaxrl") for n in threads]
    names += [("RLtools", cases[1])] if (width, batch) in COMPILED else []
    workers = launch_all(names, options.peers)
    try:
        take_turns(workers, "steps", options.rounds, options.seconds)
    finally:
        for worker in workers:
            worker.close()
    return [
        {
            "processor": processor(),
            "lanes": workers[0].lanes,
            "version": worker.version,
            "part": "SAC",
            "threads": case.threads,
            "contestant": worker.name,
            "rounds": options.rounds,
            "microseconds": round(1e6 / worker.median("steps").per_second, 1),
            "cpu_microseconds": round(1e6 / worker.median("steps").per_cpu_second, 1),
        }
        for worker, (_, case) in zip(workers, names, strict=True)
    ]


def sac(options: argparse.Namespace) -> list[Row]:
    """Both sweeps; they share a point."""
    points = {(width, BATCH): ("width", width) for width in SIZES}
    points |= {(WIDTH, batch): ("batch", batch) for batch in SIZES}
    rows: list[Row] = []
    for (width, batch), (axis, value) in points.items():
        found = measure(width, batch, options)
        print(
            width,
            batch,
            *(f"{r['contestant']} {r['threads']}: {r['microseconds']} µs," for r in found),
            flush=True,
        )
        rows += [{**row, "axis": axis, "value": value} for row in found]
        if (width, batch) == (WIDTH, BATCH):
            rows += [{**row, "axis": "width", "value": width} for row in found]
    return rows


def tabular(rounds: int, lanes: int) -> list[Row]:
    """The tabular sweeps, in a process with threads of its own."""
    command = [sys.executable, "-m", "benchmarks.scaling_tabular", str(rounds)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [{"processor": processor(), "lanes": lanes, **row} for row in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="Python of the peers' environment")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="of a turn")
    parser.add_argument("--page", action="store_true", help="from the records alone")
    options = parser.parse_args()
    if not options.page:
        if options.peers is None:
            parser.error("--peers must name the Python of the peers' environment")
        end_on_request()
        began = time.time()
        rows = sac(options)
        rows += tabular(options.rounds, rows[0]["lanes"])
        minutes = round((time.time() - began) / 60, 1)
        rows = [{**row, "minutes": minutes} for row in rows]
        write(RECORDS, replaced(read(RECORDS), rows, ("processor", "lanes")))
    write_page()


if __name__ == "__main__":
    main()
