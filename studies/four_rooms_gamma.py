"""Four rooms: which γ gives the published progress and the published returns?

    python -m studies.four_rooms_gamma run --jobs 2     # runs/four-rooms-gamma; goes on by itself
    python -m studies.four_rooms_gamma collect          # results/four-rooms/gamma.csv
    make pages                                          # the tables of docs/results/four-rooms.md

The paper does not state γ. Seed 0 is for choosing a setting; seeds 10 – 19, which took part
in no choice, are for reporting it. What the settings can give at all, without any run, is in
`studies.four_rooms_returns`.
"""

import argparse
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.paper.four_rooms import HEADLINE_BETA, ROWS, cell
from rollin.runs.directory import RunDirectory
from rollin.runs.files import make_directory, read_json, write_atomically, write_json
from rollin.runs.spec import RunSpec, TabularConfig
from rollin.sweeps.jobs import Job, JobEvent
from rollin.sweeps.local import LocalExecutor
from rollin.sweeps.queue import run_jobs
from rollin.sweeps.rates import processor
from rollin.tabular.four_rooms import GAMMA

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results" / "four-rooms" / "gamma.csv"
MACHINE = "machine.json"
FIGURES = (
    "k",
    "kappa",
    "final_return",
    "final_return_infinite",
    "final_return_undiscounted",
    "collects",
    "collects_discounted",
    "success",
    "seconds",
)
VERSIONS = ("rollin", "python", "numpy", "numba", "scipy")
IDENTITY = ("setting", "reward", "alpha", "beta", "seed", "gamma")
COLUMNS: list[str] = [*IDENTITY, *FIGURES, "reached_last", "spec_hash", *VERSIONS]
COLUMNS += ["processor", "command"]
BETAS = (0.0, HEADLINE_BETA)
CHOOSING = range(1)


@dataclass(frozen=True)
class Setting:
    """A reading of the paper, why it is tried, and the rows of the table it is tried on."""

    name: str
    why: str
    changes: dict[str, Any]
    rows: tuple[tuple[str, float], ...] = ROWS

    def spec(self, reward: str, alpha: float, beta: float, seed: int) -> RunSpec[TabularConfig]:
        """The run of one seed."""
        spec = cell(reward, alpha, beta).spec(seed)
        return RunSpec(spec.task, replace(spec.config, **self.changes))


# Every reason was written before the setting was run.
SETTINGS = (
    Setting("γ = 0.95", "our default", {}),
    Setting(
        "γ = 0.973",
        "collecting at the edge of the easy reward is worth 10.62 over 50 steps",
        {"gamma": 0.973},
    ),
    Setting(
        "γ = 0.963",
        "the same over an infinite horizon",
        {"gamma": 0.963},
    ),
    Setting("γ = 0.97", "the round number below 0.973", {"gamma": 0.97}),
    Setting(
        "γ = 0.975",
        "the round number above it: a policy 5 or 6 % below the best edge collector "
        "would have both returns",
        {"gamma": 0.975},
    ),
    Setting(
        "γ = 0.973, Adam kept",
        "both returns need a hard policy 1 % farther from the edge collector than the easy one; "
        "at γ = 0.95 keeping Adam's moments leaves it farther away",
        {"gamma": 0.973, "reset_adam": False},
        tuple((reward, alpha) for reward, alpha in ROWS if alpha == 0.001),
    ),
    Setting(
        "γ = 0.93",
        "where, at α = 0.01 and over an infinite horizon, collecting at the edge of the hard "
        "reward is worth the entropy it costs up to context 8 and not beyond; published: 8, 9",
        {"gamma": 0.93},
        tuple((reward, alpha) for reward, alpha in ROWS if alpha == 0.01),
    ),
)
# The default, and the two settings that are nearest to the published returns on seed 0. The second
# of them was added when the other had failed on these seeds, before any of its own was seen.
REPORTED = {"γ = 0.95": range(10, 20), "γ = 0.963": range(10, 15), "γ = 0.973": range(10, 15)}


