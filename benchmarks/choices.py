"""What each reading of the paper does: four rooms with one choice changed at a time.

    python -m benchmarks.choices --out runs/choices --csv results/four-rooms/choices.csv

One row of the paper's table (hard, α = 0.001), baseline and ROLLIN, a few seeds each; writes one
line per run. Interrupted, it goes on where it stopped.
"""

import argparse
import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from rollin.paper.four_rooms import cell
from rollin.runs.directory import RunDirectory
from rollin.runs.files import make_directory, write_atomically
from rollin.runs.spec import RunSpec
from rollin.sweeps.jobs import Job, JobEvent
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.queue import run_jobs

SETTINGS: dict[str, dict[str, Any]] = {
    "ours": {},
    "literal": {"literal": True},
    "success = goal": {"success": "goal"},
    "Adam kept": {"reset_adam": False},
    "γ = 0.9": {"gamma": 0.9},
    "γ = 0.99": {"gamma": 0.99},
    "μ recursive": {"mu": "recursive"},
    "roll-in sampled": {"rollin": "sampled"},
    "exact gradient": {"gradient": "exact"},
}
REWARD, ALPHA = "hard", 0.001


def jobs(out: Path, seeds: int) -> list[Job]:
    found = []
    for setting, changes in SETTINGS.items():
        for beta in (0.0, 0.75):
            # without noise all seeds are the same run
            for seed in range(1 if setting == "exact gradient" else seeds):
                spec = cell(REWARD, ALPHA, beta).spec(seed)
                spec = RunSpec(spec.task, replace(spec.config, **changes))
                name = f"{setting}, β = {beta:g}, seed {seed}"
                found.append(Job(name, spec, out / spec.hash))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/choices"))
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    planned = jobs(options.out, options.seeds)

    def show(report: JobEvent) -> None:
        if report.kind in ("finished", "failed"):
            print(report.kind, report.job.name, report.status.get("error", ""), flush=True)

    executor = LocalExecutor(options.jobs, "python -m benchmarks.choices")
    failed = run_jobs(planned, executor, on_event=show)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["setting", "reward", "alpha", "beta", "seed", "k", "final_return"])
    for job in planned:
        if job in failed:
            continue
        config, result = job.spec.config, RunDirectory.open(job.out).result()
        writer.writerow(
            [job.name.partition(",")[0], config.reward, config.alpha, config.beta, config.seed,
             result["k"], f"{result['final_return']:.4g}"]
        )  # fmt: skip
    make_directory(options.csv.parent)
    write_atomically(options.csv, table.getvalue().encode())
    print(f"{len(planned) - len(failed)} runs: {options.csv}")


if __name__ == "__main__":
    main()
