"""The study of ROLLIN on point-umaze: does it work, and why?

    python -m benchmarks.umaze run --out runs/umaze --jobs 2   # goes on where it stopped
    python -m benchmarks.umaze collect --out runs/umaze        # results/point-umaze/*.csv

Three settings: `demo` is the task's own; `slow` has half the speed and starts at Δ of the path, so
that the first goal does not teach to stay put; `fine` is the counter-example with half the step,
Δ = 1/24.
"""

import argparse
import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollin.envs.registry import TASKS
from rollin.runs.rows import read_metrics
from rollin.runs.spec import RollinConfig, RunSpec, rollin_config
from rollin.sweeps.jobs import Job, JobEvent
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.queue import run_jobs

RESULTS = Path(__file__).parents[1] / "results" / "point-umaze"
SEEDS = 10
SETTINGS: dict[str, dict[str, Any]] = {
    "demo": {},
    "slow": {"env_options": ("max_speed=0.25",), "start": 1 / 12},
    "fine": {"delta": 1 / 24},
}
METHODS = (("baseline", 0.0), ("rollin", 0.1), ("rollin", 0.2), ("rollin", 0.5))
ABLATIONS = {"demo": (0.1, 0.2, 0.5), "slow": (0.2,), "fine": (0.2,)}


@dataclass(frozen=True)
class Cell:
    """One setting and method."""

    setting: str
    method: str
    beta: float

    @property
    def name(self) -> str:
        """Its directory name."""
        return f"{self.setting},{self.method},beta={self.beta:g}"

    def spec(self, seed: int) -> RunSpec[RollinConfig]:
        """The run of one seed."""
        options: dict[str, Any] = {**TASKS["point-umaze"].defaults, **SETTINGS[self.setting]}
        options |= {"method": self.method, "beta": self.beta, "seed": seed}
        return RunSpec("point-umaze", rollin_config(**options))


def cells() -> Iterator[Cell]:
    for setting in SETTINGS:
        if setting == "demo":
            yield Cell(setting, "scratch", 0.0)
        for method, beta in METHODS:
            yield Cell(setting, method, beta)
        for beta in ABLATIONS[setting]:
            yield Cell(setting, "fresh", beta)


def jobs(out: Path) -> list[Job]:
    """All runs; settings one after the other, seeds evenly in each."""
    return [
        Job(f"{cell.name} seed={seed}", cell.spec(seed), out / cell.name / f"seed={seed}")
        for setting in SETTINGS
        for seed in range(SEEDS)
        for cell in cells()
        if cell.setting == setting
    ]


def run(out: Path, workers: int) -> None:
    todo = jobs(out)
    done = 0

    def tell(report: JobEvent) -> None:
        nonlocal done
        if report.kind in ("finished", "failed"):
            done += 1
            print(f"{done}/{len(todo)} {report.kind} {report.job.name}", flush=True)

    executor = LocalExecutor(workers, f"python -m benchmarks.umaze run --out {out}")
    run_jobs(todo, executor, on_event=tell)


def collect(out: Path) -> None:
    """One row per run, and κ against steps for every run, as CSV."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    runs, curves = [], []
    for job in jobs(out):
        path = job.out / "result.json"
        if not path.exists():
            continue
        result = json.loads(path.read_text())
        cell, seed = job.spec.config, job.spec.config.seed
        setting = job.name.split(",")[0]
        key = [setting, cell.algorithm.method, f"{cell.algorithm.beta:g}", seed]
        mastered = {advance["k"] - 1: advance["step"] for advance in result["advances"]}
        if result["completed"]:
            mastered[result["K"]] = result["completed"]["step"]
        runs.append(
            [
                *key,
                f"{result['kappa']:.6g}",
                f"{result['kappa_mean_last']:.6g}",
                result["k"],
                result["K"],
                f"{result['eval_return_final']:.4g}",
                result["eval_success_final"],
                result["updates_main"],
                result["updates_exp"],
                result["rollin_episodes"],
                result["rollin_steps"],
                result["seconds"],
                " ".join(str(mastered.get(k, "")) for k in range(result["K"] + 1)),
                result["spec_hash"],
            ]
        )
        metrics = read_metrics(job.out / "metrics.csv")
        curves += [
            [*key, int(step), f"{kappa:.6g}"]
            for step, kappa in zip(metrics["step"], metrics["kappa"], strict=True)
        ]
    header = ["setting", "method", "beta", "seed"]
    figures = ["kappa", "kappa_mean_last", "k", "K", "eval_return_final", "eval_success_final"]
    figures += ["updates_main", "updates_exp", "rollin_episodes", "rollin_steps", "seconds"]
    _write("runs.csv", [*header, *figures, "mastered_at", "spec_hash"], runs)
    _write("curves.csv", [*header, "step", "kappa"], curves)
    print(f"{len(runs)} runs in {RESULTS}")


def _write(name: str, header: list[str], rows: list[list[Any]]) -> None:
    with (RESULTS / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([header, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description="The study of ROLLIN on point-umaze.")
    parser.add_argument("what", choices=["run", "collect"])
    parser.add_argument("--out", type=Path, default=Path("runs/umaze"))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.what == "run":
        run(options.out, options.jobs)
    else:
        collect(options.out)


if __name__ == "__main__":
    main()