@dataclass(frozen=True)
class Run:
    """One run of the study."""

    setting: Setting
    reward: str
    alpha: float
    beta: float
    seed: int

    @property
    def spec(self) -> RunSpec[TabularConfig]:
        """What is run."""
        return self.setting.spec(self.reward, self.alpha, self.beta, self.seed)

    @property
    def command(self) -> str:
        """The command that repeats it."""
        options = {"reward": self.reward, "alpha": f"{self.alpha:g}", "beta": f"{self.beta:g}"}
        if "gamma" in self.setting.changes:
            options["gamma"] = f"{self.setting.changes['gamma']:g}"
        words = [f"--{name} {value}" for name, value in options.items()]
        if self.setting.changes.get("reset_adam") is False:
            words.append("--no-reset-adam")
        return f"rollin train four-rooms {' '.join(words)} --steps 50000 --seed {self.seed}"

    def job(self, out: Path) -> Job:
        """It with its directory."""
        place = f"{self.setting.name}, {self.reward}, α = {self.alpha:g}, β = {self.beta:g}"
        return Job(f"{place}, seed {self.seed}", self.spec, out / self.spec.hash)


def runs() -> Iterator[Run]:
    """All runs: those for choosing first, then those for reporting."""
    plan = [(setting, CHOOSING) for setting in SETTINGS]
    plan += [(setting, REPORTED[setting.name]) for setting in SETTINGS if setting.name in REPORTED]
    for setting, seeds in plan:
        for seed in seeds:
            for reward, alpha in reversed(setting.rows):
                for beta in BETAS:
                    yield Run(setting, reward, alpha, beta, seed)


def run(out: Path, workers: int) -> None:
    """Do what is not yet done, on one kind of machine."""
    make_directory(out)
    here = {"processor": processor()}
    if (out / MACHINE).exists() and (there := read_json(out / MACHINE)) != here:
        raise RollinError(
            f"{out} holds runs of another processor ({there.get('processor')}); this is "
            f"{here['processor']}: give another --out."
        )
    write_json(out / MACHINE, here)
    todo = [job for job in (r.job(out) for r in runs()) if not RunDirectory(job.out).finished]

    def tell(report: JobEvent) -> None:
        if report.is_end:
            print(report.kind, report.job.name, report.status.get("error", ""), flush=True)

    run_jobs(todo, LocalExecutor(workers, "python -m studies.four_rooms_gamma run"), on_event=tell)


def collect(out: Path) -> None:
    """One line per finished run."""
    machine = read_json(out / MACHINE)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    count = 0
    for found in runs():
        directory = RunDirectory(out / found.spec.hash)
        if not directory.finished:
            continue
        count += 1
        result, config = directory.result(), found.spec.config
        row = {name: f"{result[name]:.10g}" for name in FIGURES}
        row |= {"setting": found.setting.name, "gamma": f"{gamma_of(config):g}"}
        row |= {name: f"{getattr(config, name):g}" for name in ("alpha", "beta", "seed")}
        row |= {name: result["versions"][name] for name in VERSIONS}
        row |= {"reward": config.reward, "spec_hash": found.spec.hash, "command": found.command}
        row["reached_last"] = " ".join(str(s["step"]) for s in result["switches"] if s["k"] == 16)
        writer.writerow({**row, "processor": machine["processor"]})
    write_atomically(RECORDS, text.getvalue().encode())
    print(f"{count} of {len(list(runs()))} runs in {RECORDS}")


def gamma_of(config: TabularConfig) -> float:
    """The γ of a run, the task's own if it names none."""
    return GAMMA if config.gamma is None else config.gamma


def main() -> None:
    parser = argparse.ArgumentParser(description="Four rooms: which γ?")
    parser.add_argument("what", choices=["run", "collect"])
    parser.add_argument("--out", type=Path, default=Path("runs/four-rooms-gamma"))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    try:
        if options.what == "run":
            run(options.out, options.jobs)
        else:
            collect(options.out)
    except RollinError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
